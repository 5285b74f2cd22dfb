//! `thread_starvation`: requests wait for a thread, whatever the threads wait for.

use crate::attribution::cpus_are_busy;
use crate::breakdown::{mean, part};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{IN_OTHER_WAITS, cpu_idle, evidence, pending, percent};
use crate::thresholds::{FELT_SECONDS, LONG_WAIT_SECONDS, SATURATED, THREAD_RESERVE};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::{many, seconds};

/// Least part of the threads' time from which on a wait is named beside their number.
const NAMED_SHARE: f64 = 0.25;
/// Part of the time without a free thread that counts as none.
const NEVER: f64 = 0.005;
/// Least part of request time in the queue for which a finding that is ruled out explains the queue.
const LONG_QUEUE_SHARE: f64 = 0.1;

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let share = context.share(context.attribution.queue.threads);
    let saturated = b.saturated.unwrap_or(0.0);
    let each = mean(b.queue, b.queued);
    // A pool that had a free thread kept no request waiting, whether arrivals were seen or not.
    let known = b.queue_known() || saturated < SATURATED;
    RuleResult {
        kind: Kind::ThreadStarvation,
        share: b.saturated.filter(|_| known).map(|_| share),
        of_threads: 0.0,
        condition: b.enough()
            && saturated >= SATURATED
            && (each >= LONG_WAIT_SECONDS || (b.felt > 0.0 && b.queue >= FELT_SECONDS)),
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent waiting for a free nfsd thread ({} in total)",
            percent(share),
            many(b.threads, "thread")
        ),
        evidence: evidence_for(context, each, saturated),
        advice: advice_for(context),
        ruled_out_reason: match b.saturated {
            None => "busy threads cannot be counted on this host; `nfscope check` shows why".into(),
            Some(_) if !known => format!(
                "no thread was free for {} of the time, and the wait for a thread is known of {} of the requests: too few \
                 threads are possible, and what they cost is not measured",
                percent(saturated),
                percent(part(b.queued, b.requests))
            ),
            Some(_) if context.share(b.queue) >= LONG_QUEUE_SHARE && cpus_are_busy(b) => format!(
                "requests wait for a thread for {} of request time, and the CPUs are busy",
                percent(context.share(b.queue))
            ),
            Some(_) if saturated < NEVER => "a thread was free all the time".into(),
            Some(_) => format!("no thread was free for {} of the time", percent(saturated)),
        },
    }
}

fn evidence_for(context: &Context, each: f64, saturated: f64) -> Vec<Evidence> {
    let b = context.breakdown;
    // Buckets have one value for all that is in them: that of the last ones can be below the mean.
    let p99 = b.queue_p99.filter(|p| *p >= each);
    let p99 = p99.map(|p| format!(", p99 {}", seconds(p)));
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
            Some(SATURATED),
            no_free_thread,
        ),
    ];
    all.extend(pending(b));
    all.extend(thread_time(context));
    all.extend(cpu_idle(context));
    all
}

/// Evidence about the threads' time while requests wait for them.
fn thread_time(context: &Context) -> Option<Evidence> {
    let b = context.breakdown;
    let p = b.phases.unwrap_or_default();
    let op = &f::OP_PHASE.info;
    let all = [
        (
            p.log.unwrap_or(0.0),
            op,
            "waiting for the journal or intent log",
        ),
        (p.disk, op, "waiting for disks"),
        (p.throttle, op, "waiting until written data is stored"),
        (
            b.asking + p.upcall,
            &f::RPC_PHASE.info,
            "waiting for rpc.mountd or another daemon",
        ),
        (p.recall, op, "waiting for clients to return delegations"),
        (p.reclaim, op, "waiting for free memory"),
        (p.lock, op, IN_OTHER_WAITS),
        (b.reply, &f::RPC_PHASE.info, "sending replies"),
    ];
    let (seconds, info, what) = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let share = context.share_of_threads(seconds);
    (share >= NAMED_SHARE).then(|| {
        let text = format!(
            "threads spend {} of their time with requests {what}",
            percent(share)
        );
        evidence(info, share, None, text)
    })
}

fn advice_for(context: &Context) -> Vec<String> {
    let b = context.breakdown;
    // By Little's law this is the mean number of requests that were in a thread or waited for one.
    let needed = b.rate(b.thread_seconds() + b.queue);
    let threads = (needed * THREAD_RESERVE).ceil().max(b.threads + 1.0);
    let why =
        format!("add threads: {needed:.0} requests at a time are in a thread or wait for one");
    if b.illumos {
        let limit = b.thread_limit.unwrap_or(b.threads);
        return vec![match threads > limit {
            true => format!("{why}: sharectl set -p servers={threads} nfs"),
            false => format!(
                "{why}. The kernel may start up to {limit} threads, and nfsd starts them: look at it (svcs -xv nfs/server)"
            ),
        }];
    }
    let mut all = vec![format!(
        "{why}. In /etc/nfs.conf: [nfsd] threads={threads}, then systemctl restart nfs-server; without a restart: rpc.nfsd \
         {threads}"
    )];
    if let Some(limit) = b.thread_limit.filter(|l| *l > b.threads) {
        all.push(format!(
            "the kernel may grow the pools to {limit} threads, but not fast enough: raise their minimum (nfsdctl threads -m)"
        ));
    }
    all
}
