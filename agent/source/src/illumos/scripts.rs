//! The D scripts. Their text is made of the files in `probes/dtrace/` and of the bucket edges that C and Rust share.
//!
//! A file may have `/*if WORD*/` or `/*each v3*/` up to its `/*end*/`, each on a line of its own. The first stands around lines for hosts
//! that have WORD. The second stands around lines for each operation of a version, with `$OP` and `$NUMBER` in place of its name and
//! number. `/*include NAME*/` stands for the lines of another file. `TIME_BUCKET(x)` and its like stand for the bucket of a value, as one
//! expression that compares seven times, and `AGENT` for the process that asks for frames.

use nfscope_model::{Scheme, op};
use std::fmt::Write;

/// Edges from the table of the BPF programs. The crate that contains the table is for Linux alone.
#[path = "../../../../probes/src/time_edges.rs"]
#[allow(dead_code)]
mod edges;
use edges::edges_ns;

/// Parts of the scripts that a host supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Phases of operations: what their threads wait for.
    pub phases: bool,
    /// Functions of ZFS, by which phases distinguish a wait for the log, for a disk and for the throttle from other sleep.
    pub zfs: bool,
    /// A function of doors, by which phases distinguish a wait for a daemon.
    pub upcalls: bool,
    /// Functions of the NFS server, by which phases distinguish a wait for a delegation.
    pub recalls: bool,
    /// A function of the kernel, by which phases distinguish a wait for memory.
    pub reclaim: bool,
    /// Members of the pool of threads, which show if a thread is free.
    pub idle: bool,
    /// Exports in the arguments of operations: since February 2020.
    pub exports: bool,
}

impl Parts {
    /// All parts.
    pub const ALL: Parts = Parts {
        phases: true,
        zfs: true,
        upcalls: true,
        recalls: true,
        reclaim: true,
        idle: true,
        exports: true,
    };

    /// Leaves out the part that is missing here according to this message of the compiler; returns false if the message names no part.
    pub fn leave_out(&mut self, why: &str) -> bool {
        let parts: [(&[&str], &mut bool); 7] = [
            (&["zil_commit", "zio_wait", "dmu_tx_wait"], &mut self.zfs),
            (&["door_upcall"], &mut self.upcalls),
            (
                &["rfs4_check_delegated_byfp", "rfs4_dbe_twait"],
                &mut self.recalls,
            ),
            (&["page_create_throttle"], &mut self.reclaim),
            (&["p_asleep", "p_drowsy", "p_walkers"], &mut self.idle),
            (&["noi_shrpath"], &mut self.exports),
            (&["sched:::"], &mut self.phases),
        ];
        for (words, part) in parts {
            if words.iter().any(|word| why.contains(word)) {
                return std::mem::replace(part, false);
            }
        }
        false
    }

    fn has(self, word: &str) -> bool {
        match word {
            "phases" => self.phases,
            "zfs" => self.zfs,
            "upcalls" => self.upcalls,
            "recalls" => self.recalls,
            "reclaim" => self.reclaim,
            "idle" => self.idle,
            "exports" => self.exports,
            "no-exports" => !self.exports,
            other => unreachable!("/*if {other}*/ in a script of ours"),
        }
    }
}

/// A script, which runs in a process of its own.
#[derive(Debug)]
pub struct Script {
    /// Name of the script, which is also its program's name among the probes.
    pub name: &'static str,
    /// Name of the probe.
    pub probe: &'static str,
    /// Probes that the script enables, in short.
    pub hooks: &'static str,
    /// Data that the script gives, in one line.
    pub gives: &'static str,
    /// True if NFS operations cannot be timed without the script.
    pub required: bool,
    /// Kernel module that has its probes, and when that module is loaded.
    pub module: &'static str,
    file: &'static str,
}

/// All scripts; the one for operations first.
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

/// Script of slow operations. It runs only while there is a subscriber.
pub static SLOW: Script = Script {
    name: "slow",
    probe: "nfsd",
    hooks: "nfsv3*:::op-*, nfsv4*:::op-*",
    gives: "slow operations, one by one",
    required: false,
    module: "nfssrv, which is loaded when the NFS server starts",
    file: include_str!("../../../../probes/dtrace/slow.d"),
};

/// Options of `dtrace` for every script. The buffers are read once a second; `frame.d` says when they are read more often. `droptags` names the kind of each loss.
pub const OPTIONS: [&str; 7] = [
    "quiet",
    "strsize=128",
    "switchrate=1hz",
    "aggrate=1hz",
    "aggsize=4m",
    "dynvarsize=8m",
    "droptags",
];

/// Files that several scripts include.
const COMMON: [(&str, &str); 4] = [
    ("frame", include_str!("../../../../probes/dtrace/frame.d")),
    (
        "phases_start",
        include_str!("../../../../probes/dtrace/phases_start.d"),
    ),
    ("phases", include_str!("../../../../probes/dtrace/phases.d")),
    (
        "phases_end",
        include_str!("../../../../probes/dtrace/phases_end.d"),
    ),
];

impl Script {
    /// Text that `dtrace` compiles. `agent` is the process that asks for frames, as D writes it.
    pub fn text(&self, parts: Parts, agent: &str) -> String {
        let mut out = String::new();
        expand(&mut self.file.lines(), parts, None, true, &mut out);
        substitute(&out).replace("AGENT", agent)
    }
}

/// Copies lines up to the end of this part; `keep` is false if the part is left out.
fn expand<'a>(
    lines: &mut (impl Iterator<Item = &'a str> + Clone),
    parts: Parts,
    op: Option<&(usize, String)>,
    keep: bool,
    out: &mut String,
) {
    while let Some(line) = lines.next() {
        let word = line.strip_prefix("/*").and_then(|l| l.strip_suffix("*/"));
        match word.map(|w| w.split_once(' ').unwrap_or((w, ""))) {
            Some(("end", "")) => return,
            Some(("if", what)) => expand(lines, parts, op, keep && parts.has(what), out),
            Some(("include", name)) => {
                let file = COMMON.iter().find(|(known, _)| *known == name);
                let text = file.map_or("", |(_, text)| text);
                expand(&mut text.lines(), parts, op, keep, out);
            }
            Some(("each", version)) => {
                let from = lines.clone();
                for op in operations(version) {
                    *lines = from.clone();
                    expand(lines, parts, Some(&op), keep, out);
                }
            }
            _ if keep => {
                let line = match op {
                    Some((number, name)) => line
                        .replace("$OP", name)
                        .replace("$NUMBER", &number.to_string()),
                    None => line.to_owned(),
                };
                let _ = writeln!(out, "{line}");
            }
            _ => {}
        }
    }
}

/// Operations of NFSv4.0, which RFC 7530 numbers from 3 to 39.
const V4_FIRST: usize = 3;
const V4: &[&str] = op::V4_OPS.split_at(37).0;

/// Operations whose probes have arguments, by the names of the probes, with their numbers. NULL has no arguments. The arguments of probes
/// for versions after 4.0 are not part of any provider's description.
pub fn operations(version: &str) -> impl Iterator<Item = (usize, String)> {
    let (first, all) = match version {
        // NULL has no probe.
        "v3" => (1, &op::V3_PROCS[1..]),
        "v4" => (V4_FIRST, V4),
        other => unreachable!("/*each {other}*/ in a script of ours"),
    };
    let named = move |(i, name): (usize, &&str)| (first + i, name.replace('_', "-"));
    all.iter().enumerate().map(named)
}

/// Operation of a version with this number in a script; `None` for a number without an operation.
pub fn op_by_number(version: &str, number: usize) -> Option<&'static str> {
    match version {
        "3" => op::V3_PROCS.get(number).copied(),
        _ => V4.get(number.checked_sub(V4_FIRST)?).copied(),
    }
}

/// Operation of a probe, as in the label `op`; `None` if the name is no operation's.
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

/// Expression for the bucket of `value`: the first whose edge is not below it, found by halving. `first` is the number of the first edge.
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
        for version in ["3", "4"] {
            for (number, op) in operations(&format!("v{version}")) {
                let name = op_of(&format!("op-{op}-done"));
                assert_eq!(name, Some(&*op.replace('-', "_")), "{op}");
                assert_eq!(op_by_number(version, number), name);
            }
        }
        assert_eq!(op_by_number("3", 7), Some("write"));
        assert_eq!(op_by_number("4.1", 38), Some("write"));
        assert_eq!([op_by_number("4.0", 0), op_by_number("4.1", 53)], [None; 2]);
        assert_eq!(op_of("null-done"), Some("null"));
        assert_eq!(op_of("op-sequence-done"), Some("sequence"));
        assert_eq!(op_of("op-made-up-done"), None);
        assert_eq!(op_of("compound-start"), None);
        // RFC 7530, table 4, from OP_ACCESS to OP_RELEASE_LOCKOWNER.
        assert_eq!(
            (V4.len(), V4[0], V4[36]),
            (37, "access", "release_lockowner")
        );
        assert_eq!(operations("v4").nth(17).unwrap().1, "open-confirm");
    }

    /// Evaluates the expression by hand.
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

    /// Functions and members that the compiler may miss are in their part only, and the rest compiles without it.
    #[test]
    fn what_the_compiler_misses_is_left_out() {
        for word in [
            "zil_commit",
            "zio_wait",
            "dmu_tx_wait",
            "door_upcall",
            "rfs4_check_delegated_byfp",
            "rfs4_dbe_twait",
            "page_create_throttle",
            "p_asleep",
            "p_drowsy",
            "p_walkers",
            "noi_shrpath",
            "sched:::",
        ] {
            let mut parts = Parts::ALL;
            let why = format!("line 9: probe description fbt:zfs:{word} does not match any probes");
            assert!(parts.leave_out(&why), "{word}");
            assert!(!parts.leave_out(&why), "{word} is left out by now");
            for script in SCRIPTS[..2].iter().chain([&SLOW]) {
                let text = script.text(parts, "17");
                assert!(!text.contains(word), "{}: {word}", script.name);
            }
        }
        assert!(!Parts::ALL.clone().leave_out("line 9: syntax error"));
    }

    #[test]
    fn parts_are_there_or_not() {
        let nfs = &SCRIPTS[0];
        let all = nfs.text(Parts::ALL, "17");
        let few = Parts {
            phases: false,
            exports: false,
            ..Parts::ALL
        };
        let few = nfs.text(few, "17");
        for part in ["sched:::off-cpu", "fbt:zfs:zil_commit", "noi_shrpath"] {
            assert!(all.contains(part) && !few.contains(part), "{part}");
        }
        let without_functions = Parts {
            zfs: false,
            upcalls: false,
            recalls: false,
            reclaim: false,
            ..Parts::ALL
        };
        let without_functions = nfs.text(without_functions, "17");
        assert!(without_functions.contains("sched:::off-cpu"));
        assert!(!without_functions.contains("fbt:"));
        assert!(few.contains("nfsv4*:::op-release-lockowner-done"));
        for script in SCRIPTS.iter().chain([&SLOW]) {
            let text = script.text(Parts::ALL, "17");
            for left in [
                "_BUCKET",
                "$OP",
                "$NUMBER",
                "AGENT",
                "/*if",
                "/*each",
                "/*end",
                "/*include",
            ] {
                assert!(!text.contains(left), "{}: {left}", script.name);
            }
            assert!(text.contains(&format!("printf(\"@hello\\t{}\\n\")", script.name)));
        }
    }
}
