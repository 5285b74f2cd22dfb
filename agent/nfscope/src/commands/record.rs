//! `nfscope baseline record`

use crate::api::build_info::{REVISION, VERSION};
use crate::api::endpoint;
use crate::cli::RecordArgs;
use crate::client::windows::{WindowEvent, WindowStream};
use crate::commands::record_session::Session;
use anyhow::Context;
use nfscope_baseline::progress::LEAST_TO_STOP;
use nfscope_baseline::recording::About;
use nfscope_baseline::store::{Error, Recording, Store};
use nfscope_baseline::wall_clock::Clock;
use nfscope_model::status::Status;
use nfscope_model::{Snapshot, family};
use nfscope_text::units;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// What a recording waits for.
pub(crate) enum Happening {
    /// With when it came.
    WindowEvent(WindowEvent, Instant),
    Signal,
}

/// Records until it is time, or somebody ends it.
///
/// # Errors
/// When the name is taken or the store cannot be written, when operations are not timed, or when nothing was recorded.
pub(super) fn run(args: &RecordArgs) -> anyhow::Result<u8> {
    let length = args.until_ci.map_or(args.length, |_| args.at_most);
    anyhow::ensure!(
        length >= args.interval,
        "{} is shorter than one window: make it longer, or windows shorter with --interval",
        units::length(length)
    );
    let least = args.interval * LEAST_TO_STOP as u32;
    anyhow::ensure!(
        args.until_ci.is_none() || length >= least,
        "--until-ci takes {LEAST_TO_STOP} windows at least, and {} has no room for them: give --at-most {}, or make windows shorter with --interval",
        units::length(length),
        units::length(least).replace(' ', "")
    );
    let store = Store::create(&args.store.path)?;
    // Said now rather than after probes have been attached.
    match store.entry(&args.name) {
        Ok(_) => return Err(Error::Taken(args.name.clone()).into()),
        Err(Error::Unknown { .. }) => {}
        Err(e) => return Err(e.into()),
    }
    let mut feed = WindowStream::open(args.url.as_deref(), args.interval)?;
    let (first, clock) = ready(&mut feed)?;
    let happens = listen(feed)?;
    let about = about(args, &first, clock.began_ms);
    let recording = Recording::begin(store, &about)?;
    Session::new(args, length, recording, clock, &happens).run()
}

/// Waits for an agent that is still attaching.
fn ready(feed: &mut WindowStream) -> anyhow::Result<(Snapshot, Clock)> {
    loop {
        if let Some(first) = feed.latest() {
            Status::Running(first.probes.clone().into())
                .health()
                .map_err(anyhow::Error::msg)?;
            return Ok((first.clone(), Clock::new(first.at)));
        }
        if let WindowEvent::Gone { why, .. } = feed.next() {
            anyhow::bail!(why);
        }
    }
}

fn about(args: &RecordArgs, first: &Snapshot, began_ms: i64) -> About {
    let mut builds = first.numbers(&family::BUILD_INFO);
    let (version, revision) = match builds.next() {
        Some(([version, revision], _)) => (version, revision),
        None => (VERSION, REVISION),
    };
    About {
        name: args.name.clone(),
        began_ms,
        host: first
            .host
            .clone()
            .unwrap_or_else(|| endpoint::host(args.url.as_deref())),
        kernel: first.kernel.clone(),
        agent: format!("{version} ({revision})"),
        interval: args.interval,
        labels: args.labels.iter().cloned().collect(),
    }
}

/// Windows and signals, each from a thread of its own, so that none waits for the other.
fn listen(mut feed: WindowStream) -> anyhow::Result<Receiver<Happening>> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
    let (tell, happens) = channel();
    spawn("windows", &tell, move || {
        let news = feed.next();
        Some(Happening::WindowEvent(news, Instant::now()))
    })?;
    spawn("signals", &tell, move || {
        signals.forever().next().map(|_| Happening::Signal)
    })?;
    Ok(happens)
}

fn spawn(
    name: &str,
    tell: &Sender<Happening>,
    mut next: impl FnMut() -> Option<Happening> + Send + 'static,
) -> anyhow::Result<()> {
    let tell = tell.clone();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || while next().is_some_and(|h| tell.send(h).is_ok()) {})
        .context("cannot start a thread")?;
    Ok(())
}
