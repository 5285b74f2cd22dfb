//! Programs that are attached in the machine during a measurement, from the host's side.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nfscope_model::ProbeState;

use crate::Agent;
use crate::breakdown::Breakdown;
use crate::control::Running;
use crate::server::Server;

const PEER: &str = include_str!("../../guest/peer.bt");
const OFF_CPU: &str = include_str!("../../guest/offcpu.bt");
/// The longest `by` that a break-down accepts.
pub(super) const ALL: &str = "by=client,export,op,version,user,file";
const EMPTY: &str = include_str!("../../guest/empty.py");
/// Time limit for one measurement, or for bpftrace to attach: emulated, and beside another machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Program that is attached during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// Nothing.
    Nothing,
    /// The agent without phases, never scraped.
    NoPhases,
    /// The agent with all its probes on, never scraped.
    Agent,
    /// The bpftrace script that measures the same as the agent without phases.
    Bpftrace,
    /// The bpftrace script that measures the same as the phases.
    OffCpu,
    /// An empty program at every context switch.
    Empty,
    /// The agent with programs that end at once: the cost of entering them.
    Entered,
    /// The agent, while a stream breaks operations down by these names.
    BrokenDown(&'static str),
    /// The agent without one of its counts beside operations.
    Without(Beside),
    /// The agent, with the probe of the machine's own mounts, too.
    ClientView,
}

/// Counts of the agent beside operations and their time: enum counted_beside in probes/bpf/lib/tables.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Beside {
    /// Slots of sessions.
    Slots,
    /// Requests of each client that only look up, or open.
    Walks,
    /// Writes that may be lost.
    Durable,
}

impl Beside {
    /// Object of the nfsd probe without this count.
    fn left_out(self) -> &'static [u8] {
        match self {
            Beside::Slots => nfscope_probes::NFSD_WITHOUT_SLOTS,
            Beside::Walks => nfscope_probes::NFSD_WITHOUT_WALKS,
            Beside::Durable => nfscope_probes::NFSD_WITHOUT_DURABLE,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Beside::Slots => "slots of sessions",
            Beside::Walks => "walks and opens by client",
            Beside::Durable => "writes that may be lost",
        }
    }
}

impl With {
    pub fn name(self) -> String {
        let name = match self {
            With::Nothing => "alone",
            With::NoPhases => "with the agent without phases",
            With::Agent => "with the agent",
            With::Bpftrace => "with bpftrace",
            With::OffCpu => "with the off-CPU script",
            With::Empty => "with an empty program",
            With::Entered => "with the agent's programs emptied",
            With::BrokenDown(ALL) => "with the agent and a break-down",
            With::BrokenDown(by) => by,
            With::Without(beside) => return format!("without {}", beside.name()),
            With::ClientView => "with --client",
        };
        name.to_owned()
    }

    /// True if the program can cost NFS operations anything.
    pub fn operations(self) -> bool {
        self != With::Empty
    }

    /// True if the program can cost context switches anything.
    pub fn switches(self) -> bool {
        matches!(
            self,
            With::Nothing | With::NoPhases | With::Agent | With::OffCpu | With::Empty
        )
    }
}

/// Attached program. Dropping it detaches; [`Attached::detach`] also checks that it saw operations.
pub(super) enum Attached {
    Nothing,
    Agent(Agent),
    /// Agent with a stream.
    Breakdown(Agent, Breakdown),
    /// Script, and the names that it must have printed.
    Script(Running, Vec<&'static str>),
}

impl Attached {
    /// Attaches the program, a script perhaps without its queue times.
    pub fn attach(server: &Server, with: With, without_queue: bool) -> Result<Attached> {
        Ok(match with {
            With::Nothing => Attached::Nothing,
            With::NoPhases => Attached::Agent(agent(server, false)?),
            With::Agent => Attached::Agent(agent(server, true)?),
            With::Entered => Attached::Agent(healthy(server, &["--test-skip-one-in", "1"])?),
            With::BrokenDown(by) => {
                let agent = agent(server, true)?;
                let stream = Breakdown::begin(agent.address(), by)?;
                Attached::Breakdown(agent, stream)
            }
            With::Without(beside) => {
                let object = server.dir().join("nfsd.bpf.o");
                fs::write(&object, beside.left_out())
                    .with_context(|| format!("writing {}", object.display()))?;
                let object = object.display().to_string();
                Attached::Agent(healthy(server, &["--test-nfsd-object", &object])?)
            }
            With::ClientView => Attached::Agent(healthy(server, &["--client"])?),
            With::Bpftrace => {
                let mut prints = vec!["@dispatch_ns:", "@reply_ns:"];
                if !without_queue {
                    prints.push("@queue_ns:");
                }
                Attached::Script(script(server, "bpftrace", &peer(without_queue)?)?, prints)
            }
            With::OffCpu => {
                Attached::Script(script(server, "bpftrace", OFF_CPU)?, vec!["@off_ns["])
            }
            With::Empty => Attached::Script(script(server, "python3", EMPTY)?, Vec::new()),
        })
    }

    /// Detaches the program.
    pub fn detach(self) -> Result<()> {
        match self {
            Attached::Nothing => {}
            Attached::Agent(agent) => drop(agent.stop()?),
            Attached::Breakdown(agent, stream) => {
                let told = stream.end()?;
                agent.stop()?;
                // A break-down without operations costs nothing, and would look cheap.
                ensure!(told.total().count > 0, "nothing was broken down");
            }
            Attached::Script(mut running, prints) => {
                running.signal(2)?;
                let said = running.wait(PATIENCE)?.ok("the script")?;
                // A script without measurements costs nothing, and would look cheap.
                for name in prints {
                    if !said.stdout.contains(name) {
                        bail!(
                            "the script measured no {name} {}{}",
                            said.stdout,
                            said.stderr
                        );
                    }
                }
            }
        }
        Ok(())
    }
}

/// Starts an agent with these arguments, and waits until it times operations.
fn healthy(server: &Server, arguments: &[&str]) -> Result<Agent> {
    let agent = server.agent_start(arguments)?;
    agent.wait_until_healthy(PATIENCE)?;
    Ok(agent)
}

/// Starts the agent with or without phases, and checks that it has them or not.
pub(super) fn agent(server: &Server, phases: bool) -> Result<Agent> {
    let arguments: &[&str] = if phases { &[] } else { &["--no-phases"] };
    let agent = healthy(server, arguments)?;
    let probes = agent.snapshot()?.probes;
    let mut switched = probes.iter().filter(|p| p.probe == "sched");
    let there = switched.any(|p| p.state == ProbeState::Attached);
    ensure!(
        there == phases,
        "the agent {arguments:?} splits operations into phases: {there}"
    );
    Ok(agent)
}

/// Runs a script, and waits for its line that it is attached.
fn script(server: &Server, interpreter: &str, text: &str) -> Result<Running> {
    let path = server.dir().join("script");
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    let running = server.spawn(&format!("exec {interpreter} {}", path.display()))?;
    let begun = Instant::now();
    loop {
        let (out, err) = running.output_so_far();
        if out.contains("attached") {
            return Ok(running);
        }
        if running.has_ended() || begun.elapsed() > PATIENCE {
            bail!("{interpreter} did not attach: {out}{err}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The peer script, on request without the section that times the queue.
fn peer(without_queue: bool) -> Result<String> {
    if !without_queue {
        return Ok(PEER.to_owned());
    }
    let (before, rest) = PEER
        .split_once("/* Queue:")
        .context("no queue in the script")?;
    let (_, after) = rest.split_once("/* Reply:").context("no reply after it")?;
    Ok(format!("{before}/* Reply:{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_do_without_its_queue() -> Result<()> {
        let script = peer(true)?;
        for (part, there) in [
            ("svc_xprt_", false),
            ("nfsd_dispatch", true),
            ("svc_send", true),
        ] {
            assert_eq!(script.contains(part), there, "{part}");
        }
        Ok(())
    }
}
