//! Description of a load: what its operations are, and how they come. One pass, in bounded memory (about 60 MiB), whatever the length.

mod files;
pub mod sketch;
#[cfg(test)]
mod tests;
pub mod text;
mod times;

pub use files::{Commits, Files, Places, Sharing};
pub use times::{Burst, Course, Interval};

use crate::format::Error;
use crate::header::Header;
use crate::operation::{Operation, Stability};
use files::Follow;
use serde::Serialize;
use sketch::{Distribution, Frequent};
use std::collections::BTreeMap;
use times::Times;

/// Kinds of operations that are counted by name and version; more come together as `other`.
const MOST_KINDS: usize = 512;
/// Pairs of operation and status that are counted.
const MOST_ERRORS: usize = 1024;
/// Clients that are counted by name; more come together.
const MOST_CLIENTS: usize = 10_000;
/// Counters for hot files. A file with more than 1 of 4096 operations is among them.
const HOT_COUNTERS: usize = 4096;
/// Hot files of the description.
const HOT: usize = 20;

/// Operations of one name and version.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Kind {
    /// Name of the operation.
    pub op: String,
    /// Version of NFS.
    pub version: String,
    /// Number.
    pub operations: u64,
    /// Number that is known to have failed.
    pub failed: u64,
    /// Bytes that READs and WRITEs moved, as far as they are known.
    pub bytes: u64,
    /// Durations in nanoseconds; empty if the trace does not have them.
    pub nanoseconds: Distribution,
}

/// Operations of a client.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Client {
    /// Name in the trace.
    pub name: String,
    /// Number of operations.
    pub operations: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// Operations that failed alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// Name of the operation.
    pub op: String,
    /// Status of NFS.
    pub status: u32,
    /// Number.
    pub operations: u64,
}

/// File with many operations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HotFile {
    /// Pseudonym.
    pub file: u64,
    /// Number of operations, or bytes.
    pub count: u64,
    /// The count is too high by at most this.
    pub error: u64,
}

/// WRITEs by the stability that they ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Stabilities {
    /// Durable after a COMMIT.
    pub unstable: u64,
    /// Durable with what is needed to find the data.
    pub data_sync: u64,
    /// Durable with all attributes.
    pub file_sync: u64,
    /// Not known.
    pub unknown: u64,
}

/// Description of a load.
#[derive(Debug, Clone, Serialize)]
pub struct Load {
    /// Reservations: what the trace cannot tell, and why.
    pub reservations: Vec<String>,
    /// Number of operations.
    pub operations: u64,
    /// Seconds from the beginning to the last arrival.
    pub seconds: f64,
    /// Kinds of operations, the most frequent first.
    pub mix: Vec<Kind>,
    /// Bytes of READs.
    pub read_sizes: Distribution,
    /// Bytes of WRITEs.
    pub write_sizes: Distribution,
    /// WRITEs by stability.
    pub stabilities: Stabilities,
    /// Stories of files.
    pub files: Files,
    /// Gaps between arrivals, in nanoseconds.
    pub gaps: Distribution,
    /// Bursts over several scales of time.
    pub bursts: Vec<Burst>,
    /// Working set over time.
    pub course: Course,
    /// Clients, the busiest first.
    pub clients: Vec<Client>,
    /// Failures, the most frequent first.
    pub failures: Vec<Failure>,
    /// Files with the most operations.
    pub hot_by_operations: Vec<HotFile>,
    /// Files with the most bytes.
    pub hot_by_bytes: Vec<HotFile>,
}

/// Observes the operations of a load.
pub struct Describer {
    operations: u64,
    end: u64,
    kinds: BTreeMap<(String, &'static str), Kind>,
    read_sizes: Distribution,
    write_sizes: Distribution,
    stabilities: Stabilities,
    files: Follow,
    times: Times,
    clients: Vec<(u64, u64)>,
    failures: BTreeMap<(String, u32), u64>,
    hot_operations: Frequent,
    hot_bytes: Frequent,
    without_file: u64,
    without_status: u64,
}

impl Default for Describer {
    fn default() -> Describer {
        Describer {
            operations: 0,
            end: 0,
            kinds: BTreeMap::new(),
            read_sizes: Distribution::default(),
            write_sizes: Distribution::default(),
            stabilities: Stabilities::default(),
            files: Follow::default(),
            times: Times::default(),
            clients: Vec::new(),
            failures: BTreeMap::new(),
            hot_operations: Frequent::new(HOT_COUNTERS),
            hot_bytes: Frequent::new(HOT_COUNTERS),
            without_file: 0,
            without_status: 0,
        }
    }
}

/// Describes a trace.
///
/// # Errors
/// If an operation cannot be read.
pub fn describe(
    header: &Header,
    operations: impl Iterator<Item = Result<Operation, Error>>,
) -> Result<Load, Error> {
    let mut describer = Describer::default();
    for operation in operations {
        describer.add(&operation?);
    }
    Ok(describer.finish(header))
}

impl Describer {
    /// Adds an operation. They come in the order of their arrival.
    pub fn add(&mut self, o: &Operation) {
        self.operations += 1;
        self.end = self.end.max(o.arrival);
        let moves = o.op.is_read() || o.op.is_write();
        let bytes = match moves && o.succeeded() {
            true => u64::from(o.length.unwrap_or(0)),
            false => 0,
        };
        self.count_kind(o, bytes);
        if let (true, Some(length)) = (moves, o.length) {
            let sizes = match o.op.is_read() {
                true => &mut self.read_sizes,
                false => &mut self.write_sizes,
            };
            sizes.add(u64::from(length));
        }
        if o.op.is_write() {
            let count = match o.stability {
                Some(Stability::Unstable) => &mut self.stabilities.unstable,
                Some(Stability::DataSync) => &mut self.stabilities.data_sync,
                Some(Stability::FileSync) => &mut self.stabilities.file_sync,
                None => &mut self.stabilities.unknown,
            };
            *count += 1;
        }
        let client = (o.client as usize).min(MOST_CLIENTS);
        if self.clients.len() <= client {
            self.clients.resize(client + 1, (0, 0));
        }
        self.clients[client].0 += 1;
        self.clients[client].1 += bytes;
        match o.status {
            Some(0) => {}
            None => self.without_status += 1,
            Some(status) => {
                let key = (o.op.name().to_owned(), status);
                if self.failures.len() < MOST_ERRORS || self.failures.contains_key(&key) {
                    *self.failures.entry(key).or_default() += 1;
                }
            }
        }
        match o.file {
            None => self.without_file += 1,
            Some(file) => {
                self.hot_operations.add(file, 1);
                if bytes > 0 {
                    self.hot_bytes.add(file, bytes);
                }
            }
        }
        self.files.add(o);
        self.times.add(o);
    }

    fn count_kind(&mut self, o: &Operation, bytes: u64) {
        let mut key = (o.op.name().to_owned(), o.version.name());
        if self.kinds.len() >= MOST_KINDS && !self.kinds.contains_key(&key) {
            key = ("other".to_owned(), "other");
        }
        let kind = self.kinds.entry(key).or_default();
        kind.operations += 1;
        kind.failed += u64::from(!o.succeeded());
        kind.bytes += bytes;
        if let Some(duration) = o.duration {
            kind.nanoseconds.add(duration);
        }
    }

    /// Description of what was added.
    pub fn finish(self, header: &Header) -> Load {
        let mut mix: Vec<_> = (self.kinds.into_iter())
            .map(|((op, version), kind)| Kind {
                op,
                version: version.to_owned(),
                ..kind
            })
            .collect();
        mix.sort_by_key(|k| std::cmp::Reverse(k.operations));
        let mut failures: Vec<_> = (self.failures.into_iter())
            .map(|((op, status), operations)| Failure {
                op,
                status,
                operations,
            })
            .collect();
        failures.sort_by_key(|f| std::cmp::Reverse(f.operations));
        let name = |i: usize| match header.clients.get(i) {
            Some(name) if i < MOST_CLIENTS => name.clone(),
            _ => "other".to_owned(),
        };
        let mut clients: Vec<_> = (self.clients.iter().enumerate())
            .filter(|(_, c)| c.0 > 0)
            .map(|(i, (operations, bytes))| Client {
                name: name(i),
                operations: *operations,
                bytes: *bytes,
            })
            .collect();
        clients.sort_by_key(|c| std::cmp::Reverse(c.operations));
        let hot = |of: &Frequent| {
            let top = of.top(HOT).into_iter();
            top.map(|(file, count, error)| HotFile { file, count, error })
                .collect()
        };
        let files = self.files.finish();
        let (gaps, bursts, course) = self.times.finish();
        let unknown = Unknown {
            operations: self.operations,
            without_file: self.without_file,
            without_status: self.without_status,
            followed_one_in: files.followed_one_in,
        };
        Load {
            reservations: reservations(header, &unknown),
            operations: self.operations,
            seconds: self.end as f64 / 1e9,
            mix,
            read_sizes: self.read_sizes,
            write_sizes: self.write_sizes,
            stabilities: self.stabilities,
            files,
            gaps,
            bursts,
            course,
            clients,
            failures,
            hot_by_operations: hot(&self.hot_operations),
            hot_by_bytes: hot(&self.hot_bytes),
        }
    }
}

struct Unknown {
    operations: u64,
    without_file: u64,
    without_status: u64,
    followed_one_in: u64,
}

/// Facts that the trace cannot tell, each with its reason.
fn reservations(header: &Header, unknown: &Unknown) -> Vec<String> {
    let mut all = Vec::new();
    let n = header.sampled_one_in;
    if n > 1 {
        all.push(format!(
            "1 of {n} file handles was recorded: rates, counts, bytes and the working set are those of the sample, about 1/{n} of all; sequence, sharing and commits of its files are whole; bursts are weaker than those of all files"
        ));
    }
    for d in &header.dropped {
        let op = d.op.as_deref().unwrap_or("operations");
        all.push(format!(
            "{} {op} are missing ({}): rates are too low, and sequences, commits and bursts have gaps",
            d.operations, d.reason
        ));
    }
    if header.out_of_order > 0 {
        all.push(format!(
            "{} operations stand behind later ones: gaps between arrivals are not exact there",
            header.out_of_order
        ));
    }
    if let Some(form) = &header.imported_from {
        all.push(format!(
            "imported from {form}: durations are those between a call and its reply on the network; fields that the form lacks are unknown"
        ));
    }
    let part = |n: u64| n as f64 / unknown.operations.max(1) as f64;
    if part(unknown.without_status) > 0.01 {
        all.push(format!(
            "{:.0} % of the operations have no status: they count as successes",
            100.0 * part(unknown.without_status)
        ));
    }
    if part(unknown.without_file) > 0.01 {
        all.push(format!(
            "{:.0} % of the operations name no file, and are in no count of files",
            100.0 * part(unknown.without_file)
        ));
    }
    if unknown.followed_one_in > 1 {
        all.push(format!(
            "the files are too many to follow: sequence, sharing, commits and sizes of files are those of 1 of {}, chosen by chance",
            unknown.followed_one_in
        ));
    }
    all
}
