//! Waits of operations by the scheduler's books, beside those by its context switches: two agents measure the same operations, each
//! in its own way.

use anyhow::{Result, ensure};
use lab::{Agent, Server, reconcile};
use nfscope_model::{ProbeState, Snapshot, family};

/// Largest difference of a phase: relative to itself, and to the time of all operations. Both ways read clocks at moments of their
/// own, and the cost of the two agents' programs is in different places.
const CLOSE: f64 = 0.05;
const CLOSE_OF_ALL: f64 = 0.003;

/// Agent that measures waits at every context switch, beside the one that reads the books.
pub struct BySwitches {
    agent: Agent,
    before: Vec<Snapshot>,
}

impl BySwitches {
    pub fn begin(server: &Server, books: &Agent) -> Result<Self> {
        let agent = server.agent(&["--max-clients", "1000", "--test-no-books"])?;
        for (agent, used) in [(books, "sched_io_end"), (&agent, "sched_switched")] {
            let probes = agent.snapshot()?.probes;
            let sched = probes.iter().filter(|p| p.probe == "sched");
            let up: Vec<_> = sched
                .filter(|p| p.state != ProbeState::Unsupported)
                .collect();
            ensure!(
                up.iter().any(|p| p.program == used)
                    && up
                        .iter()
                        .filter(
                            |p| p.program == "sched_switched" || p.program.starts_with("sched_io")
                        )
                        .all(|p| (p.program == "sched_switched") == (used == "sched_switched")),
                "{up:?}"
            );
        }
        let before = reconcile::settled(server, &[books, &agent])?.1;
        Ok(BySwitches { agent, before })
    }

    /// Checks that both agents have measured the same since then.
    pub fn agree(self, server: &Server, books: &Agent) -> Result<()> {
        let after = reconcile::settled(server, &[books, &self.agent])?.1;
        let phases = |n: usize| {
            let seen = after[n].since(&self.before[n]).delta;
            reconcile::by_last_label(&seen, &family::OP_PHASE.info, |_| true)
        };
        let [by_books, by_switches] = [0, 1].map(phases);
        let all: f64 = by_switches.values().sum();
        // A skipped program leaves one operation's wait unknown, which then counts as CPU time.
        let skipped = |n: usize| {
            let seen = after[n].since(&self.before[n]).delta;
            let of = |(labels, n): ([&str; 2], f64)| (labels[1] == "recursion").then_some(n);
            seen.numbers(&family::EVENTS_LOST)
                .filter_map(of)
                .sum::<f64>()
        };
        let skipped = skipped(0) + skipped(1);
        println!("books {by_books:.3?}, switches {by_switches:.3?}, {skipped} programs skipped");
        let close_of_all = CLOSE_OF_ALL * (1.0 + skipped);
        for (phase, seconds) in &by_switches {
            let books = by_books.get(phase).copied().unwrap_or(0.0);
            ensure!(
                (books - seconds).abs() <= CLOSE * seconds + close_of_all * all,
                "{phase}: {books} s by the books, {seconds} s by context switches, of {all} s"
            );
        }
        self.agent.stop().map(drop)
    }
}
