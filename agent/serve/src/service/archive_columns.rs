//! Merges recorded windows into the columns of a picture, as JSON.

use crate::names::Names;
use nfscope_api::live_window::LiveWindow;
use nfscope_api::windows_query::Range;
use nfscope_baseline::recording::{RecordedWindow, Sample, SeriesKey};
use nfscope_baseline::store::{Entry, Store};
use nfscope_baseline::window::Merger;
use nfscope_model::family as f;
use nfscope_text::console::{Level, log};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

/// Windows of one recording that are merged, and the findings of any of them.
struct Group {
    merger: Merger,
    /// Finding of a series, by the number of the series, and true if the series is its share.
    findings: HashMap<u32, (String, bool)>,
    shares: BTreeMap<String, f64>,
    ended: f64,
}

impl Group {
    fn new(keys: Vec<SeriesKey>) -> Self {
        let findings = keys.iter().filter_map(|k| {
            let share = k.family == f::BOTTLENECK_SCORE.info.name;
            let active = k.family == f::BOTTLENECK_ACTIVE.info.name;
            (share || active).then(|| Some((k.id, (k.labels.first()?.clone(), share))))?
        });
        let findings = findings.collect();
        Group {
            merger: Merger::new(keys, |_| true),
            findings,
            shares: BTreeMap::new(),
            ended: 0.0,
        }
    }

    fn add(&mut self, window: &RecordedWindow) {
        let (mut active, mut shares) = (Vec::new(), HashMap::new());
        for (id, sample) in &window.samples {
            match (self.findings.get(id), sample) {
                (Some((kind, true)), Sample::Gauge(share)) => drop(shares.insert(kind, *share)),
                (Some((kind, false)), Sample::Gauge(on)) if *on > 0.0 => active.push(kind),
                _ => {}
            }
        }
        for kind in active {
            let share = shares.get(kind).copied().unwrap_or_default();
            let worst = self.shares.entry(kind.clone()).or_default();
            *worst = worst.max(share);
        }
        self.merger.add(window);
    }
}

/// Columns of a range.
pub(super) struct Columns {
    range: Range,
    names: Names,
    step: f64,
    /// Number of the column under way.
    now: Option<u64>,
    /// Finished columns, each with its end in seconds since 1970.
    done: Vec<(f64, Box<RawValue>)>,
}

impl Columns {
    /// Columns of a range, with the present names of clients.
    pub(super) fn new(range: Range, names: Names) -> Self {
        Columns {
            names,
            range,
            step: (range.to - range.from) / f64::from(range.columns),
            now: None,
            done: Vec::new(),
        }
    }

    /// Adds the windows of a recording, up to the first damaged one. The rest is a gap, and the caller goes on with other recordings.
    pub(super) fn read(&mut self, store: &Store, entry: &Entry) -> anyhow::Result<()> {
        let keys = match store.series(entry) {
            Ok(keys) => keys,
            Err(e) => {
                log(Level::Debug, &format!("{}: {e:#}", entry.metadata.name));
                return Ok(());
            }
        };
        let mut group = Group::new(keys);
        for window in store.windows(entry, |_| true) {
            match window {
                Ok(window) => self.add(&mut group, &window)?,
                Err(e) => {
                    log(Level::Debug, &format!("{}: {e:#}", entry.metadata.name));
                    break;
                }
            }
        }
        self.end(&mut group)
    }

    fn add(&mut self, group: &mut Group, window: &RecordedWindow) -> anyhow::Result<()> {
        let began = window.began_ms as f64 / 1e3;
        let length = window.length.as_secs_f64();
        let Range { from, to, .. } = self.range;
        let mut middle = began + length / 2.0;
        // A window belongs to the range with its middle, so that neighbouring ranges count none twice. A window longer than the range is in
        // every range that it overlaps, because the range would otherwise look like time without an agent.
        if length > to - from && began < to && began + length > from {
            middle = middle.min(to - self.step / 2.0).max(from);
        }
        if !(from..to).contains(&middle) {
            return Ok(());
        }
        let column = ((middle - self.range.from) / self.step) as u64;
        // Windows with a gap between them are not merged, so that the gap stays visible.
        if self.now != Some(column) || began - group.ended > 1.5 {
            self.end(group)?;
        }
        self.now = Some(column);
        group.add(window);
        group.ended = began + length;
        Ok(())
    }

    fn end(&mut self, group: &mut Group) -> anyhow::Result<()> {
        let shares = std::mem::take(&mut group.shares);
        if let Some(window) = group.merger.take() {
            let findings = shares.iter().map(|(kind, share)| (kind.as_str(), *share));
            let live = LiveWindow::of(&window, group.ended, findings);
            let live = live.naming(|address| self.names.client(address));
            let live = serde_json::value::to_raw_value(&live)?;
            self.done.push((group.ended, live));
        }
        Ok(())
    }

    /// Returns the columns, sorted by their ends. If a clock was set back, two recordings may have the same time.
    pub(super) fn done(mut self) -> Vec<Box<RawValue>> {
        self.done.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        self.done.into_iter().map(|(_, window)| window).collect()
    }
}
