//! `memory_reclaim`: operations sleep in direct reclaim (mm/vmscan.c): there is no free memory, and what is in use must be stored
//! first.

use crate::rules::context::{Context, RuleResult};
use crate::rules::known_wait::{self, KnownWait};
use nfscope_model::finding::Kind;

pub fn rule(context: &Context) -> RuleResult {
    let wait = KnownWait {
        kind: Kind::MemoryReclaim,
        phase: |p| p.reclaim,
        programs: ["sched_reclaimed", "reclaim"],
        attributed: context.attribution.reclaim,
        waiting: "waiting for free memory",
        until: "until memory is free",
    };
    if context.breakdown.illumos {
        let advice = vec![
            "find what uses the memory: echo ::memstat | mdb -k, prstat -s rss; move it, limit it (zfs_arc_max in /etc/system), or add memory".to_owned(),
        ];
        return known_wait::result(context, &wait, Vec::new(), advice);
    }
    let advice = vec![
        "find what uses the memory: ps -eo pid,rss,args --sort=-rss | head, slabtop, free -m; move it, limit it, or add memory".to_owned(),
        "a larger vm.watermark_scale_factor makes the kernel reclaim earlier, before threads need the memory".into(),
    ];
    known_wait::result(context, &wait, Vec::new(), advice)
}
