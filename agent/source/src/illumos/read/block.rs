//! Block devices, by the name that `iostat` has for them.

use super::time;
use crate::illumos::kstat::Stats;
use crate::illumos::totals::Totals;
use nfscope_model::Snapshot;
use nfscope_model::family as f;

/// Operations by their number in the script.
const OPS: [&str; 2] = ["write", "read"];

/// Reads the totals of script `io`.
pub fn read(totals: &Totals, s: &mut Snapshot) {
    for (fields, table) in totals.tables("device") {
        let [device, number] = fields[..] else {
            continue;
        };
        let Some(op) = number.parse::<usize>().ok().and_then(|i| OPS.get(i)) else {
            continue;
        };
        let of = |name: &str| totals.count(&format!("{name}\t{device}\t{number}"));
        let requests = time(&table, of("device_ns"));
        s.histogram(&f::BLOCK_DEVICE, [device, op], requests);
        s.counter(&f::BLOCK_BYTES, [device, op], of("bytes") as f64);
    }
}

/// Reads the kernel's counts of devices: the time with requests in them, and the number of requests in them now.
pub fn kernel(stats: &Stats, s: &mut Snapshot) {
    for (name, value) in stats.all() {
        let mut parts = name.split(':');
        let (Some(_), Some(_), Some(device), Some(statistic)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        // Names with a comma are those of partitions and errors.
        if device.contains(',') {
            continue;
        }
        match statistic {
            "rtime" => s.counter(&f::BLOCK_BUSY, [device], value),
            "rcnt" => s.gauge(&f::BLOCK_INFLIGHT, [device], value),
            _ => {}
        }
    }
}
