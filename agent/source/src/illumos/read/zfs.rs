//! ZFS: its intent log, transaction groups and throttle.

use super::time;
use crate::illumos::totals::Totals;
use nfscope_model::Snapshot;
use nfscope_model::family as f;

/// `zfs_sync_type_t`.
const SYNCS: [&str; 3] = ["standard", "always", "disabled"];
/// `lwb_slog`.
const TARGETS: [&str; 2] = ["main", "separate"];
/// `itx_wr_state_t`.
const ITX_KINDS: [&str; 3] = ["indirect", "copied", "needcopy"];

/// Name for a number of the script.
fn name(names: &[&'static str], number: &str) -> Option<&'static str> {
    names.get(number.parse::<usize>().ok()?).copied()
}

/// Reads the totals of script `zil`.
pub fn zil(totals: &Totals, s: &mut Snapshot) {
    for (fields, n) in totals.counts("commits") {
        if let [pool, sync] = fields[..]
            && let Some(sync) = name(&SYNCS, sync)
        {
            s.counter(&f::ZFS_COMMITS, [pool, sync], n as f64);
        }
    }
    for (fields, table) in totals.tables("wait") {
        let pool = fields[0];
        let waits = time(&table, totals.count(&format!("wait_ns\t{pool}")));
        s.histogram(&f::LOG_WAIT, ["zfs", pool], waits);
        // A pool without waits for a transaction group gets a series with 0.
        let n = totals.count(&format!("txg_waits\t{pool}"));
        s.counter(&f::ZFS_TXG_WAITS, [pool, "any"], n as f64);
    }
    for (fields, table) in totals.tables("block") {
        let pool = fields[0];
        let blocks = time(&table, totals.count(&format!("block_ns\t{pool}")));
        s.histogram(&f::LOG_COMMIT, ["zfs", pool], blocks);
    }
    for (fields, v) in totals.gauges("separate") {
        // The value has the time of the newest block, and the block's device class in its lowest bit.
        s.gauge(&f::LOG_SEPARATE, ["zfs", fields[0]], (v & 1) as f64);
    }
    for (fields, n) in totals.counts("lwb_bytes") {
        if let [pool, slog] = fields[..]
            && let Some(target) = name(&TARGETS, slog)
        {
            s.counter(&f::LOG_BYTES, ["zfs", pool, target], n as f64);
        }
    }
    for (table_name, family) in [("write", &f::ZFS_LWB_WRITE), ("flush", &f::ZFS_LWB_FLUSH)] {
        for (fields, table) in totals.tables(table_name) {
            if let [pool, slog] = fields[..]
                && let Some(target) = name(&TARGETS, slog)
            {
                let sum = totals.count(&format!("{table_name}_ns\t{pool}\t{slog}"));
                s.histogram(family, [pool, target], time(&table, sum));
            }
        }
    }
    for (fields, n) in totals.counts("itx") {
        if let [pool, kind] = fields[..]
            && let Some(kind) = name(&ITX_KINDS, kind)
        {
            s.counter(&f::ZFS_ITX_BYTES, [pool, kind], n as f64);
        }
    }
}

/// Reads the totals of script `txg`.
pub fn txg(totals: &Totals, s: &mut Snapshot) {
    for (table_name, family) in [("sync", &f::ZFS_TXG_SYNC), ("throttle", &f::ZFS_THROTTLE)] {
        for (fields, table) in totals.tables(table_name) {
            let sum = totals.count(&format!("{table_name}_ns\t{}", fields[0]));
            s.histogram(family, [fields[0]], time(&table, sum));
        }
    }
}
