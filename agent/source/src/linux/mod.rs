//! Linux: eBPF probes by libbpf, and the kernel's own counts under /proc.
//!
//! Facts about the host make a plan of what is loaded, and why other parts are not; [`load`] puts it into effect. [`read`] turns maps into
//! a snapshot, and [`readers`] keep what successive snapshots compare. Each folder uses only those before it: [`host`], [`load`],
//! [`probes`], [`read`], [`readers`], and this file above them.

pub mod host;
pub mod load;
mod probes;
mod read;
mod readers;

use crate::source::{Options, Source};
use crate::{clock, host_table};
use host::facts::Facts;
use host::nfs4_state::Nfs4State;
use host::{exports, file_handle, mountstats, unseen};
use load::attach;
use load::detach::Detached;
use load::maps::Shared;
use load::object;
use load::program::Probe;
use load::program_table::PROBES;
use nfscope_model::host_report::{Exported, Fact, Report, Verdict};
use nfscope_model::{BreakdownBatch, BreakdownWant, HeldRequests, ProbeState, ProbeStatus};
use nfscope_model::{SlowBatch, SlowFilter, Snapshot};
use probes::Probes;
use read::{LOGS, logs};
use readers::{Here, Readers};
use std::os::fd::OwnedFd;
use std::time::Duration;

struct Linux {
    options: Options,
    facts: Facts,
    shared: Shared,
    probes: Probes,
    readers: Readers,
    began: Duration,
    detached: Detached,
    /// Descriptor that keeps the kernel's run-time statistics on.
    _statistics: Option<OwnedFd>,
}

/// Facts about this host, with the changes that tests and measurements make.
fn facts(options: &Options) -> Facts {
    Facts::gather().skipping(options.skip_one_in)
}

/// See [`crate::start`].
pub fn start(options: &Options) -> anyhow::Result<Box<dyn Source>> {
    let statistics = match options.probe_stats.then(object::enable_statistics) {
        Some(Ok(fd)) => Some(fd),
        Some(Err(e)) => anyhow::bail!(
            "cannot turn BPF run-time statistics on ({e}): needs Linux 5.8 and CAP_SYS_ADMIN; leave out --probe-stats"
        ),
        None => None,
    };
    let facts = facts(options);
    let mut shared = Shared::create(options.max_pairs);
    if let Some(path) = &options.nfsd_object {
        shared.replace_nfsd_object(path)?;
    }
    if !options.phases || !options.books {
        shared.without_books();
    }
    let probes = probes::planned(options);
    let mut probes = Probes::join(attach::attach(probes, &facts, &shared));
    if !options.late_attach {
        for s in probes.states.iter_mut().filter(|s| s.state.may_come()) {
            s.fix = "restart the agent once that is there, or allow late attach".into();
        }
    }
    Ok(Box::new(Linux {
        options: options.clone(),
        facts,
        shared,
        probes,
        readers: Readers::new(options),
        began: clock::now(),
        detached: Detached::default(),
        _statistics: statistics,
    }))
}

/// See [`crate::yield_to_others`]: on Linux each thread has a nice value of its own (setpriority(2), "C library/kernel differences").
pub fn yield_to_others() {
    // Without the nice value the work has the same priority as the others.
    let _ = rustix::process::setpriority_process(None, 19);
}

/// See [`crate::kernel_stack`].
pub fn kernel_stack(thread: u32) -> Vec<String> {
    match host::task::state(thread) {
        Some(_) => host::task::kernel_stack(thread),
        None => Vec::new(),
    }
}

/// See [`crate::kernel_frames`].
pub fn kernel_frames(thread: u32) -> std::io::Result<Vec<String>> {
    match host::task::state(thread) {
        Some(_) => host::task::kernel_frames(thread),
        None => Err(std::io::ErrorKind::NotFound.into()),
    }
}

/// See [`crate::words`].
pub fn words() -> impl Iterator<Item = &'static str> {
    PROBES.iter().map(|p| p.word)
}

/// Tables that an agent reads again and again, and that cannot be read now, for `nfscope check`.
fn tables_not_read() -> Option<Fact> {
    for table in [
        "/proc/net/rpc/nfsd",
        "/proc/stat",
        "/proc/diskstats",
        file_handle::LIST,
        mountstats::PATH,
    ] {
        // The failure is counted.
        let _ = host_table::read(table);
    }
    Nfs4State::default().read(&mut Snapshot::new(clock::now()));
    host_table::failures()
}

/// See [`crate::exports`]. Measurements are `nfscope check`'s.
pub fn exports() -> Vec<Exported> {
    exports::list(&|_, _| (true, String::new()))
}

/// See [`crate::check`].
pub fn check() -> Report {
    let facts = Facts::gather();
    let shared = Shared::create(Options::default().max_pairs);
    let probes = Probes::join(attach::attach(probes::all_in_order(), &facts, &shared));
    let can = nfscope_model::probe::times_operations(&probes.states);
    let whole = probes
        .states
        .iter()
        .all(|p| matches!(p.state, ProbeState::Attached | ProbeState::Unused));
    Report {
        verdict: match (can, whole) {
            (true, true) => Verdict::Full,
            (true, false) => Verdict::Degraded,
            (false, _) => Verdict::None,
        },
        facts: (facts.show(probes.kernel_memory()).into_iter())
            .chain(exports::left_out())
            .chain(tables_not_read())
            .collect(),
        exports: exports::list(&|fs, log| logs::measured(&LOGS, fs, log, &probes.states)),
        probes: probes.states,
        unseen: unseen::list(),
    }
}

impl Linux {
    fn probes_in_order(&self) -> impl Iterator<Item = &'static Probe> + use<> {
        probes::planned(&self.options)
    }

    /// Loads probes again, with the present facts.
    fn load(&mut self, probes: Vec<&'static Probe>) {
        if probes.is_empty() {
            return;
        }
        let facts = facts(&self.options);
        // sunrpc may have been loaded since the last time.
        self.facts.limits_unproven = facts.limits_unproven;
        for (probe, loaded, states) in attach::attach(probes, &facts, &self.shared) {
            if let Some(l) = loaded {
                self.readers.comes(probe.word, &l, &self.options);
                if self.probes.loaded.insert(probe.word, l).is_some() {
                    self.counters_began();
                }
            }
            self.probes.set_states(probe, states);
        }
    }

    /// Notes that counters of a probe are gone: readings that compare with them would be wrong.
    fn counters_began(&mut self) {
        self.began = clock::now();
    }

    /// Detaches a probe until the admin attaches it or its module is loaded again.
    fn detach_one(&mut self, probe: &'static Probe) -> String {
        let word = probe.word;
        let Some(loaded) = self.probes.loaded.remove(word) else {
            return self.status_line(probe);
        };
        self.readers.goes(word, &loaded);
        let free = self.detached.add(probe, loaded);
        self.counters_began();
        self.readers.gone(word, &self.shared, &self.options);
        self.probes.set_detached(probe);
        format!("{word}: detached{free}")
    }

    /// State of a probe in a line.
    fn status_line(&self, probe: &Probe) -> String {
        self.probes.status_line(probe)
    }

    fn here(&mut self) -> (&mut Readers, Here<'_>) {
        let here = Here {
            options: &self.options,
            facts: &self.facts,
            probes: &self.probes,
        };
        (&mut self.readers, here)
    }
}

impl Source for Linux {
    fn snapshot(&mut self) -> Snapshot {
        let s = self.peek();
        self.readers.nfsd.publish();
        s
    }

    fn peek(&mut self) -> Snapshot {
        let mut s = Snapshot::new(clock::now());
        s.wall = clock::wall(s.at);
        s.began = self.began;
        s.host = Some(crate::hostname::own_name()).filter(|name| !name.is_empty());
        s.kernel = Some(self.facts.release.clone()).filter(|r| !r.is_empty());
        let (readers, here) = self.here();
        readers.read(here, &mut s);
        s.probes = self.probes.states.clone();
        s
    }

    fn held(&mut self, over: Duration) -> HeldRequests {
        let (readers, here) = self.here();
        let mut all = readers.nfsd.held(here, over);
        all.host = crate::hostname::own_name();
        all.over_seconds = over.as_secs_f64();
        all
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        self.probes.states.clone()
    }

    fn limit_series(&mut self, clients: usize, exports: usize) {
        // The options change, too, because detaching makes new accounts.
        (self.options.max_clients, self.options.max_exports) = (clients, exports);
        self.readers.nfsd.limit(clients, exports);
    }

    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()> {
        let (readers, here) = self.here();
        readers.nfsd.watch_slow(here, want)
    }

    fn take_slow(&mut self) -> SlowBatch {
        let (readers, here) = self.here();
        readers.nfsd.take_slow(here)
    }

    fn watch_breakdown(&mut self, want: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        let (readers, here) = self.here();
        readers.nfsd.watch_breakdown(here, want)
    }

    fn take_breakdown(&mut self) -> BreakdownBatch {
        let (readers, here) = self.here();
        readers.nfsd.take_breakdown(here)
    }

    fn poll(&mut self) {
        if !self.options.late_attach {
            return;
        }
        let mut come = Vec::new();
        for probe in self.probes_in_order() {
            let replaced = self.detached.module_replaced(probe);
            let waiting = (self.probes.programs(probe.word)).any(|p| p.state.may_come());
            let there = || {
                probe
                    .modules
                    .iter()
                    .all(|m| host::procfs::module_present(m))
            };
            if replaced || (waiting && there()) {
                come.push(probe);
            }
        }
        self.load(come);
    }

    fn detach(&mut self, probes: &[&'static str]) -> anyhow::Result<Vec<String>> {
        let mut said = Vec::new();
        // `nfsd`, the first of the table, is detached first: the other probes add to its counts.
        for probe in PROBES.iter().filter(|p| probes.contains(&p.word)) {
            said.push(self.detach_one(probe));
        }
        Ok(said)
    }

    fn attach(&mut self, probes: &[&'static str]) -> anyhow::Result<Vec<String>> {
        anyhow::ensure!(
            self.options.late_attach,
            "this agent runs with --no-late-attach and has given up what attaching needs; restart it"
        );
        let asked = self.probes_in_order();
        let asked: Vec<_> = asked.filter(|p| probes.contains(&p.word)).collect();
        let mut come = asked.clone();
        come.retain(|p| self.detached.forget(p));
        self.load(come);
        Ok(asked.iter().map(|p| self.status_line(p)).collect())
    }
}
