//! Pseudonyms for `nfscope report --anonymise`, by a list of what may stay.
//!
//! The list has every member that is kept, with its kind of value. A member that it does not have is left out, as is every sentence:
//! a name in a sentence can be written in too many ways to be found.

use nfscope_model::finding::Kind;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The text in place of each sentence.
pub(crate) const LEFT_OUT: &str = "left out: sentences can have names";

/// Names that stand for nobody.
const NOBODY: [&str; 5] = ["", "none", "unknown", "local", "other"];

/// Volume of the figures that all pools share: OpenZFS before 2.2 has no others.
const ALL_POOLS: &str = "all";

/// Kinds of values, and what becomes of them.
enum Rule {
    /// Numbers, and lists of them, stay.
    Number,
    /// Words of nfscope and of the protocol stay: `write`, `4.2`, `slow_disk`.
    Word,
    /// The numbers in front of a kernel's release stay.
    Release,
    /// A name gets a pseudonym that begins with this.
    Name(&'static str),
    /// Names of block devices as the kernel gives them stay: `sda1`. Others get a pseudonym, as does each ZFS pool.
    Volume,
    /// Sentences are left out.
    Sentence,
    /// A list is empty afterwards.
    Empty,
    /// Numbers by a key that this says yes to.
    By(fn(&str) -> bool),
    /// An object with these members, or a list of such objects.
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

/// The same data without names.
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

/// Pseudonyms by name.
#[derive(Default)]
pub(crate) struct Pseudonyms {
    /// Names for each beginning of a pseudonym: no two kinds of names share one.
    by_prefix: BTreeMap<&'static str, BTreeMap<String, String>>,
    /// ZFS pools. An admin can name one like a disk: `hdd`.
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
            // A value of another kind than is expected of this member.
            _ => Value::Null,
        }
    }

    /// Marks a volume as a ZFS pool, which is never named by the kernel. Pools are added before the first name is replaced.
    pub(crate) fn add_pool(&mut self, name: &str) {
        self.pools.insert(name.to_owned());
    }

    /// Pseudonym of a volume, unless the kernel has named it.
    pub(crate) fn volume(&mut self, text: &str) -> String {
        let is_pool = self.pools.contains(text);
        match text == ALL_POOLS || (is_of_the_kernel(text) && !is_pool) {
            true => text.to_owned(),
            false => self.name("volume-", text),
        }
    }

    /// Pseudonym of a name, with this beginning. Words such as `other` stay.
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

/// The numbers in front of a release.
pub(crate) fn release(text: &str) -> String {
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".-".contains(c)));
    let numbers = &text[..end.unwrap_or(text.len())];
    numbers.trim_end_matches(['.', '-']).to_owned()
}

/// A text that may be a word of a fixed set has nothing with the form of an address, a path or a sentence.
pub(crate) fn is_word(text: &str) -> bool {
    let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-+".contains(c);
    (1..=32).contains(&text.len()) && text.chars().all(part) && text.parse::<IpAddr>().is_err()
}

/// A version of NFS, such as `4.2`.
fn is_version(text: &str) -> bool {
    text.len() <= 3 && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_kind(text: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.as_str() == text)
}

/// A name that the kernel gives to a block device, and nobody else: `sda1`, `nvme0n1p2`, `dm-3`.
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
