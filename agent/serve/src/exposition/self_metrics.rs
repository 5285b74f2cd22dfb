//! The series that describe the agent itself; they come from the view, not from a source.

use nfscope_api::build_info::{REVISION, VERSION};
use nfscope_model::{ProbeState, ProbeStatus, Snapshot, family};
use std::time::Duration;

/// Stands for every program of a probe.
const ALL: &str = "all";

/// Adds build, probe health and the time that the reading took.
pub fn describe(snapshot: &mut Snapshot, reading: Duration) {
    snapshot.gauge(&family::BUILD_INFO, [VERSION, REVISION], 1.0);
    let probes = std::mem::take(&mut snapshot.probes);
    for of_probe in probes.chunk_by(|a, b| a.probe == b.probe) {
        let Some(first) = of_probe.first() else {
            continue;
        };
        let fine = |p: &ProbeStatus| p.state.measures() || p.state == ProbeState::Unused;
        let success = f64::from(u8::from(of_probe.iter().all(fine)));
        snapshot.gauge(&family::PROBE_SUCCESS, [&first.probe], success);
        let same = |p: &ProbeStatus| !p.required && !p.state.measures() && p.reason == first.reason;
        // A file system that this host has not: a series for each program would say the same.
        if of_probe.iter().all(same) {
            let labels = [&first.probe, ALL];
            snapshot.gauge(&family::PROBE_ATTACHED, labels, 0.0);
            continue;
        }
        let optional = |p: &ProbeStatus| !p.required && p.state.measures();
        if of_probe.len() > 1 && of_probe.iter().all(optional) {
            let labels = [&first.probe, ALL];
            snapshot.gauge(&family::PROBE_ATTACHED, labels, 1.0);
            continue;
        }
        for p in of_probe {
            snapshot.gauge(
                &family::PROBE_ATTACHED,
                [&p.probe, &p.program],
                f64::from(u8::from(p.state.measures())),
            );
        }
    }
    snapshot.probes = probes;
    snapshot.gauge(&family::SCRAPE_SECONDS, [], reading.as_secs_f64());
}
