//! `nfscope top`: a table that refreshes.

mod fetch;
mod render;
mod units;

pub use render::{Screen, render};

use crate::cli::TopArgs;
use crate::model::Snapshot;
use crate::source::{self, Source};
use crate::{agent, privileges};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal_size::{Height, Width, terminal_size};

/// Where snapshots come from: an agent, or probes of this very process.
enum From {
    Agent(String),
    Own(Box<dyn Source>),
}

impl From {
    fn snapshot(&mut self) -> Result<Snapshot, fetch::Error> {
        match self {
            From::Agent(url) => fetch::snapshot(url),
            From::Own(source) => Ok(source.snapshot()),
        }
    }
}

/// Shows windows until interrupted, or one of them.
///
/// # Errors
/// When there is no agent and none was found, when it goes away, or when the terminal does.
pub fn run(args: &TopArgs) -> anyhow::Result<()> {
    let (mut from, mut earlier) = open(args)?;
    let host = match &from {
        From::Agent(url) if args.url.is_some() => fetch::host(url).to_owned(),
        _ => std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default(),
    };
    let mut out = std::io::stdout();
    let tty = out.is_terminal();
    let live = tty && !args.once;
    let color = tty && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    if live {
        write!(out, "\x1b[2J")?;
    }
    let mut next = Instant::now();
    loop {
        next = (next + args.interval).max(Instant::now());
        pause(&mut from, next);
        let later = from.snapshot()?;
        // An agent that is still attaching has no clock yet: the window begins when it has.
        if earlier.at.is_zero() && !later.at.is_zero() {
            earlier = later;
            continue;
        }
        let (width, height) = match terminal_size() {
            Some((Width(w), Height(h))) if tty => (usize::from(w), usize::from(h)),
            _ => (100, usize::MAX),
        };
        let screen = Screen {
            width,
            // The last line stays free, or the terminal scrolls.
            height: if live {
                height.saturating_sub(1)
            } else {
                usize::MAX
            },
            color,
        };
        let text = render(&later.since(&earlier), host.trim(), screen);
        let done = if live {
            // Overwrites line by line and clears what is left: no flicker.
            write!(out, "\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
        } else {
            writeln!(out, "{text}")
        };
        match done.and_then(|()| out.flush()) {
            // The reader of a pipe has had enough.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            other => other?,
        }
        if args.once {
            return Ok(());
        }
        earlier = later;
    }
}

/// The source and its first snapshot.
fn open(args: &TopArgs) -> anyhow::Result<(From, Snapshot)> {
    let url = match &args.url {
        Some(url) => url.clone(),
        None => format!("http://{}", agent::DEFAULT_ADDRESS),
    };
    match fetch::snapshot(&url) {
        Ok(first) => Ok((From::Agent(url), first)),
        Err(e @ fetch::Error::NoAgent(_)) if args.url.is_none() => {
            eprintln!("nfscope: no agent at {url}: measuring with probes of its own");
            // Without the right to do that, the missing agent is the news.
            privileges::require().map_err(|why| anyhow::anyhow!("{e}; or {why}"))?;
            let mut source = source::start(&source::Options::default())?;
            let first = source.snapshot();
            Ok((From::Own(source), first))
        }
        Err(e) => Err(e.into()),
    }
}

/// Waits, and lets probes of its own follow modules that come and go.
fn pause(from: &mut From, until: Instant) {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_secs(1)));
        if let From::Own(source) = from {
            source.poll();
        }
    }
}
