//! Requests, and the pool of NFS threads.

use super::{seconds, time};
use crate::illumos::scripts::Parts;
use crate::illumos::totals::Totals;
use nfscope_model::Snapshot;
use nfscope_model::family as f;

/// The pool that serves NFS, by its number in the kernel (`NFS_SVCPOOL_ID`).
const POOL: &str = "1";

/// Published time of the pool without a free thread, which never falls.
#[derive(Debug, Default)]
pub struct Published {
    full: u64,
}

/// Reads the totals of script `rpc`, whose last frame came at `at_ns`.
pub fn read(
    totals: &Totals,
    at_ns: u64,
    parts: Parts,
    published: &mut Published,
    s: &mut Snapshot,
) {
    for (fields, table) in totals.tables("rpc") {
        // The header of a request has no minor version.
        let version = match fields[0] {
            "3" => "3",
            "4" => "4",
            _ => continue,
        };
        let of = |name: &str| totals.count(&format!("{name}\t{}", fields[0]));
        let all = of("rpc_ns");
        let parts_of = ["queue_ns", "receive_ns", "asking_ns", "reply_ns"];
        let [queue, receive, asking, reply] = parts_of.map(of);
        let execute = all.saturating_sub(queue + receive + asking + reply);
        s.histogram(&f::RPC_DURATION, [version], time(&table, all));
        for (phase, ns) in [
            ("queue", queue),
            ("receive", receive),
            ("execute", execute),
            ("reply", reply),
        ] {
            s.counter(&f::RPC_PHASE, [version, phase], seconds(ns));
        }
        if parts.upcalls {
            s.counter(&f::RPC_PHASE, [version, "upcall"], seconds(asking));
        }
    }
    let asked = totals.table("upcall");
    if !asked.is_empty() {
        // The label is `other`: no stable member names the daemon.
        let waits = time(&asked, totals.count("upcall_ns"));
        s.counter(&f::UPCALL_ASKED, ["other"], waits.count() as f64);
        s.histogram(&f::UPCALL_WAIT, ["other"], waits);
    }
    let queue_ns = totals.counts("queue_ns").map(|(_, ns)| ns).sum();
    let queue = time(&totals.table("queue"), queue_ns);
    s.counter(&f::RPC_NO_CLOCK, [], totals.count("no_clock") as f64);
    // The pool is not known before a thread has looked for work.
    let known = |name: &str| totals.gauge(name).filter(|n| *n > 0);
    if let Some(threads) = known("threads") {
        s.gauge(&f::THREADS, [POOL], threads as f64);
        // The sum begins with 0, although some threads may have a request in hand.
        let busy = totals.gauge("busy").unwrap_or(0).clamp(0, threads);
        s.gauge(&f::THREADS_BUSY, [POOL], busy as f64);
        let limit = known("limit").unwrap_or(threads);
        s.gauge(&f::THREADS_LIMIT, [POOL], limit as f64);
        let busy_ns = totals.count("busy_ns");
        s.counter(&f::THREAD_BUSY, [POOL], seconds(busy_ns));
        s.histogram(&f::RPC_QUEUE, [POOL], queue);
        if parts.idle {
            // Time since which no thread has been free.
            let since = totals.gauge("full").and_then(|ns| u64::try_from(ns).ok());
            let since = since.filter(|ns| *ns > 0);
            let open = since.map_or(0, |ns| at_ns.saturating_sub(ns));
            let full = totals.count("full_ns").saturating_add(open);
            published.full = published.full.max(full);
            s.counter(&f::THREADS_SATURATED, [POOL], seconds(published.full));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::illumos::frame::Frame;

    /// No thread is free from 5 s on. That goes on in the first frame, and has ended in the second; then the script is started again.
    #[test]
    fn the_time_without_a_free_thread_never_falls() {
        let mut totals = Totals::default();
        let mut published = Published::default();
        let mut full = |totals: &Totals, at: u64| {
            let mut s = Snapshot::default();
            let at_ns = at * 1_000_000_000;
            read(totals, at_ns, Parts::ALL, &mut published, &mut s);
            s.value(&f::THREADS_SATURATED, [POOL])
        };
        assert_eq!(full(&totals, 5), None);
        let mut frame = Frame::default();
        frame
            .gauges
            .extend([("threads".into(), 4), ("full".into(), 5_000_000_000)]);
        frame.counts.insert("full_ns".into(), 1_000_000_000);
        totals.add(&frame);
        assert_eq!(full(&totals, 7), Some(3.0));
        frame.gauges.insert("full".into(), 0);
        totals.add(&frame);
        assert_eq!(full(&totals, 8), Some(3.0));
        frame.counts.insert("full_ns".into(), 3_500_000_000);
        totals.add(&frame);
        assert_eq!(full(&totals, 9), Some(3.5));
        totals.restart();
        frame.counts.insert("full_ns".into(), 500_000_000);
        totals.add(&frame);
        assert_eq!(full(&totals, 10), Some(4.0));
        let mut without = Snapshot::default();
        let parts = Parts {
            idle: false,
            ..Parts::ALL
        };
        read(&totals, 0, parts, &mut Published::default(), &mut without);
        assert_eq!(without.value(&f::THREADS_SATURATED, [POOL]), None);
        assert_eq!(without.value(&f::THREADS, [POOL]), Some(4.0));
    }
}
