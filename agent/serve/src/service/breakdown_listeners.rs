//! Listeners of break-downs, and the rows of each. They live on the thread that owns the source.
//!
//! The source groups operations by all dimensions that a listener wants, once for all listeners, and only while there are any. Each
//! listener gets the rows that it asked for. Operations that it does not take in time are kept and come with its next line, so that none is
//! lost: at most [`MOST_KEPT`] rows, and the rest summed up. If a path is still being looked up, a line waits once for the next poll.

use crate::names::Names;
use bytes::Bytes;
use nfscope_api::breakdown_line::{Header, Interval, Line, Row, keys_of};
use nfscope_api::breakdown_query::{self, INTERVAL, Query};
use nfscope_model::breakdown::{FileKey, FilePath, Keys, Moved};
use nfscope_model::{BreakdownBatch, BreakdownWant, Dimension, Histogram, Scheme};
use nfscope_source::{Source, hostname};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Most listeners at once.
pub const MAX_LISTENERS: usize = 8;
/// Lines that wait for one listener.
const MAX_LINES: usize = 4;
/// Most rows that are kept for a listener until its next line.
const MOST_KEPT: usize = 4096;

struct Listener {
    query: Query,
    lines: Sender<Bytes>,
    /// Begin of the interval under way.
    since: Instant,
    rows: HashMap<Keys, Kept>,
    /// Paths of the files in these rows, if the listener wants them.
    paths: HashMap<FileKey, FilePath>,
    /// True if the line waits for paths.
    waits: bool,
    other: Sum,
    evicted: u64,
    cost: Duration,
}

/// Sum of the times of operations, and of the bytes that they moved.
struct Sum {
    times: Histogram,
    moved: Moved,
}

impl Sum {
    fn new() -> Sum {
        Sum {
            times: Histogram::new(Scheme::TIME),
            moved: Moved::default(),
        }
    }

    fn add(&mut self, times: &Histogram, moved: Moved) {
        self.times.merge(times);
        self.moved += moved;
    }
}

/// A row that is kept until the next line.
struct Kept {
    sum: Sum,
    /// File of the row; empty where paths are not wanted.
    file: FileKey,
}

impl Listener {
    fn new(query: Query, lines: Sender<Bytes>, now: Instant) -> Self {
        Listener {
            query,
            lines,
            since: now,
            rows: HashMap::new(),
            paths: HashMap::new(),
            waits: false,
            other: Sum::new(),
            evicted: 0,
            cost: Duration::ZERO,
        }
    }

    fn add(&mut self, batch: &BreakdownBatch) {
        for row in batch.rows.iter().filter(|r| self.query.lets_pass(&r.keys)) {
            let keys = keys_of(&self.query, &row.keys);
            if let Some(kept) = self.rows.get_mut(&keys) {
                kept.sum.add(&row.times, row.moved);
            } else if self.rows.len() < MOST_KEPT {
                let file = match self.query.paths {
                    true => {
                        [Dimension::Export, Dimension::File].map(|d| row.keys[d as usize].clone())
                    }
                    false => Default::default(),
                };
                let sum = Sum {
                    times: row.times.clone(),
                    moved: row.moved,
                };
                self.rows.insert(
                    keys,
                    Kept {
                        sum,
                        file: file.into(),
                    },
                );
            } else {
                self.other.add(&row.times, row.moved);
            }
        }
        if self.query.paths {
            // Paths of rows that were kept earlier are looked up, too.
            let files: HashSet<_> = self.rows.values().map(|r| &r.file).collect();
            let paths = batch.paths.iter().filter(|(file, _)| files.contains(file));
            self.paths
                .extend(paths.map(|(file, path)| (file.clone(), path.clone())));
        }
        self.evicted += batch.unplaced.count() + batch.lost;
        if self.query.filters.is_empty() {
            self.other.add(&batch.unplaced, batch.unplaced_moved);
        }
        self.cost += batch.cost;
    }

    /// Sends the rows if the interval has passed. Rows that cannot be sent stay.
    fn tell(&mut self, names: &Names, now: Instant) {
        let passed = now.duration_since(self.since);
        // Polls of the source come a little early or late. Without this slack a listener would miss every second one.
        if passed + INTERVAL / 2 < self.query.interval {
            return;
        }
        let comes = self.paths.values().any(|p| *p == FilePath::Coming);
        if comes && !std::mem::replace(&mut self.waits, true) {
            return;
        }
        let Ok(place) = self.lines.try_reserve() else {
            return;
        };
        self.waits = false;
        let by = &self.query.by;
        let mut rows: Vec<_> = self.rows.drain().collect();
        // Rows with equal times are ordered by their keys, so that the order is always the same.
        rows.sort_by(|(ak, a), (bk, b)| {
            (b.sum.times.sum.total_cmp(&a.sum.times.sum)).then_with(|| ak.cmp(bk))
        });
        for (_, kept) in rows.iter().skip(self.query.rows) {
            self.other.add(&kept.sum.times, kept.sum.moved);
        }
        rows.truncate(self.query.rows);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let other = std::mem::replace(&mut self.other, Sum::new());
        let line = Line::Interval(Interval {
            at: since.unwrap_or_default().as_secs_f64(),
            seconds: passed.as_secs_f64(),
            by: by.clone(),
            rows: (rows.into_iter())
                .map(|(keys, kept)| {
                    let mut row = Row::new(keys, (&kept.sum.times, kept.sum.moved).into(), by);
                    row.client_name = row.client.as_deref().and_then(|c| names.client(c));
                    row.user_name = row.user.as_deref().and_then(|u| names.user(u));
                    match kept.file.1.as_str() {
                        "" | "none" => row,
                        _ => row.named(self.paths.get(&kept.file)),
                    }
                })
                .collect(),
            other: (&other.times, other.moved).into(),
            evicted: std::mem::take(&mut self.evicted),
            cost_seconds: std::mem::take(&mut self.cost).as_secs_f64(),
        });
        self.since = now;
        self.paths.clear();
        if let Ok(text) = line.encode() {
            place.send(text.into());
        }
    }
}

/// The listeners of one source.
#[derive(Default)]
pub(crate) struct Listeners {
    /// Names of clients and users.
    pub(super) names: Names,
    listeners: Vec<Listener>,
    /// Break-down that the source was asked for.
    asked: Option<BreakdownWant>,
    looked: Option<Instant>,
}

impl Listeners {
    /// Time until the next poll of the source; `None` without listeners.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let looked = self.looked.filter(|_| !self.listeners.is_empty())?;
        Some(INTERVAL.saturating_sub(now.duration_since(looked)))
    }

    /// Adds a listener, which leaves by dropping the receiver.
    ///
    /// # Errors
    /// When there are too many, or with the source's reason.
    pub(crate) fn subscribe(
        &mut self,
        source: &mut dyn Source,
        query: Query,
        now: Instant,
    ) -> anyhow::Result<Receiver<Bytes>> {
        let names = &self.names;
        let query = query.resolved(|name| names.addresses(name), |name| names.users(name));
        let query = query.map_err(anyhow::Error::msg)?;
        self.leave(source);
        anyhow::ensure!(
            self.listeners.len() < MAX_LISTENERS,
            "this agent breaks operations down for at most {MAX_LISTENERS} listeners at once"
        );
        let wants = self.listeners.iter().map(|l| l.query.want());
        let want = breakdown_query::union(wants.chain([query.want()]));
        let kernel_bytes = match self.ask(source, want) {
            Ok(bytes) => bytes,
            Err(why) => {
                // The listeners before this one go on.
                self.follow(source);
                return Err(why);
            }
        };
        let (lines, receiver) = mpsc::channel(MAX_LINES);
        let header = Line::Header {
            header: Header {
                host: hostname::own_name(),
                by: query.by.clone(),
                filters: query.filters.iter().map(ToString::to_string).collect(),
                interval_seconds: query.interval.as_secs_f64(),
                max_rows: query.rows,
                kernel_bytes,
            },
        };
        // A new channel has room.
        let _ = lines.try_send(header.encode()?.into());
        self.listeners.push(Listener::new(query, lines, now));
        self.looked = self.looked.or(Some(now));
        Ok(receiver)
    }

    /// Hands out the source's rows if an interval has passed, and drops listeners that have left.
    pub(crate) fn poll(&mut self, source: &mut dyn Source, now: Instant) {
        if self.wait(now).is_none_or(|left| !left.is_zero()) {
            return;
        }
        self.looked = Some(now);
        let batch = source.take_breakdown();
        self.add(&batch);
        for listener in &mut self.listeners {
            listener.tell(&self.names, now);
        }
        self.leave(source);
    }

    fn add(&mut self, batch: &BreakdownBatch) {
        for listener in &mut self.listeners {
            listener.add(batch);
        }
    }

    /// Drops listeners that have left.
    fn leave(&mut self, source: &mut dyn Source) {
        let before = self.listeners.len();
        self.listeners.retain(|l| !l.lines.is_closed());
        if self.listeners.len() < before {
            self.follow(source);
        }
        if self.listeners.is_empty() {
            self.looked = None;
        }
    }

    /// Asks the source for another break-down. Returns the kernel memory that it takes.
    fn ask(&mut self, source: &mut dyn Source, want: Option<BreakdownWant>) -> anyhow::Result<u64> {
        let batch = if want == self.asked {
            source.take_breakdown()
        } else {
            self.asked = None;
            source.watch_breakdown(want.as_ref())?
        };
        self.asked = want;
        self.add(&batch);
        Ok(batch.kernel_bytes)
    }

    /// Asks the source for the break-down of the present listeners. If the source refuses, they have nothing to wait for and end.
    fn follow(&mut self, source: &mut dyn Source) {
        let want = breakdown_query::union(self.listeners.iter().map(|l| l.query.want()));
        if self.ask(source, want).is_err() {
            self.listeners.clear();
            let _ = source.watch_breakdown(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::breakdown_query::Query;
    use nfscope_api::query::QueryString;
    use nfscope_example::Script;
    use nfscope_model::{BreakdownRow, Dimension};

    fn row(keys: [&str; 6], count: u64, sum: f64) -> BreakdownRow {
        let mut times = Histogram::new(Scheme::TIME);
        (times.counts[3], times.sum) = (count, sum);
        BreakdownRow {
            keys: keys.map(str::to_owned),
            times,
            moved: Moved {
                read: 4096 * count,
                written: count,
            },
        }
    }

    fn batch(rows: Vec<BreakdownRow>, unplaced: u64) -> BreakdownBatch {
        let mut batch = BreakdownBatch {
            rows,
            ..Default::default()
        };
        batch.unplaced.counts[0] = unplaced;
        batch
    }

    fn lines(r: &mut Receiver<Bytes>) -> Vec<Interval> {
        let mut all = Vec::new();
        while let Ok(line) = r.try_recv() {
            match serde_json::from_slice(&line).unwrap() {
                Line::Header { .. } => {}
                Line::Interval(i) => all.push(i),
            }
        }
        all
    }

    struct Fixture {
        listeners: Listeners,
        source: Script,
        now: Instant,
    }

    impl Fixture {
        fn new() -> Self {
            Fixture {
                listeners: Listeners::default(),
                source: Script::default(),
                now: Instant::now(),
            }
        }

        fn subscribe(&mut self, query: &str) -> anyhow::Result<Receiver<Bytes>> {
            let query = Query::from_query(query).unwrap();
            (self.listeners).subscribe(&mut self.source, query, self.now)
        }

        fn second(&mut self, batch: BreakdownBatch) {
            self.source.breakdown = batch;
            self.now += INTERVAL;
            self.listeners.poll(&mut self.source, self.now);
        }
    }

    fn two() -> Vec<BreakdownRow> {
        vec![
            row(["a", "/x", "read", "", "", ""], 3, 1.0),
            row(["a", "/x", "write", "", "", ""], 2, 4.0),
            row(["b", "/y", "write", "", "", ""], 1, 2.0),
        ]
    }

    #[test]
    fn each_gets_its_rows_and_the_source_ends_with_the_last() {
        let mut f = Fixture::new();
        let mut one = f.subscribe("by=client").unwrap();
        let mut other = f.subscribe("by=op,export&where=op:write").unwrap();
        f.second(batch(two(), 7));
        let [got] = &lines(&mut one)[..] else {
            panic!("one line")
        };
        let clients = got
            .rows
            .iter()
            .map(|r| (r.value(Dimension::Client), r.times.count));
        assert_eq!(
            clients.collect::<Vec<_>>(),
            [(Some("a"), 5), (Some("b"), 1)]
        );
        assert_eq!((got.other.count, got.evicted), (7, 7));
        let [got] = &lines(&mut other)[..] else {
            panic!("one line")
        };
        let rows = got
            .rows
            .iter()
            .map(|r| (r.value(Dimension::Export), r.times.sum_seconds));
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [(Some("/x"), 4.0), (Some("/y"), 2.0)]
        );
        // Operations without a row are left out of a filtered break-down, because it is not known which of them would pass.
        assert_eq!((got.other.count, got.evicted), (0, 7));
        drop(other);
        f.second(batch(Vec::new(), 0));
        drop(one);
        f.second(batch(Vec::new(), 0));
        assert!(f.listeners.wait(f.now).is_none());
        let by = f
            .source
            .broken_down
            .iter()
            .map(|w| w.as_ref().map(|w| w.by.len()));
        assert_eq!(by.collect::<Vec<_>>(), [Some(1), Some(3), Some(1), None]);
    }

    #[test]
    fn rows_beyond_the_limit_are_summed_up() {
        let mut f = Fixture::new();
        let mut few = f.subscribe("by=client,op&rows=1").unwrap();
        f.second(batch(two(), 1));
        let got = lines(&mut few).remove(0);
        assert_eq!(got.rows.len(), 1);
        assert_eq!(got.rows[0].times.sum_seconds, 4.0);
        assert_eq!((got.other.count, got.other.sum_seconds), (5, 3.0));
    }

    #[test]
    fn what_is_not_taken_in_time_comes_later() {
        let mut f = Fixture::new();
        let mut slow = f.subscribe("by=op").unwrap();
        for _ in 0..10 {
            f.second(batch(two(), 0));
        }
        let count = |lines: &[Interval]| -> u64 {
            let rows = lines.iter().flat_map(|l| &l.rows);
            let each = rows.map(|r| {
                let moved = r.times.moved.unwrap_or_default();
                assert_eq!(moved.read, 4096 * r.times.count);
                assert_eq!(moved.written, r.times.count);
                r.times.count
            });
            each.sum()
        };
        let before = lines(&mut slow);
        // The header took one slot of the channel.
        assert_eq!((before.len(), count(&before)), (MAX_LINES - 1, 18));
        f.second(batch(Vec::new(), 0));
        let after = lines(&mut slow);
        assert_eq!((after.len(), count(&after)), (1, 42));
        assert!(after[0].seconds > 7.0, "{}", after[0].seconds);
    }

    #[test]
    fn an_interval_may_be_longer_than_a_look() {
        let mut f = Fixture::new();
        let mut long = f.subscribe("by=op&interval=3s").unwrap();
        for _ in 0..6 {
            f.second(batch(two(), 0));
        }
        let got = lines(&mut long);
        assert_eq!(got.len(), 2);
        assert_eq!(got[0].seconds, 3.0);
    }

    #[test]
    fn a_line_waits_once_for_paths() {
        let mut f = Fixture::new();
        let mut named = f.subscribe("by=file&paths=true").unwrap();
        let mut other = f.subscribe("by=file").unwrap();
        let of = |file: &str| ("/x".to_owned(), file.to_owned());
        let rows = || {
            vec![
                row(["", "/x", "", "", "", "7"], 1, 2.0),
                row(["", "/x", "", "", "", "8"], 1, 1.0),
                row(["", "none", "", "", "", "none"], 1, 0.5),
            ]
        };
        let mut first = batch(rows(), 0);
        first.paths.insert(of("7"), FilePath::Coming);
        f.second(first);
        assert_eq!(lines(&mut other).len(), 1);
        assert_eq!(lines(&mut named).len(), 0);
        // No operation was of the file since then.
        let mut then = batch(Vec::new(), 0);
        then.paths.insert(of("7"), FilePath::Is("/x/a".into()));
        then.paths.insert(of("9"), FilePath::Is("/x/b".into()));
        f.second(then);
        let [line] = &lines(&mut named)[..] else {
            panic!("one line")
        };
        assert_eq!(line.seconds, 2.0);
        let told = line
            .rows
            .iter()
            .map(|r| (r.file.as_deref(), r.path.as_deref(), r.no_path.is_some()));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                (Some("/x:7"), Some("/x/a"), false),
                (Some("/x:8"), None, true),
                (Some("none:none"), None, false)
            ]
        );
        assert!(lines(&mut other).iter().all(|l| {
            l.rows
                .iter()
                .all(|r| r.path.is_none() && r.no_path.is_none())
        }));
        // A disk that does not answer does not delay the line any longer.
        for _ in 0..4 {
            let mut still = batch(rows(), 0);
            still.paths.insert(of("7"), FilePath::Coming);
            f.second(still);
        }
        assert_eq!(lines(&mut named).len(), 2);
    }

    #[test]
    fn a_refused_listener_disturbs_nobody() {
        let mut f = Fixture::new();
        f.source.breaks_down_no = Some(Dimension::User);
        let mut a = f.subscribe("by=op").unwrap();
        let why = f.subscribe("by=user").unwrap_err();
        assert_eq!(why.to_string(), "no user here");
        f.second(batch(two(), 0));
        assert_eq!(lines(&mut a).len(), 1);
        let rest: Vec<_> = (1..MAX_LISTENERS)
            .map(|_| f.subscribe("by=op").unwrap())
            .collect();
        assert!(f.subscribe("by=op").is_err());
        drop(rest);
        assert!(f.subscribe("by=op").is_ok());
    }
}
