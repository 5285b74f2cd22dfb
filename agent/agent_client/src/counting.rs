//! Counts operations by client and export, and by file, while a command watches windows. A running agent's break-downs or probes of this
//! process count them.

use crate::lines::{self, Lines};
use nfscope_api::breakdown_line::{Interval, Line};
use nfscope_api::breakdown_query::{MOST_ROWS, Query};
use nfscope_diagnose::Counted;
use nfscope_model::breakdown::Keys;
use nfscope_model::{BreakdownBatch, BreakdownWant, Dimension};
use nfscope_source::Source;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for which an agent's last line is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Largest share of operations without a row, as its inverse: an interval is left out if the kernel's table had no row for more than one in
/// `ROOM` of its operations.
const ROOM: u64 = 10;
const TOO_MANY: &str = "operations were of more files than the kernel's table has rows";

const WHO: [Dimension; 3] = [Dimension::Client, Dimension::Export, Dimension::Op];
/// Dimensions for kernels without BTF of modules: exports cannot be distinguished there.
const WHO_WITHOUT_EXPORTS: [Dimension; 2] = [Dimension::Client, Dimension::Op];
const FILES: [Dimension; 3] = [Dimension::Export, Dimension::Op, Dimension::File];

/// Result of counting: the counts, or the reason why there are none.
#[derive(Debug)]
pub struct Told {
    /// Operations by client, export and name.
    pub who: Result<Counted, String>,
    /// Operations by export, name and file.
    pub files: Result<Counted, String>,
}

/// Counting in progress.
pub enum Counting {
    /// Two streams of an agent: a client of the agent may be allowed the first and not the second.
    Agent {
        /// Operations by client, export and name.
        who: Stream,
        /// Operations by file.
        files: Stream,
    },
    /// A single table of this process's own probes.
    Own(Own),
}

impl Counting {
    /// Starts both streams of the agent at `url`.
    pub fn of_agent(url: &str) -> Counting {
        Counting::Agent {
            who: Stream::start(url, &[&WHO, &WHO_WITHOUT_EXPORTS]),
            files: Stream::start(url, &[&FILES]),
        }
    }

    /// Ends counting, with the counts of a window of this length.
    pub fn end(self, source: Option<&mut (dyn Source + 'static)>, length: Duration) -> Told {
        match self {
            Counting::Agent { who, files } => {
                let until = Instant::now() + PATIENCE;
                Told {
                    who: who.end(length, until),
                    files: files.end(length, until),
                }
            }
            Counting::Own(mut own) => {
                if let Some(source) = source {
                    own.take(source);
                    // An error is ignored: counting ends with the source in any case.
                    let _ = source.watch_breakdown(None);
                }
                Told {
                    who: own.who,
                    files: own.files,
                }
            }
        }
    }
}

#[derive(Default)]
struct Heard {
    counted: Counted,
    /// True if seconds were left out, because too many operations had no row.
    crowded: bool,
    /// Reason why no more lines come.
    ended: Option<String>,
}

/// Break-down of an agent, which a thread reads.
pub struct Stream(Arc<Mutex<Heard>>);

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// Asks for the first of these break-downs that the agent gives.
    fn start(url: &str, wishes: &'static [&'static [Dimension]]) -> Stream {
        let stream = Stream(Arc::default());
        let (url, heard) = (url.to_owned(), Arc::downgrade(&stream.0));
        let listens = move || {
            let result = open(&url, wishes).and_then(|lines| {
                // Reading ends when the stream has been dropped.
                listen(lines, |i| {
                    heard.upgrade().is_some_and(|h| take(&mut lock(&h), i))
                })
            });
            if let (Err(why), Some(heard)) = (result, heard.upgrade()) {
                lock(&heard).ended.get_or_insert(format!("{why:#}"));
            }
        };
        // The thread ends with its next line after the stream has been dropped, or with the program.
        let thread = std::thread::Builder::new().name("counting".to_owned());
        if let Err(why) = thread.spawn(listens) {
            lock(&stream.0).ended = Some(why.to_string());
        }
        stream
    }

    fn end(self, length: Duration, until: Instant) -> Result<Counted, String> {
        loop {
            let mut heard = lock(&self.0);
            let left = until.saturating_duration_since(Instant::now());
            if let Some(why) = heard.ended.take() {
                return Err(why);
            }
            // Lines cover about a second each, so the sum may fall short by 1 %.
            if heard.counted.length >= length.as_secs_f64() * 0.99 || left.is_zero() {
                return match heard.counted.length > 0.0 {
                    true => Ok(std::mem::take(&mut heard.counted)),
                    false if heard.crowded => Err(TOO_MANY.to_owned()),
                    false => Err("the agent told nothing in that time".to_owned()),
                };
            }
            drop(heard);
            std::thread::sleep(left.min(LOOK_INTERVAL));
        }
    }
}

/// Opens the first of these break-downs that the agent gives.
fn open(url: &str, wishes: &[&[Dimension]]) -> anyhow::Result<Lines<Query>> {
    let mut refused = None;
    for by in wishes {
        let mut query = Query::new(by.to_vec(), Vec::new()).map_err(anyhow::Error::msg)?;
        query.rows = MOST_ROWS;
        match Lines::new(url, lines::request(url, &query)?) {
            Ok(lines) => return Ok(lines),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    Err(refused.unwrap_or_else(|| anyhow::anyhow!("nothing was asked for")))
}

/// Passes lines on for as long as `take` returns true.
fn listen(mut lines: Lines<Query>, take: impl Fn(&Interval) -> bool) -> anyhow::Result<()> {
    loop {
        if let Line::Interval(interval) = lines.next_line()?
            && !take(&interval)
        {
            return Ok(());
        }
    }
}

/// Returns true if the kernel's table had no row for at most one in `ROOM` of the operations.
fn fits(without_room: u64, all: u64) -> bool {
    without_room.saturating_mul(ROOM) <= all
}

/// Adds a line; returns false if no more lines are wanted.
fn take(heard: &mut Heard, interval: &Interval) -> bool {
    let by_file = interval.by.contains(&Dimension::File);
    let rows: u64 = interval.rows.iter().map(|r| r.times.count).sum();
    if !fits(interval.evicted, rows + interval.other.count) {
        heard.crowded = true;
        if by_file {
            heard.ended = Some(TOO_MANY.to_owned());
        }
        // Counting by file ends here. That frees rows of the table, so the next intervals of the other stream are complete.
        return !by_file;
    }
    let counted = &mut heard.counted;
    for row in &interval.rows {
        let mut keys = Keys::default();
        for d in &interval.by {
            keys[*d as usize] = row.value(*d).unwrap_or_default().to_owned();
        }
        counted.add(keys, row.times.count, row.times.sum_seconds);
    }
    counted.add_other(interval.other.sum_seconds);
    counted.length += interval.seconds;
    true
}

/// Break-downs of probes of this process, read once a second.
pub struct Own {
    who: Result<Counted, String>,
    files: Result<Counted, String>,
    since: Instant,
}

fn want(by: impl IntoIterator<Item = Dimension>) -> BreakdownWant {
    BreakdownWant {
        by: by.into_iter().collect(),
        ..BreakdownWant::default()
    }
}

impl Own {
    /// Starts counting by client and by file. If the source cannot distinguish files, it counts without them.
    pub fn start(source: &mut dyn Source) -> Own {
        let all = want(WHO.into_iter().chain(FILES));
        let (who, files) = match source.watch_breakdown(Some(&all)) {
            Ok(_) => (Ok(Counted::default()), Ok(Counted::default())),
            Err(why) => (
                without_files(source).map(|()| Counted::default()),
                Err(format!("{why:#}")),
            ),
        };
        let since = Instant::now();
        Own { who, files, since }
    }

    /// Adds the operations since the last call.
    pub fn take(&mut self, source: &mut dyn Source) {
        if self.who.is_err() {
            return;
        }
        let length = self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        let batch = source.take_breakdown();
        if self.add(&batch, length) {
            return;
        }
        if self.files.is_ok() {
            self.files = Err(TOO_MANY.to_owned());
            if let Err(why) = without_files(source) {
                self.who = Err(why);
            }
        }
    }

    /// Adds the operations of `length` seconds. Returns false, and adds none, if too many of them have no row.
    fn add(&mut self, batch: &BreakdownBatch, length: f64) -> bool {
        let unplaced = batch.unplaced.count() + batch.lost;
        let rows: u64 = batch.rows.iter().map(|r| r.times.count()).sum();
        if !fits(unplaced, rows + unplaced) {
            return false;
        }
        for (counted, without) in [
            (&mut self.who, Dimension::File),
            (&mut self.files, Dimension::Client),
        ] {
            let Ok(counted) = counted else { continue };
            for row in &batch.rows {
                let mut keys = row.keys.clone();
                keys[without as usize].clear();
                counted.add(keys, row.times.count(), row.times.sum);
            }
            counted.add_other(batch.unplaced.sum);
            counted.length += length;
        }
        true
    }
}

/// Starts counting without files, and without exports where those cannot be distinguished.
fn without_files(source: &mut dyn Source) -> Result<(), String> {
    let with_exports = source.watch_breakdown(Some(&want(WHO)));
    let asked = with_exports.or_else(|_| source.watch_breakdown(Some(&want(WHO_WITHOUT_EXPORTS))));
    asked.map(drop).map_err(|why| format!("{why:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::breakdown_line::{Row, Times};
    use nfscope_diagnose::counted::{Of, file, who};
    use nfscope_example::Script;
    use nfscope_model::breakdown::Moved;
    use nfscope_model::{BreakdownRow, Histogram, Scheme};

    const LONG: Duration = Duration::from_secs(3600);

    fn interval(by: &[Dimension], rows: Vec<Row>, evicted: u64) -> Interval {
        Interval {
            at: 0.0,
            seconds: 1.0,
            by: by.to_vec(),
            rows,
            other: Times {
                count: evicted,
                sum_seconds: evicted as f64,
                buckets: Vec::new(),
                moved: None,
            },
            evicted,
            cost_seconds: 0.0,
        }
    }

    fn row(count: u64) -> Row {
        Row {
            client: Some("192.0.2.7".into()),
            export: Some("/a".into()),
            op: Some("write".into()),
            file: Some("12".into()),
            times: Times {
                count,
                sum_seconds: count as f64,
                buckets: Vec::new(),
                moved: None,
            },
            ..Row::default()
        }
    }

    #[test]
    fn seconds_with_too_much_outside_of_the_rows_are_left_out_and_end_files() {
        let mut heard = Heard::default();
        assert!(take(&mut heard, &interval(&WHO, vec![row(100)], 0)));
        assert!(take(&mut heard, &interval(&WHO, vec![row(100)], 100)));
        assert!(take(&mut heard, &interval(&WHO, vec![row(90)], 10)));
        assert_eq!(heard.counted.length, 2.0);
        let text = who(&Of::All, &heard.counted).unwrap().text;
        assert!(
            text.contains("that 190 operations took in 2.00 s"),
            "{text}"
        );
        assert!(text.contains("192.0.2.7 has at least 95 %"), "{text}");
        let mut heard = Heard::default();
        assert!(take(&mut heard, &interval(&FILES, vec![row(100)], 0)));
        assert!(!take(&mut heard, &interval(&FILES, vec![row(100)], 100)));
        assert_eq!(heard.ended.as_deref(), Some(TOO_MANY));
    }

    #[test]
    fn an_agent_is_waited_for_no_longer_than_patience() {
        let stream = |heard: Heard| Stream(Arc::new(Mutex::new(heard)));
        let why = stream(Heard::default()).end(LONG, Instant::now());
        assert_eq!(why.unwrap_err(), "the agent told nothing in that time");
        let mut some = Heard::default();
        take(&mut some, &interval(&WHO, vec![row(100)], 0));
        assert_eq!(stream(some).end(LONG, Instant::now()).unwrap().length, 1.0);
        let crowded = Heard {
            crowded: true,
            ..Heard::default()
        };
        assert_eq!(
            stream(crowded).end(LONG, Instant::now()).unwrap_err(),
            TOO_MANY
        );
        let refused = Heard {
            ended: Some("no".into()),
            ..Heard::default()
        };
        assert_eq!(
            stream(refused)
                .end(LONG, Instant::now() + LONG)
                .unwrap_err(),
            "no"
        );
    }

    fn batch(unplaced: u64) -> BreakdownBatch {
        let mut times = Histogram::new(Scheme::TIME);
        (times.counts[3], times.sum) = (100, 5.0);
        let keys = ["192.0.2.7", "/a", "write", "", "", "12"].map(str::to_owned);
        let mut batch = BreakdownBatch {
            rows: vec![BreakdownRow {
                keys,
                times,
                moved: Moved::default(),
            }],
            ..BreakdownBatch::default()
        };
        batch.unplaced.counts[0] = unplaced;
        batch
    }

    #[test]
    fn own_probes_count_both_and_without_files_where_these_are_too_many() {
        let mut source = Script::default();
        let mut own = Own::start(&mut source);
        source.breakdown = batch(0);
        own.take(&mut source);
        let by_file = file(&Of::All, own.files.as_ref().unwrap(), |_, _| None);
        assert!(
            by_file
                .unwrap()
                .text
                .contains("inode 12 of export /a has 100 %")
        );
        source.breakdown = batch(1000);
        own.take(&mut source);
        source.breakdown = batch(0);
        own.take(&mut source);
        let told = Counting::Own(own).end(Some(&mut source), LONG);
        assert_eq!(told.files.unwrap_err(), TOO_MANY);
        let text = who(&Of::All, &told.who.unwrap()).unwrap().text;
        assert!(text.contains("that 200 operations took"), "{text}");
        assert!(text.contains(", export /a"), "{text}");
        let by = (source.broken_down.iter()).map(|w| w.as_ref().map(|w| w.by.len()));
        assert_eq!(by.collect::<Vec<_>>(), [Some(4), Some(3), None]);
    }

    #[test]
    fn where_exports_cannot_be_told_apart_clients_are() {
        let mut source = Script {
            breaks_down_no: Some(Dimension::Export),
            ..Script::default()
        };
        let mut own = Own::start(&mut source);
        source.breakdown = batch(0);
        source.breakdown.rows[0].keys[Dimension::Export as usize].clear();
        own.take(&mut source);
        assert_eq!(own.files.unwrap_err(), "no export here");
        let text = who(&Of::All, &own.who.unwrap()).unwrap().text;
        assert!(
            text.starts_with("client 192.0.2.7 has 100 % of the "),
            "{text}"
        );
    }
}
