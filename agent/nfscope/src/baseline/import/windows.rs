//! Windows of a history: the increase of each series from one scrape to the next.

use crate::baseline::import::history::{Chunk, History, Key, Moment, Point, ms};
use nfscope_baseline::recording::{
    CLASSIC, Metadata, RecordedWindow, Recording, Sample, SeriesKey,
};
use nfscope_model::{Histogram, Info, Kind, family};
use nfscope_stats::MIN_WINDOWS;
use nfscope_text::units;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Longest distance between two scrapes without a gap, in steps.
const GAP: f64 = 2.5;
/// Largest difference between process start times that are still equal, in seconds. Agents compute theirs from the boot time, which moves
/// when the clock is set.
const SAME_START: f64 = 1.5;

/// Parts of a history that became no window.
#[derive(Debug, Default)]
pub(super) struct Lost {
    pub(super) gaps: usize,
    pub(super) restarts: usize,
    /// Families whose histograms have no buckets in the history.
    pub(super) bucketless: BTreeSet<&'static str>,
}

/// Builds windows from successive moments.
pub(super) struct Reader {
    pub(super) step: f64,
    pub(super) earlier: Option<(f64, Moment)>,
    pub(super) series: HashMap<Key, u32>,
    pub(super) keys: Vec<SeriesKey>,
    pub(super) windows: Vec<RecordedWindow>,
    pub(super) operations: u64,
    pub(super) classic: bool,
    pub(super) native: bool,
    pub(super) lost: Lost,
}

impl Reader {
    pub(super) fn new(step: f64) -> Reader {
        Reader {
            step,
            earlier: None,
            series: HashMap::new(),
            keys: Vec::new(),
            windows: Vec::new(),
            operations: 0,
            classic: false,
            native: false,
            lost: Lost::default(),
        }
    }

    pub(super) fn add(&mut self, chunk: Chunk) {
        self.classic |= chunk.classic;
        self.native |= chunk.native;
        self.lost.bucketless.extend(chunk.bucketless);
        let mut moments = chunk.moments;
        for (at, taken) in chunk.taken {
            let Some(moment) = moments.remove(&at) else {
                continue;
            };
            match &self.earlier {
                // The step repeats a sample.
                Some((before, _)) if taken <= *before => continue,
                Some((before, _)) if taken - before > GAP * self.step => self.lost.gaps += 1,
                Some((before, earlier)) => match increase(earlier, &moment) {
                    Some(samples) => self.window(*before, taken, samples),
                    None => self.lost.restarts += 1,
                },
                None => {}
            }
            self.earlier = Some((taken, moment));
        }
    }

    fn window(&mut self, begin: f64, end: f64, samples: Vec<(Key, Sample)>) {
        let mut numbered = Vec::new();
        for (key, sample) in samples {
            let info = family::ALL[key.0];
            if info.name == family::OP_DURATION.info.name
                && let Sample::Histogram { counts, .. } = &sample
            {
                self.operations += counts.iter().map(|(_, n)| n).sum::<u64>();
            }
            let next = self.keys.len() as u32;
            let id = *self.series.entry(key.clone()).or_insert(next);
            if id == next {
                self.keys.push(SeriesKey {
                    id,
                    family: info.name.to_owned(),
                    labels: key.1,
                });
            }
            numbered.push((id, sample));
        }
        numbered.sort_by_key(|(id, _)| *id);
        self.windows.push(RecordedWindow {
            began_ms: ms(begin) as i64,
            length: Duration::from_millis(ms(end) - ms(begin)),
            samples: numbered,
        });
    }

    pub(super) fn recording(&mut self, name: &str, source: &History) -> anyhow::Result<Recording> {
        let windows = std::mem::take(&mut self.windows);
        anyhow::ensure!(
            windows.len() >= MIN_WINDOWS,
            "that history has {} ({} apart), and a comparison needs {MIN_WINDOWS}: choose a longer time or a shorter --step (not \
             shorter than the interval of scrapes)",
            units::many(windows.len() as f64, "window"),
            units::length(Duration::from_secs_f64(self.step))
        );
        anyhow::ensure!(
            self.operations > 0,
            "that history has no operations of {}: the agent did not time them, or the server had none",
            source.instance
        );
        anyhow::ensure!(
            !(self.native && self.classic),
            "that history has native and classic histograms, which cannot be compared: choose a time in which it has one kind"
        );
        let kind = if self.classic { CLASSIC.1 } else { "native" };
        Ok(Recording {
            metadata: Metadata {
                name: name.to_owned(),
                began_ms: windows[0].began_ms,
                host: source.instance.clone(),
                kernel: None,
                agent: source.version.clone(),
                interval: Duration::from_secs_f64(self.step),
                labels: [(CLASSIC.0.to_owned(), kind.to_owned())].into(),
            },
            series: std::mem::take(&mut self.keys),
            windows,
        })
    }
}

/// Increase of each series. `None` if the agent restarted in between: its start time changed, or a counter or a bucket fell.
fn increase(earlier: &Moment, later: &Moment) -> Option<Vec<(Key, Sample)>> {
    let mut out = Vec::new();
    for (key, point) in later {
        let Info { name, kind, .. } = *family::ALL[key.0];
        if name == family::PROCESS_START.info.name
            && let (Some(Point::Number(a)), Point::Number(b)) = (earlier.get(key), point)
            && (b - a).abs() > SAME_START
        {
            return None;
        }
        let sample = match (earlier.get(key), point) {
            (_, Point::Number(v)) if kind == Kind::Gauge => Sample::Gauge(*v),
            (Some(Point::Number(a)), Point::Number(b)) if b >= a => Sample::Counter(b - a),
            (Some(Point::Histogram(a)), Point::Histogram(b)) if holds(b, a) => {
                let gained = b.since(a);
                Sample::Histogram {
                    scheme: gained.scheme,
                    counts: gained.sparse(),
                    sum: gained.sum,
                }
            }
            // Without an earlier value there is no increase.
            (None, _) => continue,
            _ => return None,
        };
        out.push((key.clone(), sample));
    }
    Some(out)
}

/// Returns true if no bucket fell.
fn holds(later: &Histogram, earlier: &Histogram) -> bool {
    let mut both = later.counts.iter().zip(&earlier.counts);
    later.scheme == earlier.scheme && both.all(|(b, a)| b >= a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::import::history::usual_distance;
    use nfscope_model::Scheme;

    /// A counter that falls is a restart, and a series without an earlier value is left out.
    #[test]
    fn windows_are_what_was_counted_in_between() {
        let place = family::ALL
            .iter()
            .position(|f| f.kind == Kind::Counter)
            .unwrap();
        let at = |values: &[(&str, f64)]| -> Moment {
            let one = |(l, v): &(&str, f64)| ((place, vec![(*l).to_owned()]), Point::Number(*v));
            values.iter().map(one).collect()
        };
        let gained = increase(&at(&[("a", 5.0)]), &at(&[("a", 7.0), ("b", 9.0)])).unwrap();
        assert_eq!(
            gained,
            [((place, vec!["a".to_owned()]), Sample::Counter(2.0))]
        );
        assert!(increase(&at(&[("a", 5.0)]), &at(&[("a", 4.0)])).is_none());
    }

    /// After a restart, a busy agent may count more than before. The start time reveals the restart, and so does one bucket that falls.
    #[test]
    fn a_restart_is_told_by_the_start_and_by_one_bucket_that_fell() {
        let place = |name: &str| family::ALL.iter().position(|f| f.name == name).unwrap();
        let start = (place(family::PROCESS_START.info.name), Vec::new());
        let ops = (place(family::OP_DURATION.info.name), Vec::new());
        let at = |began: f64, counts: [u64; 2]| -> Moment {
            let mut h = Histogram::new(Scheme::TIME);
            h.counts[..2].copy_from_slice(&counts);
            let (start, ops) = (start.clone(), ops.clone());
            [(start, Point::Number(began)), (ops, Point::Histogram(h))].into()
        };
        let earlier = at(1000.0, [5, 5]);
        assert!(increase(&earlier, &at(1000.0, [6, 5])).is_some());
        assert!(increase(&earlier, &at(1001.0, [6, 5])).is_some());
        assert!(increase(&earlier, &at(1012.0, [6, 5])).is_none());
        assert!(increase(&earlier, &at(1000.0, [90, 4])).is_none());
    }

    /// Scrapes every 30 or 60 s with a step of 10 s: windows have the length of the scrape interval, and there are no gaps.
    #[test]
    fn samples_farther_apart_than_a_step_are_no_gaps() {
        let place = family::ALL.iter().position(|f| f.kind == Kind::Counter);
        let key: Key = (place.unwrap(), Vec::new());
        for scrape in [30.0, 60.0] {
            let mut chunk = Chunk::default();
            for i in 0..100 {
                let at = 1000.0 + 10.0 * f64::from(i);
                let last = (at / scrape).floor() * scrape;
                // No scrapes for 5 minutes.
                let taken = if (1500.0..1800.0).contains(&last) {
                    1470.0
                } else {
                    last
                };
                chunk.taken.insert(ms(at), taken);
                chunk.put(at, &key, Point::Number(taken));
            }
            let step = usual_distance(chunk.taken.values());
            assert_eq!(step, scrape);
            let mut reader = Reader::new(step);
            reader.add(chunk);
            assert_eq!(reader.lost.gaps, 1);
            let lengths = reader.windows.iter().map(|w| w.length.as_secs_f64());
            assert!(
                reader.windows.len() >= 8 && lengths.max_by(f64::total_cmp) < Some(2.5 * scrape)
            );
        }
        assert_eq!(usual_distance([5.0].iter()), 0.0);
    }
}
