//! Usual times of this server's own requests, learned from its earlier windows. Severity follows how much longer requests take than usual.
//!
//! Fixed limits of length know no server: a log of 8 ms may have been there for years, and one of 0.8 ms may be eight times as slow as it
//! was yesterday. Means decide, and not quantiles: clients lose time, and a mean has all of it, that of rare stalls included.

use crate::breakdown::{Breakdown, Phases, mean, part, sum};
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::{LEARNED_SECONDS, LONG_PART, MIN_LEARNED};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind};
use nfscope_text::units::{length, seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Windows count in full for this time, in seconds. From then on all of them count half as much.
const MEMORY_SECONDS: f64 = 86_400.0;

/// Usual times of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Normal {
    /// Seconds of the windows that the times were learned from.
    pub seconds: f64,
    /// Operations with enough of them.
    pub ops: Vec<UsualOp>,
    /// Seconds of a request's wait for a thread; `None` with too few requests.
    pub queue: Option<f64>,
    /// Seconds of sending a reply; `None` with too few requests.
    pub reply: Option<f64>,
}

/// Usual time of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsualOp {
    /// NFS version.
    pub version: String,
    /// Name of the operation.
    pub op: String,
    /// Mean execution time, in seconds.
    pub seconds: f64,
}

/// The phase that a kind of finding is about; `None` where operations do not wait for its cause, or where lengths do not decide.
fn phase_of(kind: Kind) -> Option<fn(&Phases) -> f64> {
    Some(match kind {
        Kind::SlowIntentLog => |p| p.log.unwrap_or(0.0),
        Kind::SlowDisk => |p| p.disk,
        Kind::WriteThrottle => |p| p.throttle,
        Kind::DelegationRecalls => |p| p.recall,
        Kind::MemoryReclaim => |p| p.reclaim,
        Kind::LockContention => |p| p.lock,
        _ => return None,
    })
}

/// Returns true if the severity of a kind follows the usual times where they are known. CPUs without an idle moment are at their limit
/// whatever is usual, and waits for daemons may be in no request's time.
pub fn is_compared(kind: Kind) -> bool {
    phase_of(kind).is_some() || matches!(kind, Kind::ThreadStarvation | Kind::SlowReply)
}

/// The part of a time that exceeds the usual one.
fn beyond(now: f64, usual: f64) -> f64 {
    part((now - usual).max(0.0), now)
}

impl Normal {
    /// Usual time of an operation.
    fn op(&self, version: &str, op: &str) -> Option<f64> {
        let mut same = self
            .ops
            .iter()
            .filter(|o| o.version == version && o.op == op);
        Some(same.next()?.seconds)
    }

    /// The part of the waits for a cause that is more than usual, 0 to 1; `None` where that is not known, or is of no account for the kind.
    pub fn beyond_usual(&self, kind: Kind, b: &Breakdown) -> Option<f64> {
        match kind {
            Kind::ThreadStarvation => return Some(beyond(mean(b.queue, b.queued), self.queue?)),
            Kind::SlowReply => return Some(beyond(mean(b.reply, b.requests), self.reply?)),
            _ => {}
        }
        let phase = phase_of(kind)?;
        let known = || {
            let ops = b.ops.iter();
            ops.filter_map(|o| Some((o, self.op(&o.version, &o.op)?)))
        };
        let of_known = sum(known().map(|(o, _)| phase(&o.phases)));
        let of_all = sum(b.ops.iter().map(|o| phase(&o.phases)));
        if part(of_known, of_all) < LONG_PART {
            return None;
        }
        let late =
            known().map(|(o, usual)| phase(&o.phases) * beyond(mean(o.seconds, o.count), usual));
        Some(part(sum(late), of_known))
    }

    /// Sentence on the times now and usually.
    pub fn sentence(&self, kind: Kind, b: &Breakdown) -> Option<Evidence> {
        let late = self.beyond_usual(kind, b)?;
        let (info, what, now, usual) = match kind {
            Kind::ThreadStarvation => (
                &f::RPC_QUEUE.info,
                "a request waits for a thread for".to_owned(),
                mean(b.queue, b.queued),
                self.queue?,
            ),
            Kind::SlowReply => (
                &f::RPC_PHASE.info,
                "sending a reply takes".to_owned(),
                mean(b.reply, b.requests),
                self.reply?,
            ),
            _ => {
                let phase = phase_of(kind)?;
                let known = |o: &&crate::breakdown::Op| self.op(&o.version, &o.op).is_some();
                let all = b.ops.iter().filter(known);
                let op = all.max_by(|x, y| phase(&x.phases).total_cmp(&phase(&y.phases)))?;
                let what = format!("{} over NFSv{} takes", op.op.to_uppercase(), op.version);
                let usual = self.op(&op.version, &op.op)?;
                (
                    &f::OP_DURATION.info,
                    what,
                    mean(op.seconds, op.count),
                    usual,
                )
            }
        };
        let text = format!(
            "{what} {} on average, and usually {} on this server (the last {} without a critical finding): {} of these waits are more \
             than usual, which decides about the severity",
            seconds(now),
            seconds(usual),
            length(Duration::from_secs_f64(self.seconds.clamp(0.0, 1e9))),
            // Sums of the same times differ by rounding.
            percent((late * 1000.0).round() / 1000.0)
        );
        Some(evidence(info, now, Some(usual), text))
    }
}

/// A number of events, and their time.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    count: f64,
    seconds: f64,
}

impl Total {
    fn add(&mut self, count: f64, seconds: f64) {
        self.count += count;
        self.seconds += seconds;
    }

    fn halve(&mut self) {
        (self.count, self.seconds) = (self.count / 2.0, self.seconds / 2.0);
    }

    fn mean(self) -> Option<f64> {
        (self.count >= MIN_LEARNED).then(|| mean(self.seconds, self.count))
    }
}

/// Learns the usual times of a server from its windows.
#[derive(Debug, Default)]
pub struct Learner {
    seconds: f64,
    /// By version and operation, of which the probes know a bounded number.
    ops: BTreeMap<(String, String), Total>,
    queue: Total,
    reply: Total,
}

impl Learner {
    /// Adds a window. The caller leaves out windows with a critical finding, so that a lasting fault does not become usual.
    pub fn add(&mut self, b: &Breakdown) {
        self.seconds += b.length;
        for o in &b.ops {
            let of = self
                .ops
                .entry((o.version.clone(), o.op.clone()))
                .or_default();
            of.add(o.count, o.seconds);
        }
        self.queue.add(b.queued, b.queue);
        self.reply.add(b.requests, b.reply);
        if self.seconds >= MEMORY_SECONDS {
            self.seconds /= 2.0;
            self.ops.values_mut().for_each(Total::halve);
            self.queue.halve();
            self.reply.halve();
        }
    }

    /// The usual times; `None` until enough was seen.
    pub fn normal(&self) -> Option<Normal> {
        let ops = self.ops.iter().filter_map(|((version, op), total)| {
            Some(UsualOp {
                version: version.clone(),
                op: op.clone(),
                seconds: total.mean()?,
            })
        });
        (self.seconds >= LEARNED_SECONDS).then(|| Normal {
            seconds: self.seconds,
            ops: ops.collect(),
            queue: self.queue.mean(),
            reply: self.reply.mean(),
        })
    }
}
