//! nfsd threads and their pools.

use crate::doctor::answer::Answer;
use crate::doctor::host::Host;
use crate::doctor::rule::Rule;
use nfscope_text::units::many;

const FILE: &str = "/proc/fs/nfsd/threads";

/// Number of nfsd threads.
pub const THREADS: Rule = Rule {
    name: "threads",
    why: "Each thread serves one request at a time. With a single one, a request that waits for a disk stops all others.",
    source: "rpc.nfsd(8), nfs.conf(5)",
    look: |host| match host.number(FILE) {
        Err(e) => vec![e.answer()],
        Ok(0) => vec![Answer::unknown(
            "no NFS server runs here: it has no threads",
            "start it, and run `nfscope doctor` again",
        )],
        Ok(1) => vec![Answer::change(
            "one thread of nfsd",
            "set threads= in section [nfsd] of /etc/nfs.conf, and restart the server",
        )],
        Ok(n) => vec![Answer::good(format!(
            "{n} threads of nfsd. Only a load shows whether these are enough: `nfscope diagnose`"
        ))],
    },
};

/// Thread pools without a thread.
pub const POOLS: Rule = Rule {
    name: "pools",
    why: "A request goes to the pool of the CPU or node on which it arrives. Threads serve their own pool alone: where a pool has \
          none, its requests may wait for ever. Newer kernels hand them to another pool.",
    source: "net/sunrpc/svc.c, svc_pool_for_cpu()",
    look: pools,
};

fn pools(host: &Host) -> Vec<Answer> {
    let text = match host.text("/proc/fs/nfsd/pool_threads") {
        Ok(text) => text,
        Err(e) => return vec![e.answer()],
    };
    let threads: Vec<u64> = (text.split_ascii_whitespace())
        .filter_map(|n| n.parse().ok())
        .collect();
    let empty = threads.iter().filter(|n| **n == 0).count();
    let all = many(threads.len() as f64, "pool");
    match threads.iter().sum::<u64>() {
        0 => Vec::new(),
        _ if empty > 0 => vec![Answer::change(
            format!("{empty} of {all} without a thread"),
            format!(
                "run at least {} (threads= in /etc/nfs.conf), or use one pool: pool_mode=global of module sunrpc",
                many(threads.len() as f64, "thread")
            ),
        )],
        _ => vec![Answer::good(format!("{all}, none without threads"))],
    }
}

/// Pool mode `global` on several NUMA nodes.
pub const POOL_MODE: Rule = Rule {
    name: "pool mode",
    why: "With one pool, threads of all NUMA nodes share a queue, and a request may be served far from its memory. \
          A pool for each node avoids that, and can leave threads of one node idle while another has too few.",
    source: "Documentation/admin-guide/kernel-parameters.txt, sunrpc.pool_mode",
    look: |host| {
        let nodes = host.names("/sys/devices/system/node").unwrap_or_default();
        let digits = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
        let nodes = (nodes.iter())
            .filter(|n| n.strip_prefix("node").is_some_and(digits))
            .count();
        let mode = match host.text("/sys/module/sunrpc/parameters/pool_mode") {
            Ok(mode) => mode.trim().to_owned(),
            Err(e) => return vec![e.answer()],
        };
        let nodes_text = many(nodes as f64, "NUMA node");
        match mode.as_str() {
            "global" if nodes > 1 => vec![Answer::consider(
                format!("{nodes_text}, and one pool of threads for all"),
                "try pool_mode=pernode of module sunrpc, and compare: `nfscope baseline record` before and after",
            )],
            _ if nodes == 0 => vec![Answer::unknown(
                format!("pool_mode={mode}; the number of NUMA nodes is not known"),
                "see `lscpu`",
            )],
            _ => vec![Answer::good(format!("{mode}, {nodes_text}"))],
        }
    },
};
