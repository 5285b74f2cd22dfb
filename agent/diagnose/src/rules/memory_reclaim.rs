//! `memory_reclaim`: operations sleep in direct reclaim (mm/vmscan.c): there is no free memory, and what is in use must be stored
//! first.

use crate::rules::context::{Context, RuleResult};
use crate::rules::known_wait::{self, KnownWait};
use nfscope_model::finding::Kind;

pub fn rule(context: &Context) -> RuleResult {
    let wait = KnownWait {
        kind: Kind::MemoryReclaim,
        phase: |p| p.reclaim,
        attributed: context.attribution.reclaim,
        waiting: "waiting for free memory",
        until: "until memory is free",
    };
    let advice = vec![
        "find what uses the memory: ps --sort=-rss, slabtop, free -m; move it, limit it, or add memory".to_owned(),
        "vm.min_free_kbytes keeps more memory free, so that the kernel reclaims before threads need it".into(),
    ];
    known_wait::result(context, &wait, Vec::new(), advice)
}
