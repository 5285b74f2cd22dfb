//! Recordings for the page at `/`: those of a store of baselines, opened read-only and only while a page asks.
//!
//! The process that serves HTTP has no files. It asks for a recording by its name. A thread of the main process, without a capability,
//! opens the store, reads and closes it again, so that it does not block a recorder.

use crate::names::Names;
use crate::service::archive_columns::Columns;
use crate::service::limits::on_a_thread;
use anyhow::Context;
use nfscope_api::live_window::Greeting;
use nfscope_api::windows_query::{OfRecording, Range};
use nfscope_baseline::recording::Metadata;
use nfscope_baseline::store::{Entry, State, Store};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Time for the disk to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const BUSY: &str = "recordings are being read; try again in a moment";
/// Most recordings in a list; the latest ones are listed.
const MOST_LISTED: usize = 500;

/// The recordings of a store.
#[derive(Debug)]
pub struct Recordings {
    store: PathBuf,
    /// Lock of the reader: one reads at a time.
    alone: Arc<Mutex<()>>,
}

impl Recordings {
    /// Recordings of this store, which need not exist yet.
    pub fn of(store: PathBuf) -> Recordings {
        Recordings {
            store,
            alone: Arc::default(),
        }
    }

    /// List of the recordings as JSON, the latest last.
    ///
    /// # Errors
    /// When the store cannot be read, or is busy.
    pub async fn list(&self) -> anyhow::Result<Vec<u8>> {
        self.read(list).await
    }

    /// Windows of one recording as JSON, merged into the number of columns that is wanted.
    ///
    /// # Errors
    /// When there is no such recording, or it cannot be read.
    pub async fn tell(&self, what: OfRecording) -> anyhow::Result<Vec<u8>> {
        self.read(move |store| windows(store, &what)).await
    }

    /// Reads on a thread that ends soon after, so that a disk that hangs delays nothing else.
    async fn read(
        &self,
        how: impl FnOnce(&Path) -> anyhow::Result<Vec<u8>> + Send + 'static,
    ) -> anyhow::Result<Vec<u8>> {
        let store = self.store.clone();
        let reading = async {
            let alone = self.alone.clone().lock_owned().await;
            let read = move || {
                let _alone = alone;
                how(&store)
            };
            on_a_thread("recordings", read).await
        };
        timeout(ANSWER_TIMEOUT, reading).await.context(BUSY)??
    }
}

/// Answer of `/recordings`.
#[derive(Serialize)]
struct List {
    store: String,
    recordings: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    host: String,
    /// Begin in seconds since 1970.
    began: f64,
    /// Seconds that the windows cover.
    seconds: f64,
    state: State,
    labels: BTreeMap<String, String>,
}

fn list(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut all = Store::read(path)?.list()?;
    all.drain(..all.len().saturating_sub(MOST_LISTED));
    let listed = |e: Entry| Listed {
        began: e.metadata.began_ms as f64 / 1e3,
        seconds: e.length.as_secs_f64(),
        state: e.state,
        name: e.metadata.name,
        host: e.metadata.host,
        labels: e.metadata.labels,
    };
    let list = List {
        store: path.display().to_string(),
        recordings: all.into_iter().map(listed).collect(),
    };
    Ok(serde_json::to_vec(&list)?)
}

/// Answer of `/windows` with a recording.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    greeting: Greeting<'a>,
    recording: &'a Metadata,
    /// Begin of the first window and end of the last one, in seconds since 1970.
    began: f64,
    ended: f64,
    windows: Vec<Box<RawValue>>,
}

fn windows(path: &Path, what: &OfRecording) -> anyhow::Result<Vec<u8>> {
    let store = Store::read(path)?;
    let entry = store.entry(&what.name)?;
    let ended = store.ended_ms(&entry)?;
    let ended = ended.with_context(|| format!("the recording `{}` has no windows", what.name))?;
    let (began, ended) = (entry.metadata.began_ms as f64 / 1e3, ended as f64 / 1e3);
    let (from, to) = what.span.unwrap_or((began, ended));
    let range = Range {
        from,
        to: to.max(from + 1e-3),
        columns: what.columns,
    };
    // No names are given: the recording may be of another host or another time, so present names would be guesses.
    let mut columns = Columns::new(range, Names::default());
    columns.read(&store, &entry)?;
    let kernel = entry.metadata.kernel.as_deref().unwrap_or_default();
    let answer = Answer {
        greeting: Greeting::new(&entry.metadata.host, kernel),
        recording: &entry.metadata,
        began,
        ended,
        windows: columns.done(),
    };
    Ok(serde_json::to_vec(&answer)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_baseline::recording::{RecordedWindow, Recording, Sample, SeriesKey};
    use nfscope_model::family as f;
    use serde_json::Value;

    fn store(file: &Path) {
        let window = |began_ms, n| RecordedWindow {
            began_ms,
            length: Duration::from_secs(10),
            samples: vec![(0, Sample::Counter(n))],
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
            // Ten seconds are missing between the two windows.
            windows: vec![window(1_000_000, 3.0), window(1_020_000, 5.0)],
        };
        Store::create(file).unwrap().put(&recording).unwrap();
    }

    #[test]
    fn a_recording_is_told_as_windows_with_its_gaps() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.db");
        store(&file);
        let before = std::fs::read(&file).unwrap();
        let told = |span, columns| -> Value {
            let name = "friday".to_owned();
            let what = OfRecording {
                name,
                span,
                columns,
            };
            serde_json::from_slice(&windows(&file, &what).unwrap()).unwrap()
        };
        let all = told(None, 300);
        assert_eq!(
            (&all["began"], &all["ended"]),
            (&1000.0.into(), &1030.0.into())
        );
        let ops = |answer: &Value| -> Vec<f64> {
            let windows = answer["windows"].as_array().unwrap();
            let ops = |w: &Value| w["clients"][0]["ops"].as_f64().unwrap();
            windows.iter().map(ops).collect()
        };
        assert_eq!(ops(&all), [3.0, 5.0]);
        // A single column is asked for, but the gap is not merged into it.
        assert_eq!(ops(&told(None, 1)), [3.0, 5.0]);
        assert_eq!(ops(&told(Some((1015.0, 1040.0)), 300)), [5.0]);
        let list: Value = serde_json::from_slice(&list(&file).unwrap()).unwrap();
        assert_eq!(list["recordings"][0]["seconds"], 20.0);
        assert_eq!(std::fs::read(&file).unwrap(), before, "it is read alone");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.db");
        assert!(list(&file).unwrap_err().to_string().contains("one.db"));
        store(&file);
        let what = OfRecording {
            name: "fridya".to_owned(),
            span: None,
            columns: 1,
        };
        let error = windows(&file, &what).unwrap_err().to_string();
        assert!(error.contains("friday"), "{error}");
    }
}
