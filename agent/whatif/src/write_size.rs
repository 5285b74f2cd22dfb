//! WRITEs of another size.
//!
//! A single recording does not distinguish costs per request from costs per byte. Both ends are simulated: all costs per request, which
//! changes nothing, and all costs per byte. The second one leaves out what cannot grow with the bytes. A log that has fewer bytes than the
//! WRITEs stored has no data in it, and neither have the logs of XFS and btrfs.

use crate::durations::Durations;
use crate::measured::Measured;
use crate::refusal::Refusal;
use crate::server::Server;
use crate::storage::MeasuredLog;

/// The server under the assumption that every cost of a WRITE that can grow with its bytes does.
pub(crate) fn by_byte(m: &Measured, server: &Server, bytes: u64) -> Result<Server, Refusal> {
    let before = m.write_bytes.ok_or(Refusal::NoWrites)?;
    let times = bytes as f64 / before;
    let scaled = |d: &Durations, times: f64| d.with_mean(d.mean() * times);
    let mut s = server.clone();
    let mut writes = 0.0;
    for (class, kind) in s.classes.iter_mut().zip(&m.kinds) {
        if kind.op != "write" {
            continue;
        }
        writes += kind.count;
        class.receive = scaled(&class.receive, times);
        class.cpu = scaled(&class.cpu, times);
        class.disk_visits *= times;
    }
    let part = writes / m.requests().max(1e-12);
    s.other_cpu = scaled(&s.other_cpu, 1.0 + (times - 1.0) * part);
    if let Some(log) = &m.log {
        let growth = 1.0 + (times - 1.0) * data_in(log, before * writes);
        let device = log.device.as_ref().map(|(_, time, path)| time * path);
        s.log = s.log.with_mean(|old| {
            let device = device.unwrap_or(old).min(old);
            old + device * (growth - 1.0)
        });
    }
    Ok(s)
}

/// Largest part of the log's bytes that can be data of WRITEs, which stored `written` bytes.
fn data_in(log: &MeasuredLog, written: f64) -> f64 {
    match log.bytes {
        _ if log.fs == "xfs" || log.fs == "btrfs" => 0.0,
        Some(bytes) if bytes < written => 0.0,
        Some(bytes) => written / bytes.max(1e-12),
        None => 1.0,
    }
}
