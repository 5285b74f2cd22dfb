//! Records of threads: every thread has one, for any number of threads and any thread IDs.

use anyhow::{Result, ensure};
use lab::reconcile::{assert_same_operations, settled, window};
use lab::{Agent, Server};

/// Records of threads: IDs that differ by this number begin at the same place. `REQUESTS` in probes/bpf/lib/request.h.
const PLACES: u32 = 8192;

/// Threads of the second batch.
const MORE: u32 = 16;

/// A second batch of threads gets IDs that are larger than those of the first by the number of places. Then the pool shrinks, and
/// connections come and go.
pub fn are_timed_whatever_their_numbers(server: &Server, agent: &Agent) -> Result<()> {
    server.set_threads(8)?;
    let first = numbers(server)?;
    // Threads that began at different times have IDs far from each other; the second batch is to meet as many of the first as
    // possible.
    let near = |n: &&u32| {
        first
            .iter()
            .filter(|m| (**n..**n + MORE).contains(m))
            .count()
    };
    let begin = first.iter().max_by_key(near).unwrap_or(&first[0]);
    let last_number = begin + PLACES - 1;
    // A single program starts all threads, so that no other process takes an ID in between.
    server.sh(&format!(
        "echo {last_number} >/proc/sys/kernel/ns_last_pid; echo {} >/proc/fs/nfsd/threads",
        8 + MORE
    ))?;
    let all = numbers(server)?;
    let met = all
        .iter()
        .filter(|n| first.contains(&(*n - PLACES.min(**n))))
        .count();
    ensure!(met >= 4, "{met} threads meet others: {all:?}");
    let counts = |what: &str, arguments: &str| -> Result<()> {
        let before = settled(server, &[agent])?;
        server.run_clients(arguments)?;
        let after = settled(server, &[agent])?;
        let (counted, seen) = window(&before, &after, 0);
        assert_same_operations(what, &counted, &seen);
        Ok(())
    };
    let busy = "getattr --from 127.3.0.1 --clients 32 --times 40";
    counts("24 threads over v3", busy)?;
    counts("24 threads over v4.2", &format!("{busy} --nfs 4.2"))?;
    server.set_threads(8)?;
    let brief = "getattr --from 127.4.0.1 --clients 300 --at-once 8 --times 1";
    counts("8 threads, 300 connections", brief)
}

/// IDs of nfsd's threads, in order.
fn numbers(server: &Server) -> Result<Vec<u32>> {
    let listed = server.sh("pgrep -x nfsd | sort -n")?.stdout;
    let numbers: Vec<u32> = listed.lines().filter_map(|n| n.parse().ok()).collect();
    ensure!(!numbers.is_empty(), "no thread is called nfsd");
    Ok(numbers)
}
