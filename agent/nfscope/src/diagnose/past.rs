//! Windows of the history that this host's agent keeps on the disk, for `--at`.

use crate::cli::PastArgs;
use anyhow::{Context, bail};
use nfscope_agent_client::http;
use nfscope_api::address;
use nfscope_baseline::store::{Entry, State, Store};
use nfscope_baseline::window::Merger;
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

/// Most clients, and most exports, that are named.
const MOST_NAMED: usize = 3;
/// Largest distance between windows without a gap. It also is the tolerated overlap.
const NEAR: Duration = Duration::from_millis(1500);

/// History of a time range.
#[derive(Debug)]
pub(crate) struct Past {
    /// Name of the server.
    pub(crate) host: String,
    /// Whole range as one window.
    pub(crate) window: Window,
    /// Windows of the range.
    pub(crate) parts: Vec<Window>,
    /// Beginning of the first window.
    pub(crate) began: SystemTime,
    /// End of the last window.
    pub(crate) ended: SystemTime,
}

/// Reads the windows from `at` to `at + length`.
///
/// # Errors
/// When there is no history of this time; the error says which times it has.
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
            // A damaged recording does not hide the others.
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
    past.with_context(none)
}

/// Adds the windows of a recording that are in this range.
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
                });
            }
            Some(past) => {
                // After the clock was set back, the history has two windows of the same time. The first one is used.
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

/// Learns names of clients from the agent of this host, if one runs. Only for a history of this host: the same addresses have other names
/// elsewhere. Without an agent, clients keep their addresses.
pub(crate) fn learn_names(past: &Past) {
    if past.host == console::one_line(&nfscope_source::hostname::own_name()) {
        let _ = http::snapshot(&address::default_url());
    }
}

/// Probe that stands for the history. Its state is attached, because an agent keeps only windows with timed operations.
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

/// File of the history: `path`, or the one in the directory `path`.
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

fn moment(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms.max(0).unsigned_abs())
}

/// Local date and time.
fn local(at: SystemTime) -> String {
    timestamp::local(at)
}

/// Time range of the history, as a sentence.
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
    /// Current name of the client, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Number of operations.
    pub(crate) operations: f64,
    /// Share of the time of all operations, 0 to 1.
    pub(crate) share_of_time: Option<f64>,
    /// Bytes read and written, if they are counted.
    pub(crate) bytes: Option<u64>,
    /// Share of all bytes, 0 to 1.
    pub(crate) share_of_bytes: Option<f64>,
}

/// Clients and exports with the largest share of time or bytes. `name` returns the name of an address.
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
        // Sorted by the larger of both shares.
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
    /// Time range: `2026-11-27 03:10:00 to 03:11:00`, and the time without windows.
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

    /// Clients and exports that used the server, one per line.
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
