//! Snapshots and windows.

use crate::family;
use crate::family::{Family, Info, Kind};
use crate::{HeldRequest, Histogram, ProbeStatus};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The value of one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sample {
    /// A counter; exact up to 2^53 where it counts things.
    Counter(f64),
    /// A gauge.
    Gauge(f64),
    /// A histogram.
    Histogram(Histogram),
}

/// A series: label values in the order of its family, and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Label values, as many as the family has labels. They are shared because readers of a snapshot copy it, and labels are most of its
    /// memory.
    pub labels: Arc<[String]>,
    /// Value.
    pub sample: Sample,
}

/// Data of a source at one moment. Counters and histograms are cumulative since the source started.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// CLOCK_MONOTONIC of the reading.
    pub at: Duration,
    /// Time of the reading since 1970 by the host's clock; `None` from an older agent, and where the source has no such clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Duration>,
    /// CLOCK_MONOTONIC when the counters of the source started; zero from an older agent. Another value means other counters: the source
    /// was started again, or probes that counted were detached.
    #[serde(default)]
    pub began: Duration,
    /// Name of the host; `None` from an older agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Release of the host's kernel (uname -r); `None` from an older agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Series by family name, in the order in which the source filled them.
    families: std::collections::BTreeMap<String, Vec<Series>>,
    /// Health of every probe program.
    pub probes: Vec<ProbeStatus>,
    /// Requests that threads had had in hand for a long time at the reading, the oldest first. If there are very many, the list is cut. It
    /// is empty from an older agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldRequest>,
}

impl Snapshot {
    /// An empty snapshot taken at `at`.
    pub fn new(at: Duration) -> Self {
        Snapshot {
            at,
            ..Default::default()
        }
    }

    /// Adds a counter series.
    pub fn counter<const N: usize>(&mut self, f: &Family<N>, labels: [&str; N], v: f64) {
        debug_assert_eq!(f.info.kind, Kind::Counter, "{}", f.info.name);
        self.push(&f.info, &labels, Sample::Counter(v));
    }

    /// Adds a gauge series.
    pub fn gauge<const N: usize>(&mut self, f: &Family<N>, labels: [&str; N], v: f64) {
        debug_assert_eq!(f.info.kind, Kind::Gauge, "{}", f.info.name);
        self.push(&f.info, &labels, Sample::Gauge(v));
    }

    /// Adds a histogram series.
    pub fn histogram<const N: usize>(&mut self, f: &Family<N>, labels: [&str; N], h: Histogram) {
        debug_assert_eq!(f.info.kind, Kind::Histogram(h.scheme), "{}", f.info.name);
        self.push(&f.info, &labels, Sample::Histogram(h));
    }

    fn push(&mut self, info: &Info, labels: &[&str], sample: Sample) {
        self.families
            .entry(info.name.to_owned())
            .or_default()
            .push(Series {
                labels: labels.iter().map(|&l| l.to_owned()).collect(),
                sample,
            });
    }

    /// Adds a series that was stored earlier.
    pub fn add(&mut self, info: &Info, series: Series) {
        let all = self.families.entry(info.name.to_owned()).or_default();
        all.push(series);
    }

    /// The series of a family; empty where the host cannot measure it.
    pub fn series(&self, info: &Info) -> &[Series] {
        self.families.get(info.name).map_or(&[], Vec::as_slice)
    }

    /// The counters or gauges of a family, with their label values.
    pub fn numbers<'a, const N: usize>(
        &'a self,
        f: &Family<N>,
    ) -> impl Iterator<Item = ([&'a str; N], f64)> + use<'a, N> {
        self.series(&f.info).iter().filter_map(|s| match &s.sample {
            Sample::Counter(v) | Sample::Gauge(v) => Some((labels(&s.labels)?, *v)),
            Sample::Histogram(_) => None,
        })
    }

    /// The histograms of a family that are not empty, with their label values.
    pub fn histograms<'a, const N: usize>(
        &'a self,
        f: &Family<N>,
    ) -> impl Iterator<Item = ([&'a str; N], &'a Histogram)> + use<'a, N> {
        self.series(&f.info).iter().filter_map(|s| match &s.sample {
            Sample::Histogram(h) if h.count() > 0 => Some((labels(&s.labels)?, h)),
            _ => None,
        })
    }

    /// The one series with these label values.
    pub fn get<const N: usize>(&self, f: &Family<N>, labels: [&str; N]) -> Option<&Sample> {
        self.series(&f.info)
            .iter()
            .find(|s| *s.labels == labels[..])
            .map(|s| &s.sample)
    }

    /// A counter's or gauge's value.
    pub fn value<const N: usize>(&self, f: &Family<N>, labels: [&str; N]) -> Option<f64> {
        match self.get(f, labels)? {
            Sample::Counter(v) | Sample::Gauge(v) => Some(*v),
            Sample::Histogram(_) => None,
        }
    }

    /// A histogram.
    pub fn hist<const N: usize>(&self, f: &Family<N>, labels: [&str; N]) -> Option<&Histogram> {
        match self.get(f, labels)? {
            Sample::Histogram(h) => Some(h),
            _ => None,
        }
    }

    /// Families that have at least one series, in the order of the contract.
    pub fn filled(&self) -> impl Iterator<Item = (&'static Info, &[Series])> {
        family::ALL
            .iter()
            .map(|i| (*i, self.series(i)))
            .filter(|(_, s)| !s.is_empty())
    }

    /// All families that have series, by name, with those that this version does not know.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[Series])> {
        self.families.iter().map(|(n, s)| (&**n, &**s))
    }

    /// True if this reading has the counters of an earlier one, counted further, so that a window lies between both readings.
    pub fn goes_on_from(&self, earlier: &Snapshot) -> bool {
        self.began == earlier.began && self.at > earlier.at
    }

    /// Difference of this snapshot and `earlier`.
    pub fn since(&self, earlier: &Snapshot) -> Window {
        let families = self.families.iter().map(|(name, series)| {
            let old = earlier.families.get(name).map_or(&[][..], Vec::as_slice);
            let old: HashMap<_, _> = old.iter().map(|o| (&o.labels, &o.sample)).collect();
            let since = |s: &Series| Series {
                labels: s.labels.clone(),
                sample: match (&s.sample, old.get(&s.labels)) {
                    // A counter below its earlier value started anew: all of it came since.
                    (Sample::Counter(b), Some(Sample::Counter(a))) if b >= a => {
                        Sample::Counter(b - a)
                    }
                    (Sample::Histogram(b), Some(Sample::Histogram(a))) => {
                        Sample::Histogram(b.since(a))
                    }
                    (now, _) => now.clone(),
                },
            };
            (name.clone(), series.iter().map(since).collect())
        });
        Window {
            length: self.at.saturating_sub(earlier.at),
            delta: Snapshot {
                at: self.at,
                wall: self.wall,
                began: self.began,
                host: self.host.clone(),
                kernel: self.kernel.clone(),
                families: families.collect(),
                probes: self.probes.clone(),
                held: self.held.clone(),
            },
        }
    }
}

/// Label values as an array; `None` for a series with another number of labels, which comes from another version.
fn labels<const N: usize>(all: &[String]) -> Option<[&str; N]> {
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    all.try_into().ok()
}

/// The difference of two snapshots: counters and histograms hold what was added, gauges the later value.
#[derive(Debug, Clone)]
pub struct Window {
    /// Time between the two snapshots.
    pub length: Duration,
    /// Series with what was added between the two snapshots.
    pub delta: Snapshot,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scheme;

    #[test]
    fn a_window_holds_what_was_added_and_the_later_gauge() {
        let (mut a, mut b) = (
            Snapshot::new(Duration::from_secs(1)),
            Snapshot::new(Duration::from_secs(3)),
        );
        a.counter(&family::RPC_DROPPED, ["dropped"], 5.0);
        b.counter(&family::RPC_DROPPED, ["dropped"], 7.0);
        a.gauge(&family::THREADS, ["0"], 8.0);
        b.gauge(&family::THREADS, ["0"], 2.0);
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[3] = 2;
        a.histogram(&family::RPC_QUEUE, ["0"], h.clone());
        h.counts[3] = 5;
        b.histogram(&family::RPC_QUEUE, ["0"], h);
        let w = b.since(&a);
        assert_eq!(w.length, Duration::from_secs(2));
        assert_eq!(w.delta.value(&family::RPC_DROPPED, ["dropped"]), Some(2.0));
        assert_eq!(w.delta.value(&family::THREADS, ["0"]), Some(2.0));
        assert_eq!(w.delta.hist(&family::RPC_QUEUE, ["0"]).unwrap().count(), 3);
    }

    #[test]
    fn a_window_holds_the_requests_in_hand_at_its_end() {
        let a = Snapshot::new(Duration::from_secs(1));
        let mut b = Snapshot::new(Duration::from_secs(3));
        b.held.push(HeldRequest::default());
        assert_eq!(b.since(&a).delta.held.len(), 1);
        // A snapshot of an older agent has no requests in hand.
        let mut json = serde_json::to_value(&a).unwrap();
        assert!(json.as_object_mut().unwrap().remove("held").is_none());
        let old: Snapshot = serde_json::from_value(json).unwrap();
        assert_eq!(old.held, []);
    }

    #[test]
    fn a_series_that_was_not_there_before_is_new_in_whole() {
        let a = Snapshot::new(Duration::ZERO);
        let mut b = Snapshot::new(Duration::from_secs(1));
        b.counter(&family::RPC_DROPPED, ["auth"], 4.0);
        assert_eq!(
            b.since(&a).delta.value(&family::RPC_DROPPED, ["auth"]),
            Some(4.0)
        );
    }
}
