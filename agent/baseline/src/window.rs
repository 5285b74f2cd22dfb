//! A recording as one window.

use crate::recording::Sample as Recorded;
use crate::store::{Entry, Store};
use anyhow::{Context, ensure};
use nfscope_model::family::{self, Info};
use nfscope_model::{Sample, Series, Snapshot, Window};
use std::collections::HashMap;
use std::time::Duration;

/// All windows of a recording put together: counters and histograms are added up, gauges have their last value.
///
/// # Errors
/// When the store cannot be read, or when a gauge of `steady` changed: the window would be of no server that ever was.
pub fn read(
    store: &Store,
    entry: &Entry,
    families: &[&Info],
    steady: &Info,
) -> anyhow::Result<Window> {
    let keys = store.series(entry)?;
    let wanted = |name: &str| families.iter().any(|f| f.name == name);
    let mut sums: Vec<Option<Sample>> = vec![None; keys.len()];
    let places = keys.iter().enumerate().filter(|(_, k)| wanted(&k.family));
    let index: HashMap<u32, usize> = places.map(|(i, k)| (k.id, i)).collect();
    let mut length = Duration::ZERO;
    for window in store.windows(entry, |id| index.contains_key(&id)) {
        let window = window?;
        length += window.length;
        for (id, sample) in &window.samples {
            let Some(i) = index.get(id).copied() else {
                continue;
            };
            if let (Some(Sample::Gauge(old)), Recorded::Gauge(new)) = (&sums[i], sample) {
                ensure!(
                    keys[i].family != steady.name || old == new,
                    "{} changed from {old} to {new} during `{}`; fix: record again without such a change",
                    steady.name,
                    entry.metadata.name
                );
            }
            add(&mut sums[i], sample);
        }
    }
    let mut delta = Snapshot::new(length);
    for (key, sum) in keys.iter().zip(sums) {
        let info = family::ALL.iter().find(|f| f.name == key.family);
        if let (Some(info), Some(sample)) = (info, sum) {
            let labels = key.labels.clone();
            delta.add(info, Series { labels, sample });
        }
    }
    (!length.is_zero())
        .then_some(Window { length, delta })
        .with_context(|| {
            format!(
                "`{}` has no windows; fix: record for longer",
                entry.metadata.name
            )
        })
}

fn add(sum: &mut Option<Sample>, sample: &Recorded) {
    match (&mut *sum, sample) {
        (Some(Sample::Counter(a)), Recorded::Counter(b)) => *a += b,
        (Some(Sample::Histogram(h)), Recorded::Histogram { .. }) => {
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
    use nfscope_model::{Histogram, Kind};

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
        let Some(Sample::Histogram(all)) = all else {
            panic!("a histogram")
        };
        assert_eq!((all.count(), all.sum), (4, 1.0));
    }
}
