//! `stuck_requests`: threads have had requests in hand for long, now. A request is in no histogram before it has ended, so nothing else
//! shows a disk that hangs.

use crate::breakdown::{Breakdown, Op, Pending, mean, part, sum};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, pending};
use crate::thresholds::{
    LONG_STUCK_SECONDS, MIN_COUNT, MIN_UNUSUAL_SECONDS, PENDING_RATIO, STUCK_TAIL_RATIO,
    UNUSUAL_RATIO,
};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_model::held_request::{STUCK_SECONDS, WAITS};
use nfscope_model::{HeldRequest, Histogram};
use nfscope_text::units::{many, seconds};
use std::cmp::Ordering;

/// Wait of requests that may wait behind another stuck one.
const LOCK: &str = "lock";
/// Waits for devices below the export.
const FOR_DEVICES: [&str; 2] = ["disk", "throttle"];
/// Most requests that the evidence describes.
const NAMED_REQUESTS: usize = 3;
/// Most functions of a kernel stack that the evidence names.
const NAMED_FUNCTIONS: usize = 8;

/// A kind of finding whose cause requests in hand wait for, in words: requests that have not ended are in no histogram, and a cause that
/// they wait for is not ruled out.
pub fn in_hand_for(b: &Breakdown, kind: Kind) -> Option<String> {
    let wait = match kind {
        Kind::SlowIntentLog => "log",
        Kind::SlowDisk => "disk",
        Kind::WriteThrottle => "throttle",
        Kind::SlowUpcall => "upcall",
        Kind::DelegationRecalls => "recall",
        Kind::MemoryReclaim => "reclaim",
        Kind::CpuSaturation => "cpu",
        Kind::LockContention | Kind::UnknownWaits => LOCK,
        Kind::SlowReply => "reply",
        Kind::ThreadStarvation => {
            let p = not_taken(b)?;
            let of = many(p.connections, "connection");
            return Some(format!("no thread takes the requests of {of}"));
        }
        _ => return None,
    };
    let n = stuck(b).iter().filter(|r| r.wait == wait).count();
    let waits = if n == 1 {
        "is in hand and waits"
    } else {
        "are in hand and wait"
    };
    (n > 0).then(|| {
        format!(
            "{} {waits} for {}",
            many(n as f64, "request"),
            wait_name(wait)
        )
    })
}

/// The requests that are stuck, by [`causes_first`].
fn stuck(b: &Breakdown) -> Vec<&HeldRequest> {
    let mut all: Vec<_> = b.held.iter().filter(|r| is_stuck(b, r)).collect();
    all.sort_by(|a, b| causes_first(a, b));
    all
}

/// Advice if no thread takes requests.
fn threads_advice(illumos: bool) -> &'static str {
    match illumos {
        true => {
            "look at what the threads do, as root: echo '::stacks -m nfssrv' | mdb -k; and at their number: sharectl get -p servers nfs"
        }
        false => {
            "look at what the nfsd threads do, as root: for t in $(pgrep -x nfsd); do cat /proc/$t/stack; done; and at their number: cat /proc/fs/nfsd/threads"
        }
    }
}

/// Order of stuck requests: first those that wait for something outside, because others may wait for them behind a lock; then the oldest
/// first.
pub fn causes_first(a: &HeldRequest, b: &HeldRequest) -> Ordering {
    (a.wait == LOCK)
        .cmp(&(b.wait == LOCK))
        .then(b.seconds.total_cmp(&a.seconds))
}

fn is_stuck(b: &Breakdown, r: &HeldRequest) -> bool {
    let unusual = usual_seconds(b, r).is_some_and(|usual| r.seconds >= UNUSUAL_RATIO * usual);
    let old = r.seconds >= STUCK_SECONDS || (unusual && r.seconds >= MIN_UNUSUAL_SECONDS);
    old && r.seconds >= longest_usual(b, r)
}

/// Age up to which requests of this operation come and go on this server: many times as long as all but one in a thousand that ended in
/// the window took. Of an operation that did not end it is 0.
fn longest_usual(b: &Breakdown, r: &HeldRequest) -> f64 {
    let durations = same_op(b, r).and_then(|op| op.durations.as_ref());
    let tail = durations.and_then(|h| h.quantile(0.999)).unwrap_or(0.0);
    (STUCK_TAIL_RATIO * tail).min(LONG_STUCK_SECONDS)
}

fn same_op<'a>(b: &'a Breakdown, r: &HeldRequest) -> Option<&'a Op> {
    (b.ops.iter()).find(|o| (&o.version, &o.op) == (&r.version, &r.op))
}

/// Mean time of the operation, from those that ended in the window.
fn usual_seconds(b: &Breakdown, r: &HeldRequest) -> Option<f64> {
    let op = same_op(b, r).filter(|o| o.count >= MIN_COUNT)?;
    Some(mean(op.seconds, op.count))
}

/// Connections whose requests no thread takes, although threads take other requests sooner, or take none at all.
fn not_taken(b: &Breakdown) -> Option<Pending> {
    let usual = b.longest_queue_p99.unwrap_or(0.0);
    b.pending.filter(|p| {
        p.connections > 0.0 && p.oldest >= STUCK_SECONDS && p.oldest >= PENDING_RATIO * usual
    })
}

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let stuck = stuck(b);
    let not_taken = not_taken(b);
    let number = number_of(b, &stuck);
    // Time of the stuck requests in this window, beside the residence of requests that have ended.
    let held = sum(stuck.iter().map(|r| r.seconds.min(b.length)));
    // Each connection has one request that is known to have waited for `STUCK_SECONDS`.
    let waited = not_taken.map_or(0.0, |p| {
        (p.connections - 1.0) * STUCK_SECONDS + p.oldest.min(b.length)
    });
    let held = held + waited;
    let share = part(held, b.residence + held);
    let oldest = stuck.iter().map(|r| r.seconds).fold(0.0, f64::max);
    RuleResult {
        kind: Kind::StuckRequests,
        share: b.stuck.map(|_| share),
        of_threads: 0.0,
        condition: !stuck.is_empty() || not_taken.is_some(),
        max_severity: Severity::Critical,
        summary: [
            (!stuck.is_empty()).then(|| {
                format!(
                    "{} stuck in the server now, the oldest for {}",
                    match number {
                        1.0 => "1 request is".to_owned(),
                        n => format!("{n:.0} requests are"),
                    },
                    seconds(oldest)
                )
            }),
            not_taken.map(|p| {
                format!(
                    "no thread takes the requests of {}, the oldest for {}",
                    many(p.connections, "connection"),
                    seconds(p.oldest)
                )
            }),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; "),
        evidence: evidence_for(context, &stuck, number),
        advice: (advice_for(b, &stuck).into_iter())
            .chain(not_taken.map(|_| threads_advice(b.illumos).to_owned()))
            .collect(),
        ruled_out_reason: match b.stuck {
            None => "this agent does not tell which requests are in hand".into(),
            Some(_) => format!(
                "no request is in hand for {} or longer, and much longer than its operation takes here",
                seconds(STUCK_SECONDS)
            ),
        },
    }
}

/// Number of stuck requests. Some old requests are counted and not described: they are stuck if all old ones that are described are.
fn number_of(b: &Breakdown, stuck: &[&HeldRequest]) -> f64 {
    let is_old = |r: &&HeldRequest| r.seconds >= STUCK_SECONDS;
    let described = b.held.iter().filter(is_old).count();
    let all_are = stuck.iter().copied().filter(is_old).count() == described;
    let undescribed = (b.stuck.unwrap_or(0.0) - described as f64).max(0.0);
    stuck.len() as f64 + if all_are { undescribed } else { 0.0 }
}

fn evidence_for(context: &Context, stuck: &[&HeldRequest], number: f64) -> Vec<Evidence> {
    let b = context.breakdown;
    let mut all = Vec::new();
    if b.threads > 0.0 && number > 0.0 {
        let text = format!(
            "{number:.0} of {} {} in hand",
            many(b.threads, "thread"),
            match number {
                1.0 => "has such a request",
                _ => "have such requests",
            }
        );
        all.push(evidence(&f::STUCK_REQUESTS.info, number, None, text));
    }
    all.extend(pending(b));
    let mut named: Vec<(String, f64, usize)> = Vec::new();
    for r in stuck {
        let usual = usual_seconds(b, r).map(|u| format!(", usually {}", seconds(u)));
        let text = format!(
            "{} is in hand for {}{} and waits for {}",
            description(r),
            seconds(r.seconds),
            usual.unwrap_or_default(),
            wait_name(&r.wait)
        );
        if let Some((_, _, more)) = named.iter_mut().find(|(said, ..)| *said == text) {
            *more += 1;
        } else if named.len() < NAMED_REQUESTS {
            named.push((text, r.seconds, 0));
        }
    }
    for (mut text, held, more) in named {
        if more > 0 {
            text += &format!("; {more} more are alike");
        }
        let limit = Some(STUCK_SECONDS);
        all.push(evidence(&f::OLDEST_REQUEST.info, held, limit, text));
    }
    if stuck.len() > 1 {
        for wait in WAITS {
            let number = stuck.iter().filter(|r| r.wait == wait).count() as f64;
            if number > 0.0 {
                let text = format!(
                    "{number:.0} of {} stuck requests {} for {}",
                    stuck.len(),
                    match number {
                        1.0 => "waits",
                        _ => "wait",
                    },
                    wait_name(wait)
                );
                all.push(evidence(&f::STUCK_REQUESTS.info, number, None, text));
            }
        }
    }
    all.extend(completions_evidence(b, stuck));
    if let Some(r) = stuck.iter().find(|r| !r.stack.is_empty()) {
        all.push(stack_evidence(r.thread, r.seconds, &r.stack));
    }
    all
}

/// Evidence about the kernel functions in which a thread sleeps.
pub fn stack_evidence(thread: u32, held: f64, stack: &[String]) -> Evidence {
    let text = format!("thread {thread} sleeps in {}", named_functions(stack));
    evidence(&f::OLDEST_REQUEST.info, held, None, text)
}

/// The innermost functions of a stack.
pub fn named_functions(stack: &[String]) -> String {
    let functions: Vec<_> = (stack.iter())
        .take(NAMED_FUNCTIONS)
        .map(String::as_str)
        .collect();
    functions.join(" < ")
}

/// `a WRITE over NFSv3 of 192.0.2.7 (inode 12 on /srv)`.
fn description(r: &HeldRequest) -> String {
    let mut text = match r.op.as_str() {
        "" => "a request".to_owned(),
        op => format!("a {} over NFSv{}", op.to_uppercase(), r.version),
    };
    if let Some(client) = &r.client {
        text += &format!(" of {client}");
    }
    match (r.inode, &r.export) {
        (Some(inode), Some(export)) => text += &format!(" (inode {inode} on {export})"),
        (Some(inode), None) => text += &format!(" (inode {inode})"),
        (None, Some(export)) => text += &format!(" (on {export})"),
        (None, None) => {}
    }
    text
}

/// Text for a label `wait`.
fn wait_name(wait: &str) -> &str {
    match wait {
        "cpu" => "a CPU, or runs",
        "log" => "the journal or intent log",
        "disk" => "a disk",
        "lock" => "a lock, another thread or another program",
        "throttle" => "written data to be stored",
        "upcall" => "an answer of rpc.mountd or another daemon",
        "recall" => "a client to return a delegation",
        "reclaim" => "free memory",
        "reply" => "the client or the network to take its reply",
        _ => "something that this host cannot measure",
    }
}

/// Requests that a device below an export completed in the window.
struct Completions<'a> {
    device: &'a str,
    number: f64,
    /// Mean seconds of a request.
    each: Option<f64>,
}

/// Requests that each device below any export completed, the least first. Empty if they are not measured. A device may be below several
/// exports, of which the breakdown names one, so the devices of one export cannot be distinguished from those of others.
fn completions(b: &Breakdown) -> Vec<Completions<'_>> {
    if b.lacks(&f::BLOCK_DEVICE.info) {
        return Vec::new();
    }
    let known = b.export_devices.iter().flatten();
    let mut all: Vec<_> = known
        .map(|(device, _)| {
            let of = b.disks.iter().filter(|d| d.device == *device);
            let all = Histogram::merged(of.map(|d| &d.requests));
            Completions {
                device,
                number: all.as_ref().map_or(0.0, |h| h.count() as f64),
                each: all.as_ref().and_then(Histogram::mean),
            }
        })
        .collect();
    all.sort_by(|a, b| a.number.total_cmp(&b.number).then(a.device.cmp(b.device)));
    all
}

/// Returns true if every device below exports completed requests during the whole time: this request has been in hand for longer than the
/// window.
fn devices_answer(b: &Breakdown, completed: &[Completions], r: &HeldRequest) -> bool {
    let least = completed.first();
    r.seconds >= b.length && least.is_some_and(|c| c.number >= MIN_COUNT)
}

/// Evidence about the only device below exports, or about the one that completed the fewest requests if all of them answer.
fn completions_evidence(b: &Breakdown, stuck: &[&HeldRequest]) -> Option<Evidence> {
    let for_devices = |r: &&&HeldRequest| FOR_DEVICES.contains(&r.wait.as_str());
    let r = stuck.iter().find(for_devices)?;
    let completed = completions(b);
    let all_the_while = devices_answer(b, &completed, r);
    let answers = |c: &&Completions| all_the_while || completed.len() == 1 || c.number >= MIN_COUNT;
    let least = completed.first().filter(answers)?;
    let text = format!(
        "{} completed {} in {}{}{}",
        least.device,
        many(least.number, "request"),
        seconds(b.length),
        match all_the_while {
            true => ", all of them while that request was in hand",
            false => "",
        },
        match least.each {
            Some(each) => format!(", {} each on average", seconds(each)),
            None => String::new(),
        }
    );
    Some(evidence(&f::BLOCK_DEVICE.info, least.number, None, text))
}

/// Advice for each kind of wait: the most frequent one first, and locks last.
fn advice_for(b: &Breakdown, stuck: &[&HeldRequest]) -> Vec<String> {
    let illumos = b.illumos;
    let number = |wait: &str| stuck.iter().filter(|r| r.wait == wait).count();
    let mut waits: Vec<_> = WAITS.into_iter().filter(|w| number(w) > 0).collect();
    waits.sort_by_key(|w| (*w == LOCK, std::cmp::Reverse(number(w))));
    let completed = completions(b);
    let answer = |wait: &str| {
        let mut all = stuck.iter().filter(|r| r.wait == wait);
        all.all(|r| devices_answer(b, &completed, r))
    };
    let mut all: Vec<String> = Vec::new();
    for wait in waits {
        let text = match wait {
            "log" | "disk" | "throttle" if illumos => {
                "look for the device of the pool that does not answer: zpool status -x, iostat -xn 1, fmadm faulty"
            }
            "upcall" if illumos => {
                "mountd or another daemon answers slowly or not at all: svcs -xv; look at the name service that it asks (DNS, LDAP)"
            }
            "reclaim" if illumos => {
                "look for what uses the memory: echo ::memstat | mdb -k; prstat -s rss"
            }
            "reply" if illumos => {
                "a client does not read its replies: look at that client, and at the network to it"
            }
            _ if illumos => {
                "look at what the threads sleep in, as root: echo '::stacks -m nfssrv' | mdb -k"
            }
            _ if FOR_DEVICES.contains(&wait) && answer(wait) => {
                "the devices below the export answer: look at how busy they are, and with what (iostat -x 1, iotop), at how much this \
                 request has to read or store, and in dmesg for errors of single requests"
            }
            _ if FOR_DEVICES.contains(&wait)
                && completed.first().is_some_and(|c| c.number >= MIN_COUNT) =>
            {
                "the devices below the export answered in this window. See whether one does not answer any more: iostat -x 1, dmesg \
                 (errors, resets), dmsetup info (suspended). Else look at how much this request has to read or store"
            }
            "log" | "disk" | "throttle" => {
                "look for the device below the export that does not answer: dmesg (errors, resets), dmsetup info (suspended), \
                 multipath -ll, zpool status, /proc/mdstat"
            }
            "lock" => {
                "look at what the threads sleep in, as root: cat /proc/THREAD/stack. A frozen file system (fsfreeze), a \
                 client that does not give a delegation back, and a hung disk of another thread look like this"
            }
            "upcall" => {
                "rpc.mountd or another daemon answers slowly or not at all: systemctl status nfs-mountd nfsdcld nfs-idmapd; look \
                 at the name service that it asks (DNS, LDAP)"
            }
            "reclaim" => {
                "look for what uses the memory (free -m, slabtop), and for a device that takes no writes: dmesg"
            }
            "reply" => {
                "a client does not read its replies: look at that client, and at the network to it (ss -ti)"
            }
            "cpu" => {
                "look for what uses the CPUs (top), and at what the threads run in, as root: cat /proc/THREAD/stack"
            }
            _ => "look at what the threads sleep in, as root: cat /proc/THREAD/stack",
        };
        if !all.iter().any(|known| known == text) {
            all.push(text.to_owned());
        }
    }
    all
}

#[cfg(test)]
#[path = "stuck_requests_tests.rs"]
mod tests;
