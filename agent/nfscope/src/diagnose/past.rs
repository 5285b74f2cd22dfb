//! Windows of the history that an agent of this host keeps on the disk: `--at`.

use crate::cli::PastArgs;
use anyhow::{Context, bail};
use nfscope_agent_client::http;
use nfscope_api::address;
use nfscope_baseline::store::{Entry, State, Store};
use nfscope_baseline::window::Merger;
use nfscope_diagnose::tracker::Episode;
use nfscope_model::window_parts::{self, WindowUser};
use nfscope_model::{ProbeState, ProbeStatus, Window};
use nfscope_serve::service::late_windows::joined;
use nfscope_text::console::{Level, log};
use nfscope_text::timestamp::{local_offset, time_of_day};
use nfscope_text::units::{bytes, length, percent};
use nfscope_text::{console, timestamp};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Clients and exports that are named.
const MOST_NAMED: usize = 3;
/// Findings of the agent that are named.
const MOST_EPISODES: usize = 20;
/// Windows that are farther apart have a gap between them.
const NEAR: Duration = Duration::from_millis(1500);

/// Windows that the history has of a stretch of time.
#[derive(Debug)]
pub(crate) struct Past {
    /// Name of the server.
    pub(crate) host: String,
    /// All of it as one window.
    pub(crate) window: Window,
    /// Its parts.
    pub(crate) parts: Vec<Window>,
    /// Begin of the first one.
    pub(crate) began: SystemTime,
    /// End of the last one.
    pub(crate) ended: SystemTime,
    /// Findings of the agent that were active then, the earliest first.
    pub(crate) episodes: Vec<Episode>,
}

/// Reads the window that has this time, and as many behind it as are needed for so much time.
///
/// # Errors
/// When there is no history, or none of that time; the error says what there is.
pub(crate) fn read(args: &PastArgs, at: SystemTime, length: Duration) -> anyhow::Result<Past> {
    let path = file(&args.history)?;
    let store = Store::read(&path)?;
    let mut entries = store.list()?;
    entries.retain(|e| e.state != State::Damaged && e.windows > 0);
    let mut past: Option<Past> = None;
    for entry in &entries {
        if moment(entry.metadata.began_ms) >= at + length {
            continue;
        }
        if let Err(e) = add(&mut past, &store, entry, (at, at + length)) {
            // The others are told.
            log(Level::Warn, &format!("{}: {e:#}", entry.metadata.name));
        }
    }
    let none = || {
        format!(
            "{} has no window at {}; {}",
            path.display(),
            local(at),
            known(&store, &entries)
        )
    };
    let mut past = past.with_context(none)?;
    past.episodes = episodes(&store, &past)?;
    Ok(past)
}

/// Findings of the agent that were active between the begin and the end of these windows.
fn episodes(store: &Store, past: &Past) -> anyhow::Result<Vec<Episode>> {
    let [from, to] = [past.began, past.ended].map(milliseconds);
    let mut all: Vec<Episode> = (store.episodes(from, to, MOST_EPISODES)?.iter())
        // Another release may have had other members.
        .filter_map(|e| serde_json::from_str(&e.json).ok())
        .collect();
    all.reverse();
    Ok(all)
}

/// Adds the windows of a recording that are of this time.
fn add(
    past: &mut Option<Past>,
    store: &Store,
    entry: &Entry,
    (from, to): (SystemTime, SystemTime),
) -> anyhow::Result<()> {
    let series = store.series(entry)?;
    for window in store.windows(entry, |_| true) {
        let recorded = window?;
        let began = moment(recorded.began_ms);
        let ended = began + recorded.length;
        if ended <= from || began >= to {
            continue;
        }
        let mut merger = Merger::new(series.clone(), |_| true);
        merger.add(&recorded);
        let Some(mut window) = merger.take() else {
            continue;
        };
        window.delta.host = Some(entry.metadata.host.clone());
        window.delta.kernel.clone_from(&entry.metadata.kernel);
        window.delta.probes = vec![probe(&entry.metadata.name)];
        match past {
            None => {
                *past = Some(Past {
                    host: console::one_line(&entry.metadata.host),
                    window: window.clone(),
                    parts: vec![window],
                    began,
                    ended,
                    episodes: Vec::new(),
                });
            }
            Some(past) => {
                // A clock that was set back has that time twice.
                if began + NEAR < past.ended {
                    continue;
                }
                past.window = joined(&past.window, window.clone());
                past.parts.push(window);
                past.ended = ended;
            }
        }
    }
    Ok(())
}

/// Takes names of clients from the agent of this host, where one runs, for a history that is this host's: the same addresses have other
/// names elsewhere. Clients of a host without an agent stay addresses.
pub(crate) fn learn_names(past: &Past) {
    if past.host == console::one_line(&nfscope_source::hostname::own_name()) {
        let _ = http::snapshot(&address::default_url());
    }
}

/// History counts as what a probe measured: the agent keeps no window without operations that were timed.
fn probe(recording: &str) -> ProbeStatus {
    ProbeStatus {
        probe: "history".to_owned(),
        program: "history".to_owned(),
        hook: recording.to_owned(),
        gives: "windows of the past".to_owned(),
        required: true,
        state: ProbeState::Attached,
        reason: String::new(),
        fix: String::new(),
    }
}

/// The file of the history: this one, or the one of this directory.
fn file(path: &Path) -> anyhow::Result<PathBuf> {
    const FIX: &str = "an agent keeps one with --history-directory, and the unit of the package does; --history names another place";
    let meta = fs::metadata(path).with_context(|| {
        format!(
            "there is no history at {}, or root alone may read it: {FIX}",
            path.display()
        )
    })?;
    if !meta.is_dir() {
        return Ok(path.to_owned());
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_history = |name: &str| name.starts_with("history-") && name.ends_with(".db");
    let mut files: Vec<_> = (entries.flatten())
        .filter(|e| e.file_name().to_str().is_some_and(is_history))
        .map(|e| e.path())
        .collect();
    files.sort();
    match &files[..] {
        [] => bail!("there is no history in {}: {FIX}", path.display()),
        [one] => Ok(one.clone()),
        several => {
            let names: Vec<_> = several.iter().map(|f| f.display().to_string()).collect();
            bail!(
                "several agents keep a history in {}; fix: --history with one of {}",
                path.display(),
                names.join(", ")
            )
        }
    }
}

fn milliseconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn moment(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms.max(0).unsigned_abs())
}

/// Date and time of day here.
fn local(at: SystemTime) -> String {
    timestamp::local(at)
}

/// Begin and end of the time that the history has.
fn known(store: &Store, entries: &[Entry]) -> String {
    let ended = entries.iter().filter_map(|e| store.ended_ms(e).ok()?).max();
    match (entries.first(), ended) {
        (Some(first), Some(ended)) => format!(
            "it goes from {} to {}, and the agent did not run, or timed no operations, where it has no window",
            local(moment(first.metadata.began_ms)),
            local(moment(ended))
        ),
        _ => "it is empty".to_owned(),
    }
}

/// Client or export that used the server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct User {
    /// `client` or `export`.
    pub(crate) kind: &'static str,
    /// Address or path.
    pub(crate) of: String,
    /// Name of the client today, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Operations.
    pub(crate) operations: f64,
    /// Its part of the time of all operations, 0 to 1.
    pub(crate) share_of_time: Option<f64>,
    /// Bytes that it read and wrote, where they are counted.
    pub(crate) bytes: Option<u64>,
    /// Its part of all bytes.
    pub(crate) share_of_bytes: Option<f64>,
}

/// Clients and exports that used the server most, by time and by bytes.
pub(crate) fn users(w: &Window, name: impl Fn(&str) -> Option<String>) -> Vec<User> {
    let of = |kind, all: Vec<WindowUser<'_>>| -> Vec<User> {
        let moved = |u: &WindowUser<'_>| u.moved.map(|m| m.read + m.written);
        let time: f64 = all.iter().filter_map(|u| u.seconds).sum();
        let total: u64 = all.iter().filter_map(moved).sum();
        let mut users: Vec<_> = (all.iter())
            .map(|u| User {
                kind,
                of: u.name.to_owned(),
                name: name(u.name),
                operations: u.ops,
                share_of_time: u.seconds.filter(|_| time > 0.0).map(|s| s / time),
                bytes: moved(u),
                share_of_bytes: moved(u)
                    .filter(|_| total > 0)
                    .map(|n| n as f64 / total as f64),
            })
            .collect();
        // Clients and exports with most of either.
        let most = |u: &User| (u.share_of_time.unwrap_or(0.0)).max(u.share_of_bytes.unwrap_or(0.0));
        users.sort_by(|a, b| most(b).total_cmp(&most(a)).then_with(|| a.of.cmp(&b.of)));
        users.truncate(MOST_NAMED);
        users
    };
    let mut all = of("client", window_parts::clients(w));
    all.extend(of("export", window_parts::exports(w)));
    all
}

impl Past {
    /// Time of the window: `2026-11-27 03:10:00 to 03:11:00`, and what is missing of it.
    pub(crate) fn when(&self) -> String {
        let offset = local_offset(self.ended);
        let until = time_of_day(self.ended, offset);
        let until = until.split('.').next().unwrap_or_default();
        let mut text = format!("{} to {until}", local(self.began));
        let whole = self.ended.duration_since(self.began).unwrap_or_default();
        let missing = whole.saturating_sub(self.window.length);
        if missing > NEAR {
            text += &format!(", without windows for {}", length(missing));
        }
        text
    }

    /// Findings of the agent then, with the clients, users and files behind it, as lines.
    pub(crate) fn found(&self) -> String {
        if self.episodes.is_empty() {
            return String::new();
        }
        let clock = |at: f64| {
            let at = UNIX_EPOCH + Duration::from_secs_f64(at.max(0.0));
            let text = time_of_day(at, local_offset(at));
            text.split('.').next().unwrap_or_default().to_owned()
        };
        let mut text = "\nWhat the agent found then:\n".to_owned();
        for e in &self.episodes {
            let until = e.ended.map_or("its end is not known".to_owned(), |at| {
                format!("to {}", clock(at))
            });
            text += &format!(
                "  - {} ({}), {}, {} {until}: {}\n",
                e.finding.kind.title(),
                e.finding.kind.as_str(),
                e.finding.severity.as_str(),
                clock(e.began),
                console::one_line(&e.finding.summary)
            );
            if let Some((at, who)) = e.who.as_ref().and_then(|w| Some((w.at, w.sentence()?))) {
                text += &format!(
                    "    counted at {}: {}\n",
                    clock(at),
                    console::one_line(&who)
                );
            }
        }
        text
    }

    /// Clients and exports that used the server, as lines.
    pub(crate) fn who(&self, users: &[User]) -> String {
        if users.is_empty() {
            return String::new();
        }
        let seconds = self.window.length.as_secs_f64().max(1e-3);
        let mut text = format!("\nWho used the server from {}:\n", self.when());
        for u in users {
            let name = u
                .name
                .as_deref()
                .map_or(String::new(), |n| format!(" ({n})"));
            let time = u.share_of_time.map_or("?".to_owned(), percent);
            let moved = match (u.bytes, u.share_of_bytes) {
                (Some(n), Some(share)) => {
                    format!(
                        "{} of the bytes ({})",
                        percent(share),
                        bytes(n as f64 / seconds)
                    )
                }
                (Some(_), None) => "no bytes".to_owned(),
                (None, _) => "bytes were not counted".to_owned(),
            };
            let one = console::one_line(&u.of);
            text += &format!(
                "  - {} {one}{name}: {time} of the time of operations, {moved}\n",
                u.kind
            );
        }
        text
    }
}
