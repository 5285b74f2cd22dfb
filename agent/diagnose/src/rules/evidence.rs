//! Evidence that several rules give, and its wording.

use crate::attribution::slowest_disk;
use crate::breakdown::{Breakdown, Op, part, sum};
use crate::by_client::Mostly;
use crate::group;
use crate::long_waits::long_waits;
use crate::rules::context::Context;
use crate::thresholds::{BUSY_CPU_IDLE, LONG_PART, LONG_WAIT_SECONDS};
use nfscope_model::finding::Evidence;
use nfscope_model::held_request::STUCK_SECONDS;
use nfscope_model::{Histogram, Info, family as f};
use nfscope_text::units::{many, seconds};

/// Reason if operations are not broken down into phases.
pub const NO_PHASES: &str =
    "the phases of operations are not measured on this host; `nfscope check` shows why";

/// Reason if a kind of wait is not distinguished from others.
pub const NOT_APART: &str = "this host, or this release of the agent, does not tell such waits from others; `nfscope check` shows why";

/// Text for the phase `lock`, which is every sleep without a phase of its own.
pub const IN_OTHER_WAITS: &str =
    "in other waits (locks, other threads, anything that is not named)";

/// Least share of the queue that is evidence.
pub const MIN_QUEUE_SHARE: f64 = 0.01;

/// Excess of a client's part of the operations over an equal part of all clients, from which on the client stands out.
const STANDS_OUT: f64 = 0.25;

/// Ratio to the mean from which on the longest request is printed beside it.
const FAR_LONGER: f64 = 10.0;

/// The part of a client's requests that are `what`, beside the least part for a finding.
pub fn of_client(one: &Mostly, what: &str, least: f64) -> Evidence {
    let text = format!(
        "{} of the requests of {} are {what}",
        percent(one.of_requests),
        one.client
    );
    evidence(&f::CLIENT_OPS.info, one.of_requests, Some(least), text)
}

/// A number with its sentence.
pub fn evidence(info: &Info, value: f64, limit: Option<f64>, text: String) -> Evidence {
    Evidence {
        text,
        metric: info.name.to_owned(),
        value,
        limit,
    }
}

/// A part of a whole, for a sentence.
pub fn percent(part: f64) -> String {
    match part * 100.0 {
        p if p > 0.0 && p < 0.95 => "less than 1 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// Bytes in a binary unit, for a sentence.
pub fn bytes(n: f64) -> String {
    match n {
        n if n < 1024.0 => format!("{n:.0} bytes"),
        n if n < 1024.0 * 1024.0 => format!("{:.0} KiB", n / 1024.0),
        n => format!("{:.1} MiB", n / 1024.0 / 1024.0),
    }
}

/// Sentence about the 99th percentile and the maximum of durations. The percentile is left out if it is below the mean: with a few very
/// long durations the mean can exceed it.
pub fn tail(h: &Histogram, mean: f64) -> String {
    let p99 = h.quantile(0.99).filter(|p99| *p99 >= mean);
    let p99 = p99.map_or(String::new(), |p99| format!("p99 {}, ", seconds(p99)));
    let longest = long_waits(h, 0.0).longest;
    let last = h.scheme.edge(h.scheme.len.saturating_sub(2));
    match longest.is_finite() {
        true => format!("{p99}{} at most", seconds(longest)),
        false => format!("{p99}the longest over {}", seconds(last)),
    }
}

/// Distribution of the times of an operation.
pub fn spread(op: &Op) -> Option<Evidence> {
    let h = op.durations.as_ref()?;
    let long = long_waits(h, LONG_WAIT_SECONDS);
    let text = format!(
        "{} over NFSv{} takes {} on average, {}; operations of {} or longer have {} of its time",
        op.op.to_uppercase(),
        op.version,
        seconds(h.mean()?),
        tail(h, h.mean()?),
        seconds(LONG_WAIT_SECONDS),
        percent(long.of_time)
    );
    Some(evidence(&f::OP_DURATION.info, long.of_time, None, text))
}

/// The slowest device of the exports, and an export that lies on it.
pub fn slowest_device(b: &Breakdown) -> Option<Evidence> {
    let (disk, mean) = slowest_disk(b)?;
    let lies = match b.export_of(&disk.device) {
        Some(export) => format!(", which {export} lies on,"),
        None => String::new(),
    };
    // A device that stalls now and then has the mean of a fast device, so its longest request is printed, too.
    let longest = long_waits(&disk.requests, 0.0).longest;
    let longest = match longest.is_finite() && longest >= FAR_LONGER * mean {
        true => format!(", {} at most", seconds(longest)),
        false => String::new(),
    };
    let text = format!(
        "one {} request to {}{lies} takes {} on average{longest}",
        disk.op,
        disk.device,
        seconds(mean)
    );
    Some(evidence(&f::BLOCK_DEVICE.info, mean, None, text))
}

/// Clients that wrote most of what fills the disks, where one of several stands out, or a group of them does. Clients that wait for it may
/// be others.
pub fn who_fills(b: &Breakdown) -> Option<Evidence> {
    let all = sum(b.clients.iter().map(|c| c.written));
    let mut parts: Vec<_> = (b.clients.iter())
        .map(|c| (c.name.as_str(), part(c.written, all)))
        .filter(|(_, part)| *part > 0.0)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let [(first, most), _, ..] = parts[..] else {
        return None;
    };
    let (who, share) = match group::leading(&parts) {
        Some(group) if group.names.len() == group.of => return None,
        Some(group) => (group.words(), group.share),
        None if most >= LONG_PART => (format!("client {first} has {}", percent(most)), most),
        None => return None,
    };
    let text = format!("{who} of the {} that clients wrote", bytes(all));
    Some(evidence(&f::CLIENT_IO_BYTES.info, share, None, text))
}

/// The idle part of the CPUs' time.
pub fn cpu_idle(context: &Context) -> Option<Evidence> {
    let b = context.breakdown;
    let (idle, cpus) = (b.cpu_idle?, b.cpus?);
    let text = format!("CPU idle time is {} ({})", percent(idle), many(cpus, "CPU"));
    let limit = Some(BUSY_CPU_IDLE);
    Some(evidence(&f::CPU_IDLE.info, idle, limit, text))
}

/// Connections with requests that no thread has taken.
pub fn pending(b: &Breakdown) -> Option<Evidence> {
    let pending = b.pending.filter(|p| p.connections > 0.0)?;
    let text = format!(
        "{} with a request that arrived {} ago or earlier and that no thread has taken; the oldest arrived {} ago",
        match pending.connections {
            1.0 => "there is 1 connection".to_owned(),
            n => format!("there are {n:.0} connections"),
        },
        seconds(STUCK_SECONDS),
        seconds(pending.oldest)
    );
    Some(evidence(
        &f::PENDING_CONNECTIONS.info,
        pending.connections,
        None,
        text,
    ))
}

/// The client that sends most operations, if it stands out from the other clients.
pub fn busiest_client(context: &Context) -> Option<Evidence> {
    let b = context.breakdown;
    let (client, part) = b.busiest_client()?;
    let alike = 1.0 / b.clients.len() as f64;
    if b.clients.len() > 1 && part < alike + STANDS_OUT {
        return None;
    }
    let text = format!("{} sends {} of the operations", client.name, percent(part));
    Some(evidence(&f::CLIENT_OPS.info, part, None, text))
}
