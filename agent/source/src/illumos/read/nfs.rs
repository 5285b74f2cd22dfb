//! Operations, with their phases where these are measured.

use super::{seconds, sizes, time};
use crate::illumos::scripts::op_of;
use crate::illumos::totals::Totals;
use crate::nfs_names::{STABILITIES, status};
use nfscope_model::family as f;
use nfscope_model::phase::RARE;
use nfscope_model::{Scheme, Snapshot};
use std::collections::BTreeSet;

/// Label `version` for a version number of the script.
pub fn version(number: &str) -> Option<&'static str> {
    Some(match number {
        "3" => "3",
        "4" => "4",
        "40" => "4.0",
        "41" => "4.1",
        "42" => "4.2",
        _ => return None,
    })
}

/// Phases that the script distinguishes from other sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// True if waits for the log and for disks are distinguished: the functions of ZFS exist.
    pub storage: bool,
}

/// Reads operations. Returns the number of timed ones of versions 3 and 4, of those that the kernel counts, too.
pub fn read(totals: &Totals, phases: Option<Phases>, s: &mut Snapshot) -> [u64; 2] {
    let mut timed = [0; 2];
    for (fields, table) in totals.tables("op") {
        let [number, probe] = fields[..] else {
            continue;
        };
        let (Some(version), Some(op)) = (version(number), op_of(probe)) else {
            continue;
        };
        let of = |name: &str| totals.count(&format!("{name}\t{number}\t{probe}"));
        let durations = time(&table, of("op_ns"));
        let n = durations.count();
        match version {
            "3" => timed[0] += n,
            _ if op != "null" => timed[1] += n,
            _ => {}
        }
        if let (Some(p), true) = (phases, version != "4") {
            let waits = ["runqueue_ns", "log_ns", "disk_ns", "lock_ns"].map(of);
            let rare = RARE.map(|phase| (phase, of(&format!("{phase}_ns"))));
            let [runqueue, log, disk, lock] = waits.map(seconds);
            // All sums come from one frame and from the same operations.
            let slept: u64 = waits.iter().sum::<u64>() + rare.iter().map(|(_, ns)| ns).sum::<u64>();
            let cpu = of("op_ns").saturating_sub(slept);
            s.counter(&f::OP_PHASE, [version, op, "cpu"], seconds(cpu));
            s.counter(&f::OP_PHASE, [version, op, "runqueue"], runqueue);
            if p.storage {
                s.counter(&f::OP_PHASE, [version, op, "log"], log);
                s.counter(&f::OP_PHASE, [version, op, "disk"], disk);
            }
            for (phase, ns) in rare.into_iter().filter(|(_, ns)| *ns > 0) {
                s.counter(&f::OP_PHASE, [version, op, phase], seconds(ns));
            }
            s.counter(&f::OP_PHASE, [version, op, "lock"], lock);
        }
        s.histogram(&f::OP_DURATION, [version, op], durations);
    }
    for (fields, n) in totals.counts("error") {
        let [number, probe, code] = fields[..] else {
            continue;
        };
        if let (Some(v), Some(op), Ok(code)) = (version(number), op_of(probe), code.parse()) {
            s.counter(&f::OP_ERRORS, [v, op, &status(v == "3", code)], n as f64);
        }
    }
    compounds(totals, s);
    transfers(totals, s);
    timed
}

fn compounds(totals: &Totals, s: &mut Snapshot) {
    for (fields, table) in totals.tables("compound") {
        let Some(v) = version(fields[0]) else {
            continue;
        };
        let of = |name: &str| totals.count(&format!("{name}\t{}", fields[0]));
        let durations = time(&table, of("compound_ns"));
        s.histogram(&f::COMPOUND_DURATION, [v], durations);
        let table = totals.table(&format!("compound_size\t{}", fields[0]));
        let ops = sizes(Scheme::COUNT, &table, of("compound_ops"));
        s.histogram(&f::COMPOUND_OPS, [v], ops);
    }
}

/// Reads READs and WRITEs.
fn transfers(totals: &Totals, s: &mut Snapshot) {
    for (fields, table) in totals.tables("size") {
        let [number, kind] = fields[..] else {
            continue;
        };
        let (Some(v), Some(op)) = (version(number), IO_OPS.get(kind.parse().unwrap_or(2))) else {
            continue;
        };
        let sum = totals.count(&format!("bytes\t{number}\t{kind}"));
        s.histogram(&f::IO_SIZE, [v, op], sizes(Scheme::SIZE, &table, sum));
    }
    // Versions with any WRITE have all three stabilities.
    let numbers: BTreeSet<_> = totals
        .counts("stable")
        .map(|(fields, _)| fields[0])
        .collect();
    for number in numbers {
        let Some(v) = version(number) else { continue };
        for (i, how) in STABILITIES.iter().enumerate() {
            let of = |name: &str| totals.count(&format!("{name}\t{number}\t{i}")) as f64;
            s.counter(&f::WRITE, [v, how], of("stable"));
            s.counter(&f::WRITE_BYTES, [v, how], of("stable_bytes"));
        }
    }
}

/// Operations by their number in the script.
const IO_OPS: [&str; 2] = ["read", "write"];
