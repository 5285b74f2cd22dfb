//! Linux: eBPF probes by libbpf, and the kernel's own counts under /proc.
//!
//! Facts about the host make a plan of what is loaded, and why other parts are not; [`load`] puts it into effect. [`read`] turns maps into
//! a snapshot. Each folder uses only those before it: [`host`], [`load`], [`read`], and this file and [`watched`] above them.

pub mod host;
pub mod load;
mod read;
mod watched;

use crate::source::{NOT_TIMED, Options, Source};
use crate::{clock, host_table};
use host::device_names::DeviceNames;
use host::diskstats::Busy;
use host::export_devices::ExportDevices;
use host::facts::Facts;
use host::file_handle::Exports;
use host::nfs4_state::Nfs4State;
use host::procfs::KernelCounts;
use host::server_state::ServerState;
use host::{cpu, exports, file_handle, mountstats, unseen};
use load::attach::{self, Attached};
use load::detach::Detached;
use load::maps::Shared;
use load::object::{self, Loaded};
use load::program::{Build, Probe};
use load::program_table::{CLIENT_RPC_END, LOG_WAITS, PROBES};
use nfscope_model::family;
use nfscope_model::host_report::{Exported, Fact, Report, Verdict};
use nfscope_model::{BreakdownBatch, BreakdownWant, HeldRequests, ProbeState, ProbeStatus};
use nfscope_model::{SlowBatch, SlowFilter, Snapshot};
use read::block::Predecessors;
use read::client::ClientView;
use read::client_answers::ClientAnswers;
use read::coverage::Coverage;
use read::nfsd::{Earlier, Phases};
use read::thread_io::ThreadIo;
use read::top_k::ClientAccounting;
use read::unacknowledged::{self, Stalled};
use read::unsafe_writes::{JOURNALED, UnsafeWrites};
use read::zfs::Zfs;
use read::{LOGS, block, connections, granted_state, held, lockd, logs, nfsd, probe_runs};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use watched::Watched;

struct Linux {
    options: Options,
    facts: Facts,
    shared: Shared,
    loaded: BTreeMap<&'static str, Loaded>,
    states: Vec<ProbeStatus>,
    devices: DeviceNames,
    predecessors: Predecessors,
    busy: Busy,
    export_devices: ExportDevices,
    thread_io: ThreadIo,
    began: Duration,
    exports: Exports,
    accounting: ClientAccounting,
    stalled: Stalled,
    answers: ClientAnswers,
    earlier: Earlier,
    client: ClientView,
    coverage: Coverage,
    zfs: Zfs,
    nfs4_state: Nfs4State,
    server_state: ServerState,
    lockd: lockd::Waiting,
    unsafe_writes: UnsafeWrites,
    watched: Watched,
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
    let probes = in_order(without(options));
    let (loaded, mut states) = together(attach::attach(probes, &facts, &shared));
    if !options.late_attach {
        for s in states.iter_mut().filter(|s| s.state.may_come()) {
            s.fix = "restart the agent once that is there, or allow late attach".into();
        }
    }
    Ok(Box::new(Linux {
        options: options.clone(),
        facts,
        shared,
        exports: Exports::default(),
        accounting: ClientAccounting::new(options.max_clients, options.max_exports),
        stalled: Stalled::default(),
        answers: ClientAnswers::default(),
        earlier: Earlier::default(),
        client: ClientView::default(),
        coverage: Coverage::default(),
        zfs: Zfs::default(),
        nfs4_state: Nfs4State::default(),
        server_state: ServerState::default(),
        lockd: lockd::Waiting::default(),
        unsafe_writes: UnsafeWrites::default(),
        watched: Watched::default(),
        detached: Detached::default(),
        loaded,
        states,
        devices: DeviceNames::default(),
        predecessors: Predecessors::default(),
        busy: Busy::default(),
        export_devices: ExportDevices::default(),
        thread_io: ThreadIo::default(),
        began: clock::now(),
        _statistics: statistics,
    }))
}

/// Probes to leave out: those for phases alone, if phases are off (probes of logs also measure the waits of threads), and those of a
/// client, if it is not observed.
fn without(options: &Options) -> &'static [&'static str] {
    match (options.phases, options.client) {
        (true, true) => &[],
        (false, true) => &["sched"],
        (true, false) => &["client", "recall"],
        (false, false) => &["sched", "client", "recall"],
    }
}

/// All probes but those left out, in the order in which they attach. The first of the table comes last: operations are timed once all
/// probes for their waits are attached. `sched` comes before all others: it decides how waits are measured, which log probes follow.
fn in_order(without: &[&str]) -> impl Iterator<Item = &'static Probe> {
    let mut probes: Vec<_> = PROBES.iter().collect();
    probes.retain(|p| !without.contains(&p.word));
    probes.reverse();
    probes.sort_by_key(|p| p.word != "sched");
    probes.into_iter()
}

/// Loaded objects by probe, and the status of every program in the order of the table.
fn together(attached: Vec<Attached>) -> (BTreeMap<&'static str, Loaded>, Vec<ProbeStatus>) {
    let (mut loaded, mut states) = (BTreeMap::new(), Vec::new());
    for (probe, l, mut s) in attached {
        loaded.extend(l.map(|l| (probe.word, l)));
        s.append(&mut states);
        states = s;
    }
    (loaded, states)
}

/// Adds the time that reading a probe's tables took.
fn took(start: Instant, probe: &str, s: &mut Snapshot) {
    let seconds = start.elapsed().as_secs_f64();
    s.gauge(&family::PROBE_READ_SECONDS, [probe], seconds);
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
    let (loaded, probes) = together(attach::attach(in_order(&[]), &facts, &shared));
    let can = nfscope_model::probe::times_operations(&probes);
    let whole = probes
        .iter()
        .all(|p| matches!(p.state, ProbeState::Attached | ProbeState::Unused));
    Report {
        verdict: match (can, whole) {
            (true, true) => Verdict::Full,
            (true, false) => Verdict::Degraded,
            (false, _) => Verdict::None,
        },
        facts: (facts.show(
            loaded
                .iter()
                .map(|(probe, l)| l.kernel_memory(*probe == "nfsd"))
                .sum(),
        ))
        .into_iter()
        .chain(exports::left_out())
        .chain(tables_not_read())
        .collect(),
        exports: exports::list(&|fs, log| logs::measured(&LOGS, fs, log, &probes)),
        probes,
        unseen: unseen::list(),
    }
}

impl Linux {
    fn probes_in_order(&self) -> impl Iterator<Item = &'static Probe> + use<> {
        in_order(without(&self.options))
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
                if probe.word == "nfsd" {
                    let rows = self.options.breakdown_rows;
                    self.watched.come(&l, &mut self.exports, rows);
                }
                if probe.word == "block" {
                    // The tables of the new probe are empty.
                    self.predecessors = Predecessors::default();
                }
                if self.loaded.insert(probe.word, l).is_some() {
                    self.counters_began();
                }
            }
            self.set_states(probe, states);
        }
    }

    /// Notes that counters of a probe are gone: readings that compare with them would be wrong.
    fn counters_began(&mut self) {
        self.began = clock::now();
    }

    fn set_states(&mut self, probe: &Probe, states: Vec<ProbeStatus>) {
        let place = self
            .states
            .iter()
            .position(|p| p.probe == probe.word)
            .unwrap_or(self.states.len());
        self.states.retain(|p| p.probe != probe.word);
        self.states.splice(place..place, states);
    }

    /// Detaches a probe until the admin attaches it or its module is loaded again.
    fn detach_one(&mut self, probe: &'static Probe) -> String {
        let word = probe.word;
        let Some(loaded) = self.loaded.remove(word) else {
            return self.status_line(probe);
        };
        if word == "nfsd" {
            self.watched.leave(&loaded, &mut self.exports);
        }
        let free = self.detached.add(probe, loaded);
        self.counters_began();
        if word == "nfsd" {
            // Records are cleared after the programs have gone, which until then note requests in hand.
            self.shared.clear();
            self.shared.settle(false);
            // These values compare with the probe's counts, which start again.
            self.earlier = Earlier::default();
            self.coverage = Coverage::default();
            self.unsafe_writes = UnsafeWrites::default();
            self.answers = ClientAnswers::default();
            self.accounting =
                ClientAccounting::new(self.options.max_clients, self.options.max_exports);
        }
        if word == "client" {
            self.client = ClientView::default();
        }
        let mut states = self.states.clone();
        states.retain(|p| p.probe == word);
        for s in &mut states {
            s.state = ProbeState::Detached;
            s.reason =
                format!("detached by `nfscope detach`; `nfscope attach {word}` brings it back");
            s.fix = "it attaches by itself when the module is loaded anew".into();
        }
        self.set_states(probe, states);
        format!("{word}: detached{free}")
    }

    /// State of a probe in a line.
    fn status_line(&self, probe: &Probe) -> String {
        let of_it = || self.states.iter().filter(|p| p.probe == probe.word);
        let (all, up) = (
            of_it().count(),
            of_it().filter(|p| p.state.measures()).count(),
        );
        let why =
            of_it().find(|p| !p.reason.is_empty() && !matches!(p.state, ProbeState::Fallback));
        match why {
            Some(p) if up == 0 => format!("{}: {}: {}", probe.word, p.state.as_str(), p.reason),
            _ if all == 0 && probe.word == "sched" => {
                format!("{}: left out by --no-phases", probe.word)
            }
            _ if all == 0 => format!("{}: left out without --client", probe.word),
            _ => format!("{}: {up} of {all} programs attached", probe.word),
        }
    }

    fn attached(&self, program: &str) -> bool {
        self.states
            .iter()
            .any(|p| p.program == program && p.state.measures())
    }

    /// Reads this host's own mounts: sums alone if the probe is not supported, and nothing while it waits or is detached.
    fn read_client(&mut self, s: &mut Snapshot) {
        let start = Instant::now();
        let state = self.states.iter().find(|p| p.program == CLIENT_RPC_END);
        match (state.map(|p| p.state), self.loaded.get("client")) {
            (Some(ProbeState::Attached), Some(l)) => {
                let recalls = self.loaded.get("recall");
                self.client.read(l, recalls, s);
                l.unmap();
            }
            (Some(ProbeState::Unsupported), _) => self.client.read_mountstats(s),
            _ => return,
        }
        took(start, "client", s);
    }

    /// Data on connections that the attached programs give.
    fn connections_told(&self) -> connections::Told {
        connections::Told {
            accepted: self.attached("nfsd_accept"),
            closed: self.attached("nfsd_detach") && self.attached("nfsd_closing"),
            limits_unproven: self.facts.limits_unproven,
            most_clients: self.options.max_clients,
        }
    }

    /// True if waits of operations for the log and the disks of this file system are measured.
    fn sees_waits_of(&self, fs: &str) -> bool {
        let probe = match fs {
            "ext4" => "jbd2",
            "xfs" | "btrfs" | "zfs" => fs,
            _ => return false,
        };
        let attached = |p: &ProbeStatus| p.probe == probe && p.state.measures();
        self.phases().is_some_and(|p| p.log) && self.states.iter().any(attached)
    }

    /// Phases that are measured here; `None` without any.
    fn phases(&self) -> Option<Phases> {
        if !self.attached("sched_switched") && !self.attached("sched_io_end") {
            return None;
        }
        let refused = |p: &ProbeStatus| p.state == ProbeState::Unsupported;
        Some(Phases {
            runqueue: self.facts.run_delay,
            // Phase `log` is reported in full or not at all: a part of the waits for a log would look like all of them.
            log: !self.states.iter().any(|p| {
                refused(p) && (p.gives == LOG_WAITS || p.hook.ends_with("/zil_commit_impl"))
            }),
        })
    }
}

impl Source for Linux {
    fn snapshot(&mut self) -> Snapshot {
        let s = self.peek();
        self.accounting.publish();
        s
    }

    fn peek(&mut self) -> Snapshot {
        let mut s = Snapshot::new(clock::now());
        s.wall = clock::wall(s.at);
        s.began = self.began;
        s.host = Some(crate::hostname::own_name()).filter(|name| !name.is_empty());
        s.kernel = Some(self.facts.release.clone()).filter(|r| !r.is_empty());
        self.devices.begin();
        let kernel = KernelCounts::read();
        let start = Instant::now();
        if let Some(l) = self.loaded.get("nfsd") {
            let phases = self.phases();
            // A value that is not measured gets no series: unknown is not zero.
            let upcalls = self.attached("nfsd_ask") && self.attached("nfsd_answer");
            let arrivals = self.attached("nfsd_arrive") && self.attached("nfsd_receive");
            let told = nfsd::Told {
                phases,
                upcalls,
                arrivals,
            };
            let timed = nfsd::read(l, &mut s, told, &mut self.earlier, kernel.as_ref());
            self.accounting.read(l, &mut self.exports, &mut s);
            held::read(l, &mut self.exports, phases.is_some(), &mut s);
            held::read_pending(l, &mut s);
            let attached = |program: &str| self.attached(program);
            granted_state::read(l, &attached, self.options.max_clients, &mut s);
            let told = self.connections_told();
            connections::read(l, told, &mut self.stalled, &mut s);
            self.answers.read(l, &mut s);
            if let (Some(k), Some(after)) = (&kernel, KernelCounts::read()) {
                self.coverage.read(l, timed, [k, &after], &mut s);
            }
            l.unmap();
            took(start, "nfsd", &mut s);
        }
        if let Some(k) = &kernel {
            nfsd::kernel(k, &mut s);
        }
        self.export_devices.read(&mut self.devices, &mut s);
        let mounts = self.export_devices.mounts();
        logs::read(
            &LOGS,
            &self.loaded,
            &self.states,
            mounts,
            &mut self.devices,
            &mut s,
        );
        let start = Instant::now();
        if let Some(l) = self.loaded.get("block") {
            block::read(l, &mut s, &mut self.devices, &mut self.predecessors);
            self.thread_io.read(l, &mut s);
            l.unmap();
            took(start, "block", &mut s);
        }
        let start = Instant::now();
        if let Some(l) = self.loaded.get("lockd") {
            self.lockd.read(l, &mut s);
            l.unmap();
            took(start, "lockd", &mut s);
        }
        self.read_client(&mut s);
        self.nfs4_state.read(&mut s);
        self.server_state.read(&mut s);
        self.busy.read(&mut self.devices, &mut s);
        let start = Instant::now();
        self.zfs.read(self.loaded.get("zfs"), &mut s);
        if self.loaded.contains_key("zfs") {
            took(start, "zfs", &mut s);
        }
        self.export_devices.not_durable(&mut s);
        // The raw build cannot read the stability that a WRITE asked for.
        if self
            .loaded
            .get("nfsd")
            .is_some_and(|l| l.build == Build::Btf)
        {
            let seen = JOURNALED.map(|fs| (fs, self.sees_waits_of(fs)));
            let written = self.accounting.take_durable();
            let exports = &self.export_devices;
            self.unsafe_writes.read(written, exports, &seen, &mut s);
        }
        cpu::read(&mut s);
        probe_runs::read(&self.loaded, self.options.probe_stats, &mut s);
        host_table::count(&mut s);
        s.probes = self.states.clone();
        s
    }

    fn held(&mut self, over: Duration) -> HeldRequests {
        let phases = self.phases().is_some();
        let mut all = match self.loaded.get("nfsd") {
            Some(l) => {
                let mut all = held::all(l, &mut self.exports, phases, over);
                all.laundromat = granted_state::laundromat(l);
                let most = self.options.max_clients;
                all.unacknowledged = unacknowledged::now(l, &mut self.stalled, most);
                l.unmap();
                all
            }
            None => HeldRequests {
                unknown: Some(NOT_TIMED.to_owned()),
                ..HeldRequests::default()
            },
        };
        all.host = crate::hostname::own_name();
        all.over_seconds = over.as_secs_f64();
        all
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        self.states.clone()
    }

    fn limit_series(&mut self, clients: usize, exports: usize) {
        // The options change, too, because detaching nfsd makes new accounts.
        (self.options.max_clients, self.options.max_exports) = (clients, exports);
        self.accounting.limit(clients, exports);
    }

    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()> {
        self.watched.watch_slow(self.loaded.get("nfsd"), want)
    }

    fn take_slow(&mut self) -> SlowBatch {
        let (phases, l) = (self.phases().is_some(), self.loaded.get("nfsd"));
        self.watched.take_slow(l, &mut self.exports, phases)
    }

    fn watch_breakdown(&mut self, want: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        let (l, rows) = (self.loaded.get("nfsd"), self.options.breakdown_rows);
        (self.watched).watch_breakdown(l, want, &mut self.exports, rows)
    }

    fn take_breakdown(&mut self) -> BreakdownBatch {
        (self.watched).take_breakdown(self.loaded.get("nfsd"), &mut self.exports)
    }

    fn poll(&mut self) {
        if !self.options.late_attach {
            return;
        }
        let mut come = Vec::new();
        for probe in self.probes_in_order() {
            let replaced = self.detached.module_replaced(probe);
            let waiting = self
                .states
                .iter()
                .any(|p| p.probe == probe.word && p.state.may_come());
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
