//! Requests, and the pool of NFS threads.

use super::{seconds, time};
use crate::illumos::totals::Totals;
use nfscope_model::Snapshot;
use nfscope_model::family as f;

/// The pool that serves NFS, by its number in the kernel (`NFS_SVCPOOL_ID`).
const POOL: &str = "1";

/// Reads the totals of script `rpc`.
pub fn read(totals: &Totals, s: &mut Snapshot) {
    for (fields, table) in totals.tables("rpc") {
        // The header of a request has no minor version.
        let version = match fields[0] {
            "3" => "3",
            "4" => "4",
            _ => continue,
        };
        let of = |name: &str| totals.count(&format!("{name}\t{}", fields[0]));
        let all = of("rpc_ns");
        let [queue, receive, reply] = ["queue_ns", "receive_ns", "reply_ns"].map(of);
        let execute = all.saturating_sub(queue + receive + reply);
        s.histogram(&f::RPC_DURATION, [version], time(&table, all));
        for (phase, ns) in [
            ("queue", queue),
            ("receive", receive),
            ("execute", execute),
            ("reply", reply),
        ] {
            s.counter(&f::RPC_PHASE, [version, phase], seconds(ns));
        }
    }
    let queue_ns = totals.counts("queue_ns").map(|(_, ns)| ns).sum();
    let queue = time(&totals.table("queue"), queue_ns);
    s.counter(&f::RPC_NO_CLOCK, [], totals.count("no_clock") as f64);
    // Before a thread has looked for work nothing is known of the pool.
    let known = |name: &str| totals.gauge(name).filter(|n| *n > 0);
    if let Some(threads) = known("threads") {
        s.gauge(&f::THREADS, [POOL], threads as f64);
        // The sum begins with 0, while some threads may have a request in hand.
        let busy = totals.gauge("busy").unwrap_or(0).clamp(0, threads);
        s.gauge(&f::THREADS_BUSY, [POOL], busy as f64);
        let limit = known("limit").unwrap_or(threads);
        s.gauge(&f::THREADS_LIMIT, [POOL], limit as f64);
        let busy_ns = totals.count("busy_ns");
        s.counter(&f::THREAD_BUSY, [POOL], seconds(busy_ns));
        s.histogram(&f::RPC_QUEUE, [POOL], queue);
    }
}
