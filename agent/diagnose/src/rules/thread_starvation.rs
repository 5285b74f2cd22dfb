//! `thread_starvation`: requests wait for a thread, and the threads wait for nothing slow.

use crate::attribution::{LONG_WAIT_SECONDS, MIN_COUNT, QueueAttribution};
use crate::breakdown::mean;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{cpu_idle, evidence, percent};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::{many, seconds};

/// A pool that has no free thread for a smaller part of the window is large enough.
const SATURATED_RATIO: f64 = 0.2;
/// The advice adds so much to the threads that the window needed.
const THREAD_RESERVE: f64 = 1.25;
/// A longer queue is explained where it is ruled out.
const LONG_QUEUE_SHARE: f64 = 0.1;

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let share = context.share(context.attribution.queue.threads);
    let saturated = b.saturated.unwrap_or(0.0);
    let each = mean(b.queue, b.requests);
    RuleResult {
        kind: Kind::ThreadStarvation,
        share: b.saturated.map(|_| share),
        condition: b.requests >= MIN_COUNT
            && saturated >= SATURATED_RATIO
            && each >= LONG_WAIT_SECONDS,
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent waiting for a free nfsd thread ({} in total); nothing slow keeps the threads",
            percent(share),
            many(b.threads, "thread")
        ),
        evidence: evidence_for(context, each, saturated),
        advice: advice_for(context),
        ruled_out_reason: match (b.saturated, other_cause(&context.attribution.queue)) {
            (None, _) => {
                "busy threads cannot be counted on this host; `nfscope check` shows why".into()
            }
            (_, Some(cause)) if context.share(b.queue) >= LONG_QUEUE_SHARE => format!(
                "requests wait for a thread for {} of request time, but because {cause}: more threads would not help",
                percent(context.share(b.queue))
            ),
            _ => format!("no thread was free for {} of the time", percent(saturated)),
        },
    }
}

fn evidence_for(context: &Context, each: f64, saturated: f64) -> Vec<Evidence> {
    let b = context.breakdown;
    let p99 = b.queue_p99.map(|p| format!(", p99 {}", seconds(p)));
    let wait = format!(
        "a request waits {} for a thread on average{}",
        seconds(each),
        p99.unwrap_or_default()
    );
    let no_free_thread = format!(
        "no thread was free for {} of the time ({} in total)",
        percent(saturated),
        many(b.threads, "thread")
    );
    let mut all = vec![
        evidence(&f::RPC_PHASE.info, each, Some(LONG_WAIT_SECONDS), wait),
        evidence(
            &f::THREADS_SATURATED.info,
            saturated,
            Some(SATURATED_RATIO),
            no_free_thread,
        ),
    ];
    all.extend(cpu_idle(context));
    all
}

fn advice_for(context: &Context) -> Vec<String> {
    let b = context.breakdown;
    // By Little's law: requests that were in a thread or waited for one, on average.
    let needed = b.rate(b.thread_seconds() + b.queue);
    let mut all = vec![format!(
        "add threads: {needed:.0} requests at a time are in a thread or wait for one. In /etc/nfs.conf: [nfsd] \
         threads={}, then systemctl restart nfs-server; without a restart: rpc.nfsd {0}",
        (needed * THREAD_RESERVE).ceil().max(b.threads + 1.0)
    )];
    if let Some(limit) = b.thread_limit.filter(|l| *l > b.threads) {
        all.push(format!(
            "the kernel may grow the pools to {limit} threads, but not fast enough: raise their minimum (nfsdctl threads -m)"
        ));
    }
    all
}

/// What else keeps the threads, if that explains most of the queue.
fn other_cause(q: &QueueAttribution) -> Option<&'static str> {
    let all = [
        (q.log, "the threads wait for the journal or intent log"),
        (q.disk, "the threads wait for disks"),
        (q.lock, "the threads wait for locks or other threads"),
        (q.cpu, "the threads wait for a CPU"),
        (q.reply, "replies wait for the client or the network"),
    ];
    let (largest, cause) = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    (largest > q.threads).then_some(cause)
}
