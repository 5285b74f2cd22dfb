//! illumos: scripts that `dtrace` runs, and the kernel's own counts by `kstat`.
//!
//! Both are children of the agent, and print text: the D language and these commands are the public interface of the system, and
//! a child that fails takes nothing with it. [`scripts`] has the scripts, [`frame`] reads what they print, [`runner`] keeps the
//! children running, [`totals`] adds up over restarts, and [`read`] makes a snapshot of it. The files are built on every
//! system: with other programs in place of the two ([`tools`]) the source runs anywhere.

mod child;
mod complaint;
mod frame;
mod kstat;
pub mod on_illumos;
pub mod privileges;
mod read;
mod report;
mod runner;
mod running;
pub mod scripts;
mod slow_ops;
mod status;
mod tools;
mod totals;

use crate::clock::{self, monotonic_ns};
use crate::source::{Options, Source};
use anyhow::Context;
use child::Child;
use complaint::Complaint;
use kstat::Stats;
use nfscope_model::family as f;
use nfscope_model::host_report::{Fact, Report, Verdict};
use nfscope_model::{ProbeState, ProbeStatus, SlowBatch, SlowFilter, Snapshot};
use read::accounting::Accounting;
use read::kernel::Kernel;
use read::nfs::Phases;
pub use report::report;
use runner::{Patience, Runner};
use running::{Running, dtrace};
use scripts::{Parts, SCRIPTS, SLOW};
use slow_ops::{Lines, Listening};
use std::time::{Duration, Instant};
pub use tools::Tools;

/// Time for scripts to compile and to enable their probes.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Time between two frames: the scripts ignore a request for a frame that comes sooner.
const FRAME_INTERVAL: Duration = Duration::from_millis(250);
/// Time to wait for a frame. Scripts without a recent request print with a delay of up to a second.
const FRAME_TIMEOUT: Duration = Duration::from_millis(2500);
/// Time to wait for a set of statistics, which is complete when the next one begins, a second later.
const KSTAT_TIMEOUT: Duration = Duration::from_secs(10);
/// Frames that are held until they are taken.
const KEEP: usize = 4;

struct Illumos {
    tools: Tools,
    parts: Parts,
    scripts: Vec<Running>,
    kstat: Runner<Stats>,
    kernel: Kernel,
    accounting: Accounting,
    published: read::rpc::Published,
    listening: Option<Listening>,
    began: Duration,
    /// Time of the last request for frames.
    asked: Option<Instant>,
    /// Time of the last snapshot, and of the frame that it was made of.
    last: Duration,
    last_frame: u64,
}

/// Words of the probes on illumos.
pub const WORDS: [&str; 4] = ["nfsd", "sched", "zfs", "block"];

/// See [`crate::start`].
pub fn start(tools: Tools, options: &Options) -> anyhow::Result<Box<dyn Source>> {
    let mut source = Illumos::new(tools, options, Patience::USUAL);
    source.wait_for_scripts();
    let lacking = source
        .scripts
        .iter()
        .filter_map(|r| r.runner.failure())
        .find(|failure| failure.fault == Some(Complaint::Privileges));
    if let Some(failure) = lacking {
        anyhow::bail!("{}; {}", failure.why, status::PRIVILEGES);
    }
    Ok(Box::new(source))
}

/// See [`crate::check`].
pub fn check(tools: Tools) -> Report {
    let facts = facts(&tools);
    let mut source = Illumos::new(tools, &Options::default(), Patience::USUAL);
    source.wait_for_scripts();
    if let Some(kstat) = source.kstat.child() {
        kstat.wait_for(KSTAT_TIMEOUT, |inbox| inbox.made > 0);
    }
    source.tick();
    let probes = source.probes();
    let can = nfscope_model::probe::times_operations(&probes);
    let whole = probes.iter().all(|p| p.state == ProbeState::Attached);
    Report {
        verdict: match (can, whole) {
            (true, true) => Verdict::Full,
            (true, false) => Verdict::Degraded,
            (false, _) => Verdict::None,
        },
        facts,
        exports: Vec::new(),
        probes,
        unseen: status::unseen(),
    }
}

fn facts(tools: &Tools) -> Vec<Fact> {
    let system = rustix::system::uname();
    let words = [system.sysname(), system.release(), system.version()];
    let words = words.map(|w| w.to_string_lossy().into_owned());
    let fact = |name: &str, value: String, ok: bool, fix: &str| Fact {
        name: name.to_owned(),
        value,
        ok,
        fix: fix.to_owned(),
    };
    let tool = |name: &str, path: &std::ffi::OsStr| {
        let there = std::path::Path::new(path).is_file();
        let value = path.to_string_lossy().into_owned();
        let fix = if there { "" } else { "install it" };
        fact(name, value, there, fix)
    };
    vec![
        fact("operating system", words.join(" "), true, ""),
        tool("dtrace", &tools.dtrace),
        tool("kstat", &tools.kstat),
    ]
}

impl Illumos {
    fn new(tools: Tools, options: &Options, patience: Patience) -> Illumos {
        let running = |script| Running::new(script, patience);
        Illumos {
            tools,
            parts: Parts {
                phases: options.phases,
                ..Parts::ALL
            },
            scripts: SCRIPTS.iter().map(running).collect(),
            kstat: Runner::new(patience),
            kernel: Kernel::default(),
            accounting: Accounting::new(options.max_clients, options.max_exports),
            published: read::rpc::Published::default(),
            listening: None,
            asked: None,
            began: clock::now(),
            last: Duration::ZERO,
            last_frame: 0,
        }
    }

    fn tick(&mut self) {
        let tools = &self.tools;
        let kernel = &mut self.kernel;
        let kstat = || {
            let arguments = kstat::ARGUMENTS.map(str::to_owned);
            let reader = kstat::Parser::default();
            Child::start(&tools.kstat, &arguments, String::new(), reader, KEEP)
        };
        self.kstat
            .tick(Instant::now(), kstat, |stats| kernel.add(stats));
        for running in &mut self.scripts {
            running.tick(tools, &mut self.parts, kernel);
        }
    }

    /// Waits until every script prints, or has ended with nothing to try again at once.
    fn wait_for_scripts(&mut self) {
        let begun = Instant::now();
        loop {
            self.tick();
            let pending = self.scripts.iter().filter_map(|r| r.runner.child());
            let Some(next) = pending.into_iter().find(|c| c.inbox().made == 0) else {
                return;
            };
            let left = START_TIMEOUT.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return;
            }
            // A script that has ended is noticed at the next tick.
            next.wait_for(left.min(Duration::from_millis(100)), |inbox| inbox.made > 0);
        }
    }

    /// Requests a frame from every script.
    fn ask(&mut self) {
        self.asked = Some(Instant::now());
        // The scripts watch for signal 0 of this process to itself, which the agent sends for nothing else.
        let _ = rustix::process::test_kill_process(rustix::process::getpid());
    }

    /// Requests frames until each script has printed one. The scripts ignore a request that comes too soon after another one.
    fn wait_for_frames(&mut self) {
        if let Some(asked) = self.asked {
            std::thread::sleep(FRAME_INTERVAL.saturating_sub(asked.elapsed()));
        }
        self.tick();
        let (begun, now) = (Instant::now(), monotonic_ns());
        self.ask();
        let mut ask_again = begun + FRAME_INTERVAL;
        loop {
            let running = self.scripts.iter().filter(|r| r.runner.runs());
            let behind = running.into_iter().find(|r| r.at_ns < now);
            let left = FRAME_TIMEOUT.saturating_sub(begun.elapsed());
            let Some(child) = behind.and_then(|r| r.runner.child()) else {
                return;
            };
            if left.is_zero() {
                return;
            }
            let next = ask_again.saturating_duration_since(Instant::now());
            child.wait_for(left.min(next), |inbox| !inbox.values.is_empty());
            if next.is_zero() {
                self.ask();
                ask_again = Instant::now() + FRAME_INTERVAL;
            }
            self.tick();
        }
    }

    fn phases(&self) -> Option<Phases> {
        self.parts.phases.then_some(Phases {
            storage: self.parts.zfs,
        })
    }

    fn lost(&self, s: &mut Snapshot) {
        for word in WORDS {
            let mut all = std::collections::BTreeMap::<_, u64>::new();
            let of_word = self.scripts.iter().filter(|r| r.script.probe == word);
            for (reason, n) in of_word.flat_map(|r| r.runner.lost()) {
                *all.entry(reason).or_default() += n;
            }
            for (reason, n) in all {
                s.counter(&f::EVENTS_LOST, [word, reason], n as f64);
            }
        }
    }
}

impl Source for Illumos {
    fn snapshot(&mut self) -> Snapshot {
        let s = self.peek();
        self.accounting.publish();
        s
    }

    fn peek(&mut self) -> Snapshot {
        self.wait_for_frames();
        let nfs = &self.scripts[0];
        // Rates are over the time between two frames. Without a new frame the clock goes on all the same.
        let at = match nfs.at_ns > self.last_frame {
            true => Duration::from_nanos(nfs.at_ns),
            false => clock::now(),
        };
        let at = at.max(self.last);
        (self.last, self.last_frame) = (at, nfs.at_ns);
        let mut s = Snapshot::new(at);
        s.wall = clock::wall(at);
        s.began = self.began;
        s.host = Some(crate::hostname::own_name()).filter(|name| !name.is_empty());
        let release = rustix::system::uname();
        s.kernel = Some(release.release().to_string_lossy().into_owned());
        let timed = read::nfs::read(&nfs.totals, self.phases(), &mut s);
        self.accounting
            .read(&nfs.totals, self.parts.exports, &mut s);
        self.kernel.coverage(nfs.at_ns, timed, &mut s);
        let [_, rpc, zil, txg, io] = &self.scripts[..] else {
            unreachable!("one for each of SCRIPTS")
        };
        let (published, parts) = (&mut self.published, self.parts);
        read::rpc::read(&rpc.totals, rpc.at_ns, parts, published, &mut s);
        read::held::read(&rpc.told(), &nfs.told(), parts.phases, &mut s);
        read::zfs::zil(&zil.totals, &mut s);
        read::zfs::txg(&txg.totals, &mut s);
        read::block::read(&io.totals, &mut s);
        if let Some(stats) = self.kernel.newest() {
            read::block::kernel(stats, &mut s);
        }
        self.kernel.read(&mut s);
        self.lost(&mut s);
        s.probes = self.probes();
        s
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        let mut all = Vec::new();
        for running in &self.scripts {
            let failure = running.runner.failure();
            let runs = running.runner.runs();
            let status = status::of_script(running.script, runs, failure, self.parts);
            all.push(status);
        }
        let phases = status::of_phases(&all[0], self.parts);
        let waits = status::of_waits(&phases, self.parts);
        all.splice(1..1, std::iter::once(phases).chain(waits));
        if let Some(runner) = self.listening.as_ref().map(Listening::runner) {
            let status = status::of_script(&SLOW, runner.runs(), runner.failure(), self.parts);
            all.push(status);
        }
        all.push(status::of_kstat(self.kstat.runs(), self.kstat.failure()));
        all
    }

    fn poll(&mut self) {
        self.tick();
    }

    fn limit_series(&mut self, clients: usize, exports: usize) {
        self.accounting.limit(clients, exports);
    }

    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()> {
        let Some(want) = want else {
            if let Some(listening) = self.listening.take() {
                listening.end();
            }
            return Ok(());
        };
        anyhow::ensure!(
            self.scripts[0].runner.runs(),
            "NFS operations are not timed here; `nfscope check` says why"
        );
        match &mut self.listening {
            // The script contains the latency; the other parts of the filter are applied in this process.
            Some(listening) if listening.over() == want.over => listening.change(want.clone()),
            _ => {
                let new = Listening::new(want.clone(), Patience::USUAL);
                if let Some(old) = self.listening.replace(new) {
                    old.end();
                }
            }
        }
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        let Some(listening) = &mut self.listening else {
            return SlowBatch::default();
        };
        let over = u64::try_from(listening.over().as_nanos()).unwrap_or(u64::MAX);
        let (tools, parts) = (&self.tools, self.parts);
        listening.take(|| {
            let secret = slow_ops::secret();
            let text = SLOW
                .text(parts, "")
                .replace("OVER_NS", &over.to_string())
                .replace("SECRET", &secret);
            dtrace(
                tools,
                text,
                &["strsize=1024", "switchrate=10hz"],
                Lines::new(secret),
                slow_ops::KEEP,
            )
        })
    }
}

/// The text of a script with all of its parts, for a person.
///
/// # Errors
/// Lists the names, for a name that no script has.
pub fn show(name: &str) -> anyhow::Result<String> {
    let all = || SCRIPTS.iter().chain([&SLOW]);
    let script = all().find(|s| s.name == name);
    let names = || all().map(|s| s.name).collect::<Vec<_>>().join(", ");
    let script =
        script.with_context(|| format!("no script is called {name}; there are {}", names()))?;
    // A script that is run by hand gets no requests for frames.
    Ok(script.text(Parts::ALL, "$pid"))
}

/// Parsers of texts, for fuzzing.
#[cfg(test)]
pub mod fuzzed {
    use crate::illumos::child::Reader;
    use crate::illumos::{frame, kstat, slow_ops};

    /// Events that a text in these pieces completes.
    pub fn frames(pieces: &[&[u8]]) -> (Vec<frame::Event>, u64) {
        let (mut parser, mut all) = (frame::Parser::default(), Vec::new());
        for piece in pieces {
            parser.feed(piece, &mut |event| all.push(event));
        }
        (all, parser.bad())
    }

    /// Number of slow operations that a text completes.
    pub fn slow(text: &[u8]) -> usize {
        let (mut lines, mut count) = (slow_ops::Lines::new("secret".to_owned()), 0);
        lines.feed(text, &mut |_| count += 1);
        count
    }

    /// Number of sets of values that a text completes.
    pub fn kstat(text: &[u8]) -> usize {
        let (mut parser, mut count) = (kstat::Parser::default(), 0);
        parser.feed(text, &mut |_| count += 1);
        count
    }
}
