//! Counters of the kernel, `/proc/net/rpc/nfsd`: the reference that the agent is compared with.

use std::collections::BTreeMap;
use std::ops::Sub;

use anyhow::{Context, Result};

use crate::names::{OP4, PROC3};

/// The counters of `/proc/net/rpc/nfsd`, or the difference of two readings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounters {
    /// Duplicate request cache: hits.
    pub cache_hits: u64,
    /// Duplicate request cache: misses.
    pub cache_misses: u64,
    /// Requests that bypass the duplicate request cache.
    pub cache_bypassed: u64,
    /// Bytes of READ replies.
    pub bytes_read: u64,
    /// Bytes of WRITE requests.
    pub bytes_written: u64,
    /// Packets from the network.
    pub net_packets: u64,
    /// TCP packets among these.
    pub net_tcp: u64,
    /// TCP connections accepted.
    pub net_connections: u64,
    /// RPC requests that were processed.
    pub rpc_calls: u64,
    /// RPC requests that were refused, for any reason.
    pub rpc_bad: u64,
    /// Refused for their format, program, version or procedure.
    pub rpc_bad_format: u64,
    /// Refused for their credentials.
    pub rpc_bad_auth: u64,
    /// NFSv3 procedures by number; [`PROC3`] has the names.
    pub proc3: Vec<u64>,
    /// NFSv4 NULL procedures.
    pub null4: u64,
    /// NFSv4 COMPOUND procedures.
    pub compounds: u64,
    /// NFSv4 component operations by number; [`OP4`] has the names.
    pub ops4: Vec<u64>,
}

impl KernelCounters {
    /// Reads the text of `/proc/net/rpc/nfsd`.
    pub fn parse(text: &str) -> Result<KernelCounters> {
        let mut counts = KernelCounters::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(key) = words.next() else { continue };
            if !matches!(
                key,
                "rc" | "io" | "net" | "rpc" | "proc3" | "proc4" | "proc4ops"
            ) {
                continue;
            }
            let n: Vec<u64> = words
                .map(str::parse)
                .collect::<Result<_, _>>()
                .with_context(|| format!("/proc/net/rpc/nfsd: {line:?}"))?;
            let at = |i: usize| n.get(i).copied().unwrap_or(0);
            match key {
                "rc" => {
                    (
                        counts.cache_hits,
                        counts.cache_misses,
                        counts.cache_bypassed,
                    ) = (at(0), at(1), at(2))
                }
                "io" => (counts.bytes_read, counts.bytes_written) = (at(0), at(1)),
                "net" => {
                    (counts.net_packets, counts.net_tcp, counts.net_connections) =
                        (at(0), at(2), at(3));
                }
                "rpc" => {
                    (counts.rpc_calls, counts.rpc_bad) = (at(0), at(1));
                    (counts.rpc_bad_format, counts.rpc_bad_auth) = (at(2), at(3));
                }
                // These lines begin with the number of their entries.
                "proc3" => counts.proc3 = n.get(1..).unwrap_or_default().to_vec(),
                "proc4" => (counts.null4, counts.compounds) = (at(1), at(2)),
                _ => counts.ops4 = n.get(1..).unwrap_or_default().to_vec(),
            }
        }
        Ok(counts)
    }

    /// NFSv3 calls of the procedure with this name.
    pub fn proc3(&self, name: &str) -> u64 {
        by_name(&PROC3, &self.proc3, name)
    }

    /// NFSv4 operations with this name.
    pub fn op4(&self, name: &str) -> u64 {
        by_name(&OP4, &self.ops4, name)
    }

    /// The NFSv3 procedures that were called, by name.
    pub fn procs3(&self) -> BTreeMap<String, u64> {
        named(&PROC3, &self.proc3)
    }

    /// The NFSv4 operations that were executed, by name.
    pub fn ops4_by_name(&self) -> BTreeMap<String, u64> {
        named(&OP4, &self.ops4)
    }

    /// All NFSv3 procedures and NFSv4 component operations.
    pub fn operations(&self) -> u64 {
        self.proc3.iter().sum::<u64>() + self.ops4.iter().sum::<u64>()
    }
}

fn by_name(names: &[&str], counts: &[u64], name: &str) -> u64 {
    let Some(number) = names.iter().position(|n| *n == name && !n.is_empty()) else {
        panic!("no operation is called '{name}'");
    };
    counts.get(number).copied().unwrap_or(0)
}

fn named(names: &[&str], counts: &[u64]) -> BTreeMap<String, u64> {
    let name = |number: usize| match names.get(number) {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => format!("op{number}"),
    };
    let counts = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    counts
        .map(|(number, count)| (name(number), *count))
        .collect()
}

impl Sub for &KernelCounters {
    type Output = KernelCounters;

    /// Counts since `before`. The kernel's counters start anew when its modules are loaded anew: a counter below its earlier reading
    /// counts from zero.
    fn sub(self, before: &KernelCounters) -> KernelCounters {
        let minus = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let each = |now: &[u64], before: &[u64]| -> Vec<u64> {
            let before = before.iter().copied().chain(std::iter::repeat(0));
            now.iter().zip(before).map(|(n, b)| minus(*n, b)).collect()
        };
        KernelCounters {
            cache_hits: minus(self.cache_hits, before.cache_hits),
            cache_misses: minus(self.cache_misses, before.cache_misses),
            cache_bypassed: minus(self.cache_bypassed, before.cache_bypassed),
            bytes_read: minus(self.bytes_read, before.bytes_read),
            bytes_written: minus(self.bytes_written, before.bytes_written),
            net_packets: minus(self.net_packets, before.net_packets),
            net_tcp: minus(self.net_tcp, before.net_tcp),
            net_connections: minus(self.net_connections, before.net_connections),
            rpc_calls: minus(self.rpc_calls, before.rpc_calls),
            rpc_bad: minus(self.rpc_bad, before.rpc_bad),
            rpc_bad_format: minus(self.rpc_bad_format, before.rpc_bad_format),
            rpc_bad_auth: minus(self.rpc_bad_auth, before.rpc_bad_auth),
            proc3: each(&self.proc3, &before.proc3),
            null4: minus(self.null4, before.null4),
            compounds: minus(self.compounds, before.compounds),
            ops4: each(&self.ops4, &before.ops4),
        }
    }
}

impl Sub for KernelCounters {
    type Output = KernelCounters;

    fn sub(self, before: KernelCounters) -> KernelCounters {
        &self - &before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "rc 1 2 3\nfh 0 0 0 0 0\nio 4096 8192\nth 8 0 0.000\nnet 10 0 9 2\nrpc 8 1 1 0 0\n\
        proc3 22 1 5 0 0 0 0 0 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nproc4 2 1 6\n\
        proc4ops 76 0 0 0 0 0 0 0 0 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3";

    #[test]
    fn lines_are_read_by_name() {
        let counts = KernelCounters::parse(TEXT).expect("the text of a kernel");
        assert_eq!(counts.proc3("getattr"), 5);
        assert_eq!(counts.proc3("write"), 2);
        assert_eq!((counts.null4, counts.compounds), (1, 6));
        assert_eq!(counts.op4("getattr"), 4);
        assert_eq!(counts.op4("write"), 3);
        assert_eq!((counts.net_packets, counts.rpc_bad), (10, 1));
    }

    #[test]
    fn counters_that_started_anew_count_from_zero() {
        let before = KernelCounters::parse(TEXT).expect("the text of a kernel");
        let after =
            KernelCounters::parse(&TEXT.replace("io 4096 8192", "io 9 9000")).expect("text");
        let delta = &after - &before;
        assert_eq!((delta.bytes_read, delta.bytes_written), (9, 808));
        assert_eq!(delta.operations(), 0);
    }
}
