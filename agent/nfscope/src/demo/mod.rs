//! `nfscope demo`: shows the program without a server and without root, on an embedded recording.

pub mod day;

use crate::agent::config::Settings;
use crate::agent::replay::Replay;
use crate::cli::{Cli, Command, DemoArgs, DemoPart};
use crate::demo::day::{Scene, Tape};
use crate::{agent, baseline, diagnose, top};
use anyhow::{Context, bail};
use clap::Parser;
use nfscope_baseline::store::Store;
use nfscope_text::console::{Level, print};
use nfscope_text::timestamp::{local, local_offset};
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// Length of a window of the last day.
const WINDOW: Duration = Duration::from_secs(300);
/// Length of a window of the last two hours, which the page shows in more detail.
const RECENT_WINDOW: Duration = Duration::from_secs(60);
const RECENT: i64 = 2 * HOUR;
/// Length of a window of the present.
const LIVE_WINDOW: Duration = Duration::from_secs(10);
/// Present time: 15 minutes with a slow log, then 5 minutes as usual, then again.
const SLOW: i64 = 15 * MINUTE;
const ROUND: i64 = 20 * MINUTE;

const NO_SERVER: &str = "This is no server. Each window adds up copies of some of eight windows that were measured in \
                         test machines;\nintervals of `compare` show the form only.\n";

/// Incident of the recorded day.
struct Incident {
    /// Beginning and end, in milliseconds before the present.
    began: i64,
    ended: i64,
    scene: Scene,
    what: &'static str,
}

const INCIDENTS: [Incident; 3] = [
    Incident {
        began: 19 * HOUR,
        ended: 18 * HOUR + 20 * MINUTE,
        scene: Scene::FewThreads,
        what: "three nfsd threads for 24 readers",
    },
    Incident {
        began: 8 * HOUR,
        ended: 7 * HOUR + 10 * MINUTE,
        scene: Scene::SlowDisk,
        what: "a disk that takes 20 ms for each read",
    },
    Incident {
        began: 12 * MINUTE,
        ended: -SLOW,
        scene: Scene::SlowLog,
        what: "a journal on a disk of 8 ms",
    },
];

/// Runs the demonstration.
///
/// # Errors
/// When the recording cannot be written to the directory for temporary files, or the port is in use.
pub fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("nfscope-demo-").tempdir();
    let dir = dir.context("the recording needs a directory for temporary files (TMPDIR)")?;
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let mut tape = Tape::read()?;
    match args.part {
        DemoPart::Page => page(&dir, &mut tape, now, args.port),
        DemoPart::Top => {
            let file = past(dir.path(), &mut tape, now, 0)?;
            print(NO_SERVER)?;
            for incident in &INCIDENTS {
                say(incident, now)?;
                look(
                    ["top", "--interval", "5m"],
                    &file,
                    now - incident.began + 7 * MINUTE,
                )?;
            }
            Ok(())
        }
        DemoPart::Diagnose => {
            let file = past(dir.path(), &mut tape, now, 0)?;
            print(NO_SERVER)?;
            for incident in &INCIDENTS {
                say(incident, now)?;
                look(
                    ["diagnose", "--for", "5m"],
                    &file,
                    now - incident.began + 7 * MINUTE,
                )?;
            }
            Ok(())
        }
        DemoPart::Compare => {
            let file = sides(dir.path(), &mut tape, now)?;
            print(NO_SERVER)?;
            print(
                "Three recordings with a journal on a disk of 8 ms and 8 threads are compared with \
                 three on a disk of 1 ms and 16 threads. Copies of the same \
                 windows differ less than recordings of a real server do.\n\n",
            )?;
            let names = ["before-1,before-2,before-3", "after-1,after-2,after-3"];
            let words = [
                "nfscope", "baseline", "compare", names[0], names[1], "--store",
            ]
            .map(OsString::from);
            let words = words.into_iter().chain([file.into_os_string()]);
            match Cli::try_parse_from(words)?.command {
                Command::Baseline(args) => baseline::run(&args.command).map(drop),
                _ => bail!("another command than compare"),
            }
        }
    }
}

fn say(incident: &Incident, now: i64) -> anyhow::Result<()> {
    let until = match now - incident.ended {
        ended if ended > now => "now".to_owned(),
        ended => local(at(ended)),
    };
    let began = local(at(now - incident.began));
    Ok(print(&format!(
        "\n{began} to {until}: {}\n\n",
        incident.what
    ))?)
}

/// Runs a command with `--at` on the recorded history.
fn look<const N: usize>(words: [&str; N], history: &Path, ms: i64) -> anyhow::Result<()> {
    let words = ["nfscope"].into_iter().chain(words).map(OsString::from);
    match Cli::try_parse_from(words)?.command {
        Command::Top(mut args) => {
            (args.past.at, args.past.history) = (Some(at(ms)), history.to_owned());
            top::run(&args)
        }
        Command::Diagnose(mut args) => {
            (args.past.at, args.past.history) = (Some(at(ms)), history.to_owned());
            diagnose::run(&args).map(drop)
        }
        _ => bail!("another command than one that looks back"),
    }
}

fn at(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms.unsigned_abs())
}

/// Serves the page like an agent with a history.
fn page(dir: &TempDir, tape: &mut Tape, now: i64, port: Option<u16>) -> anyhow::Result<()> {
    let port = free(port)?;
    past(dir.path(), tape, now, port)?;
    let shelf = sides(dir.path(), tape, now)?;
    let live = dir.path().join("live.db");
    let scene = |t: i64| match t {
        t if t < SLOW => Some(Scene::SlowLog),
        t if t < ROUND => Some(Scene::Day),
        _ => None,
    };
    let round = tape.recording("demonstration", 0, LIVE_WINDOW, scene)?;
    Store::create(&live)?.put(&round)?;
    let url = format!("http://{}:{port}", Ipv4Addr::LOCALHOST);
    print(&format!(
        "{url}/#range=86400\n\n{NO_SERVER}The page shows the last day, with three incidents, and goes on. In another terminal:\n\n  \
         nfscope top --url {url}\n  nfscope diagnose --url {url}\n  nfscope demo compare\n\nCtrl-C ends it.\n"
    ))?;
    let settings = || Settings {
        listen_addresses: vec![format!("{}:{port}", Ipv4Addr::LOCALHOST)],
        history_directory: Some(dir.path().to_owned()),
        replay: Some(shelf.clone()),
        log_level: Level::Warn,
        ..Settings::default()
    };
    let (first, again) = (settings(), settings());
    let start = move || Ok(Box::new(Replay::open(&live)?) as Box<dyn nfscope_source::Source>);
    agent::run(first, move || Ok(again.clone()), start)
}

/// Port that was asked for, else the agent's default port, else any free one.
fn free(port: Option<u16>) -> anyhow::Result<u16> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = match port {
        Some(port) => bind(port)
            .with_context(|| format!("port {port} cannot be used; give another one with --port"))?,
        None => bind(9943).or_else(|_| bind(0)).context("no port is free")?,
    };
    Ok(listener.local_addr()?.port())
}

/// Writes the history of the last day; returns its path.
fn past(dir: &Path, tape: &mut Tape, now: i64, port: u16) -> anyhow::Result<std::path::PathBuf> {
    let path = dir.join(format!("history-{port}.db"));
    let mut store = Store::create(&path)?;
    let scene = |ms: i64| {
        let ago = now - ms;
        let incident = INCIDENTS
            .iter()
            .find(|i| (i.ended..=i.began).contains(&ago));
        let offset = local_offset(at(ms));
        let hour = (ms / 1000 + offset).rem_euclid(86_400) / 3600;
        match (incident, hour) {
            (Some(incident), _) => incident.scene,
            (None, 7..20) => Scene::Day,
            _ => Scene::Night,
        }
    };
    let mut began = now - 24 * HOUR;
    while began < now {
        // A recording per hour, as an agent writes its history.
        let until = (began + HOUR).min(now);
        let name = format!("history-{began}");
        let interval = if began < now - RECENT {
            WINDOW
        } else {
            RECENT_WINDOW
        };
        let hour = tape.recording(&name, began, interval, |ms| (ms < until).then(|| scene(ms)))?;
        began = hour
            .windows
            .last()
            .map_or(until, |w| w.began_ms + w.length.as_millis() as i64);
        store.put(&hour)?;
    }
    Ok(path)
}

/// Writes recordings to compare; returns the path of their store.
fn sides(dir: &Path, tape: &mut Tape, now: i64) -> anyhow::Result<std::path::PathBuf> {
    let path = dir.join("baselines.db");
    let mut store = Store::create(&path)?;
    for (side, scene, ago) in [("before", Scene::SlowLog, 6), ("after", Scene::FastLog, 3)] {
        for n in 1..=3 {
            let began = now - (ago - n) * HOUR;
            let until = began + 10 * MINUTE;
            let name = format!("{side}-{n}");
            store.put(&tape.recording(&name, began, LIVE_WINDOW, |ms| {
                (ms < until).then_some(scene)
            })?)?;
        }
    }
    Ok(path)
}
