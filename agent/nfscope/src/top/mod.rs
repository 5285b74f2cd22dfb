//! `nfscope top`: windows on a screen, as plain tables, or as JSON.

pub(crate) mod by;

use crate::cli::TopArgs;
use crate::diagnose::past;
use nfscope_agent_client::known_names;
use nfscope_agent_client::windows::{WindowEvent, WindowStream};
use nfscope_api::address;
use nfscope_text::console;
use nfscope_tui::{
    Breakdown, TerminalStyle, View, WIDE, event_loop, plain, terminal, terminal_style,
};
use std::io::{self, IsTerminal, Write};
use terminal_size::{Width, terminal_size};

/// Columns if the output is no terminal.
const WIDTH: usize = 100;

/// Shows windows until it is stopped, or up to `--count`.
///
/// # Errors
/// When there is no agent and own probes cannot be attached, or when the terminal goes away.
pub fn run(args: &TopArgs) -> anyhow::Result<()> {
    let by = by::query(args)?;
    let host = address::host(args.url.as_deref());
    let host = &host[..];
    let var = |name: &str| std::env::var(name).ok();
    let tty = io::stdout().is_terminal();
    let mut style = TerminalStyle::of(var);
    style.color &= tty;
    let count = if args.once { Some(1) } else { args.count };
    let width = || match terminal_size() {
        _ if args.wide => WIDE,
        Some((Width(w), _)) if tty => usize::from(w),
        _ => WIDTH,
    };
    let between = if count == Some(1) { "" } else { "\n" };
    let to_screen =
        tty && count.is_none() && !args.json && !args.wide && !terminal_style::is_dumb(&var);
    if let (Some(query), false) = (&by, to_screen) {
        let print = |told: &Breakdown| told.plain(width(), style) + between;
        return by::run(args, query.clone(), print);
    }
    if let Some(at) = args.past.at {
        let past = past::read(&args.past, at, args.interval)?;
        past::learn_names(&past);
        let view = View::of(&past.window, &past.host).naming(known_names::of);
        let text = match args.json {
            true => console::json(&view)?,
            false => format!("{}\n{}", past.when(), plain(&view, width(), style)),
        };
        return Ok(console::print(&text)?);
    }
    let windows = WindowStream::open(args.url.as_deref(), args.interval)?;
    if to_screen {
        // stdin may not be a terminal although stdout is; then plain tables are printed.
        if let Ok(screen) = terminal::Screen::take() {
            let by = event_loop::By {
                agent: args.url.clone().unwrap_or_else(address::default_url),
                first: by,
            };
            return event_loop::run(screen, windows, host, style, by);
        }
    }
    let print = |view: &View| match args.json {
        true => Ok(console::json(view)?),
        false => Ok(plain(view, width(), style) + between),
    };
    stream(windows, host, count, print)
}

/// Prints one window after another.
fn stream(
    mut windows: WindowStream,
    host: &str,
    count: Option<u32>,
    print: impl Fn(&View) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let mut left = count;
    let mut gone = false;
    while left != Some(0) {
        match windows.next_event() {
            WindowEvent::Window(window) => {
                let text = print(&View::of(&window, host).naming(known_names::of))?;
                let mut out = io::stdout().lock();
                match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                    // The reader of the pipe has exited.
                    Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    other => other?,
                }
                left = left.map(|n| n - 1);
            }
            WindowEvent::Gone { why, .. } if count == Some(1) => anyhow::bail!(why),
            WindowEvent::Gone { why, .. } => {
                if !gone {
                    console::say(&format!("{why}; trying again"));
                }
                gone = true;
                continue;
            }
            WindowEvent::Begun | WindowEvent::Attaching => {}
        }
        gone = false;
    }
    Ok(())
}
