//! Runs and skipped runs of the probes' own programs, as the kernel counts them, and their kernel memory.

use crate::host_table;
use crate::linux::load::object::Loaded;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use std::collections::BTreeMap;

/// Reads every loaded probe. Run counts and times are only read if this agent (`enabled`) or another program has turned the kernel's
/// statistics on.
pub fn read(loaded: &BTreeMap<&'static str, Loaded>, enabled: bool, s: &mut Snapshot) {
    let kept = enabled
        || host_table::read("/proc/sys/kernel/bpf_stats_enabled").is_some_and(|v| v.trim() == "1");
    for (probe, l) in loaded {
        let mut skipped = 0;
        for (program, runs) in l.runs() {
            skipped += runs.skipped;
            if kept {
                let seconds = runs.nanoseconds as f64 / 1e9;
                s.counter(&f::PROBE_RUNS, [probe, program], runs.count as f64);
                s.counter(&f::PROBE_RUN_SECONDS, [probe, program], seconds);
            }
        }
        s.counter(&f::EVENTS_LOST, [probe, "recursion"], skipped as f64);
        let memory = l.kernel_memory(*probe == "nfsd") as f64;
        s.gauge(&f::KERNEL_MEMORY, [probe], memory);
    }
}
