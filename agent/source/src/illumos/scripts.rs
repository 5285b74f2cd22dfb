//! The D scripts: their text, made of the files in `probes/dtrace/` and of the bucket edges that C and Rust share.
//!
//! A file may have, each on a line of its own, `/*if WORD*/` or `/*each v3*/` up to its `/*end*/`: lines for hosts that have
//! something, and lines for each operation of a version, with `$OP` in place of its name. `TIME_BUCKET(x)` and its like stand
//! for the bucket of a value, as one expression that compares seven times.

use nfscope_model::{Scheme, op};
use std::fmt::Write;

/// The one table that the BPF programs' is made of, too. The crate that has it is for Linux alone.
#[path = "../../../../probes/src/time_edges.rs"]
#[allow(dead_code)]
mod edges;
use edges::edges_ns;

/// What of a script a host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Phases of operations: what their threads wait for.
    pub phases: bool,
    /// Functions of ZFS, by which these tell a wait for the log and for a disk from other sleep.
    pub zfs: bool,
    /// Exports in the arguments of operations: since February 2020.
    pub exports: bool,
}

impl Parts {
    /// All of them.
    pub const ALL: Parts = Parts {
        phases: true,
        zfs: true,
        exports: true,
    };

    fn has(self, word: &str) -> bool {
        match word {
            "phases" => self.phases,
            "zfs" => self.zfs,
            "exports" => self.exports,
            other => unreachable!("/*if {other}*/ in a script of ours"),
        }
    }
}

/// One script, which one process runs.
#[derive(Debug)]
pub struct Script {
    /// Its name, which is the program's among the probes.
    pub name: &'static str,
    /// The probe's word.
    pub probe: &'static str,
    /// The probes that it enables, in short.
    pub hooks: &'static str,
    /// What it gives, in one line.
    pub gives: &'static str,
    /// True where NFS operations cannot be timed without it.
    pub required: bool,
    /// The kernel module that has its probes, and when that is loaded.
    pub module: &'static str,
    file: &'static str,
}

/// Every script; the one for operations first.
pub static SCRIPTS: [Script; 5] = [
    Script {
        name: "nfs",
        probe: "nfsd",
        hooks: "nfsv3*:::op-*, nfsv4*:::op-*",
        gives: "operations: time, phases, sizes, stability, errors, clients, exports",
        required: true,
        module: "nfssrv, which is loaded when the NFS server starts",
        file: include_str!("../../../../probes/dtrace/nfs.d"),
    },
    Script {
        name: "rpc",
        probe: "nfsd",
        hooks: "fbt:rpcmod:svc_getreq and others",
        gives: "requests: residence, queue, receive and reply; threads",
        required: false,
        module: "rpcmod, which is loaded when the NFS server starts",
        file: include_str!("../../../../probes/dtrace/rpc.d"),
    },
    Script {
        name: "zil",
        probe: "zfs",
        hooks: "fbt:zfs:zil_commit and others",
        gives: "intent log: waits, writes, bytes",
        required: false,
        module: "zfs",
        file: include_str!("../../../../probes/dtrace/zil.d"),
    },
    Script {
        name: "txg",
        probe: "zfs",
        hooks: "fbt:zfs:spa_sync and others",
        gives: "transaction groups and the write throttle",
        required: false,
        module: "zfs",
        file: include_str!("../../../../probes/dtrace/txg.d"),
    },
    Script {
        name: "io",
        probe: "block",
        hooks: "io:::start, io:::done",
        gives: "block devices: time and bytes of requests",
        required: false,
        module: "the kernel",
        file: include_str!("../../../../probes/dtrace/io.d"),
    },
];

/// Slow operations: runs only while somebody asks for them.
pub static SLOW: Script = Script {
    name: "slow",
    probe: "nfsd",
    hooks: "nfsv3*:::op-*, nfsv4*:::op-*",
    gives: "slow operations, one by one",
    required: false,
    module: "nfssrv, which is loaded when the NFS server starts",
    file: include_str!("../../../../probes/dtrace/slow.d"),
};

/// Options of `dtrace` for every script. The buffers are read ten times a second, so that a frame is at most a tenth of a second
/// behind. `droptags` names the kind of each loss.
pub const OPTIONS: [&str; 7] = [
    "quiet",
    "strsize=128",
    "switchrate=10hz",
    "aggrate=10hz",
    "aggsize=4m",
    "dynvarsize=8m",
    "droptags",
];

impl Script {
    /// The text that `dtrace` compiles.
    pub fn text(&self, parts: Parts) -> String {
        let mut out = String::new();
        expand(&mut self.file.lines(), parts, "", true, &mut out);
        substitute(&out)
    }
}

/// Copies lines up to the end of this part; `keep` false where it is left out.
fn expand<'a>(
    lines: &mut (impl Iterator<Item = &'a str> + Clone),
    parts: Parts,
    op: &str,
    keep: bool,
    out: &mut String,
) {
    while let Some(line) = lines.next() {
        let word = line.strip_prefix("/*").and_then(|l| l.strip_suffix("*/"));
        match word.map(|w| w.split_once(' ').unwrap_or((w, ""))) {
            Some(("end", "")) => return,
            Some(("if", what)) => expand(lines, parts, op, keep && parts.has(what), out),
            Some(("each", version)) => {
                let from = lines.clone();
                for op in operations(version) {
                    *lines = from.clone();
                    expand(lines, parts, op, keep, out);
                }
            }
            _ if keep => {
                let _ = writeln!(out, "{}", line.replace("$OP", op));
            }
            _ => {}
        }
    }
}

/// Operations whose probes have arguments, as the probes are called. NULL has none. Of NFSv4 those of version 4.0: what the
/// probes of later ones pass is not part of any provider's description.
pub fn operations(version: &str) -> impl Iterator<Item = &'static str> {
    let all = match version {
        // There is no probe of NULL.
        "v3" => &op::V3_PROCS[1..],
        "v4" => &V4[..],
        other => unreachable!("/*each {other}*/ in a script of ours"),
    };
    all.iter().copied()
}

const V4: [&str; 37] = [
    "access",
    "close",
    "commit",
    "create",
    "delegpurge",
    "delegreturn",
    "getattr",
    "getfh",
    "link",
    "lock",
    "lockt",
    "locku",
    "lookup",
    "lookupp",
    "nverify",
    "open",
    "openattr",
    "open-confirm",
    "open-downgrade",
    "putfh",
    "putpubfh",
    "putrootfh",
    "read",
    "readdir",
    "readlink",
    "remove",
    "rename",
    "renew",
    "restorefh",
    "savefh",
    "secinfo",
    "setattr",
    "setclientid",
    "setclientid-confirm",
    "verify",
    "write",
    "release-lockowner",
];

/// The operation of a probe, as in the label `op`; `None` for a name that is none.
pub fn op_of(probe: &str) -> Option<&'static str> {
    let name = probe.strip_suffix("-done")?;
    let name = name.strip_prefix("op-").unwrap_or(name).replace('-', "_");
    op::names().find(|n| *n == name)
}

/// Upper edges of a scheme in base units: whole numbers, all but the overflow bucket's.
fn edges_of(scheme: Scheme) -> Vec<u64> {
    let all = 0..scheme.len - 1;
    all.map(|i| scheme.edge(i) as u64).collect()
}

fn substitute(text: &str) -> String {
    let mut text = text.to_owned();
    for (name, edges) in [
        ("TIME", edges_ns()),
        ("SIZE", edges_of(Scheme::SIZE)),
        ("COUNT", edges_of(Scheme::COUNT)),
    ] {
        text = text.replace(&format!("{name}_BUCKETS"), &(edges.len() + 1).to_string());
        let call = format!("{name}_BUCKET(");
        while let Some(at) = text.find(&call) {
            let from = at + call.len();
            let end = from + text[from..].find(')').unwrap_or(0);
            let tree = bucket(&edges, 0, &text[from..end]);
            text.replace_range(at..=end, &tree);
        }
    }
    text
}

/// The bucket of `value`: the first whose edge is not below it, found by halving. `first` is the number of the first edge.
fn bucket(edges: &[u64], first: usize, value: &str) -> String {
    if edges.is_empty() {
        return first.to_string();
    }
    let middle = edges.len() / 2;
    let below = bucket(&edges[..middle], first, value);
    let above = bucket(&edges[middle + 1..], first + middle + 1, value);
    format!("({value} <= {} ? {below} : {above})", edges[middle])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_has_an_operation_of_the_model() {
        for op in operations("v3").chain(operations("v4")) {
            let name = op_of(&format!("op-{op}-done"));
            assert_eq!(name, Some(&*op.replace('-', "_")), "{op}");
        }
        assert_eq!(op_of("null-done"), Some("null"));
        assert_eq!(op_of("op-sequence-done"), Some("sequence"));
        assert_eq!(op_of("op-made-up-done"), None);
        assert_eq!(op_of("compound-start"), None);
        let model: Vec<_> = op::V4_OPS[..V4.len()].to_vec();
        let ours: Vec<_> = V4.iter().map(|o| o.replace('-', "_")).collect();
        assert_eq!(ours, model);
    }

    /// What the expression says, worked out by hand.
    fn evaluate(tree: &str, value: u64) -> usize {
        let Some(inner) = tree.strip_prefix('(') else {
            return tree.parse().unwrap();
        };
        let inner = inner.strip_suffix(')').unwrap();
        let (edge, rest) = inner
            .strip_prefix("v <= ")
            .unwrap()
            .split_once(" ? ")
            .unwrap();
        let mut depth = 0;
        let at = rest
            .char_indices()
            .find(|(i, c)| {
                depth += i32::from(*c == '(') - i32::from(*c == ')');
                depth == 0 && rest[*i..].starts_with(" : ")
            })
            .unwrap()
            .0;
        let (yes, no) = (&rest[..at], &rest[at + 3..]);
        evaluate(
            if value <= edge.parse().unwrap() {
                yes
            } else {
                no
            },
            value,
        )
    }

    #[test]
    fn the_expression_counts_in_the_buckets_of_the_model() {
        let edges = edges_ns();
        assert_eq!(edges.len() + 1, Scheme::TIME.len);
        let tree = bucket(&edges, 0, "v");
        for (i, edge) in edges.iter().enumerate() {
            assert_eq!(evaluate(&tree, *edge), i);
            assert_eq!(evaluate(&tree, edge + 1), i + 1);
        }
        assert_eq!(evaluate(&tree, 0), 0);
        for scheme in [Scheme::SIZE, Scheme::COUNT] {
            let tree = bucket(&edges_of(scheme), 0, "v");
            for v in (0..5000).chain([1 << 29, (1 << 29) + 1, 1 << 30, 1 << 40]) {
                assert_eq!(evaluate(&tree, v), scheme.bucket(v as f64), "{v}");
            }
        }
    }

    #[test]
    fn parts_are_there_or_not() {
        let nfs = &SCRIPTS[0];
        let all = nfs.text(Parts::ALL);
        let few = nfs.text(Parts {
            phases: false,
            zfs: true,
            exports: false,
        });
        for part in ["sched:::off-cpu", "fbt:zfs:zil_commit", "noi_shrpath"] {
            assert!(all.contains(part) && !few.contains(part), "{part}");
        }
        let without_zfs = nfs.text(Parts {
            zfs: false,
            ..Parts::ALL
        });
        assert!(without_zfs.contains("sched:::off-cpu") && !without_zfs.contains("fbt:"));
        assert!(few.contains("nfsv4*:::op-release-lockowner-done"));
        for script in SCRIPTS.iter().chain([&SLOW]) {
            let text = script.text(Parts::ALL);
            for left in ["_BUCKET", "$OP", "/*if", "/*each", "/*end"] {
                assert!(!text.contains(left), "{}: {left}", script.name);
            }
            assert!(text.contains(&format!("printf(\"@hello\\t{}\\n\")", script.name)));
        }
    }
}
