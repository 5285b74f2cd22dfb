//! Merges recorded windows into one.

use crate::recording::{RecordedWindow, Sample as Recorded, SeriesKey};
use crate::store::{Entry, Store};
use anyhow::Context;
use nfscope_model::family::{self, Info};
use nfscope_model::{Sample, Series, Snapshot, Window};
use std::collections::HashMap;
use std::time::Duration;

/// Merges all windows of a recording: counters and histograms are added up, gauges have their last value.
///
/// # Errors
/// When the store cannot be read, or when a gauge of `steady` changed: the window would describe a server that never existed.
pub fn read(
    store: &Store,
    entry: &Entry,
    families: &[&Info],
    steady: &Info,
) -> anyhow::Result<Window> {
    let wanted = |name: &str| families.iter().any(|f| f.name == name);
    let mut all = Merger::new(store.series(entry)?, wanted);
    for window in store.windows(entry, |id| all.index.contains_key(&id)) {
        let window = window?;
        if let Some((old, new)) = all.changed(&window, steady) {
            anyhow::bail!(
                "{} changed from {old} to {new} during `{}`; fix: record again without such a change",
                steady.name,
                entry.metadata.name
            );
        }
        all.sums.add(&all.index, &window);
    }
    all.take().with_context(|| {
        format!(
            "`{}` has no windows; fix: record for longer",
            entry.metadata.name
        )
    })
}

/// Merges consecutive recorded windows.
#[derive(Debug)]
pub struct Merger {
    keys: Vec<SeriesKey>,
    /// Index of a series by its number.
    index: HashMap<u32, usize>,
    sums: Sums,
}

#[derive(Debug)]
struct Sums {
    samples: Vec<Option<Sample>>,
    length: Duration,
}

impl Sums {
    fn add(&mut self, index: &HashMap<u32, usize>, window: &RecordedWindow) {
        self.length += window.length;
        for (id, sample) in &window.samples {
            if let Some(i) = index.get(id) {
                add(&mut self.samples[*i], sample);
            }
        }
    }
}

impl Merger {
    /// Merger for windows with these series; only the families count that `wanted` accepts.
    pub fn new(keys: Vec<SeriesKey>, wanted: impl Fn(&str) -> bool) -> Self {
        let places = keys.iter().enumerate().filter(|(_, k)| wanted(&k.family));
        let index = places.map(|(i, k)| (k.id, i)).collect();
        let sums = Sums {
            samples: vec![None; keys.len()],
            length: Duration::ZERO,
        };
        Merger { keys, index, sums }
    }

    /// Adds the next window.
    pub fn add(&mut self, window: &RecordedWindow) {
        self.sums.add(&self.index, window);
    }

    /// Values of the first gauge of the family `steady` that `window` changes: the value so far, and that of `window`.
    fn changed(&self, window: &RecordedWindow, steady: &Info) -> Option<(f64, f64)> {
        window.samples.iter().find_map(|(id, sample)| {
            let i = *self.index.get(id)?;
            match (&self.sums.samples[i], sample) {
                (Some(Sample::Gauge(old)), Recorded::Gauge(new))
                    if self.keys[i].family == steady.name && old != new =>
                {
                    Some((*old, *new))
                }
                _ => None,
            }
        })
    }

    /// Sum of all windows so far.
    pub fn so_far(&self) -> Snapshot {
        let mut all = Snapshot::new(self.sums.length);
        for (key, sum) in self.keys.iter().zip(&self.sums.samples) {
            let info = family::ALL.iter().find(|f| f.name == key.family);
            if let (Some(info), Some(sample)) = (info, sum) {
                let labels = key.labels.as_slice().into();
                let sample = sample.clone();
                all.add(info, Series { labels, sample });
            }
        }
        all
    }

    /// Returns the window of all that was added, and begins the next one; `None` if nothing was added.
    pub fn take(&mut self) -> Option<Window> {
        let delta = self.so_far();
        self.sums.samples.fill(None);
        let length = std::mem::take(&mut self.sums.length);
        (!length.is_zero()).then_some(Window { length, delta })
    }
}

fn add(sum: &mut Option<Sample>, sample: &Recorded) {
    match (&mut *sum, sample) {
        (Some(Sample::Counter(a)), Recorded::Counter(b)) => *a += b,
        // A histogram without common edges with the sum is another quantity, which a damaged file may have: it replaces the sum.
        (Some(Sample::Histogram(h)), Recorded::Histogram { scheme, .. })
            if h.scheme.common(scheme).is_some() =>
        {
            sample.histogram().iter().for_each(|other| h.merge(other));
        }
        (_, Recorded::Counter(v)) => *sum = Some(Sample::Counter(*v)),
        (_, Recorded::Gauge(v)) => *sum = Some(Sample::Gauge(*v)),
        (_, Recorded::Histogram { .. }) => *sum = sample.histogram().map(Sample::Histogram),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{Histogram, Kind, Scheme};

    #[test]
    fn windows_add_up() {
        let mut sum = None;
        for v in [1.0, 2.0] {
            add(&mut sum, &Recorded::Counter(v));
        }
        assert_eq!(sum, Some(Sample::Counter(3.0)));
        let mut last = None;
        for v in [8.0, 16.0] {
            add(&mut last, &Recorded::Gauge(v));
        }
        assert_eq!(last, Some(Sample::Gauge(16.0)));
        let Kind::Histogram(scheme) = family::RPC_DURATION.info.kind else {
            panic!("a histogram")
        };
        let mut h = Histogram::new(scheme);
        h.counts[3] = 2;
        h.sum = 0.5;
        let mut all = None;
        for _ in 0..2 {
            add(&mut all, &Recorded::from(&Sample::Histogram(h.clone())));
        }
        let Some(Sample::Histogram(sum)) = &all else {
            panic!("a histogram")
        };
        assert_eq!((sum.count(), sum.sum), (4, 1.0));
        // A histogram in other buckets replaces the sum.
        let sizes = Sample::Histogram(Histogram::new(Scheme::SIZE));
        add(&mut all, &Recorded::from(&sizes));
        assert_eq!(all, Some(sizes));
    }
}
