//! Linux: eBPF probes by libbpf, and what the kernel counts by itself under /proc.
//!
//! Facts (what the host has) make a plan (what is loaded, and why not) that [`load`] puts into effect; [`read`] turns maps
//! into a snapshot.

mod facts;
mod load;
mod names;
mod plan;
mod pod;
mod proc;
mod read;

use super::{Options, Report, Source, Verdict};
use crate::model::family as f;
use crate::model::{ProbeState, ProbeStatus, Snapshot};
use facts::Facts;
use load::Loaded;
use plan::PROBES;
use proc::{DeviceNames, KernelCounts};
use read::Timed;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

struct Linux {
    options: Options,
    loaded: BTreeMap<&'static str, Loaded>,
    states: Vec<ProbeStatus>,
    devices: DeviceNames,
    /// What the kernel had counted when the nfsd probe attached.
    baseline: Option<KernelCounts>,
    /// Keeps the kernel's run-time statistics on.
    _statistics: Option<OwnedFd>,
}

/// See [`super::start`].
pub fn start(options: &Options) -> anyhow::Result<Box<dyn Source>> {
    let statistics = match options.probe_stats.then(load::enable_statistics) {
        Some(Ok(fd)) => Some(fd),
        Some(Err(e)) => anyhow::bail!(
            "cannot turn BPF run-time statistics on ({e}): needs Linux 5.8 and CAP_SYS_ADMIN; leave out --probe-stats"
        ),
        None => None,
    };
    let facts = Facts::gather();
    let baseline = KernelCounts::read();
    let (loaded, mut states) = load::load_all(&facts);
    if !options.late_attach {
        for s in states.iter_mut().filter(|s| s.state == ProbeState::Waiting) {
            s.fix = "restart the agent once that is there, or allow late attach".into();
        }
    }
    Ok(Box::new(Linux {
        options: options.clone(),
        baseline: loaded.contains_key("nfsd").then_some(baseline).flatten(),
        loaded,
        states,
        devices: DeviceNames::default(),
        _statistics: statistics,
    }))
}

/// See [`super::check`].
pub fn check() -> Report {
    let facts = Facts::gather();
    let (_, probes) = load::load_all(&facts);
    let can = super::times_operations(&probes);
    let whole = probes.iter().all(|p| p.state == ProbeState::Attached);
    Report {
        verdict: match (can, whole) {
            (true, true) => Verdict::Full,
            (true, false) => Verdict::Degraded,
            (false, _) => Verdict::None,
        },
        facts: facts.show(),
        probes,
    }
}

impl Linux {
    fn attached(&self, program: &str) -> bool {
        self.states.iter().any(|p| {
            p.program == program && matches!(p.state, ProbeState::Attached | ProbeState::Fallback)
        })
    }

    fn coverage(&self, timed: Timed, now: &KernelCounts, s: &mut Snapshot) {
        let Some(before) = &self.baseline else { return };
        for (version, timed, counted) in [
            ("3", timed.v3, now.v3().saturating_sub(before.v3())),
            ("4", timed.v4, now.v4().saturating_sub(before.v4())),
        ] {
            // Nothing to cover says nothing about coverage.
            if counted > 0 {
                s.gauge(&f::COVERAGE, [version], timed as f64 / counted as f64);
            }
        }
    }

    fn itself(&self, s: &mut Snapshot) {
        let statistics = self.options.probe_stats
            || std::fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled")
                .is_ok_and(|v| v.trim() == "1");
        for (probe, l) in &self.loaded {
            let mut skipped = 0;
            for (program, fd) in l.programs() {
                let Ok(runs) = load::runs(fd) else { continue };
                skipped += runs.skipped;
                if statistics {
                    s.counter(&f::PROBE_RUNS, [probe, program], runs.count as f64);
                    s.counter(
                        &f::PROBE_RUN_SECONDS,
                        [probe, program],
                        runs.nanoseconds as f64 / 1e9,
                    );
                }
            }
            s.counter(&f::EVENTS_LOST, [probe, "recursion"], skipped as f64);
        }
    }
}

impl Source for Linux {
    fn snapshot(&mut self) -> Snapshot {
        let mut s = Snapshot::new(Duration::from_nanos(read::monotonic_ns()));
        let kernel = KernelCounts::read();
        if let Some(l) = self.loaded.get("nfsd") {
            let timed = read::nfsd(l, &mut s);
            if let Some(k) = &kernel {
                self.coverage(timed, k, &mut s);
            }
        }
        if let Some(k) = &kernel {
            read::kernel(k, &mut s);
        }
        let waits = self.attached("wait_end");
        if let Some(l) = self.loaded.get("jbd2") {
            read::jbd2(l, &mut s, &mut self.devices, waits);
        }
        if let Some(l) = self.loaded.get("block") {
            read::block(l, &mut s, &mut self.devices);
        }
        self.itself(&mut s);
        s.probes = self.states.clone();
        s
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        self.states.clone()
    }

    fn poll(&mut self) {
        if !self.options.late_attach {
            return;
        }
        for probe in &PROBES {
            let waiting = self
                .states
                .iter()
                .any(|p| p.probe == probe.word && p.state == ProbeState::Waiting);
            if !waiting || !probe.modules.iter().all(|m| proc::module_present(m)) {
                continue;
            }
            let baseline = KernelCounts::read();
            let (loaded, states) = load::load(probe, &Facts::gather());
            if let Some(l) = loaded {
                self.loaded.insert(probe.word, l);
                if probe.word == "nfsd" {
                    self.baseline = Some(baseline.unwrap_or_default());
                }
            }
            let place = self
                .states
                .iter()
                .position(|p| p.probe == probe.word)
                .unwrap_or(self.states.len());
            self.states.retain(|p| p.probe != probe.word);
            self.states.splice(place..place, states);
        }
    }
}
