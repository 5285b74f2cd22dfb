//! The series that describe the agent itself; they come from the view, not from a source.

use crate::api::build_info::{REVISION, VERSION};
use nfscope_model::{Snapshot, family};
use std::time::Duration;

/// Adds build, probe health and the time that the reading took.
pub fn describe(snapshot: &mut Snapshot, reading: Duration) {
    snapshot.gauge(&family::BUILD_INFO, [VERSION, REVISION], 1.0);
    for p in std::mem::take(&mut snapshot.probes) {
        snapshot.gauge(
            &family::PROBE_ATTACHED,
            [&p.probe, &p.program, &p.reason],
            f64::from(u8::from(p.state.measures())),
        );
        snapshot.probes.push(p);
    }
    snapshot.gauge(&family::SCRAPE_SECONDS, [], reading.as_secs_f64());
}
