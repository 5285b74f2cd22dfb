//! `write_throttle`: writers are held back, because more is written than the devices store: the kernel's limit of dirty pages
//! (mm/page-writeback.c, balance_dirty_pages), or the write throttle of ZFS (dmu_tx_wait).

use crate::breakdown::NamedWaits;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, slowest_device, who_fills};
use crate::rules::known_wait::{self, KnownWait};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind};
use nfscope_text::units::seconds;

pub fn rule(context: &Context) -> RuleResult {
    let wait = KnownWait {
        kind: Kind::WriteThrottle,
        phase: |p| p.throttle,
        programs: ["sched_dirty_end", "throttle"],
        attributed: context.attribution.throttle,
        waiting: "waiting until written data is stored",
        until: "until written data is stored",
    };
    let of_zfs = !pools(context).is_empty();
    let first = match of_zfs || context.breakdown.illumos {
        true => {
            "more is written than the pool stores: look at the disks of the pool (zpool iostat -vl 1)"
        }
        false => {
            "more is written than the disks store: look at the device below the export (iostat -x 1), and at other programs that write"
        }
    };
    // The devices of an export on ZFS are not known.
    let no_zfs = context.breakdown.export_devices.is_some();
    let limit = match (context.breakdown.illumos, of_zfs) {
        (true, _) => "zfs_dirty_data_max in /etc/system",
        (false, true) => "zfs_dirty_data_max",
        (false, false) if no_zfs => "vm.dirty_bytes",
        (false, false) => "vm.dirty_bytes; zfs_dirty_data_max",
    };
    let advice = vec![
        first.to_owned(),
        format!("a larger limit ({limit}) helps against bursts alone: a longer load fills it, too"),
    ];
    known_wait::result(context, &wait, evidence_for(context), advice)
}

/// Pools that hold writers back. These may be nfsd's threads: the devices of an export on ZFS are not known.
fn pools<'a>(context: &Context<'a>) -> &'a [NamedWaits] {
    match context.breakdown.export_devices {
        Some(_) => &[],
        None => &context.breakdown.zfs_throttle,
    }
}

/// Pools that hold writers back; without any, the slowest device, to which the data go.
fn evidence_for(context: &Context) -> Vec<Evidence> {
    let mut all = Vec::new();
    for NamedWaits { name, waits } in pools(context) {
        if let Some(mean) = waits.mean() {
            let text = format!(
                "the pool {name} holds writers back {:.0} times, {} on average",
                waits.count(),
                seconds(mean)
            );
            all.push(evidence(&f::ZFS_THROTTLE.info, mean, None, text));
        }
    }
    if all.is_empty() {
        all.extend(slowest_device(context.breakdown));
    }
    all.extend(who_fills(context.breakdown));
    all
}
