//! Requests of the NFS server: counts, times, clients, state, connections, and what is in hand.

use super::watched::Watched;
use super::{Here, Reader, took};
use crate::linux::host::export_devices::ExportDevices;
use crate::linux::host::facts::Facts;
use crate::linux::host::file_handle::Exports;
use crate::linux::host::procfs::KernelCounts;
use crate::linux::load::maps::Shared;
use crate::linux::load::object::Loaded;
use crate::linux::load::program::Build;
use crate::linux::load::program_table::LOG_WAITS;
use crate::linux::probes::Probes;
use crate::linux::read::client_answers::ClientAnswers;
use crate::linux::read::coverage::Coverage;
use crate::linux::read::nfsd::{Earlier, Phases, Told, kernel, read};
use crate::linux::read::top_k::ClientAccounting;
use crate::linux::read::unacknowledged::{self, Stalled};
use crate::linux::read::unsafe_writes::{JOURNALED, UnsafeWrites};
use crate::linux::read::{connections, granted_state, held};
use crate::source::{NOT_TIMED, Options};
use nfscope_model::{BreakdownBatch, BreakdownWant, SlowBatch, SlowFilter};
use nfscope_model::{HeldRequests, ProbeState, ProbeStatus, Snapshot};
use std::time::{Duration, Instant};

/// State of the reader from one snapshot to the next. `compared` is reset when the probe is detached, because the counters of the next
/// attachment begin at 0.
pub struct Nfsd {
    exports: Exports,
    stalled: Stalled,
    watched: Watched,
    compared: Compared,
}

/// State that is derived from earlier values of the probe's counters.
struct Compared {
    earlier: Earlier,
    accounting: ClientAccounting,
    answers: ClientAnswers,
    coverage: Coverage,
    unsafe_writes: UnsafeWrites,
}

impl Compared {
    fn new(options: &Options) -> Compared {
        Compared {
            earlier: Earlier::default(),
            accounting: ClientAccounting::new(options.max_clients, options.max_exports),
            answers: ClientAnswers::default(),
            coverage: Coverage::default(),
            unsafe_writes: UnsafeWrites::default(),
        }
    }
}

/// Phases that are measured here; `None` without any.
fn phases(probes: &Probes, facts: &Facts) -> Option<Phases> {
    if !probes.attached("sched_switched") && !probes.attached("sched_io_end") {
        return None;
    }
    let refused = |p: &ProbeStatus| p.state == ProbeState::Unsupported;
    Some(Phases {
        runqueue: facts.run_delay,
        // Phase `log` is reported in full or not at all: a part of the waits for a log would look like all of them.
        log: !probes
            .states
            .iter()
            .any(|p| refused(p) && (p.gives == LOG_WAITS || p.hook.ends_with("/zil_commit_impl"))),
    })
}

/// True if waits of operations for the log and the disks of this file system are measured.
fn sees_waits_of(fs: &str, here: Here) -> bool {
    let probe = match fs {
        "ext4" => "jbd2",
        "xfs" | "btrfs" | "zfs" => fs,
        _ => return false,
    };
    phases(here.probes, here.facts).is_some_and(|p| p.log)
        && here.probes.programs(probe).any(|p| p.state.measures())
}

impl Nfsd {
    pub fn new(options: &Options) -> Nfsd {
        Nfsd {
            exports: Exports::default(),
            stalled: Stalled::default(),
            watched: Watched::default(),
            compared: Compared::new(options),
        }
    }

    /// Adds the probe's tables and the kernel's own counts. A value that is not measured gets no series: unknown is not zero.
    pub fn read(&mut self, here: Here, s: &mut Snapshot) {
        let counts = KernelCounts::read();
        let start = Instant::now();
        let probes = here.probes;
        if let Some(l) = probes.get(self.probe()) {
            let most_clients = here.options.max_clients;
            let attached = |program: &str| probes.attached(program);
            let phases = phases(probes, here.facts);
            let told = Told {
                phases,
                upcalls: attached("nfsd_ask") && attached("nfsd_answer"),
                arrivals: attached("nfsd_arrive") && attached("nfsd_receive"),
            };
            let Compared {
                earlier,
                accounting,
                answers,
                coverage,
                ..
            } = &mut self.compared;
            let timed = read(l, s, told, earlier, counts.as_ref());
            accounting.read(l, &mut self.exports, s);
            held::read(l, &mut self.exports, phases.is_some(), s);
            held::read_pending(l, s);
            granted_state::read(l, &attached, most_clients, s);
            let told = connections::Told {
                accepted: attached("nfsd_accept"),
                closed: attached("nfsd_detach") && attached("nfsd_closing"),
                limits_unproven: here.facts.limits_unproven,
                most_clients,
            };
            connections::read(l, told, &mut self.stalled, s);
            answers.read(l, s);
            if let (Some(before), Some(after)) = (&counts, KernelCounts::read()) {
                coverage.read(l, timed, [before, &after], s);
            }
            l.unmap();
            took(start, self.probe(), s);
        }
        if let Some(counts) = &counts {
            kernel(counts, s);
        }
    }

    /// Adds the writes that may not be durable. Must follow [`ExportDevices::not_durable`]. The raw build cannot read the stability that a
    /// WRITE asked for.
    pub fn read_durable(&mut self, here: Here, exports: &ExportDevices, s: &mut Snapshot) {
        let l = here.probes.get(self.probe());
        if l.is_some_and(|l| l.build == Build::Btf) {
            let seen = JOURNALED.map(|fs| (fs, sees_waits_of(fs, here)));
            let written = self.compared.accounting.take_durable();
            (self.compared.unsafe_writes).read(written, exports, &seen, s);
        }
    }

    /// See [`ClientAccounting::publish`].
    pub fn publish(&mut self) {
        self.compared.accounting.publish();
    }

    /// See [`Source::limit_series`](crate::Source::limit_series).
    pub fn limit(&mut self, clients: usize, exports: usize) {
        self.compared.accounting.limit(clients, exports);
    }

    /// See [`Source::held`](crate::Source::held).
    pub fn held(&mut self, here: Here, over: Duration) -> HeldRequests {
        let Some(l) = here.probes.get(self.probe()) else {
            return HeldRequests {
                unknown: Some(NOT_TIMED.to_owned()),
                ..HeldRequests::default()
            };
        };
        let phases = phases(here.probes, here.facts).is_some();
        let mut all = held::all(l, &mut self.exports, phases, over);
        all.laundromat = granted_state::laundromat(l);
        let most = here.options.max_clients;
        all.unacknowledged = unacknowledged::now(l, &mut self.stalled, most);
        l.unmap();
        all
    }

    /// See [`Source::watch_slow`](crate::Source::watch_slow).
    pub fn watch_slow(&mut self, here: Here, want: Option<&SlowFilter>) -> anyhow::Result<()> {
        self.watched.watch_slow(here.probes.get(self.probe()), want)
    }

    /// See [`Source::take_slow`](crate::Source::take_slow).
    pub fn take_slow(&mut self, here: Here) -> SlowBatch {
        let l = here.probes.get(self.probe());
        let phases = phases(here.probes, here.facts).is_some();
        self.watched.take_slow(l, &mut self.exports, phases)
    }

    /// See [`Source::watch_breakdown`](crate::Source::watch_breakdown).
    pub fn watch_breakdown(
        &mut self,
        here: Here,
        want: Option<&BreakdownWant>,
    ) -> anyhow::Result<BreakdownBatch> {
        let (l, rows) = (here.probes.get(self.probe()), here.options.breakdown_rows);
        (self.watched).watch_breakdown(l, want, &mut self.exports, rows)
    }

    /// See [`Source::take_breakdown`](crate::Source::take_breakdown).
    pub fn take_breakdown(&mut self, here: Here) -> BreakdownBatch {
        let l = here.probes.get(self.probe());
        self.watched.take_breakdown(l, &mut self.exports)
    }
}

impl Reader for Nfsd {
    fn probe(&self) -> &'static str {
        "nfsd"
    }

    fn comes(&mut self, l: &Loaded, options: &Options) {
        self.watched
            .come(l, &mut self.exports, options.breakdown_rows);
    }

    fn goes(&mut self, l: &Loaded) {
        self.watched.leave(l, &mut self.exports);
    }

    fn gone(&mut self, shared: &Shared, options: &Options) {
        // Records are cleared after the programs have gone, which until then note requests in hand.
        shared.clear();
        shared.settle(false);
        self.compared = Compared::new(options);
    }
}
