//! `nfscope agent --replay`: serves a recording as if it happened now, for demonstrations, tests and support.

use anyhow::{Context, bail, ensure};
use nfscope_baseline::recording::{Metadata, RecordedWindow};
use nfscope_baseline::store::Store;
use nfscope_baseline::window::Merger;
use nfscope_model::{BreakdownBatch, BreakdownWant, ProbeState, ProbeStatus};
use nfscope_model::{SlowBatch, SlowFilter, Snapshot};
use nfscope_serve::service::history::REPLAY;
use nfscope_source::{Source, clock};
use nfscope_text::console::say;
use nfscope_text::units;
use std::path::Path;
use std::time::Duration;

/// Source that plays a recording in real time, with its gaps, and repeats it.
pub struct Replay {
    metadata: Metadata,
    windows: Vec<RecordedWindow>,
    all: Merger,
    next: usize,
    /// CLOCK_MONOTONIC at the beginning of the first round.
    began: Duration,
    /// Beginning of the current round, since `began`.
    round: Duration,
    /// End of the last window that was played, since `began`.
    at: Duration,
}

impl Replay {
    /// Opens a file of `nfscope baseline export`.
    ///
    /// # Errors
    /// When the file cannot be read, has other than one recording, or its recording has no windows.
    pub fn open(file: &Path) -> anyhow::Result<Replay> {
        ensure!(
            file.exists(),
            "--replay: there is no file {}; fix: nfscope baseline export NAME FILE",
            file.display()
        );
        let store = Store::open(file)?;
        let names: Vec<_> = (store.list()?.into_iter())
            .map(|e| e.metadata.name)
            .collect();
        ensure!(
            names.len() == 1,
            "{} has {} recordings and --replay takes one; fix: nfscope baseline export NAME FILE",
            file.display(),
            names.len()
        );
        let recording = names.first().map(|name| store.recording(name));
        let recording = recording.context("there is a name")??;
        ensure!(
            !recording.windows.is_empty(),
            "{} has no windows; fix: record for longer",
            file.display()
        );
        say(&format!(
            "this is no server but a recording: {} of {}, {}",
            recording.metadata.name,
            recording.metadata.host,
            units::length(length(&recording.windows))
        ));
        Ok(Replay {
            metadata: recording.metadata,
            windows: recording.windows,
            all: Merger::new(recording.series, |_| true),
            next: 0,
            began: clock::now(),
            round: Duration::ZERO,
            at: Duration::ZERO,
        })
    }

    /// Plays the windows that have ended by `now`, which counts from `began`.
    fn advance(&mut self, now: Duration) {
        loop {
            if self.next == self.windows.len() {
                self.round += length(&self.windows);
                self.next = 0;
            }
            let window = &self.windows[self.next];
            let ends = self.round + offset(&self.windows, window) + window.length;
            if ends > now {
                return;
            }
            self.all.add(window);
            self.at = ends;
            self.next += 1;
        }
    }
}

/// Time from the beginning of the first window to that of this one.
fn offset(all: &[RecordedWindow], window: &RecordedWindow) -> Duration {
    let first = all.first().map_or(0, |w| w.began_ms);
    Duration::from_millis(window.began_ms.saturating_sub(first).max(0).unsigned_abs())
}

/// Time from the beginning of the first window to the end of the last; at least 1 s, so that rounds advance.
fn length(all: &[RecordedWindow]) -> Duration {
    let last = all.last().map(|w| offset(all, w) + w.length);
    last.unwrap_or_default().max(Duration::from_secs(1))
}

impl Source for Replay {
    fn snapshot(&mut self) -> Snapshot {
        self.advance(clock::now().saturating_sub(self.began));
        let mut s = self.all.so_far();
        // Time zero would mean that the agent is still attaching its probes.
        s.at = Duration::from_secs(1) + self.at;
        // Wall-clock time of the last played window's end, and not of this call.
        s.wall = clock::wall(self.began + self.at);
        s.began = Duration::from_secs(1);
        s.host = Some(self.metadata.host.clone());
        s.kernel.clone_from(&self.metadata.kernel);
        s.probes = self.probes();
        s
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        vec![ProbeStatus {
            probe: REPLAY.to_owned(),
            program: REPLAY.to_owned(),
            hook: self.metadata.name.clone(),
            gives: "a recording as if it happened now".to_owned(),
            required: true,
            state: ProbeState::Attached,
            reason: String::new(),
            fix: String::new(),
        }]
    }

    fn detach(&mut self, _: &[&'static str]) -> anyhow::Result<Vec<String>> {
        bail!("nothing to detach: this agent plays a recording and has no probes")
    }

    fn attach(&mut self, _: &[&'static str]) -> anyhow::Result<Vec<String>> {
        bail!("nothing to attach: this agent plays a recording and has no probes")
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()> {
        ensure!(want.is_none(), "a recording has no single operations");
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        SlowBatch::default()
    }

    fn watch_breakdown(&mut self, want: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        ensure!(
            want.is_none(),
            "a recording has no data by client, user or file"
        );
        Ok(BreakdownBatch::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::query::QueryString;
    use nfscope_baseline::recording::{Recording, Sample, SeriesKey};
    use nfscope_model::family as f;
    use std::collections::BTreeMap;

    #[test]
    fn windows_are_told_when_they_end_and_then_anew() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.db");
        let window = |began_ms| RecordedWindow {
            began_ms,
            length: Duration::from_secs(10),
            samples: vec![(0, Sample::Counter(3.0))],
        };
        let recording = Recording {
            metadata: Metadata {
                name: "friday".to_owned(),
                began_ms: 1_000_000,
                host: "nfs1".to_owned(),
                kernel: None,
                agent: String::new(),
                interval: Duration::from_secs(10),
                labels: BTreeMap::new(),
            },
            series: vec![SeriesKey {
                id: 0,
                family: f::CLIENT_OPS.info.name.to_owned(),
                labels: vec!["192.0.2.1".to_owned()],
            }],
            // A gap of ten seconds between two windows.
            windows: vec![window(1_000_000), window(1_020_000)],
        };
        Store::create(&file).unwrap().put(&recording).unwrap();
        let mut replay = Replay::open(&file).unwrap();
        let mut told = |seconds| {
            replay.advance(Duration::from_secs(seconds));
            let s = replay.all.so_far();
            (s.value(&f::CLIENT_OPS, ["192.0.2.1"]), replay.at.as_secs())
        };
        assert_eq!(told(9), (None, 0));
        assert_eq!(told(29), (Some(3.0), 10));
        assert_eq!(told(30), (Some(6.0), 30));
        assert_eq!(told(45), (Some(9.0), 40));
        assert_eq!(told(3000), (Some(600.0), 3000));
        assert!(
            replay
                .watch_slow(Some(&SlowFilter::from_query("").unwrap()))
                .is_err()
        );
    }
}
