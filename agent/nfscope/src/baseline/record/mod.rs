//! `nfscope baseline record`: records one baseline, or several at a fixed interval.

pub mod session;

use crate::baseline::record::session::{Event, Session};
use crate::cli::RecordArgs;
use anyhow::Context;
use nfscope_agent_client::events;
use nfscope_agent_client::windows::{WindowEvent, WindowStream};
use nfscope_api::address;
use nfscope_api::build_info::{REVISION, VERSION};
use nfscope_baseline::name;
use nfscope_baseline::recording::Metadata;
use nfscope_baseline::store::{Error, RecordingWriter, Store};
use nfscope_baseline::wall_clock::WallClock;
use nfscope_model::status::Status;
use nfscope_model::{Snapshot, family};
use nfscope_stats::MIN_WINDOWS_TO_STOP;
use nfscope_text::console::say;
use nfscope_text::units;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Signals that end a recording.
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Records until the time is over, the wanted precision is reached, or a signal arrives; with --repeat several times. Returns the
/// exit code.
///
/// # Errors
/// When a name is taken, the store cannot be written, operations are not timed, or nothing was recorded.
pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<u8> {
    let length = length(args)?;
    let names: Vec<String> = match args.repeat {
        None => vec![args.name.clone()],
        Some(n) => (1..=n).map(|i| format!("{}-{i}", args.name)).collect(),
    };
    let store = Store::create(&args.store.path)?;
    // Names are checked before probes are attached, so that an error appears at once.
    for name in &names {
        name::check(name).map_err(anyhow::Error::msg)?;
        match store.entry(name) {
            Ok(_) => return Err(Error::Taken(name.clone()).into()),
            Err(Error::Unknown { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    match args.every {
        Some(every) => several(args, length, &names, every),
        None => one(args, length, &names[0], store),
    }
}

/// Records once for each name until a signal arrives. `every` is the time from one beginning to the next.
fn several(
    args: &RecordArgs,
    length: Duration,
    names: &[String],
    every: Duration,
) -> anyhow::Result<u8> {
    anyhow::ensure!(
        every >= length,
        "--every {} is shorter than a recording of {}: choose a longer --every or a shorter --duration",
        units::length(every),
        units::length(length)
    );
    let mut signals = Signals::new(SIGNALS).context("cannot handle signals")?;
    let (sender, stop) = events::channel();
    let each = std::iter::from_fn(move || signals.forever().next());
    sender
        .spawn("stop", each)
        .context("cannot start a thread")?;
    let begun = Instant::now();
    let (mut code, mut recorded) = (0, Vec::new());
    for (name, n) in names.iter().zip(0..) {
        let pause = (every * n).saturating_sub(begun.elapsed());
        if !pause.is_zero() {
            say(&format!("`{name}` begins in {}", units::length(pause)));
        }
        if stop.recv_timeout(pause).is_ok() {
            break;
        }
        let store = Store::create(&args.store.path)?;
        code = code.max(one(args, length, name, store)?);
        recorded.push(name.as_str());
    }
    let missing = names.len() - recorded.len();
    if missing > 0 {
        say(&format!(
            "stopped before {}",
            units::many(missing as f64, "more recording")
        ));
    }
    // After a signal before the first recording, there is no side to compare.
    if !recorded.is_empty() {
        let side = recorded.join(",");
        say(&format!(
            "one side of a comparison: nfscope baseline compare BEFORE {side}, or {side} AFTER"
        ));
    }
    Ok(code)
}

/// Longest time that a recording may take.
fn length(args: &RecordArgs) -> anyhow::Result<Duration> {
    let length = args.until_ci.map_or(args.length, |_| args.at_most);
    anyhow::ensure!(
        length >= args.interval,
        "{} is shorter than one window: choose a longer --duration or a shorter --interval",
        units::length(length)
    );
    let min_length = args.interval * MIN_WINDOWS_TO_STOP as u32;
    anyhow::ensure!(
        args.until_ci.is_none() || length >= min_length,
        "--until-ci needs at least {MIN_WINDOWS_TO_STOP} windows, which do not fit into {}: give --max-duration {}, or a shorter --interval",
        units::length(length),
        nfscope_text::parse::exact(min_length)
    );
    Ok(length)
}

fn one(args: &RecordArgs, length: Duration, name: &str, store: Store) -> anyhow::Result<u8> {
    let mut feed = WindowStream::open(args.url.as_deref(), args.interval)?;
    let (first, clock) = wait_until_running(&mut feed)?;
    let events = listen(feed)?;
    let metadata = metadata(args, name, &first, clock.began_ms);
    let writer = RecordingWriter::begin(store, &metadata)?;
    Session::new(args, name, length, writer, clock, &events).run()
}

/// Waits for an agent that is still attaching its probes.
fn wait_until_running(feed: &mut WindowStream) -> anyhow::Result<(Snapshot, WallClock)> {
    loop {
        if let Some(first) = feed.latest() {
            Status::Running(first.probes.clone().into())
                .health()
                .map_err(anyhow::Error::msg)?;
            return Ok((first.clone(), WallClock::new(first.at)));
        }
        if let WindowEvent::Gone { why, .. } = feed.next_event() {
            anyhow::bail!(why);
        }
    }
}

fn metadata(args: &RecordArgs, name: &str, first: &Snapshot, began_ms: i64) -> Metadata {
    let mut builds = first.numbers(&family::BUILD_INFO);
    let (version, revision) = match builds.next() {
        Some(([version, revision], _)) => (version, revision),
        None => (VERSION, REVISION),
    };
    Metadata {
        name: name.to_owned(),
        began_ms,
        host: first
            .host
            .clone()
            .unwrap_or_else(|| address::host(args.url.as_deref())),
        kernel: first.kernel.clone(),
        agent: format!("{version} ({revision})"),
        interval: args.interval,
        labels: args.labels.iter().cloned().collect(),
    }
}

/// Receives windows and signals, each on a thread of its own, so that neither delays the other.
fn listen(mut feed: WindowStream) -> anyhow::Result<Receiver<Event>> {
    let mut signals = Signals::new(SIGNALS).context("cannot handle signals")?;
    let (sender, events) = events::channel();
    let windows = std::iter::repeat_with(move || Event::Window(feed.next_event(), Instant::now()));
    let stop = std::iter::from_fn(move || signals.forever().next().map(|_| Event::Signal));
    sender
        .spawn("windows", windows)
        .and_then(|()| sender.spawn("signals", stop))
        .context("cannot start a thread")?;
    Ok(events)
}
