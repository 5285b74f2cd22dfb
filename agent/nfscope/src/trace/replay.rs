//! `nfscope trace replay`: asks, replays, and prints the result beside the trace.

use super::cli::ReplayArgs;
use super::identity;
use anyhow::Context;
use nfscope_text::console::{self, say, warn};
use nfscope_text::progress_line::ProgressLine;
use nfscope_text::table::columns;
use nfscope_text::units;
use nfscope_trace::replay::{
    Credentials, OperationReport, Options, Pace, Ports, Quantiles, Replay, Report, Target,
};
use nfscope_trace::{Header, Host, Reader};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Operations between two looks at the progress.
const PROGRESS_EVERY: u64 = 1024;
/// Interval of lines about the progress where they stay.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// Late calls, as a part of all, from which the result has a warning.
const MANY_LATE: f64 = 0.01;

/// Replays.
///
/// # Errors
/// When the trace cannot be read, the server is the recorded one or refuses, or the user does.
pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<String> {
    let reader = open(&args.trace)?;
    let header = reader.header().clone();
    refuse_recorded(args, &header)?;
    let replay = Replay::plan(reader).with_context(|| args.trace.display().to_string())?;
    let pace = match args.closed_loop {
        true => Pace::Closed,
        false => Pace::Open { speed: args.speed },
    };
    let process = (rustix::process::getuid(), rustix::process::getgid());
    let options = Options {
        target: args.target.clone(),
        ports: Ports {
            nfs: args.nfs_port,
            mount: args.mount_port,
        },
        who: Credentials {
            uid: args.uid.unwrap_or(process.0.as_raw()),
            gid: args.gid.unwrap_or(process.1.as_raw()),
        },
        pace,
        times: args.times,
        max_connections: args.connections,
        sparse: args.sparse,
        keep: args.keep,
        directory: directory(),
    };
    for line in announcement(&replay, &header, &options) {
        say(&line);
    }
    if !args.yes {
        ask(&options)?;
    }
    let mut line = ProgressLine::new(PROGRESS_INTERVAL);
    let all = replay.operations();
    let operations = open(&args.trace)?;
    let report = replay.run(operations, &options, |n| {
        if n % PROGRESS_EVERY == 0 {
            line.show(&format!("{n} of {all} operations"));
        }
    });
    line.clear();
    let report = report?;
    for warning in warnings(&report, &header) {
        warn(&warning);
    }
    match args.json {
        true => Ok(console::json(&report)? + "\n"),
        false => Ok(text(&report, &header)),
    }
}

fn open(path: &Path) -> anyhow::Result<Reader> {
    Ok(Reader::open(path)?)
}

fn refuse_recorded(args: &ReplayArgs, header: &Header) -> anyhow::Result<()> {
    if args.allow_recorded_server {
        return Ok(());
    }
    let addresses = args.target.addresses()?;
    let Some(recorded) = &header.recorded else {
        warn("the trace does not say which server was recorded: make sure that it is not this one");
        return Ok(());
    };
    anyhow::ensure!(
        !identity::is_recorded(recorded, &addresses),
        "{} is the server that was recorded: name another one, or give --allow-recorded-server",
        args.target.host
    );
    Ok(())
}

fn directory() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.map_or(0, |d| d.as_secs());
    format!("nfscope-replay-{seconds}-{}", std::process::id())
}

/// Lines about what is going to be written.
fn announcement(replay: &Replay, header: &Header, options: &Options) -> Vec<String> {
    let Target { host, export } = &options.target;
    let repairs = replay.repairs();
    let times = u64::from(options.times);
    let length = Duration::from_nanos(replay.nanoseconds());
    let mut lines = vec![
        format!(
            "trace: {} operations of {}, in {}",
            replay.operations(),
            units::many(header.clients.len() as f64, "client"),
            units::length(length)
        ),
        format!(
            "into {host}:{}/{}: {} files (of which {} directories) with {}, before the replay",
            export.trim_end_matches('/'),
            options.directory,
            (repairs.files + repairs.to_remove) * times,
            repairs.directories * times,
            size(repairs.bytes.saturating_mul(times))
        ),
        format!(
            "the operations write {}",
            size(replay.written_bytes().saturating_mul(times))
        ),
    ];
    if let Pace::Open { speed } = options.pace {
        let seconds = length.as_secs_f64() / speed;
        let takes = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        lines.push(format!("the replay takes {}", units::length(takes)));
    }
    lines
}

/// Asks the user on the terminal.
fn ask(options: &Options) -> anyhow::Result<()> {
    anyhow::ensure!(
        std::io::stdin().is_terminal(),
        "a replay writes into the export: give --yes where no terminal can be asked"
    );
    let Target { host, export } = &options.target;
    write!(std::io::stderr(), "Write to {host}:{export}? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    anyhow::ensure!(
        matches!(answer.trim(), "y" | "Y" | "yes"),
        "nothing was written"
    );
    Ok(())
}

fn size(bytes: u64) -> String {
    units::bytes(bytes as f64).replace("/s", "")
}

fn warnings(report: &Report, header: &Header) -> Vec<String> {
    let mut warnings = Vec::new();
    let dropped = header.total_dropped();
    if dropped > 0 {
        warnings.push(format!(
            "{dropped} operations are missing in the trace: the load was higher than this one"
        ));
    }
    if header.sampled_one_in > 1 {
        warnings.push(format!(
            "the trace has one file of {}: --times {} has the load of all of them",
            header.sampled_one_in, header.sampled_one_in
        ));
    }
    if let Some(late) = report.late
        && late as f64 > report.issued as f64 * MANY_LATE
    {
        warnings.push(format!(
            "{late} of {} calls were sent more than 1 ms late: this client or its network was the limit, or the server took no more",
            report.issued
        ));
    }
    if report.shortened > 0 {
        warnings.push(format!(
            "{} READs and WRITEs were made shorter, because the server takes no longer ones",
            report.shortened
        ));
    }
    warnings
}

/// Result as text.
fn text(report: &Report, header: &Header) -> String {
    let pace = match report.speed {
        Some(speed) => format!("open loop at {speed} times the speed"),
        None => "closed loop".to_owned(),
    };
    let mut out = format!(
        "{} in {}, {pace}, {}, {}\n{} of {} recorded operations in {}; the trace has {}\n",
        report.directory,
        report.target,
        units::many(f64::from(report.times), "copy").replace("copys", "copies"),
        units::many(f64::from(report.connections), "connection"),
        report.issued,
        report.recorded * u64::from(report.times),
        units::seconds(report.seconds),
        units::seconds(report.recorded_seconds),
    );
    if let Some(q) = &report.latency_seconds {
        out += &format!(
            "{} operations/s; latency mean {}, p50 {}, p99 {}, max {}\n",
            units::rate(report.operations_per_second),
            units::seconds(q.mean),
            units::seconds(q.p50),
            units::seconds(q.p99),
            units::seconds(q.max)
        );
    }
    if let (Some(late), Some(q)) = (report.late, &report.lateness_seconds) {
        out += &format!(
            "late by more than 1 ms: {late}; lateness p50 {}, p99 {}, max {}\n",
            units::seconds(q.p50),
            units::seconds(q.p99),
            units::seconds(q.max)
        );
    }
    let head = [
        "VER",
        "OP",
        "AS",
        "RECORDED",
        "ISSUED",
        "OK",
        "OTHER STATUS",
        "BYTES",
        "RECORDED BYTES",
        "P50",
        "P99",
        "FROM DUE P99",
        "RECORDED P50",
        "P99",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(report.operations.iter().map(row));
    out += "\n";
    out += &columns(&rows);
    let with_errors = report.operations.iter().filter(|o| !o.errors.is_empty());
    for o in with_errors {
        let errors: Vec<_> = o.errors.iter().map(|(s, n)| format!("{n} {s}")).collect();
        out += &format!("failed: {} {}: {}\n", o.version, o.op, errors.join(", "));
    }
    if !report.left_out.is_empty() {
        out += "\nnot replayed:\n";
        let rows: Vec<_> = (report.left_out.iter())
            .map(|l| {
                [
                    l.operations.to_string(),
                    l.version.to_owned(),
                    l.op.clone(),
                    l.reason.to_owned(),
                ]
            })
            .collect();
        out += &columns(&rows);
    }
    let r = report.repairs;
    out += &format!(
        "\nmissing history: {} files and directories with {} were made because operations use them, \
         {} because operations remove or rename files that the trace does not name; \
         {} READs go beyond what the trace wrote; {} operations have no file\n",
        r.files,
        size(r.bytes),
        r.to_remove,
        r.reads_beyond_end,
        r.without_file
    );
    if header.host == Host::Server {
        out += "Recorded durations are times in the server, and latencies those of this client: compare replays with replays.\n";
    }
    out
}

fn row(o: &OperationReport) -> [String; 14] {
    let time = |q: &Option<Quantiles>, of: fn(&Quantiles) -> f64| {
        q.as_ref().map_or("-".to_owned(), |q| units::seconds(of(q)))
    };
    let moved = o.recorded_bytes > 0 || o.bytes > 0;
    let bytes = |n: u64| if moved { size(n) } else { "-".to_owned() };
    let p50 = |q: &Quantiles| q.p50;
    let p99 = |q: &Quantiles| q.p99;
    [
        o.version.to_owned(),
        o.op.clone(),
        o.procedure.clone().unwrap_or_else(|| "-".to_owned()),
        o.recorded.to_string(),
        o.issued.to_string(),
        o.succeeded.to_string(),
        o.other_status.to_string(),
        bytes(o.bytes),
        bytes(o.recorded_bytes),
        time(&o.latency_seconds, p50),
        time(&o.latency_seconds, p99),
        time(&o.latency_from_due_seconds, p99),
        time(&o.recorded_seconds, p50),
        time(&o.recorded_seconds, p99),
    ]
}
