//! Progress of a recording: the precision of its target metric so far.

use crate::estimate::Value;
use crate::histogram_series::HistogramSeries;
use crate::target_metric::{Metric, Statistic};
use nfscope_model::{Sample, Scheme, Window, family};
use nfscope_stats::{
    Looks, MIN_RISES_TO_STOP, MIN_SPELLS_TO_STOP, MIN_STRETCHES_TO_STOP, MIN_WINDOWS,
    MIN_WINDOWS_TO_STOP, Memory, Tail,
};
use nfscope_text::units;
use std::collections::BTreeMap;
use std::time::Duration;

/// Most windows: more are merged in pairs, because each new window evaluates all of them. Half as many still have enough independent
/// stretches for a p99.
const MAX_WINDOWS: usize = 1440;
/// Mean distances of rare events that a recording must span: events with a mean distance of a third of the time are missing from 5 % of
/// recordings.
const DISTANCES_TO_SEE: u32 = 3;

/// Reason for which there is a value and no interval.
const LONG_MEMORY: &str = "windows far apart resemble each other more than neighbours explain: a long memory, a slow wave below the noise, or a level that \
     changed; no interval of one recording holds then; only several recordings at different times tell, such as --repeat 3 --every 3h";

/// Follows one metric through the windows of a recording.
#[derive(Debug)]
pub struct Progress {
    metric: Option<Metric>,
    /// Histograms of every operation until one is chosen; then of that one only.
    histograms: BTreeMap<String, HistogramSeries>,
    seconds: Vec<f64>,
    /// Number of windows, and the number that are merged into one.
    windows: usize,
    each: usize,
    operations: u64,
    value: Option<Value>,
    /// Precision that ends the recording, if one was set.
    wanted: Option<f64>,
    looks: Looks,
    reached: bool,
}

impl Progress {
    /// Tracks this metric until half the width of its interval is `wanted` relative to its value. Without a metric it tracks the operation
    /// that takes the most time: its mean if that is to end the recording, because a p99 takes hours, else its p99.
    pub fn new(metric: Option<Metric>, wanted: Option<f64>) -> Self {
        Progress {
            metric,
            histograms: BTreeMap::new(),
            seconds: Vec::new(),
            windows: 0,
            each: 1,
            operations: 0,
            value: None,
            wanted,
            looks: Looks::at_windows(),
            reached: false,
        }
    }

    /// Adds a window.
    pub fn add(&mut self, window: &Window) {
        if self.seconds.len() == MAX_WINDOWS && self.windows.is_multiple_of(self.each) {
            self.coarsen();
        }
        if self.windows.is_multiple_of(self.each) {
            self.seconds.push(0.0);
        }
        if let Some(last) = self.seconds.last_mut() {
            *last += window.length.as_secs_f64();
        }
        self.windows += 1;
        for s in self.histograms.values_mut() {
            s.begin(self.seconds.len());
        }
        for s in window.delta.series(&family::OP_DURATION.info) {
            let (Some(op), Sample::Histogram(h)) = (s.labels.get(1), &s.sample) else {
                continue;
            };
            self.operations += h.count();
            if self.metric.as_ref().is_some_and(|m| m.op != *op) {
                continue;
            }
            let new = || HistogramSeries::new(Scheme::TIME);
            let of = self.histograms.entry(op.clone()).or_insert_with(new);
            of.begin(self.seconds.len());
            of.add(h);
        }
        self.choose();
        self.value = self.metric.as_ref().and_then(|m| {
            let histograms = self.histograms.get(&m.op)?;
            m.of(histograms, &self.seconds)
        });
        let narrow = self
            .half_width()
            .zip(self.wanted)
            .is_some_and(|(h, wanted)| h <= wanted);
        let stretches = self.stretches().unwrap_or(0.0);
        let narrow = narrow
            && match self.tail() {
                Some(tail) => tail.is_enough(),
                // Counts of values beyond a quantile have the noise of counting, which is no sign of a long memory.
                None => self.memory().is_some_and(|m| m.is_enough()),
            };
        let agreed = self.looks.enough(self.windows, stretches, narrow);
        // A narrow interval of few windows may be that of a long memory, which no test has seen yet.
        self.reached |= agreed && self.memory().is_some_and(|m| m.is_tested());
    }

    /// Independent stretches in the metric's windows.
    fn stretches(&self) -> Option<f64> {
        self.value?.stretches
    }

    /// Precision of the values beyond a quantile.
    fn tail(&self) -> Option<Tail> {
        self.value?.tail
    }

    /// How much its windows resemble others that are far away.
    fn memory(&self) -> Option<Memory> {
        self.value?.memory
    }

    /// Merges windows in pairs.
    fn coarsen(&mut self) {
        self.each *= 2;
        self.seconds = self.seconds.chunks(2).map(|c| c.iter().sum()).collect();
        self.histograms
            .values_mut()
            .for_each(HistogramSeries::coarsen);
    }

    /// Chooses the metric once there are enough windows; it never changes after that.
    fn choose(&mut self) {
        if self.metric.is_some() || self.seconds.len() < MIN_WINDOWS {
            return;
        }
        let most = self
            .histograms
            .iter()
            .max_by(|a, b| a.1.sum().total_cmp(&b.1.sum()))
            .filter(|(_, s)| s.count() > 0.0);
        if let Some((op, _)) = most {
            let op = op.clone();
            self.histograms.retain(|o, _| *o == op);
            self.metric = Some(Metric {
                op,
                what: match self.wanted {
                    Some(_) => Statistic::Mean,
                    None => Statistic::Quantile(99),
                },
            });
        }
    }

    /// NFS operations so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Half the width of the confidence interval, relative to the value.
    pub fn half_width(&self) -> Option<f64> {
        self.value?.half_width()
    }

    /// Returns true if the metric has the wanted precision, at two looks in a row.
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// Reason why there is no interval, or never one as narrow as wanted, although there are enough windows.
    pub fn reason_without_interval(&self, wanted: f64) -> Option<String> {
        if let Some(why) = self.hidden(wanted) {
            return Some(why);
        }
        if self.windows < MIN_WINDOWS_TO_STOP {
            return None;
        }
        if let Some(why) = self.reason_of_memory() {
            return Some(why.to_owned());
        }
        if let Some(h) = self.half_width() {
            return (h <= wanted).then(|| self.lacks()).flatten();
        }
        let Some(metric) = &self.metric else {
            return Some("no operation has been recorded yet".to_owned());
        };
        let op = &metric.op;
        let come = self.histograms.get(op).is_some_and(|s| s.count() > 0.0);
        Some(match come {
            true => format!("too few {op} operations have been recorded for an interval"),
            false => format!("no {op} has been recorded yet"),
        })
    }

    /// Why there is no interval although there are enough windows.
    pub fn reason_of_memory(&self) -> Option<&'static str> {
        self.value?.long_memory.then_some(LONG_MEMORY)
    }

    /// What is missing for an end although the interval is narrow, and how much of it would be enough.
    fn lacks(&self) -> Option<String> {
        let stretches = self.stretches()?;
        if stretches < MIN_STRETCHES_TO_STOP {
            return Some(format!(
                "windows resemble each other so much that they are {stretches:.0} independent stretches, and an interval needs \
                 {MIN_STRETCHES_TO_STOP:.0}"
            ));
        }
        if !self.memory()?.is_tested() {
            return self.missing_windows();
        }
        let Some(tail) = self.tail() else {
            return self.memory().and_then(mean_lacks);
        };
        let metric = self.metric.as_ref()?;
        if tail.stretches < tail.min_stretches() {
            return Some(format!(
                "these windows are {:.0} independent stretches, and {metric} needs {:.0}: one stretch in {:.0} may have all values \
                 beyond it, and fewer may not show one; a lower quantile or {}:mean needs fewer",
                tail.stretches.floor(),
                tail.min_stretches().ceil(),
                1.0 / tail.share,
                metric.op
            ));
        }
        (tail.spells < MIN_SPELLS_TO_STOP).then(|| {
            format!(
                "the values beyond {metric} came together and tell as much as {:.0} spells, and an interval needs {MIN_SPELLS_TO_STOP:.0}",
                tail.spells.floor()
            )
        })
    }

    /// Windows that are missing for any end.
    pub fn missing_windows(&self) -> Option<String> {
        (self.windows < MIN_WINDOWS_TO_STOP).then(|| {
            format!(
                "only {} so far, and the first test if windows far apart resemble each other comes after {MIN_WINDOWS_TO_STOP}",
                units::many(self.windows as f64, "window")
            )
        })
    }

    /// Limits of a recording of this length, although the metric is known. Values beyond a quantile may come in spells that the recording
    /// has not seen. A mean may be different at another time.
    pub fn unseen(&self, recorded: Duration) -> Option<String> {
        self.value?;
        let spells = format!(
            "slow spells that come less often than every {} may be missing from it",
            units::length(Duration::from_secs((recorded / DISTANCES_TO_SEE).as_secs()))
        );
        Some(match self.tail() {
            Some(_) => spells,
            None => format!(
                "its interval is that of the mean in this time, and not of another day: {spells}"
            ),
        })
    }

    /// Reason why the histogram resolution limits the precision, if it does.
    fn hidden(&self, wanted: f64) -> Option<String> {
        let (metric, hidden) = (self.metric.as_ref()?, self.value?.hidden);
        (hidden > wanted).then(|| {
            format!(
                "most values share one histogram bucket, which limits {metric} to ±{}: use --metric {}:mean",
                units::percent(hidden),
                metric.op
            )
        })
    }

    /// `write p99 12.3 ms ±4.1 %`
    pub fn metric(&self) -> Option<String> {
        let (metric, value) = (self.metric.as_ref()?, self.value?);
        let shown = metric.show(value.value);
        Some(match value.half_width() {
            Some(h) => format!("{metric} {shown} ±{}", units::percent(h)),
            None => format!("{metric} {shown}"),
        })
    }

    /// Estimated total time until the interval is as narrow as wanted.
    pub fn takes(&self, wanted: f64, so_far: Duration) -> Option<Duration> {
        let factor = (self.half_width()? / wanted).powi(2);
        let least = MIN_WINDOWS_TO_STOP as f64 / self.windows as f64;
        let least = least.max(MIN_STRETCHES_TO_STOP / self.stretches()?);
        let least = least.max(match self.tail() {
            Some(tail) => tail.lacks(),
            None => MIN_RISES_TO_STOP / self.memory()?.rises,
        });
        Duration::try_from_secs_f64(so_far.as_secs_f64() * factor.max(least)).ok()
    }
}

/// Spells or certainty that a mean lacks for an end, although its interval is narrow.
fn mean_lacks(memory: Memory) -> Option<String> {
    if memory.rises < MIN_RISES_TO_STOP {
        return Some(format!(
            "windows above the mean came together and tell as much as {:.0} spells, and an interval needs {MIN_RISES_TO_STOP:.0}",
            memory.rises.floor()
        ));
    }
    (!memory.is_short()).then(|| {
        "windows far apart resemble each other, and it is not certain yet that this is chance"
            .to_owned()
    })
}

/// The estimated outcome of --until-ci.
pub fn outlook(p: &Progress, wanted: f64, so_far: Duration, limit: Duration) -> String {
    let aim = format!("±{}", units::percent(wanted));
    if let Some(why) = p.hidden(wanted) {
        return format!("{aim} will not be reached: {why}");
    }
    let takes = p.takes(wanted, so_far);
    if p.half_width().is_some_and(|h| h <= wanted) && takes.is_none_or(|all| all <= limit) {
        let next = match p.looks.has_agreed() {
            true => "at the next look",
            false => "after two more looks",
        };
        return match (p.lacks(), takes.filter(|all| *all > so_far)) {
            (Some(what), Some(all)) => format!(
                "{aim} in about {}: {what}",
                units::length(all.saturating_sub(so_far))
            ),
            (Some(what), None) => format!("{aim}: {what}"),
            (None, _) => format!("{aim} {next}"),
        };
    }
    match takes {
        None => match p.reason_without_interval(wanted) {
            Some(why) => format!("{aim}: {why}"),
            None => format!("{aim}: too early to tell"),
        },
        Some(all) if all > limit => format!(
            "{aim} will not be reached within {}: that takes about {}",
            units::length(limit),
            units::length(all)
        ),
        Some(all) => format!(
            "{aim} in about {}",
            units::length(all.saturating_sub(so_far))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{Histogram, Scheme, Snapshot};

    fn window(slow: u64) -> Window {
        let mut delta = Snapshot::new(Duration::ZERO);
        for (version, op, bucket) in [
            ("3", "getattr", 10),
            ("3", "write", 50),
            ("4.2", "write", 50),
        ] {
            let mut h = Histogram::new(Scheme::TIME);
            h.counts[bucket] = 100 - slow;
            h.counts[bucket + 4] = slow;
            h.sum = h.counts[bucket] as f64 * Scheme::TIME.edge(bucket);
            delta.histogram(&family::OP_DURATION, [version, op], h);
        }
        Window {
            length: Duration::from_secs(10),
            delta,
        }
    }

    #[test]
    fn the_operation_that_takes_the_most_time_is_followed() {
        // A recording that ends by itself follows the mean, because a p99 takes hours.
        for (wanted, metric) in [(None, "write p99 "), (Some(1.0), "write mean ")] {
            let mut p = Progress::new(None, wanted);
            for i in 0..9 {
                p.add(&window(i % 5));
            }
            assert_eq!(p.metric(), None);
            for i in 0..511 {
                p.add(&window(i % 5));
            }
            assert_eq!(p.operations(), 520 * 300);
            let text = p.metric().unwrap();
            assert!(text.starts_with(metric) && text.ends_with('%'), "{text}");
            assert_eq!(p.reached(), wanted.is_some());
            let unseen = p.unseen(Duration::from_secs(300)).unwrap();
            let of_mean = "its interval is that of the mean in this time, and not of another day: \
                           slow spells that come less often than every 1m 40s may be missing from it";
            let of_tail =
                "slow spells that come less often than every 1m 40s may be missing from it";
            let expected = if wanted.is_some() { of_mean } else { of_tail };
            assert_eq!(unseen, expected);
        }
    }

    #[test]
    fn a_long_recording_has_coarser_windows_and_the_same_sums() {
        let p99 = crate::target_metric::parse("write").unwrap();
        let mut p = Progress::new(Some(p99), Some(1e-9));
        for i in 0..4001 {
            p.add(&window(i % 5));
            assert!(p.seconds.len() <= MAX_WINDOWS);
        }
        assert_eq!((p.each, p.seconds.len()), (4, 1001));
        assert_eq!(p.seconds.iter().sum::<f64>(), 40_010.0);
        assert_eq!(p.histograms["write"].count(), 4001.0 * 200.0);
        assert_eq!(p.histograms["write"].counts[1000], 200.0);
        // The width of the bucket is not counted here.
        let value = p.value.unwrap();
        assert!(value.half_width().unwrap() - value.hidden < 0.05);
        assert!(!p.reached());
    }

    /// A narrow interval of a p99 does not end the recording before one window in a hundred could have shown itself. The text says so.
    #[test]
    fn a_tail_that_few_windows_show_is_refused() {
        let p99 = crate::target_metric::parse("write").unwrap();
        let mut p = Progress::new(Some(p99), Some(1.0));
        for i in 0..150 {
            p.add(&window(i * 7 % 5));
        }
        assert!(p.half_width().unwrap() < 1.0 && !p.reached());
        let why = p.reason_without_interval(1.0).unwrap();
        assert!(
            why.contains("independent stretches, and write p99 needs 299: one stretch in 100"),
            "{why}"
        );
        // These windows are enough for a p90.
        let p90 = crate::target_metric::parse("write:p90").unwrap();
        let mut p = Progress::new(Some(p90), Some(1.0));
        for i in 0..150 {
            p.add(&window(10 + i * 7 % 5));
        }
        assert!(p.reached(), "{:?}", p.reason_without_interval(1.0));
        let unseen = p.unseen(Duration::from_secs(1500)).unwrap();
        assert!(unseen.contains("less often than every 8m 20s"), "{unseen}");
    }

    /// A recording does not end either before the least number of separate spells has come.
    #[test]
    fn a_tail_of_few_spells_is_refused() {
        let p90 = crate::target_metric::parse("write:p90").unwrap();
        let mut p = Progress::new(Some(p90), Some(10.0));
        // Spells of four windows in forty.
        for i in 0..520 {
            p.add(&window(if i % 40 < 4 { 99 } else { 1 + i * 7 % 3 }));
        }
        assert!(p.half_width().unwrap() < 10.0 && !p.reached());
        let why = p.reason_without_interval(10.0).unwrap();
        assert!(
            why.contains("as 13 spells, and an interval needs 30"),
            "{why}"
        );
    }

    /// WRITEs in windows whose levels are waves of all lengths, of which longer ones are little weaker.
    fn long_memory(seed: u64, until: usize) -> Progress {
        use rand::SeedableRng;
        use rand_distr::{Distribution, StandardNormal};
        let mut random = rand::rngs::SmallRng::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let lengths: [f64; 6] = [0.01, 4.0, 16.0, 64.0, 256.0, 1024.0];
        let mut waves = lengths.map(|_| normal());
        let mean = crate::target_metric::parse("write:mean").unwrap();
        let mut p = Progress::new(Some(mean), Some(0.1));
        for _ in 0..until {
            let mut level = 0.0;
            for (wave, length) in waves.iter_mut().zip(lengths) {
                let r = (-1.0 / length).exp();
                *wave = r * *wave + (1.0 - r * r).sqrt() * normal();
                level += length.max(1.0).powf(-0.15) * *wave / 2.0;
            }
            let mut w = window(0);
            let mut h = Histogram::new(Scheme::TIME);
            h.counts[50] = 100;
            h.sum = 100.0 * Scheme::TIME.edge(50) * (0.2 * level).exp();
            w.delta = Snapshot::new(Duration::ZERO);
            w.delta.histogram(&family::OP_DURATION, ["3", "write"], h);
            p.add(&w);
        }
        p
    }

    #[test]
    fn a_long_memory_ends_nothing_and_has_no_interval() {
        for seed in 1..=5 {
            let p = long_memory(seed, 600);
            assert!(!p.reached(), "{seed} {:?}", p.value);
            let why = p.reason_without_interval(0.1).unwrap();
            assert!(
                why.contains("long memory") && why.contains("--repeat 3"),
                "{why}"
            );
            assert!(!p.metric().unwrap().contains('±'));
            assert!(
                !outlook(&p, 0.1, Duration::from_secs(60), Duration::from_secs(7200))
                    .contains(" in about ")
            );
        }
    }

    /// Ten windows in two hundred that are three times as slow tell as much as one spell each time.
    #[test]
    fn a_mean_of_few_bursts_is_refused() {
        let mean = crate::target_metric::parse("write:mean").unwrap();
        let mut p = Progress::new(Some(mean), Some(10.0));
        for i in 0..600 {
            let slow = if (20..30).contains(&(i % 200)) {
                99
            } else {
                1 + i * 7 % 3
            };
            p.add(&window(100 - slow));
        }
        assert!(!p.reached());
        let why = p.reason_without_interval(10.0).unwrap();
        assert!(why.contains("spells, and an interval needs 20"), "{why}");
    }

    /// An interval that is narrow already does not say when the recording ends, if the memory holds the end back.
    #[test]
    fn a_narrow_interval_has_an_outlook() {
        let mean = crate::target_metric::parse("write:mean").unwrap();
        let follow = |windows: u64, slow: &dyn Fn(u64) -> u64| {
            let mut p = Progress::new(Some(mean.clone()), Some(0.2));
            (0..windows).for_each(|i| p.add(&window(slow(i))));
            assert!(p.half_width().unwrap() <= 0.2, "{:?}", p.value);
            let seconds = Duration::from_secs(10 * windows);
            let text = outlook(&p, 0.2, seconds, Duration::from_secs(7200));
            (p, text)
        };
        // The second half is slower, by so little that it may be chance.
        let slow = |i: u64| (i * i * 31 % 61 + i * 17 % 13) % 40 + if i < 150 { 0 } else { 2 };
        let (p, text) = follow(300, &slow);
        let memory = p.memory().unwrap();
        assert!(!memory.is_short() && !memory.is_long() && memory.rises >= MIN_RISES_TO_STOP);
        assert_eq!(
            text,
            "±20.0 %: windows far apart resemble each other, and it is not certain yet that this is chance"
        );
        // Every other window is slower: no look before that at 53 windows may end it.
        let (p, text) = follow(45, &|i| i % 2 * 10);
        assert!(!p.reached());
        let said = "only 45 windows so far, and the first test if windows far apart resemble each other comes after 53";
        assert!(
            text.starts_with("±20.0 % in about") && text.ends_with(said),
            "{text}"
        );
        assert_eq!(p.missing_windows().unwrap(), said);
        let (p, text) = follow(52, &|i| i % 2 * 10);
        assert!(!p.reached());
        // Twenty spells in the 40 windows of the last look are enough, or one too few by rounding.
        let said = ["±20.0 % at the next look", "±20.0 % after two more looks"];
        assert!(said.contains(&text.as_str()), "{text}");
        let (p, _) = follow(70, &|i| i % 2 * 10);
        assert!(p.reached(), "{:?}", p.value);
        assert_eq!(p.missing_windows(), None);
    }

    #[test]
    fn what_never_comes_is_said() {
        let mut p = Progress::new(Some(crate::target_metric::parse("read").unwrap()), None);
        for i in 0..MIN_WINDOWS_TO_STOP as u64 {
            assert_eq!(p.reason_without_interval(0.05), None, "{i}");
            p.add(&window(1));
        }
        assert_eq!(
            p.reason_without_interval(0.05).unwrap(),
            "no read has been recorded yet"
        );
    }

    #[test]
    fn the_outlook_is_honest() {
        let mut p = Progress::new(
            Some(crate::target_metric::parse("write:mean").unwrap()),
            None,
        );
        let minutes = |m: u64| Duration::from_secs(60 * m);
        assert!(outlook(&p, 0.05, minutes(1), minutes(120)).contains("too early"));
        for i in 0..40u64 {
            p.add(&window(if i % 8 < 4 { 2 } else { 50 }));
        }
        let h = p.half_width().unwrap();
        // Half the width needs four times the time.
        let text = outlook(&p, h / 2.0, minutes(10), minutes(120));
        assert!(text.ends_with("in about 30m"), "{text}");
        let text = outlook(&p, h / 10.0, minutes(10), minutes(120));
        assert!(
            text.contains("not be reached within 2h: that takes about 16h 40m"),
            "{text}"
        );
    }
}
