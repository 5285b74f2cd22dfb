//! Checks that refuse servers which the model does not know.

use crate::measured::{Kind, Measured};
use crate::refusal::Refusal;
use std::collections::HashMap;

/// Largest part of execution that may be spent in sleeps outside of disks and logs.
const MAX_SLEEP: f64 = 0.25;
/// Largest part of the threads' time for receiving and replying.
const MAX_NETWORK: f64 = 0.3;
/// Largest part of the disks' bytes that may be other programs'.
const MAX_FOREIGN: f64 = 0.25;
/// Part of the execution time below which a resource does not decide the prediction.
const MATTERS: f64 = 0.1;
/// Largest part of the waits for logs that may be for a second log.
const MAX_OTHER_LOGS: f64 = 0.2;

/// The phase with most of the sleep outside of disks and logs.
fn longest_sleep(m: &Measured) -> &'static str {
    let mut all: HashMap<&str, f64> = HashMap::new();
    for k in &m.kinds {
        for (name, seconds) in &k.asleep {
            *all.entry(name).or_default() += seconds * k.count;
        }
    }
    *all.entry("upcall").or_default() += m.upcall * m.requests();
    all.into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(b.0)))
        .map_or("lock", |(name, _)| name)
}

/// Refuses windows that the simulation cannot reproduce.
pub(crate) fn check(m: &Measured) -> Result<(), Refusal> {
    let mean = m.per_request(|k| k.mean);
    let asleep = (m.per_request(Kind::sleep) + m.upcall) / (mean + m.upcall).max(1e-12);
    if asleep > MAX_SLEEP {
        return Err(Refusal::Sleeps(asleep, longest_sleep(m)));
    }
    let on_disks = m.per_request(|k| k.disk) / mean.max(1e-12);
    match m.foreign {
        Some(part) if part > MAX_FOREIGN && on_disks > MATTERS => {
            return Err(Refusal::ForeignDisk(part));
        }
        _ => {}
    }
    let network = m.receive + m.reply;
    let cpu = m.per_request(|k| k.cpu);
    // Waits for full CPUs while receiving and replying are left out: the simulation has them.
    let beyond = (network - (m.cpu_busy / m.rate - cpu).max(0.0)).max(0.0);
    let part = beyond / (network + mean).max(1e-12);
    if part > MAX_NETWORK && network > 2.0 * cpu.max(20e-6) {
        return Err(Refusal::Network(part));
    }
    if let Some(log) = &m.log {
        let part = m.per_request(|k| k.log) / mean.max(1e-12);
        if part > 0.1 && log.others > MAX_OTHER_LOGS {
            return Err(Refusal::ManyLogs(log.others));
        }
    }
    Ok(())
}
