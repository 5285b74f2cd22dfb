//! Names the clients, exports, operations and files behind a finding, from operations counted while the window was watched.
//!
//! A share is a part of the time of the operations that were counted. Operations that found no room in the kernel's table have no row. If
//! there are any, a share is a lower bound.

use crate::breakdown::{Breakdown, part, sum};
use crate::by_client::{self, ClientOps};
use crate::observed::{Files, ops_with_much};
use crate::rules::evidence::{evidence, percent};
use crate::talkers::{Talker, Talkers};
use nfscope_model::breakdown::{Keys, Moved};
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
/// Most values of a dimension that a finding keeps.
const MOST_TALKERS: usize = 5;

/// Limit of operations without a row: if more than one in `ROOM` finds no room in the kernel's table, other rows are wanted.
const ROOM: u64 = 10;

/// Reason for counts that are not by file.
pub const TOO_MANY_FILES: &str = "operations were of more files than the kernel's table has rows";

/// Returns true if few enough of all operations found no room in the kernel's table.
pub fn has_room(without_row: u64, all: u64) -> bool {
    without_row.saturating_mul(ROOM) <= all
}

/// Operations grouped by their keys, in the order of [`Keys`].
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Time for which they were counted.
    pub length: f64,
    rows: BTreeMap<Keys, Row>,
    /// Seconds of operations without a row.
    other: f64,
}

/// Operations with the same keys.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    count: u64,
    seconds: f64,
    moved: Moved,
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
    rows: Vec<(&'a Keys, Row)>,
    count: u64,
    seconds: f64,
    other: f64,
    names: String,
}

impl Counted {
    /// Adds operations with these keys.
    pub fn add(&mut self, keys: Keys, count: u64, seconds: f64, moved: Moved) {
        if self.rows.len() >= MOST_ROWS && !self.rows.contains_key(&keys) {
            self.other += seconds;
            return;
        }
        let row = self.rows.entry(keys).or_default();
        row.count += count;
        row.seconds += seconds;
        row.moved += moved;
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
            rows: rows
                .map(|(keys, row)| (keys.clone(), row.seconds))
                .collect(),
            without_row: self.other,
        }
    }

    /// Returns the counted operations by client.
    pub fn clients(&self) -> by_client::Counted {
        let mut clients: BTreeMap<&str, ClientOps> = BTreeMap::new();
        for (keys, row) in &self.rows {
            let [client, op] = [Dimension::Client, Dimension::Op].map(|d| &keys[d as usize]);
            let of = clients.entry(client).or_insert_with(|| ClientOps {
                client: client.clone(),
                ..ClientOps::default()
            });
            let op = of.ops.entry(op.clone()).or_default();
            op.0 += row.count as f64;
            op.1 += row.seconds;
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
            .map(|(keys, row)| (keys, *row))
            .collect();
        let count = rows.iter().map(|(_, r)| r.count).sum();
        let seconds = sum(rows.iter().map(|(_, r)| r.seconds));
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
        for (keys, row) in &self.rows {
            if let Some(value) = value(keys) {
                *all.entry(value).or_default() += row.seconds;
            }
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    fn share(&self, seconds: f64) -> f64 {
        part(seconds, self.seconds + self.other)
    }

    /// Values of a dimension, those with the most time first.
    fn talkers(&self, value: impl Fn(&Keys) -> Option<String>) -> Vec<Talker> {
        let mut all: BTreeMap<String, Row> = BTreeMap::new();
        for (keys, row) in &self.rows {
            if let Some(value) = value(keys) {
                let sum = all.entry(value).or_default();
                sum.count += row.count;
                sum.seconds += row.seconds;
                sum.moved += row.moved;
            }
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
        let talker = |(value, row): (String, Row)| Talker {
            value,
            name: None,
            share: self.share(row.seconds),
            count: row.count,
            sum_seconds: row.seconds,
            moved: row.moved,
        };
        all.into_iter().take(MOST_TALKERS).map(talker).collect()
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

/// Clients, exports, operations, users and files with most of the time, each by itself. Files have the form `EXPORT:FILE` of
/// `/breakdown`, and `path` finds their paths by export and name. `None` if too few operations were counted to be evidence.
pub fn talkers(
    of: &Of,
    counted: &Counted,
    path: impl Fn(&str, &str) -> Option<String>,
) -> Option<Talkers> {
    let chosen = counted.choose(of)?;
    let by = |d: Dimension| {
        let known = |k: &Keys| Some(k[d as usize].clone()).filter(|v| !v.is_empty());
        chosen.talkers(known)
    };
    let [export, file] = [Dimension::Export, Dimension::File].map(|d| d as usize);
    let is_file = |k: &Keys| !matches!(&*k[file], "" | "none" | "unknown");
    let mut files = chosen.talkers(|k| is_file(k).then(|| format!("{}\0{}", k[export], k[file])));
    for talker in &mut files {
        let (export, file) = talker.value.split_once('\0').unwrap_or_default();
        talker.name = path(export, file);
        talker.value = format!("{export}:{file}");
    }
    let mut moved = Moved::default();
    for (_, row) in &chosen.rows {
        moved += row.moved;
    }
    Some(Talkers {
        at: 0.0,
        seconds: counted.length,
        count: chosen.count,
        sum_seconds: chosen.seconds,
        moved,
        without_row_seconds: chosen.other,
        client: by(Dimension::Client),
        export: by(Dimension::Export),
        op: by(Dimension::Op),
        user: by(Dimension::User),
        file: files,
        not_known: Vec::new(),
    })
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
    let name = match &*client {
        "local" => "a local client".to_owned(),
        _ => format!("client {client}"),
    };
    words.push(format!("{name} has {}", chosen.words(of_client)));
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
    let share = chosen.share(of_client);
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

    const NOTHING: Moved = Moved {
        read: 0,
        written: 0,
    };

    fn writes() -> Of {
        Of::Ops(["write", "commit"].map(str::to_owned).into())
    }

    fn sample() -> Counted {
        let mut c = Counted {
            length: 10.0,
            ..Counted::default()
        };
        c.add(keys("192.0.2.7", "/a", "write", "12"), 400, 3.0, NOTHING);
        c.add(keys("192.0.2.7", "/a", "write", "12"), 100, 3.0, NOTHING);
        c.add(keys("192.0.2.7", "/a", "commit", "12"), 40, 1.0, NOTHING);
        c.add(keys("192.0.2.8", "/a", "write", "13"), 100, 2.0, NOTHING);
        c.add(keys("192.0.2.8", "/b", "commit", "none"), 10, 1.0, NOTHING);
        // Operations of another kind.
        c.add(
            keys("192.0.2.9", "/b", "getattr", "14"),
            10_000,
            50.0,
            NOTHING,
        );
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
            c.add(keys("a", "/a", "write", &n.to_string()), 1, 1.0, NOTHING);
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
            c.add(keys("a", "/a", "write", file), 10, 1.0, NOTHING);
            let e = super::file(&writes(), &c, |_, _| panic!("no number names it alone")).unwrap();
            assert!(e.text.contains(text), "{}", e.text);
        }
        let mut c = Counted::default();
        c.add(keys("a", "/a", "write", "/"), 10, 1.0, NOTHING);
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
            c.add(keys("a", "/a", "write", &n.to_string()), 1, 1.0, NOTHING);
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
        c.add(keys("a", "/a", "write", "unknown"), 50, 1.0, NOTHING);
        assert!(file(&writes(), &c, |_, _| None).is_none());
    }

    #[test]
    fn talkers_are_ordered_by_time_and_have_the_bytes_of_the_findings_operations_alone() {
        let mut c = Counted {
            length: 5.0,
            ..Counted::default()
        };
        let mut add = |client: &str, op: &str, user: &str, file: &str, n: u64, seconds, written| {
            let keys = [client, "/a", op, "", user, file].map(str::to_owned);
            c.add(keys, n, seconds, Moved { read: 0, written });
        };
        add("192.0.2.7", "write", "1000", "12", 100, 1.0, 800);
        add("192.0.2.7", "commit", "1000", "12", 10, 2.0, 0);
        add("192.0.2.8", "write", "1001", "none", 50, 1.0, 200);
        add("192.0.2.9", "read", "1002", "14", 5000, 90.0, 0);
        let path = |export: &str, file: &str| (file == "12").then(|| format!("{export}/db"));
        let t = talkers(&writes(), &c, path).unwrap();
        assert_eq!((t.seconds, t.count, t.sum_seconds), (5.0, 160, 4.0));
        assert_eq!(t.moved.written, 1000);
        let told = |all: &[Talker]| -> Vec<(String, f64, u64)> {
            let of = |t: &Talker| (t.value.clone(), t.share, t.moved.written);
            all.iter().map(of).collect()
        };
        assert_eq!(
            told(&t.client),
            [
                ("192.0.2.7".to_owned(), 0.75, 800),
                ("192.0.2.8".to_owned(), 0.25, 200)
            ]
        );
        assert_eq!(told(&t.user)[0], ("1000".to_owned(), 0.75, 800));
        assert_eq!(told(&t.op)[0].0, "commit");
        let [file] = &t.file[..] else {
            panic!("{:?}", t.file)
        };
        assert_eq!(
            (&*file.value, file.name.as_deref()),
            ("/a:12", Some("/a/db"))
        );
        assert!(talkers(&Of::Ops(["remove".to_owned()].into()), &c, |_, _| None).is_none());
    }

    #[test]
    fn a_finding_keeps_few_talkers_of_each_dimension() {
        let mut c = Counted::default();
        for n in 0..50 {
            c.add(
                keys(&n.to_string(), "/a", "write", ""),
                1,
                f64::from(n),
                NOTHING,
            );
        }
        c.add_other(1225.0);
        let t = talkers(&writes(), &c, |_, _| None).unwrap();
        assert_eq!(t.client.len(), MOST_TALKERS);
        assert_eq!(
            (&*t.client[0].value, t.client[0].share),
            ("49", 49.0 / 2450.0)
        );
        assert_eq!((t.file.len(), t.user.len()), (0, 0));
        assert_eq!(t.without_row_seconds, 1225.0);
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
