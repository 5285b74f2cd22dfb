//! `nfscope trace record`: writes each operation of a server into a trace.

mod assemble;

use super::cli::RecordArgs;
use super::identity;
use crate::slow::stop_on_signals;
use crate::slow::stream::{SlowEvent, SlowStream};
use anyhow::Context;
use assemble::Assembler;
use nfscope_agent_client::events::channel;
use nfscope_api::slow_line::Line;
use nfscope_model::SlowFilter;
use nfscope_text::console::{say, warn};
use nfscope_text::units;
use nfscope_trace::{Header, Host, Writer};
use std::fs::File;
use std::io::BufWriter;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime};

/// Interval of the lines that say how far the recording is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// Time for operations to come that ended before the recording did: some of the agent's polls.
const DRAIN: Duration = Duration::from_millis(500);
/// Bytes of an operation that waits to be written, compressed.
const WAITING_BYTES: u64 = 16;
/// Operations that the writer may keep before it writes them.
const MOST_WAITING: u64 = 160 << 10;

/// Reason of drops: the agent or this program did not keep up.
const NOT_READ: &str = "not_read_in_time";
/// Reason of drops: a name of an operation that no trace can have.
const UNKNOWN: &str = "unknown_operation";

/// Records until the time has passed, the file is full, or a signal comes.
///
/// # Errors
/// When nothing can be recorded, or the file cannot be written. The file has all that came before.
pub(super) fn run(args: &RecordArgs) -> anyhow::Result<()> {
    anyhow::ensure!(
        !args.client,
        "a client's probes add RPCs up and report none by itself: record on the server, or import a capture with `nfscope trace import`"
    );
    let filter = SlowFilter {
        over: Duration::ZERO,
        ops: Vec::new(),
        client: None,
        per_second: args.limit,
    };
    let recorded = identity::recorded(addresses(args.url.as_deref())?.as_deref())?;
    let file = File::create_new(&args.out).with_context(|| {
        format!(
            "{} cannot be made: a recording overwrites no file",
            args.out.display()
        )
    })?;
    let mut header = Header::new(Host::Server, concat!("nfscope ", env!("CARGO_PKG_VERSION")));
    header.sampled_one_in = args.every_handle;
    header.recorded = Some(recorded);
    let (sender, events) = channel();
    let stream = SlowStream::open(args.url.as_deref(), &filter, &sender);
    let stream = stream.inspect_err(|_| drop(std::fs::remove_file(&args.out)))?;
    stop_on_signals(&sender)?;
    let mut recording = Recording {
        assembler: Assembler::new(args.every_handle),
        writer: Writer::new(BufWriter::new(file), header)?,
        left_out: 0,
    };
    let started = Instant::now();
    let mut said = started;
    say(&format!(
        "recording into {}{}; Ctrl-C ends it",
        args.out.display(),
        args.time
            .map_or_else(String::new, |t| format!(" for {}", units::length(t)))
    ));
    let mut failure = None;
    let why = loop {
        let now = Instant::now();
        if args.time.is_some_and(|t| now.duration_since(started) >= t) {
            break "the time has passed";
        }
        if recording.bytes() >= args.max_size {
            break "the file has its largest size (--max-size)";
        }
        if now.duration_since(said) >= PROGRESS_INTERVAL {
            said = now;
            say(&recording.progress());
        }
        let left = args.time.map(|t| t.saturating_sub(started.elapsed()));
        let wait = left.map_or(PROGRESS_INTERVAL, |l| l.min(PROGRESS_INTERVAL));
        match events.recv_timeout(wait) {
            Ok(SlowEvent::Line(line)) => recording.line(line)?,
            Ok(SlowEvent::Stop) => break "it was interrupted",
            Ok(SlowEvent::End(e)) => {
                failure = Some(e);
                break "the stream of operations ended";
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break "the stream of operations ended",
        }
    };
    let end = Instant::now() + DRAIN;
    while failure.is_none()
        && let Some(left) = end.checked_duration_since(Instant::now())
        && let Ok(event) = events.recv_timeout(left)
    {
        match event {
            SlowEvent::Line(line) => recording.line(line)?,
            SlowEvent::Stop => {}
            SlowEvent::End(_) => break,
        }
    }
    drop(stream);
    recording.finish(why)?;
    match failure {
        Some(e) => Err(e.context("the recording ended early; its file has what came before")),
        None => Ok(()),
    }
}

/// Addresses of the agent's host; `None` for this host.
fn addresses(url: Option<&str>) -> anyhow::Result<Option<Vec<IpAddr>>> {
    let Some(url) = url else {
        return Ok(None);
    };
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or(host);
    let with_port = match host.rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host.to_owned(),
        _ => format!("{host}:0"),
    };
    let found = with_port
        .to_socket_addrs()
        .with_context(|| format!("no address is known for {host}"))?;
    Ok(Some(found.map(|a| a.ip()).collect()))
}

struct Recording {
    assembler: Assembler,
    writer: Writer<BufWriter<File>>,
    left_out: u64,
}

impl Recording {
    fn line(&mut self, line: Line) -> anyhow::Result<()> {
        match line {
            Line::LeftOut { left_out: 0 } => {}
            Line::LeftOut { left_out } => {
                self.left_out += left_out;
                self.writer
                    .header_mut()
                    .count_dropped(NOT_READ, None, left_out);
            }
            Line::Op(op) => match self.assembler.operation(&op) {
                Some(operation) => {
                    let header = self.writer.header_mut();
                    while header.clients.len() < self.assembler.clients() as usize {
                        let name = format!("client-{}", header.clients.len() + 1);
                        header.clients.push(name);
                    }
                    self.writer.push(operation)?;
                }
                None if nfscope_trace::Op::named(&op.op).is_none() => {
                    self.writer.header_mut().count_dropped(UNKNOWN, None, 1);
                }
                None => {}
            },
        }
        Ok(())
    }

    /// Bytes of the file, and an estimate of those that wait for it.
    fn bytes(&self) -> u64 {
        let waiting = self.writer.operations().min(MOST_WAITING);
        self.writer.bytes_written() + waiting * WAITING_BYTES
    }

    fn progress(&self) -> String {
        format!(
            "{} operations, {} lost, {}",
            self.writer.operations(),
            self.left_out,
            units::bytes(self.bytes() as f64)
        )
    }

    fn finish(mut self, why: &str) -> anyhow::Result<()> {
        let operations = self.writer.operations();
        let not_sampled = self.assembler.not_sampled;
        let header = self.writer.header_mut();
        if let Some(began) = self.assembler.began {
            let since = |t: SystemTime| t.duration_since(SystemTime::UNIX_EPOCH).ok();
            header.began = since(began).map_or(0, |d| d.as_nanos() as u64);
            let length = SystemTime::now().duration_since(began).ok();
            header.length = length.and_then(|d| u64::try_from(d.as_nanos()).ok());
        }
        let dropped = header.total_dropped();
        let file = self.writer.finish()?;
        let file = file.into_inner().map_err(|e| e.into_error())?;
        file.sync_all().context("the trace cannot be stored")?;
        say(&format!("{why}: {operations} operations, {dropped} lost"));
        if not_sampled > 0 {
            say(&format!(
                "{not_sampled} operations of other files, or of none, are not in the sample"
            ));
        }
        if dropped > 0 {
            warn(&format!(
                "{dropped} operations are missing: the trace cannot claim complete counts, rates or sizes of files. \
                 Record fewer files (--every-handle), or closer to the agent"
            ));
        }
        Ok(())
    }
}
