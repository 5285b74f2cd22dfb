//! `nfscope slow`: prints one line for each slow operation as it happens.

pub(crate) mod stream;
pub mod table;

use crate::cli::SlowArgs;
use crate::slow::stream::{SlowEvent, SlowStream};
use crate::slow::table::{Style, Table};
use nfscope_agent_client::events::{EventSender, channel};
use nfscope_api::slow_line::Line;
use nfscope_model::{SlowFilter, SlowOp};
use nfscope_text::console::{colors, say};
use nfscope_text::timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime};
use terminal_size::{Width, terminal_size_of};

/// Bytes of a write to stdout; the last operation may exceed it.
const MAX_WRITE: usize = 64 << 10;
/// Most characters of a name on a line in a pipe.
const LONGEST: usize = 40;
/// Time to finish after a signal if the output is blocked.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints slow operations until interrupted, or until `--count` is reached.
///
/// # Errors
/// When there is no agent and own probes cannot be attached, when the agent refuses or goes away, or when stdout cannot be written.
pub fn run(args: &SlowArgs) -> anyhow::Result<()> {
    let filter = SlowFilter {
        over: args.min_latency,
        ops: args.op.clone(),
        client: args.client,
        per_second: args.limit,
    };
    // A full channel stops the reader; the agent then counts the operations that it leaves out.
    let (sender, events) = channel();
    let stream = SlowStream::open(args.url.as_deref(), &filter, &sender)?;
    stop_on_signals(&sender)?;
    let mut printer = Printer::new(args);
    let end = printer.all(&events, &stream);
    match &end {
        // The reader of the pipe has exited, so a summary would reach no reader.
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

/// Printer of slow operations, with its counters.
struct Printer<'a> {
    args: &'a SlowArgs,
    table: Table,
    color: bool,
    shown: u64,
    left_out: u64,
    phases_explained: bool,
    /// Text that is not written yet.
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
            width: match terminal_size_of(std::io::stdout()) {
                Some((Width(w), _)) if !self.args.wide => w.into(),
                _ => usize::MAX,
            },
            longest: match self.args.wide {
                true => usize::MAX,
                false => LONGEST,
            },
            color: self.color,
            offset: timestamp::local_offset(at),
        }
    }

    /// Prints until the end. An end that the user did not ask for is an error.
    fn all(&mut self, events: &Receiver<SlowEvent>, stream: &SlowStream) -> anyhow::Result<()> {
        // The heading appears at once, which shows that the command runs.
        if !self.args.json
            && let Some(heading) = self.table.heading(self.style(SystemTime::now()))
        {
            self.text += &heading;
            self.write()?;
        }
        loop {
            // Writes when no event waits, so that the reader of a pipe sees each operation as it happens.
            let mut next = events.recv().ok();
            while let Some(event) = next {
                if let Some(end) = self.event(event, stream)? {
                    self.write()?;
                    return end;
                }
                if self.text.len() > MAX_WRITE {
                    break;
                }
                next = events.try_recv().ok();
            }
            self.write()?;
        }
    }

    /// Handles an event; returns the result of the command if this was the last one.
    fn event(
        &mut self,
        event: SlowEvent,
        stream: &SlowStream,
    ) -> anyhow::Result<Option<anyhow::Result<()>>> {
        match event {
            SlowEvent::Line(Line::Op(op)) => {
                self.op(*op, stream)?;
                self.shown += 1;
                if self.args.count == Some(self.shown) {
                    return Ok(Some(Ok(())));
                }
            }
            SlowEvent::Line(Line::LeftOut { left_out: 0 }) if hung_up() => {
                return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
            }
            SlowEvent::Line(Line::LeftOut { left_out: 0 }) => {}
            SlowEvent::Line(Line::LeftOut { left_out }) => {
                self.left_out += left_out;
                if self.args.json {
                    self.text += &Line::LeftOut { left_out }.encode()?;
                } else {
                    self.note(&format!(
                        "{left_out} left out: more than {} per second, or more than was read in time",
                        self.args.limit
                    ))?;
                }
            }
            SlowEvent::Stop => return Ok(Some(Ok(()))),
            SlowEvent::End(why) => return Ok(Some(Err(why))),
        }
        Ok(None)
    }

    fn op(&mut self, op: SlowOp, stream: &SlowStream) -> anyhow::Result<()> {
        if self.args.json {
            self.text += &Line::Op(Box::new(op)).encode()?;
            return Ok(());
        }
        if op.phases.is_none() && !self.phases_explained {
            self.phases_explained = true;
            self.note(&format!("no phases: {}", stream.why_no_phases()))?;
        }
        let style = self.style(op.at);
        self.text += &self.table.row(&op, style);
        Ok(())
    }

    /// Prints a note after the lines so far.
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

/// Returns true if stdout has no reader any more. On a quiet server, no write would show that for hours.
fn hung_up() -> bool {
    let stdout = std::io::stdout();
    let mut stdout = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::default();
    matches!(poll(&mut stdout, Some(&now)), Ok(1)) && !stdout[0].revents().is_empty()
}

/// Ends the output on SIGINT and SIGTERM, within [`STOP_TIMEOUT`].
fn stop_on_signals(events: &EventSender<SlowEvent>) -> std::io::Result<()> {
    // The handlers are set before the thread exists, so that no signal kills the process from here on.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    events.spawn(
        "signals",
        std::iter::once_with(move || {
            signals.forever().next();
            exit_later();
            SlowEvent::Stop
        }),
    )
}

/// Exits after [`STOP_TIMEOUT`]. A full channel whose output is blocked never delivers the stop event.
fn exit_later() {
    let exit = || {
        std::thread::sleep(STOP_TIMEOUT);
        std::process::exit(0)
    };
    let thread = std::thread::Builder::new().name("exit".to_owned());
    if thread.spawn(exit).is_err() {
        std::process::exit(0);
    }
}
