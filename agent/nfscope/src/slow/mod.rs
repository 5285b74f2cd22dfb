//! `nfscope slow`: one line for each slow operation as it happens.

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

/// Bytes that are written at once, and a little more.
const MAX_WRITE: usize = 64 << 10;
/// Letters of a name that a line in a pipe shows at most.
const LONGEST: usize = 40;
/// Time to finish after a signal, where whoever reads the output does not.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints slow operations until interrupted, or as many as asked for.
///
/// # Errors
/// When there is no agent and none was found, when it refuses or goes away, or when the output does.
pub fn run(args: &SlowArgs) -> anyhow::Result<()> {
    let filter = SlowFilter {
        over: args.min_latency,
        ops: args.op.clone(),
        client: args.client,
        per_second: args.limit,
    };
    // Behind a full channel the agent waits, and counts what it must leave out.
    let (sender, events) = channel();
    let stream = SlowStream::open(args.url.as_deref(), &filter, &sender)?;
    stop_on_signals(&sender)?;
    let mut printer = Printer::new(args);
    let end = printer.all(&events, &stream);
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

    /// Prints until the end, which is an error where nobody asked for it.
    fn all(&mut self, events: &Receiver<SlowEvent>, stream: &SlowStream) -> anyhow::Result<()> {
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

    /// The end where this was the last event.
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
pub(crate) fn stop_on_signals(events: &EventSender<SlowEvent>) -> std::io::Result<()> {
    // Before the thread exists: from here on no signal kills.
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

/// Where the channel is full, nobody reads the output and the stop does not arrive: there is nothing to end in order.
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
