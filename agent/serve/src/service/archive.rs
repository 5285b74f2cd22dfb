//! The last day in windows of ten seconds, on a disk, to see what happened at 03:10.
//!
//! The store has the form of the baselines' store, with a recording for each hour, so that `nfscope baseline --store` lists, compares and
//! exports them. A thread of its own writes and reads: a disk that hangs delays no probe.

use crate::names::Names;
use crate::service::archive_columns::Columns;
use crate::service::late_windows::LateWindows;
use anyhow::{Context, ensure};
use nfscope_api::build_info::{REVISION, VERSION};
use nfscope_api::live_window::Greeting;
use nfscope_api::windows_query::Range;
use nfscope_baseline::recording::Metadata;
use nfscope_baseline::store::{self, Entry, RecordingWriter, State, Store, StoredEpisode};
use nfscope_diagnose::tracker::{Episode, MAX_HISTORY};
use nfscope_model::Window;
use nfscope_source::bounded;
use nfscope_text::console::{Level, log, say, warn};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Length of one recording; old data is removed by whole recordings.
const RECORDING: Duration = Duration::from_secs(3600);
/// Time between removals of old recordings.
const FORGET_INTERVAL: Duration = Duration::from_secs(600);
/// Time for the disk to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const BUSY: &str = "the history is busy; try again in a moment";
/// Most windows that wait for the disk; each may have hundreds of kilobytes.
const MOST_WAITING: usize = 8;
enum Ask {
    Keep(Box<Window>, SystemTime),
    KeepEpisode(Box<Episode>),
    /// Wants the episodes of earlier runs of the agent.
    PastEpisodes(mpsc::Sender<Vec<Episode>>),
    Tell(Range, oneshot::Sender<anyhow::Result<Vec<u8>>>),
}

/// Error if the thread with the disk has no room for a window.
#[derive(Debug)]
pub struct Behind;

/// Handle to the thread with the disk. Dropping it ends the recording.
#[derive(Debug, Clone)]
pub struct Archive(SyncSender<Ask>);

impl Archive {
    /// Keeps windows for this long in a file of this directory, which agents on other ports do not share. The thread opens the file, so
    /// that a disk that hangs does not delay the start. If it cannot be opened, a warning says so, and there is no history.
    ///
    /// # Errors
    /// When there is no thread.
    pub fn open(
        directory: &Path,
        port: u16,
        keep: Duration,
        names: Names,
    ) -> anyhow::Result<Archive> {
        let path = directory.join(format!("history-{port}.db"));
        let (sender, asked) = mpsc::sync_channel(MOST_WAITING);
        let (opened, waits) = mpsc::sync_channel::<()>(1);
        let of = directory.display().to_string();
        std::thread::Builder::new()
            .name("history-opens".to_owned())
            .spawn(move || say_that_it_hangs(&waits, &of, bounded::PATIENCE))
            .context("cannot start a thread of the history")?;
        std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || {
                let disk = Disk::open(path, keep, names);
                drop(opened);
                match disk {
                    Ok(disk) => disk.serve(&asked),
                    Err(e) => {
                        warn(&format!(
                            "the history is kept in memory alone, for a quarter of an hour: {e:#}"
                        ));
                        refuse(&asked, &format!("there is no history on the disk: {e:#}"));
                    }
                }
            })
            .context("cannot start the thread of the history")?;
        Ok(Archive(sender))
    }

    /// Keeps a window.
    ///
    /// # Errors
    /// When the disk is so far behind that the window must wait.
    pub fn keep(&self, window: &Window, ended: SystemTime) -> Result<(), Behind> {
        // This handle alone sends windows, and requests for ranges leave the queue emptier. So the clone is rarely made in vain.
        match self.0.try_send(Ask::Keep(Box::new(window.clone()), ended)) {
            Err(TrySendError::Full(_)) => Err(Behind),
            // Without a thread there is no history, which has been reported.
            _ => Ok(()),
        }
    }

    /// Keeps an episode of a finding, in place of an earlier state of it.
    ///
    /// # Errors
    /// With the episode, when the disk is so far behind that it must wait.
    pub fn keep_episode(&self, episode: Box<Episode>) -> Result<(), Box<Episode>> {
        match self.0.try_send(Ask::KeepEpisode(episode)) {
            Err(TrySendError::Full(Ask::KeepEpisode(episode))) => Err(episode),
            // Without a thread there is no history, which has been reported.
            _ => Ok(()),
        }
    }

    /// Receiver of the episodes of earlier runs of the agent, the latest first. It gets none if there is no history.
    pub fn past_episodes(&self) -> mpsc::Receiver<Vec<Episode>> {
        let (tell, past) = mpsc::channel();
        // The queue has room before the first window.
        let _ = self.0.try_send(Ask::PastEpisodes(tell));
        past
    }

    /// Windows of this range as JSON, merged into the number of columns that is wanted.
    ///
    /// # Errors
    /// When the disk cannot be read, or is busy.
    pub async fn tell(&self, range: Range) -> anyhow::Result<Vec<u8>> {
        let (tell, answer) = oneshot::channel();
        let sent = self.0.try_send(Ask::Tell(range, tell));
        ensure!(sent.is_ok(), BUSY);
        // The time limit is there because other requests for the disk wait until this request has ended.
        let answer = timeout(ANSWER_TIMEOUT, answer).await.context(BUSY)?;
        answer.context("the thread of the history has ended")?
    }
}

/// Warns if the directory is not opened within this time.
fn say_that_it_hangs(opened: &Receiver<()>, directory: &str, patience: Duration) {
    if opened.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
        warn(&format!(
            "the history's directory {directory}: its file system does not answer; windows wait in memory until it does (umount -l ends \
             a dead mount; --history-directory names another one)"
        ));
    }
}

struct Disk {
    store: Store,
    path: PathBuf,
    keep: Duration,
    names: Names,
    /// Recording under way, and its begin.
    writer: Option<(RecordingWriter, SystemTime)>,
    /// End of the last window.
    ended: SystemTime,
    /// Time of the last removal of old recordings.
    forgot: Option<Instant>,
    /// Windows that the disk has refused.
    late: LateWindows,
    /// True once the log has a warning that the disk refuses windows.
    fails: bool,
    /// File that this agent has locked. It is closed after the store, because closing a file releases SQLite's locks of it.
    _alone: File,
}

/// Answers requests if there is no disk.
fn refuse(asked: &Receiver<Ask>, why: &str) {
    for ask in asked {
        if let Ask::Tell(_, answer) = ask {
            let _ = answer.send(Err(anyhow::anyhow!("{why}")));
        }
    }
}

/// Name of a file system whose close(2) waits for a server, by `f_type` of statfs(2) (include/uapi/linux/magic.h). A process that ends
/// closes its files after it can no longer receive signals.
#[cfg(target_os = "linux")]
fn network_file_system(magic: rustix::fs::FsWord) -> Option<&'static str> {
    Some(match magic as u32 {
        0x6969 => "NFS",
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => "SMB",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x0bd0_0bd0 => "Lustre",
        _ => return None,
    })
}

/// Opens a file that only its owner may read, because it has addresses of clients and paths of exports. SQLite creates its other files with
/// the same mode.
fn private(path: &Path) -> anyhow::Result<File> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let because = || format!("{} cannot be written", path.display());
    if let Some(directory) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(directory).with_context(because)?;
        #[cfg(target_os = "linux")]
        if let Some(kind) = network_file_system(rustix::fs::statfs(directory)?.f_type) {
            anyhow::bail!(
                "{} is in a network file system ({kind}): closing a file there waits for its server, and would keep this agent from \
                 ending; give --history-directory a local one",
                directory.display()
            );
        }
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let file = options.open(path).with_context(because)?;
    // SQLite's own locks cover single changes only, and are independent of flock(2).
    #[cfg(target_os = "linux")]
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => anyhow::bail!(
            "another agent keeps its history in {}, with the same port on another address or in another network namespace; give \
             one of the two a --history-directory of its own",
            path.display()
        ),
        other => other.with_context(because)?,
    }
    Ok(file)
}

impl Disk {
    fn open(path: PathBuf, keep: Duration, names: Names) -> anyhow::Result<Disk> {
        let alone = private(&path)?;
        Ok(Disk {
            store: Store::create(&path)?,
            path,
            keep,
            names,
            writer: None,
            ended: SystemTime::UNIX_EPOCH,
            forgot: None,
            late: LateWindows::default(),
            fails: false,
            _alone: alone,
        })
    }

    fn serve(mut self, asked: &Receiver<Ask>) {
        for ask in asked {
            match ask {
                Ask::Keep(window, ended) => {
                    let kept = self.keep(*window, ended);
                    self.say(kept);
                    self.forget_in_time(ended);
                }
                Ask::KeepEpisode(episode) => {
                    // A window that is written says that the history goes on.
                    if let Err(e) = self.keep_episode(&episode) {
                        self.say(Err(e));
                    }
                }
                Ask::PastEpisodes(tell) => match self.past_episodes() {
                    // The agent may have ended meanwhile.
                    Ok(past) => drop(tell.send(past)),
                    Err(e) => warn(&format!("earlier findings cannot be read: {e:#}")),
                },
                Ask::Tell(range, answer) => drop(answer.send(self.answer(range))),
            }
        }
        let kept = self.write_late();
        self.say(kept);
        self.end(State::Stopped);
    }

    fn keep_episode(&mut self, episode: &Episode) -> anyhow::Result<()> {
        let ms = |seconds: f64| (seconds * 1e3) as i64;
        Ok(self.store.put_episode(&StoredEpisode {
            kind: episode.finding.kind.as_str().to_owned(),
            began_ms: ms(episode.began),
            ended_ms: episode.ended.map(ms),
            json: serde_json::to_string(episode)?,
        })?)
    }

    /// Episodes of earlier runs. One without an end was active when the agent ended: it ends with the last window of the history.
    fn past_episodes(&mut self) -> anyhow::Result<Vec<Episode>> {
        let ends = self.store.list()?.into_iter();
        let ends = ends.filter_map(|e| self.store.ended_ms(&e).ok()?);
        let last = ends.max().unwrap_or(0) as f64 / 1e3;
        let mut past = Vec::new();
        for kept in self.store.episodes(0, i64::MAX, MAX_HISTORY)? {
            // Another release may have had other members.
            let Ok(mut episode) = serde_json::from_str::<Episode>(&kept.json) else {
                continue;
            };
            if episode.ended.is_none() {
                episode.end(last.max(episode.began));
                self.keep_episode(&episode)?;
            }
            past.push(episode);
        }
        Ok(past)
    }

    /// Keeps a window. A window that the disk refuses waits for the next one, and both are joined.
    fn keep(&mut self, window: Window, ended: SystemTime) -> anyhow::Result<()> {
        if !self.late.add(window, ended) {
            warn(
                "the history has a gap: its disk has refused windows for long, and the clock was set",
            );
        }
        self.write_late()
    }

    fn write_late(&mut self) -> anyhow::Result<()> {
        let mut late = std::mem::take(&mut self.late);
        let kept = late.hand_over(|window, ended| self.put(window, ended));
        self.late = late;
        kept
    }

    /// Ends the recording under way. Windows that are written stay without that, too, as those of an agent that was killed.
    fn end(&mut self, state: State) {
        if let Some((writer, _)) = self.writer.take()
            && let Err(e) = writer.end(state)
        {
            log(Level::Debug, &format!("the history: {e:#}"));
        }
    }

    /// Warns once that windows wait for the disk, and reports once that the history goes on.
    fn say(&mut self, kept: anyhow::Result<()>) {
        match kept {
            Ok(()) if std::mem::take(&mut self.fails) => say("the history goes on"),
            Ok(()) => {}
            Err(e) => {
                // The next window continues the same recording, unless that was removed.
                if matches!(e.downcast_ref(), Some(store::Error::Removed(_))) {
                    self.writer = None;
                }
                if !std::mem::replace(&mut self.fails, true) {
                    warn(&format!(
                        "the history waits for its disk, and has a gap if the agent ends before that: {e:#}"
                    ));
                }
            }
        }
    }

    fn put(&mut self, window: &Window, ended: SystemTime) -> anyhow::Result<()> {
        let began = ended.checked_sub(window.length).unwrap_or(ended);
        // Windows follow each other to the nanosecond until the clock is set.
        let set_back = began < self.ended;
        let over = |(_, since): &(RecordingWriter, SystemTime)| {
            began
                .duration_since(*since)
                .map_or(true, |d| d >= RECORDING)
        };
        // A clock that was set back begins another recording, too.
        if set_back || self.writer.as_ref().is_some_and(over) {
            self.end(State::Complete);
        }
        let (writer, _) = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert((begin(&self.path, window, began)?, began)),
        };
        writer.add(milliseconds(began), window)?;
        self.ended = ended;
        Ok(())
    }

    fn forget_in_time(&mut self, now: SystemTime) {
        if self.forgot.is_some_and(|at| at.elapsed() < FORGET_INTERVAL) {
            return;
        }
        self.forgot = Some(Instant::now());
        if let Err(e) = self.forget(now) {
            warn(&format!("the history cannot be shortened: {e:#}"));
        }
    }

    /// Removes recordings that have only windows older than the limit.
    fn forget(&mut self, now: SystemTime) -> anyhow::Result<()> {
        let oldest = milliseconds(now) - milliseconds(SystemTime::UNIX_EPOCH + self.keep);
        let ended = |e: &Entry| {
            e.metadata
                .began_ms
                .saturating_add(i64::try_from(e.length.as_millis()).unwrap_or(i64::MAX))
        };
        let old: Vec<_> = (self.store.list()?.into_iter())
            .filter(|e| e.state != State::Recording && ended(e) < oldest)
            .map(|e| e.metadata.name)
            .collect();
        if !old.is_empty() {
            self.store.remove(&old)?;
        }
        Ok(self.store.forget_episodes(oldest)?)
    }

    fn answer(&self, range: Range) -> anyhow::Result<Vec<u8>> {
        let mut columns = Columns::new(range, self.names.clone());
        let (mut host, mut kernel) = (String::new(), String::new());
        for entry in self.store.list()? {
            let began = entry.metadata.began_ms as f64 / 1e3;
            // Gaps belong to no window, so a recording may reach further than its length says. It begins no later than the next one.
            if began > range.to || entry.state == State::Damaged {
                continue;
            }
            if began + RECORDING.as_secs_f64() + entry.length.as_secs_f64() < range.from {
                continue;
            }
            host.clone_from(&entry.metadata.host);
            kernel = entry.metadata.kernel.clone().unwrap_or_default();
            columns.read(&self.store, &entry)?;
        }
        let answer = Answer {
            greeting: Greeting::new(&host, &kernel),
            windows: columns.done(),
        };
        Ok(serde_json::to_vec(&answer)?)
    }
}

/// Answer of `/windows` with a range.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    greeting: Greeting<'a>,
    windows: Vec<Box<RawValue>>,
}

/// Begins a recording on a connection of its own, so that the one that reads is never in a transaction.
fn begin(path: &Path, first: &Window, began: SystemTime) -> anyhow::Result<RecordingWriter> {
    let began_ms = milliseconds(began);
    let metadata = Metadata {
        // The number makes the name unique even if the clock is set back.
        name: format!("history-{began_ms}-{}", first.delta.at.as_millis()),
        began_ms,
        host: first.delta.host.clone().unwrap_or_default(),
        kernel: first.delta.kernel.clone(),
        agent: format!("{VERSION} ({REVISION})"),
        interval: nfscope_diagnose::tracker::WINDOW,
        labels: BTreeMap::new(),
    };
    Ok(RecordingWriter::begin(Store::create(path)?, &metadata)?)
}

fn milliseconds(at: SystemTime) -> i64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| d.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::history::History;
    use crate::service::timeline::Timeline;
    use nfscope_diagnose::tracker::FindingTracker;
    use nfscope_model::{Histogram, Scheme, Snapshot, family as f};
    use serde_json::Value;
    use tempfile::TempDir;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
    }

    /// Window of ten seconds with `n` WRITEs.
    fn window(n: u64, disk: f64) -> Window {
        let mut delta = Snapshot::new(Duration::from_secs(n));
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[40] = n;
        h.sum = n as f64;
        delta.histogram(&f::OP_DURATION, ["3", "write"], h);
        delta.gauge(
            &f::BOTTLENECK_ACTIVE,
            ["slow_disk"],
            f64::from(u8::from(disk > 0.0)),
        );
        delta.gauge(&f::BOTTLENECK_SCORE, ["slow_disk"], disk);
        Window {
            length: Duration::from_secs(10),
            delta,
        }
    }

    fn writes(window: &Window) -> u64 {
        let all = window.delta.hist(&f::OP_DURATION, ["3", "write"]);
        all.map_or(0, Histogram::count)
    }

    fn disk(dir: &TempDir) -> Disk {
        let path = dir.path().join("history.db");
        Disk::open(path, Duration::from_secs(2 * 3600), Names::default()).unwrap()
    }

    fn told(disk: &Disk, from: u64, to: u64, columns: u32) -> Vec<(f64, f64, u64, Option<f64>)> {
        let range = Range {
            from: 1_800_000_000.0 + from as f64,
            to: 1_800_000_000.0 + to as f64,
            columns,
        };
        let answer: Value = serde_json::from_slice(&disk.answer(range).unwrap()).unwrap();
        let windows = answer["windows"].as_array().unwrap();
        let row = |w: &Value| {
            let count: u64 = w["ops"]
                .as_array()
                .unwrap()
                .iter()
                .map(|o| o["times"]["count"].as_u64().unwrap())
                .sum();
            (
                w["at"].as_f64().unwrap() - 1_800_000_000.0,
                w["seconds"].as_f64().unwrap(),
                count,
                w["findings"]["slow_disk"].as_f64(),
            )
        };
        windows.iter().map(row).collect()
    }

    #[test]
    fn windows_are_put_together_and_gaps_stay() {
        let dir = TempDir::new().unwrap();
        let mut disk = disk(&dir);
        for i in 1..=6 {
            disk.put(&window(i, if i == 2 { 0.5 } else { 0.0 }), at(10 * i))
                .unwrap();
        }
        // The agent was gone for half a minute.
        disk.put(&window(7, 0.0), at(100)).unwrap();
        assert_eq!(told(&disk, 0, 120, 120).len(), 7);
        assert_eq!(
            told(&disk, 0, 120, 3),
            [
                (40.0, 40.0, 10, Some(0.5)),
                (60.0, 20.0, 11, None),
                (100.0, 10.0, 7, None)
            ]
        );
        assert_eq!(
            told(&disk, 30, 50, 400),
            [(40.0, 10.0, 4, None), (50.0, 10.0, 5, None)]
        );
    }

    #[test]
    fn neighbouring_ranges_count_no_window_twice() {
        let dir = TempDir::new().unwrap();
        let mut disk = disk(&dir);
        for i in 1..=6 {
            disk.put(&window(i, 0.0), at(10 * i)).unwrap();
        }
        let edges = [0, 17, 35, 46, 60];
        let ranges = edges.windows(2).flat_map(|e| told(&disk, e[0], e[1], 4));
        assert_eq!(ranges.map(|(_, _, count, _)| count).sum::<u64>(), 21);
    }

    #[test]
    fn a_window_that_is_longer_than_the_range_is_no_gap_in_it() {
        let dir = TempDir::new().unwrap();
        let mut disk = disk(&dir);
        let long = Window {
            length: Duration::from_secs(4000),
            ..window(9, 0.0)
        };
        disk.put(&long, at(4000)).unwrap();
        for (from, to) in [(0, 600), (1800, 2200), (3600, 4200)] {
            assert_eq!(told(&disk, from, to, 60), [(4000.0, 4000.0, 9, None)]);
        }
        assert!(told(&disk, 4000, 4600, 60).is_empty());
    }

    #[test]
    fn an_episode_that_was_active_when_the_agent_ended_ends_with_the_last_window() {
        let dir = TempDir::new().unwrap();
        let mut disk = disk(&dir);
        let since = 1_800_000_000.0;
        let episode = |kind: &str, began: f64, ended: Option<f64>| -> Episode {
            let finding = serde_json::json!({"kind": kind, "severity": "warning", "share": 0.5, "summary": "the disk is slow",
                "evidence": [], "advice": []});
            let of = serde_json::json!({"began": since + began, "ended": ended.map(|at| since + at), "worst_share": 0.5,
                "finding": finding, "who": {"seconds": 5.0, "client": [{"value": "10.9.0.2", "share": 0.8}]}});
            serde_json::from_value(of).unwrap()
        };
        for i in 1..=6 {
            disk.put(&window(i, 0.0), at(10 * i)).unwrap();
        }
        disk.keep_episode(&episode("slow_disk", 20.0, None))
            .unwrap();
        disk.keep_episode(&episode("slow_reply", 10.0, None))
            .unwrap();
        disk.keep_episode(&episode("slow_reply", 10.0, Some(30.0)))
            .unwrap();
        let told = |disk: &mut Disk| -> Vec<(String, Option<f64>, String)> {
            let past = disk.past_episodes().unwrap().into_iter();
            past.map(|e| {
                assert_eq!(e.who.unwrap().client[0].value, "10.9.0.2");
                let ended = e.ended.map(|at| at - since);
                (e.finding.kind.as_str().to_owned(), ended, e.finding.summary)
            })
            .collect()
        };
        let expected = [
            (
                "slow_disk".to_owned(),
                Some(60.0),
                "the disk was slow".to_owned(),
            ),
            (
                "slow_reply".to_owned(),
                Some(30.0),
                "the disk is slow".to_owned(),
            ),
        ];
        assert_eq!(told(&mut disk), expected);
        // The end is kept: it does not move with later windows.
        disk.put(&window(7, 0.0), at(70)).unwrap();
        assert_eq!(told(&mut disk), expected);
    }

    #[test]
    fn a_clock_that_is_set_back_begins_another_recording() {
        let dir = TempDir::new().unwrap();
        let mut disk = disk(&dir);
        for seconds in [100, 110, 50, 60] {
            disk.put(&window(1, 0.0), at(seconds)).unwrap();
        }
        let names = disk.store.list().unwrap();
        assert_eq!(names.iter().map(|e| e.windows).collect::<Vec<_>>(), [2, 2]);
        use std::os::unix::fs::PermissionsExt;
        for file in std::fs::read_dir(dir.path()).unwrap() {
            let mode = file.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{mode:o}");
        }
    }

    /// Makes windows of ten seconds whose readings are late by up to half a minute. `set` gives the seconds by which the wall clock is
    /// ahead at a time.
    fn hours(disk: &mut Disk, hours: u64, mut set: impl FnMut(u64) -> i64) -> u64 {
        let mut timeline = Timeline::default();
        let (mut at, mut end, mut sum) = (1000, None, 0);
        for i in 0.. {
            at += 10_000 + [0, 700, 3_100, 400, 29_000, 900][i as usize % 6];
            let mut reading = Snapshot::new(Duration::from_millis(at));
            let wall = 1_800_000_000_000 + at.saturating_add_signed(1000 * set(at / 1000));
            reading.wall = Some(Duration::from_millis(wall));
            let ended = timeline.place(&reading);
            if let Some(begin) = end.replace(at) {
                let mut w = window(1 + i % 5, 0.0);
                w.length = Duration::from_millis(at - begin);
                w.delta.at = reading.at;
                disk.put(&w, ended).unwrap();
                sum += 1 + i % 5;
            }
            if at > 3_600_000 * hours {
                return sum;
            }
        }
        sum
    }

    /// Begin, end and windows of each recording, in milliseconds.
    fn recordings(disk: &Disk) -> Vec<(i64, i64, u64)> {
        let all = disk.store.list().unwrap();
        let of = |e: &Entry| {
            let ended = disk.store.ended_ms(e).unwrap().unwrap();
            (e.metadata.began_ms, ended, e.windows)
        };
        all.iter().map(of).collect()
    }

    #[test]
    fn a_disk_that_is_behind_makes_a_longer_window_and_no_gap() {
        let (sender, asked) = mpsc::sync_channel(2);
        let (mut history, findings) = (History::default(), FindingTracker::default());
        history.keep_in(Archive(sender));
        let mut told = |asked: &Receiver<Ask>, n: std::ops::RangeInclusive<u64>| -> Vec<_> {
            for i in n {
                let reading = Snapshot::new(Duration::from_secs(i));
                let now = Instant::now();
                history.found(&window(i, 0.0), &reading, &findings, at(10 * i), now);
            }
            let kept = asked.try_iter().filter_map(|ask| match ask {
                Ask::Keep(w, ended) => Some((w.length.as_secs(), ended, writes(&w))),
                Ask::Tell(..) => None,
            });
            kept.collect()
        };
        assert_eq!(told(&asked, 1..=6), [(10, at(10), 1), (10, at(20), 2)]);
        // The next window that finds room is joined with all that waited.
        assert_eq!(told(&asked, 7..=7), [(50, at(70), 3 + 4 + 5 + 6 + 7)]);
        assert_eq!(told(&asked, 8..=8), [(10, at(80), 8)]);
    }

    #[test]
    fn a_window_that_the_disk_refuses_is_written_with_the_next_one() {
        let dir = TempDir::new().unwrap();
        let mut disk = disk(&dir);
        // A directory cannot be written as a file.
        let path = disk.path.clone();
        disk.path = dir.path().to_owned();
        let refused = disk.keep(window(2, 0.5), at(20));
        assert!(refused.is_err());
        disk.say(refused);
        disk.path = path;
        disk.keep(window(3, 0.0), at(30)).unwrap();
        assert_eq!(
            told(&disk, 0, 120, 120),
            [(30.0, 20.0, 2 + 3, Some(0.5))],
            "the finding of the earlier window is there, too"
        );
    }

    #[test]
    fn readings_that_are_late_leave_one_recording_an_hour_without_gaps() {
        let dir = TempDir::new().unwrap();
        let mut disk = disk(&dir);
        let sum = hours(&mut disk, 5, |_| 0);
        let all = recordings(&disk);
        assert!((4..=6).contains(&all.len()), "{all:?}");
        for pair in all.windows(2) {
            assert!((pair[0].1 - pair[1].0).abs() <= 1, "{all:?}");
        }
        for entry in disk.store.list().unwrap() {
            let windows: Vec<_> = disk.store.windows(&entry, |_| true).collect();
            let windows: Vec<_> = windows.into_iter().map(Result::unwrap).collect();
            for w in windows.windows(2) {
                let end = w[0].began_ms + w[0].length.as_millis() as i64;
                assert!((w[1].began_ms - end).abs() <= 1, "{}", w[1].began_ms);
            }
        }
        let told: u64 = told(&disk, 0, 6 * 3600, 400).iter().map(|w| w.2).sum();
        assert_eq!(told, sum);
    }

    #[test]
    fn a_clock_that_is_set_by_an_hour_loses_no_count_on_the_disk() {
        for (set, recordings_at_most) in [(3600, 5), (-3600, 5)] {
            let dir = TempDir::new().unwrap();
            let mut disk = disk(&dir);
            let sum = hours(&mut disk, 3, |at| if at > 5000 { set } else { 0 });
            let all = recordings(&disk);
            assert!(all.len() <= recordings_at_most, "{all:?}");
            let told = told(&disk, 0, 6 * 3600, 400);
            assert!(told.windows(2).all(|w| w[0].0 <= w[1].0), "{told:?}");
            assert_eq!(told.iter().map(|w| w.2).sum::<u64>(), sum, "{set}");
        }
    }

    #[test]
    fn a_day_is_kept_by_whole_hours_and_an_agent_goes_on_where_another_was_killed() {
        let dir = TempDir::new().unwrap();
        let mut first = disk(&dir);
        for i in 1..=(4 * 60) {
            first.put(&window(1, 0.0), at(60 * i)).unwrap();
        }
        first.forget(at(4 * 3600)).unwrap();
        let all = told(&first, 0, 5 * 3600, 400);
        let count: u64 = all.iter().map(|w| w.2).sum();
        assert!((120..=180).contains(&count), "{count}");
        drop(first);
        let mut second = disk(&dir);
        second.put(&window(1, 0.0), at(4 * 3600 + 60)).unwrap();
        let again: u64 = told(&second, 0, 5 * 3600, 400).iter().map(|w| w.2).sum();
        assert_eq!(again, count + 1);
    }
}
