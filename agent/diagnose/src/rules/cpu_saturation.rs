//! `cpu_saturation`: threads that could run wait for a CPU.

use crate::attribution::waits_much_for_cpu;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{MIN_QUEUE_SHARE, NO_PHASES, cpu_idle, evidence, percent};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let waited = attribution.runqueue + attribution.queue.cpu;
    let share = context.share(waited);
    let runqueue = b.phases.and_then(|p| p.runqueue);
    // Short waits for a CPU count only if no CPU is idle.
    let known = b.cpu_idle.is_some() || waited > 0.0 || !waits_much_for_cpu(b);
    RuleResult {
        kind: Kind::CpuSaturation,
        share: runqueue.filter(|_| known).map(|_| share),
        of_threads: 0.0,
        condition: b.enough() && waited > 0.0,
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent waiting for a CPU",
            percent(share)
        ),
        evidence: evidence_for(context),
        advice: vec![
            format!(
                "find other programs that use the CPUs ({}); move them, or lower their priority",
                if b.illumos { "prstat" } else { "top, pidstat" }
            ),
            "add CPUs or use faster ones; in a virtual machine, check the steal time".into(),
        ],
        ruled_out_reason: match (b.phases, b.cpu_idle) {
            (None, _) => NO_PHASES.into(),
            _ if !known => "idle CPU time is not measured on this host".into(),
            (_, Some(idle)) => format!(
                "operations wait for a CPU for {} of request time; {} of CPU time was idle",
                percent(context.share(runqueue.unwrap_or(0.0))),
                percent(idle)
            ),
            _ => "waits for a CPU are short".into(),
        },
    }
}

fn evidence_for(context: &Context) -> Vec<Evidence> {
    let attribution = context.attribution;
    let mut all: Vec<_> = cpu_idle(context).into_iter().collect();
    if attribution.runqueue > 0.0 {
        let share = context.share(attribution.runqueue);
        let text = format!(
            "operations wait for a CPU for {} of request time",
            percent(share)
        );
        all.push(evidence(&f::OP_PHASE.info, share, None, text));
    }
    let share = context.share(attribution.queue.cpu);
    if share >= MIN_QUEUE_SHARE {
        let text = format!(
            "{} of request time is spent waiting for a thread that does not get a CPU",
            percent(share)
        );
        all.push(evidence(&f::RPC_PHASE.info, share, None, text));
    }
    all
}
