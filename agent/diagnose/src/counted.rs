//! Names the clients, exports, operations and files behind a finding, from operations counted while the window was watched.
//!
//! A share is a part of the time of the operations that were counted. Operations that found no room in the kernel's table have no row. If
//! there are any, a share is a lower bound.

use crate::breakdown::{Breakdown, part, sum};
use crate::by_client::{self, ClientOps};
use crate::group;
use crate::observed::{Files, ops_with_much};
use crate::rules::evidence::{evidence, percent};
use nfscope_model::breakdown::Keys;
use nfscope_model::finding::{Evidence, Kind};
use nfscope_model::{Dimension, family as f};
use nfscope_text::units::seconds;
use std::collections::{BTreeMap, BTreeSet};

/// Least number of operations that are evidence.
const MIN_OPS: u64 = 10;
/// Least part of the time from which on a file is named.
const MIN_FILE_PART: f64 = 0.1;
/// Largest part of operations without a row that cannot change a share noticeably.
const NEGLIGIBLE: f64 = 0.005;
/// Most rows that are kept, because operations by file are many on a large server. Later operations have no row.
const MOST_ROWS: usize = 1 << 16;
/// Most operations that a sentence names; beyond that it has their number.
const MOST_NAMES: usize = 4;

/// Operations grouped by their keys, in the order of [`Keys`].
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Time for which they were counted.
    pub length: f64,
    rows: BTreeMap<Keys, (u64, f64)>,
    /// Seconds of operations without a row.
    other: f64,
}

/// Path of a file or directory on the server itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Path on the server.
    pub path: String,
    /// True for a directory.
    pub is_directory: bool,
}

/// Operations that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// All operations.
    All,
    /// Operations with these labels `op`.
    Ops(BTreeSet<String>),
}

/// Operations behind a finding; `None` if their time does not show the client behind it.
pub fn ops(kind: Kind, b: &Breakdown) -> Option<Of> {
    let named = |names: &[&str]| Of::Ops(names.iter().map(|&n| n.to_owned()).collect());
    let waiting = |phase| Of::Ops(ops_with_much(phase, b));
    let of = match kind {
        Kind::SmallSyncWrites => named(&["write", "commit"]),
        Kind::PnfsFallback => named(&["read", "write"]),
        Kind::ChattyClient => named(&["getattr", "lookup", "access", "readlink", "read"]),
        Kind::SlowIntentLog => waiting(|p| p.log.unwrap_or(0.0)),
        Kind::SlowDisk => waiting(|p| p.disk),
        Kind::WriteThrottle => waiting(|p| p.throttle),
        Kind::DelegationRecalls => waiting(|p| p.recall),
        Kind::MemoryReclaim => waiting(|p| p.reclaim),
        Kind::LockContention | Kind::UnknownWaits => waiting(|p| p.lock),
        Kind::ThreadStarvation | Kind::CpuSaturation => Of::All,
        _ => return None,
    };
    Some(of).filter(|of| *of != Of::Ops(BTreeSet::new()))
}

/// Returns true if a single file or directory may cause a finding of this kind.
pub fn is_of_a_file(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::LockContention | Kind::UnknownWaits | Kind::SmallSyncWrites
    )
}

/// The operations of a finding among all that were counted.
struct Chosen<'a> {
    rows: Vec<(&'a Keys, u64, f64)>,
    count: u64,
    seconds: f64,
    other: f64,
    names: String,
}

impl Counted {
    /// Adds operations with these keys.
    pub fn add(&mut self, keys: Keys, count: u64, seconds: f64) {
        if self.rows.len() >= MOST_ROWS && !self.rows.contains_key(&keys) {
            self.other += seconds;
            return;
        }
        let row = self.rows.entry(keys).or_default();
        row.0 += count;
        row.1 += seconds;
    }

    /// Adds operations whose keys are not known.
    pub fn add_other(&mut self, seconds: f64) {
        self.other += seconds;
    }

    /// Returns the counted operations for the evaluation of a window.
    pub fn files(&self) -> Files {
        let rows = self.rows.iter();
        Files {
            length: self.length,
            rows: rows.map(|(keys, (_, s))| (keys.clone(), *s)).collect(),
            without_row: self.other,
        }
    }

    /// Returns the counted operations by client.
    pub fn clients(&self) -> by_client::Counted {
        let mut clients: BTreeMap<&str, ClientOps> = BTreeMap::new();
        for (keys, (n, seconds)) in &self.rows {
            let [client, op] = [Dimension::Client, Dimension::Op].map(|d| &keys[d as usize]);
            let of = clients.entry(client).or_insert_with(|| ClientOps {
                client: client.clone(),
                ..ClientOps::default()
            });
            let op = of.ops.entry(op.clone()).or_default();
            op.0 += *n as f64;
            op.1 += seconds;
        }
        by_client::Counted {
            length: self.length,
            clients: clients.into_values().collect(),
        }
    }

    fn choose(&self, of: &Of) -> Option<Chosen<'_>> {
        let is_of = |op: &str| match of {
            Of::All => true,
            Of::Ops(ops) => ops.contains(op),
        };
        let op = Dimension::Op as usize;
        let rows: Vec<_> = (self.rows.iter())
            .filter(|(keys, _)| is_of(&keys[op]))
            .map(|(keys, (n, seconds))| (keys, *n, *seconds))
            .collect();
        let count = rows.iter().map(|r| r.1).sum();
        let seconds = sum(rows.iter().map(|r| r.2));
        let seen: BTreeSet<_> = rows.iter().map(|r| r.0[op].to_uppercase()).collect();
        let names: Vec<_> = seen.into_iter().collect();
        let names = match (of, &names[..]) {
            (Of::Ops(_), [first @ .., last]) if names.len() <= MOST_NAMES => match first {
                [] => format!("{last} operations"),
                _ => format!("{} and {last} operations", first.join(", ")),
            },
            _ => "operations".to_owned(),
        };
        (count >= MIN_OPS && seconds > 0.0).then_some(Chosen {
            rows,
            count,
            seconds,
            other: self.other,
            names,
        })
    }
}

impl Chosen<'_> {
    /// Values with their seconds, those with the most first.
    fn by(&self, value: impl Fn(&Keys) -> Option<String>) -> Vec<(String, f64)> {
        let mut all: BTreeMap<String, f64> = BTreeMap::new();
        for (keys, _, seconds) in &self.rows {
            if let Some(value) = value(keys) {
                *all.entry(value).or_default() += seconds;
            }
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    fn share(&self, seconds: f64) -> f64 {
        part(seconds, self.seconds + self.other)
    }

    fn is_least(&self) -> bool {
        part(self.other, self.seconds + self.other) > NEGLIGIBLE
    }

    /// A share for a sentence.
    fn words(&self, seconds: f64) -> String {
        let share = percent(self.share(seconds));
        if self.is_least() && self.share(seconds) >= NEGLIGIBLE {
            format!("at least {share}")
        } else {
            share
        }
    }

    fn without_row(&self) -> String {
        if self.is_least() {
            let other = seconds(self.other);
            format!("; {other} of operations found no room in the kernel's table")
        } else {
            String::new()
        }
    }
}

/// Sentence about the client, the export and the operation with most of the time, each by itself.
pub fn who(of: &Of, counted: &Counted) -> Option<Evidence> {
    let chosen = counted.choose(of)?;
    let top = |d: Dimension| {
        chosen
            .by(|k| Some(k[d as usize].clone()))
            .into_iter()
            .next()
    };
    let mut words = Vec::new();
    let (client, of_client) = top(Dimension::Client)?;
    let clients = chosen.by(|k| Some(k[Dimension::Client as usize].clone()));
    let parts: Vec<_> = (clients.iter())
        .map(|(name, s)| (name.as_str(), chosen.share(*s)))
        .collect();
    // Rows that found no room may be of any client.
    let group = group::leading(&parts).filter(|_| !chosen.is_least());
    let name = match &*client {
        "local" => "a local client".to_owned(),
        _ => format!("client {client}"),
    };
    words.push(match &group {
        Some(group) => group.words(),
        None => format!("{name} has {}", chosen.words(of_client)),
    });
    if let Some((export, s)) = top(Dimension::Export).filter(|(e, _)| !e.is_empty()) {
        let name = match &*export {
            "none" => "no export at all".to_owned(),
            "unknown" => "an export that is not known now".to_owned(),
            _ => format!("export {export}"),
        };
        words.push(format!("{name} {}", chosen.words(s)));
    }
    if let Some((op, s)) = top(Dimension::Op).filter(|(_, s)| *s < chosen.seconds) {
        words.push(format!("{} {}", op.to_uppercase(), chosen.words(s)));
    }
    let text = format!(
        "{} of the {} that {} {} took in {}{}{}",
        words[0],
        seconds(chosen.seconds),
        chosen.count,
        chosen.names,
        seconds(counted.length),
        words[1..]
            .iter()
            .fold(String::new(), |all, w| format!("{all}, {w}")),
        chosen.without_row()
    );
    let share = group.map_or(chosen.share(of_client), |group| group.share);
    Some(evidence(&f::OP_DURATION.info, share, None, text))
}

/// Sentence about the file or directory with most of the time. `place` finds a path by export and inode number; it is called at most once.
pub fn file(
    of: &Of,
    counted: &Counted,
    place: impl FnOnce(&str, &str) -> Option<Place>,
) -> Option<Evidence> {
    let chosen = counted.choose(of)?;
    let (export, file) = (Dimension::Export as usize, Dimension::File as usize);
    let known = |k: &Keys| !matches!(&*k[file], "" | "none" | "unknown");
    let named = chosen.by(|k| known(k).then(|| format!("{}\0{}", k[export], k[file])));
    let (top, s) = named.first()?;
    let (export, inode) = top.split_once('\0')?;
    let whole = format!(
        "the {} that {} took, counted by file for {}",
        seconds(chosen.seconds),
        chosen.names,
        seconds(counted.length)
    );
    let share = chosen.share(*s);
    let words = chosen.words(*s);
    let text = if share < MIN_FILE_PART {
        let number = named.len();
        let most = match words.starts_with("less than") {
            true => format!("each has {words}"),
            false => format!("none has more than {words}"),
        };
        format!("no file or directory has much of {whole}: of {number}, {most}")
    } else {
        format!("{} has {words} of {whole}", name(export, inode, place))
    };
    let text = text + &chosen.without_row();
    Some(evidence(&f::OP_DURATION.info, share, None, text))
}

/// A file for a sentence.
fn name(export: &str, inode: &str, place: impl FnOnce(&str, &str) -> Option<Place>) -> String {
    if inode == "/" {
        return format!("the root directory of export {export}");
    }
    if let Some(hash) = inode.strip_prefix("handle-") {
        return format!("the file or directory with handle {hash} of export {export}");
    }
    if let Some((subvolume, inode)) = inode.split_once('/') {
        return format!(
            "the file or directory with inode {inode} in subvolume {subvolume} of export {export}"
        );
    }
    let Some(place) = place(export, inode) else {
        return format!("the file or directory with inode {inode} of export {export}");
    };
    let what = if place.is_directory {
        "directory"
    } else {
        "file"
    };
    format!("the {what} {} (inode {inode})", place.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Phases;

    fn keys(client: &str, export: &str, op: &str, file: &str) -> Keys {
        [client, export, op, "", "", file].map(str::to_owned)
    }

    fn writes() -> Of {
        Of::Ops(["write", "commit"].map(str::to_owned).into())
    }

    fn sample() -> Counted {
        let mut c = Counted {
            length: 10.0,
            ..Counted::default()
        };
        c.add(keys("192.0.2.7", "/a", "write", "12"), 400, 3.0);
        c.add(keys("192.0.2.7", "/a", "write", "12"), 100, 3.0);
        c.add(keys("192.0.2.7", "/a", "commit", "12"), 40, 1.0);
        c.add(keys("192.0.2.8", "/a", "write", "13"), 100, 2.0);
        c.add(keys("192.0.2.8", "/b", "commit", "none"), 10, 1.0);
        // Operations of another kind.
        c.add(keys("192.0.2.9", "/b", "getattr", "14"), 10_000, 50.0);
        c
    }

    #[test]
    fn client_export_and_operation_have_their_shares_of_what_was_counted() {
        let e = who(&writes(), &sample()).unwrap();
        assert_eq!(
            e.text,
            "client 192.0.2.7 has 70 % of the 10.0 s that 650 COMMIT and WRITE operations took in 10.0 s, export /a 90 %, WRITE 80 %"
        );
        assert_eq!(e.value, 0.7);
        let e = who(&Of::All, &sample()).unwrap();
        assert!(
            e.text.contains("that 10650 operations took in"),
            "{}",
            e.text
        );
        assert!(e.text.contains("client 192.0.2.9 has 83 %"), "{}", e.text);
        assert!(who(&Of::Ops(["read".to_owned()].into()), &sample()).is_none());
    }

    #[test]
    fn clients_that_are_guilty_together_are_named_together() {
        let mut c = Counted {
            length: 10.0,
            ..Counted::default()
        };
        for n in 1..=5 {
            c.add(keys(&format!("10.0.0.{n}"), "/a", "read", "1"), 100, 2.0);
        }
        c.add(keys("10.0.0.9", "/a", "read", "1"), 10, 0.1);
        let text = who(&Of::All, &c).unwrap().text;
        assert!(
            text.starts_with(
                "5 of 6 clients (10.0.0.1, 10.0.0.2, 10.0.0.3 and 2 more), 20 % each, have 99 % of the 10.1 s"
            ),
            "{text}"
        );
        // With operations of unknown clients no group is known.
        c.add_other(5.0);
        let text = who(&Of::All, &c).unwrap().text;
        assert!(text.starts_with("client 10.0.0."), "{text}");
    }

    #[test]
    fn what_has_no_row_makes_shares_the_least_that_they_can_be() {
        let mut c = sample();
        c.add_other(10.0);
        let e = who(&writes(), &c).unwrap();
        assert!(
            e.text.contains("192.0.2.7 has at least 35 % of the "),
            "{}",
            e.text
        );
        assert!(
            e.text
                .ends_with("; 10.0 s of operations found no room in the kernel's table"),
            "{}",
            e.text
        );
        assert_eq!(e.value, 0.35);
        let e = file(&writes(), &c, |_, _| None).unwrap();
        assert!(
            e.text.contains("has at least 35 % of the 10.0 s"),
            "{}",
            e.text
        );
    }

    #[test]
    fn rows_are_bounded() {
        let mut c = Counted::default();
        for n in 0..=MOST_ROWS {
            c.add(keys("a", "/a", "write", &n.to_string()), 1, 1.0);
        }
        assert_eq!((c.rows.len(), c.other), (MOST_ROWS, 1.0));
    }

    #[test]
    fn the_file_is_named_by_its_path_where_that_is_found() {
        let named = |place: Option<Place>| {
            let asked = |export: &str, inode: &str| {
                assert_eq!((export, inode), ("/a", "12"));
                place
            };
            file(&writes(), &sample(), asked).unwrap().text
        };
        let rest = "has 70 % of the 10.0 s that COMMIT and WRITE operations took, counted by file for 10.0 s";
        assert_eq!(
            named(None),
            format!("the file or directory with inode 12 of export /a {rest}")
        );
        let place = |is_directory| Place {
            path: "/a/db".into(),
            is_directory,
        };
        assert_eq!(
            named(Some(place(false))),
            format!("the file /a/db (inode 12) {rest}")
        );
        assert!(named(Some(place(true))).starts_with("the directory /a/db"));
        for (file, text) in [
            ("258/257", "inode 257 in subvolume 258 of export /a"),
            (
                "handle-0123456789abcdef",
                "with handle 0123456789abcdef of export /a",
            ),
        ] {
            let mut c = Counted::default();
            c.add(keys("a", "/a", "write", file), 10, 1.0);
            let e = super::file(&writes(), &c, |_, _| panic!("no number names it alone")).unwrap();
            assert!(e.text.contains(text), "{}", e.text);
        }
        let mut c = Counted::default();
        c.add(keys("a", "/a", "write", "/"), 10, 1.0);
        let e = file(&writes(), &c, |_, _| panic!("it is the export itself")).unwrap();
        assert!(
            e.text
                .starts_with("the root directory of export /a has 100 %"),
            "{}",
            e.text
        );
    }

    #[test]
    fn many_files_with_little_each_are_told_as_such() {
        let mut c = Counted::default();
        for n in 0..50 {
            c.add(keys("a", "/a", "write", &n.to_string()), 1, 1.0);
        }
        let e = file(&writes(), &c, |_, _| panic!("no file is named")).unwrap();
        assert!(
            e.text.starts_with(
                "no file or directory has much of the 50.0 s that WRITE operations took"
            ),
            "{}",
            e.text
        );
        assert!(
            e.text.ends_with("of 50, none has more than 2 %"),
            "{}",
            e.text
        );
        let mut c = Counted::default();
        c.add(keys("a", "/a", "write", "unknown"), 50, 1.0);
        assert!(file(&writes(), &c, |_, _| None).is_none());
    }

    #[test]
    fn a_finding_is_of_the_operations_that_wait() {
        let op = |op: &str, lock: f64| crate::breakdown::Op {
            op: op.into(),
            phases: Phases {
                lock,
                ..Phases::default()
            },
            ..Default::default()
        };
        let b = Breakdown {
            ops: vec![op("rename", 8.0), op("create", 1.9), op("getattr", 0.1)],
            ..Breakdown::default()
        };
        let expected = ["create", "rename"].map(str::to_owned).into();
        assert_eq!(ops(Kind::LockContention, &b), Some(Of::Ops(expected)));
        assert_eq!(ops(Kind::SlowDisk, &b), None);
        assert_eq!(ops(Kind::SlowReply, &b), None);
        assert_eq!(ops(Kind::CpuSaturation, &b), Some(Of::All));
    }
}
