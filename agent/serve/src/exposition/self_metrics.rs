//! Series that describe the agent itself; the agent adds them, not the source.

use nfscope_api::build_info::{REVISION, VERSION};
use nfscope_model::{ProbeState, ProbeStatus, Snapshot, family};
use std::time::Duration;

/// Value of the label `program` for all programs of a probe.
const ALL: &str = "all";

/// Adds build, probe health and the duration of the reading.
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
        // All programs of the probe have the same state, for example if this host lacks a file system: one series says that.
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
