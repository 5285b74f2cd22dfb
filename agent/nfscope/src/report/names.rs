//! Pseudonyms for `nfscope report --anonymise`, by an allow-list of JSON members.
//!
//! The list has the kind of value of every member that is kept. All other members are left out, and so are sentences: a name in a sentence
//! can have too many forms to be found.

use nfscope_model::finding::Kind;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Text that replaces each sentence.
pub(crate) const LEFT_OUT: &str = "left out: sentences can have names";

/// Values in place of a name that identify no client and no export.
const NOBODY: [&str; 5] = ["", "none", "unknown", "local", "other"];

/// Volume of metrics for all pools together, the only ones before OpenZFS 2.2.
const ALL_POOLS: &str = "all";

/// Kind of a value, which decides how it is made anonymous.
enum Rule {
    /// Number, boolean or list of them; kept.
    Number,
    /// Word of nfscope or of the protocol, such as `write`, `4.2`, `slow_disk`; kept.
    Word,
    /// Kernel release, of which the leading numbers are kept.
    Release,
    /// Name; replaced by a pseudonym with this prefix.
    Name(&'static str),
    /// Block device or ZFS pool. Names that the kernel gives to devices are kept, such as `sda1`; others, and all pools, get a pseudonym.
    Volume,
    /// Sentence; replaced by [`LEFT_OUT`].
    Sentence,
    /// List that becomes empty.
    Empty,
    /// Object with numbers, of which the keys that this function accepts are kept.
    By(fn(&str) -> bool),
    /// Object with these members, or a list of such objects.
    Object(&'static [(&'static str, Rule)]),
}

use Rule::{By, Empty, Name, Number, Object, Release, Sentence, Volume, Word};

const TIMES: Rule = Object(&[("count", Number), ("sum", Number), ("buckets", Number)]);

const OPERATIONS: Rule = Object(&[
    ("version", Word),
    ("op", Word),
    ("times", TIMES),
    ("errors", Number),
    ("phases", Number),
]);

const POOLS: Rule = Object(&[
    ("pool", Word),
    ("threads", Number),
    ("busy", Number),
    ("saturated", Number),
    ("queue", TIMES),
]);

const LOGS: Rule = Object(&[
    ("fs", Word),
    ("volume", Volume),
    ("waits", TIMES),
    ("writes", TIMES),
]);

const DISKS: Rule = Object(&[
    ("device", Volume),
    ("op", Word),
    ("times", TIMES),
    ("bytes", Number),
]);

const MOVED: Rule = Object(&[("read", Number), ("written", Number)]);

const CLIENTS: Rule = Object(&[
    ("name", Name("client-")),
    ("called", Name("name-")),
    ("ops", Number),
    ("seconds", Number),
    ("moved", MOVED),
    ("rtt", Number),
    ("min_rtt", Number),
]);

const EXPORTS: Rule = Object(&[
    ("name", Name("/export-")),
    ("ops", Number),
    ("seconds", Number),
    ("moved", MOVED),
    ("rtt", Number),
    ("min_rtt", Number),
]);

const WINDOWS: Rule = Object(&[
    ("at", Number),
    ("seconds", Number),
    ("ops", OPERATIONS),
    ("rpc", OPERATIONS),
    ("pools", POOLS),
    ("logs", LOGS),
    ("disks", DISKS),
    ("clients", CLIENTS),
    ("exports", EXPORTS),
    ("coverage", By(is_version)),
    ("lost", Number),
    ("findings", By(is_kind)),
]);

const FINDING: Rule = Object(&[
    ("kind", Word),
    ("severity", Word),
    ("share", Number),
    ("summary", Sentence),
    ("evidence", Empty),
    ("advice", Sentence),
]);

const EPISODES: Rule = Object(&[
    ("began", Number),
    ("ended", Number),
    ("worst_share", Number),
    ("finding", FINDING),
]);

const RULED_OUT: Rule = Object(&[("kind", Word), ("share", Number), ("why", Sentence)]);

const LAST_WINDOW: Rule = Object(&[
    ("window_seconds", Number),
    ("verdict", Word),
    ("reason", Sentence),
    ("requests", Number),
    ("residence_seconds", Number),
    ("incomplete", Sentence),
    ("findings", FINDING),
    ("ruled_out", RULED_OUT),
    ("headroom", Empty),
    ("warnings", Sentence),
    ("outside", Sentence),
    ("unseen", Sentence),
]);

const PROBES: Rule = Object(&[
    ("probe", Word),
    ("program", Word),
    ("hook", Empty),
    ("gives", Sentence),
    ("required", Number),
    ("state", Word),
    ("reason", Sentence),
    ("fix", Sentence),
]);

const REPORT: Rule = Object(&[
    (
        "windows",
        Object(&[
            ("host", Name("host-")),
            ("kernel", Release),
            ("version", Word),
            ("edges", Number),
            ("phases", Word),
            ("rpc_phases", Word),
            ("replay", Number),
            ("more", Number),
            ("windows", WINDOWS),
        ]),
    ),
    (
        "findings",
        Object(&[
            ("active", EPISODES),
            ("history", EPISODES),
            ("last_window", LAST_WINDOW),
        ]),
    ),
    (
        "probes",
        Object(&[
            ("times_operations", Number),
            ("reason", Sentence),
            ("probes", PROBES),
        ]),
    ),
    ("note", Sentence),
]);

/// Returns the data with pseudonyms.
pub(crate) fn anonymous(data: &Value) -> Value {
    let mut names = Pseudonyms::default();
    for window in data["windows"]["windows"].as_array().into_iter().flatten() {
        for log in window["logs"].as_array().into_iter().flatten() {
            if let (Some("zfs"), Some(pool)) = (log["fs"].as_str(), log["volume"].as_str()) {
                names.add_pool(pool);
            }
        }
    }
    names.apply(&REPORT, data)
}

/// Pseudonyms by original name.
#[derive(Default)]
pub(crate) struct Pseudonyms {
    /// Pseudonyms for each prefix, which separates the kinds of names.
    by_prefix: BTreeMap<&'static str, BTreeMap<String, String>>,
    /// Names of ZFS pools. A pool can have a name like a disk: `hdd`.
    pools: BTreeSet<String>,
}

impl Pseudonyms {
    fn apply(&mut self, rule: &Rule, value: &Value) -> Value {
        match (rule, value) {
            (_, Value::Null) => Value::Null,
            (Empty, Value::Array(_)) => Value::Array(Vec::new()),
            (Empty, _) => "".into(),
            (Sentence, Value::Array(all)) if all.is_empty() => value.clone(),
            (Sentence, Value::Array(_)) => Value::Array(vec![LEFT_OUT.into()]),
            (Sentence, Value::String(text)) if text.is_empty() => value.clone(),
            (Sentence, _) => LEFT_OUT.into(),
            (rule, Value::Array(all)) => all.iter().map(|v| self.apply(rule, v)).collect(),
            (Number, Value::Number(_) | Value::Bool(_)) => value.clone(),
            (Word, Value::String(text)) if text.is_empty() || is_word(text) => value.clone(),
            (Word, Value::String(_)) => LEFT_OUT.into(),
            (Release, Value::String(text)) => release(text).into(),
            (Name(prefix), Value::String(text)) => self.name(prefix, text).into(),
            (Volume, Value::String(text)) => self.volume(text).into(),
            (By(is_kept), Value::Object(all)) => all
                .iter()
                .filter(|(key, _)| is_kept(key))
                .map(|(key, v)| (key.clone(), self.apply(&Number, v)))
                .collect::<Map<_, _>>()
                .into(),
            (Object(members), Value::Object(all)) => members
                .iter()
                .filter_map(|(member, rule)| {
                    let v = all.get(*member)?;
                    Some(((*member).to_owned(), self.apply(rule, v)))
                })
                .collect::<Map<_, _>>()
                .into(),
            // The value does not have the expected type.
            _ => Value::Null,
        }
    }

    /// Records a name as a ZFS pool, which is no name of the kernel. Pools must be added before any name is replaced.
    pub(crate) fn add_pool(&mut self, name: &str) {
        self.pools.insert(name.to_owned());
    }

    /// Pseudonym of a volume; names that the kernel gave are returned unchanged.
    pub(crate) fn volume(&mut self, text: &str) -> String {
        let is_pool = self.pools.contains(text);
        match text == ALL_POOLS || (is_of_the_kernel(text) && !is_pool) {
            true => text.to_owned(),
            false => self.name("volume-", text),
        }
    }

    /// Pseudonym of a name, with this prefix. Values such as `other` are returned unchanged.
    pub(crate) fn name(&mut self, prefix: &'static str, text: &str) -> String {
        if NOBODY.contains(&text) {
            return text.to_owned();
        }
        let all = self.by_prefix.entry(prefix).or_default();
        let n = all.len() + 1;
        let known = all.entry(text.to_owned());
        known.or_insert_with(|| format!("{prefix}{n}")).clone()
    }
}

/// Leading numbers of a kernel release.
pub(crate) fn release(text: &str) -> String {
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".-".contains(c)));
    let numbers = &text[..end.unwrap_or(text.len())];
    numbers.trim_end_matches(['.', '-']).to_owned()
}

/// Returns true for a possible word of a fixed set: short, lower case, and no address, path or sentence.
pub(crate) fn is_word(text: &str) -> bool {
    let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-+".contains(c);
    (1..=32).contains(&text.len()) && text.chars().all(part) && text.parse::<IpAddr>().is_err()
}

/// Returns true for a version of NFS, such as `4.2`.
fn is_version(text: &str) -> bool {
    text.len() <= 3 && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_kind(text: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.as_str() == text)
}

/// Returns true for a name that only the kernel gives to a block device: `sda1`, `nvme0n1p2`, `dm-3`.
fn is_of_the_kernel(device: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_digit());
    let lettered = ["sd", "vd", "xvd", "hd"].iter().any(|kind| {
        let Some(rest) = device.strip_prefix(kind) else {
            return false;
        };
        let letters = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        (1..=2).contains(&letters.len()) && letters.chars().all(|c| c.is_ascii_lowercase())
    });
    let numbered = ["dm-", "md", "loop", "zd", "nbd", "rbd", "sr", "zram"]
        .iter()
        .any(|kind| device.strip_prefix(kind).is_some_and(digits));
    let mut rest = device.strip_prefix("nvme").map(|t| t.split(['n', 'p']));
    lettered || numbered || rest.as_mut().is_some_and(|parts| parts.all(digits))
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
