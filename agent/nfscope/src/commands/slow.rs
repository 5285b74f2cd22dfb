//! `nfscope slow`: one line for each slow operation as it happens.

use crate::api::slow_line::Line;
use crate::cli::SlowArgs;
use crate::client::slow_ops::{Event, Feed};
use crate::commands::slow_table::{Style, Table};
use nfscope_model::{SlowFilter, SlowOp};
use nfscope_text::console::{colors, say};
use nfscope_text::timestamp as clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};
use terminal_size::{Width, terminal_size_of};

/// Events that wait to be printed; behind them the agent waits, and counts what it must leave out.
const WAITING: usize = 1024;
/// Bytes that are written at once, and a little more.
const AT_ONCE: usize = 64 << 10;
/// Time to finish after a signal, where whoever reads the output does not.
const GRACE: Duration = Duration::from_secs(1);

/// Prints slow operations until interrupted, or as many as asked for.
///
/// # Errors
/// When there is no agent and none was found, when it refuses or goes away, or when the output does.
pub fn run(args: &SlowArgs) -> anyhow::Result<()> {
    let filter = SlowFilter {
        over: args.over,
        ops: args.op.clone(),
        client: args.client,
        per_second: args.limit,
    };
    let (tell, events) = sync_channel(WAITING);
    let feed = Feed::open(args.url.as_deref(), &filter, tell.clone())?;
    stop_on_signals(tell)?;
    let mut printer = Printer::new(args);
    let end = printer.all(&events, &feed);
    match &end {
        // The reader of a pipe has had enough, and wants no more words either.
        Err(e) if is_broken_pipe(e) => return Ok(()),
        _ => say(&format!(
            "{} shown, {} left out",
            printer.shown, printer.left_out
        )),
    }
    end
}

fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

/// What is printed, and how much of it has been.
struct Printer<'a> {
    args: &'a SlowArgs,
    table: Table,
    color: bool,
    shown: u64,
    left_out: u64,
    phases_explained: bool,
    /// Waits to be written.
    text: String,
}

impl<'a> Printer<'a> {
    fn new(args: &'a SlowArgs) -> Self {
        Printer {
            args,
            table: Table::default(),
            color: colors(),
            shown: 0,
            left_out: 0,
            phases_explained: false,
            text: String::new(),
        }
    }

    fn style(&self, at: SystemTime) -> Style {
        Style {
            width: terminal_size_of(std::io::stdout()).map_or(usize::MAX, |(Width(w), _)| w.into()),
            color: self.color,
            offset: clock::local_offset(at),
        }
    }

    /// Prints until the end, which is an error where nobody asked for it.
    fn all(&mut self, events: &Receiver<Event>, feed: &Feed) -> anyhow::Result<()> {
        // At once, so that whoever waits sees that it runs.
        if !self.args.json
            && let Some(heading) = self.table.heading(self.style(SystemTime::now()))
        {
            self.text += &heading;
            self.write()?;
        }
        loop {
            // Written whole and flushed when nothing more waits: a pipe's reader sees each operation as it happens.
            let mut next = events.recv().ok();
            while let Some(event) = next {
                if let Some(end) = self.event(event, feed)? {
                    self.write()?;
                    return end;
                }
                if self.text.len() > AT_ONCE {
                    break;
                }
                next = events.try_recv().ok();
            }
            self.write()?;
        }
    }

    /// The end where this was the last event.
    fn event(&mut self, event: Event, feed: &Feed) -> anyhow::Result<Option<anyhow::Result<()>>> {
        match event {
            Event::Line(Line::Op(op)) => {
                self.op(*op, feed)?;
                self.shown += 1;
                if self.args.count == Some(self.shown) {
                    return Ok(Some(Ok(())));
                }
            }
            Event::Line(Line::LeftOut { left_out: 0 }) if hung_up() => {
                return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
            }
            Event::Line(Line::LeftOut { left_out: 0 }) => {}
            Event::Line(Line::LeftOut { left_out }) => {
                self.left_out += left_out;
                if self.args.json {
                    self.text += &Line::LeftOut { left_out }.encode()?;
                } else {
                    self.note(&format!(
                        "{left_out} left out: more than {} a second, or than was read in time",
                        self.args.limit
                    ))?;
                }
            }
            Event::Stop => return Ok(Some(Ok(()))),
            Event::End(why) => return Ok(Some(Err(why))),
        }
        Ok(None)
    }

    fn op(&mut self, op: SlowOp, feed: &Feed) -> anyhow::Result<()> {
        if self.args.json {
            self.text += &Line::Op(Box::new(op)).encode()?;
            return Ok(());
        }
        if op.phases.is_none() && !self.phases_explained {
            self.phases_explained = true;
            self.note(&format!("no phases: {}", feed.why_no_phases()))?;
        }
        let style = self.style(op.at);
        self.text += &self.table.row(&op, style);
        Ok(())
    }

    /// Says something that belongs behind what has been printed so far.
    fn note(&mut self, line: &str) -> std::io::Result<()> {
        self.write()?;
        say(line);
        Ok(())
    }

    fn write(&mut self) -> std::io::Result<()> {
        let mut out = std::io::stdout();
        out.write_all(self.text.as_bytes())?;
        self.text.clear();
        out.flush()
    }
}

/// True where nobody can read the output any more. On a quiet server, writing might not tell for hours.
fn hung_up() -> bool {
    let stdout = std::io::stdout();
    let mut stdout = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::default();
    matches!(poll(&mut stdout, Some(&now)), Ok(1)) && !stdout[0].revents().is_empty()
}

/// Has SIGINT and SIGTERM end the output in order, and soon.
fn stop_on_signals(tell: SyncSender<Event>) -> std::io::Result<()> {
    // Before the thread exists: from here on no signal kills.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            signals.forever().next();
            // Where the queue is full, the output stands still: there is nothing to end in order.
            let _ = tell.try_send(Event::Stop);
            std::thread::sleep(GRACE);
            std::process::exit(0);
        })?;
    Ok(())
}
