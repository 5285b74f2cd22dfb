//! Subscribers of slow operations, and the lines of each. They live on the thread that owns the source.
//!
//! The source watches for all subscribers at once, and only while there are any. Lines that a subscriber does not take in time are left out
//! for it alone, and counted: memory holds at most [`queue`] lines for each.

use crate::names::Names;
use bytes::Bytes;
use nfscope_api::slow_filter;
use nfscope_api::slow_line::{HEARTBEAT_INTERVAL, Line};
use nfscope_model::{SlowFilter, SlowOp};
use nfscope_source::Source;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Most subscribers at once.
pub const MAX_SUBSCRIBERS: usize = 8;
/// Interval at which the source is polled while there are subscribers.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Least and greatest number of lines of some 400 bytes that wait for one subscriber.
const LINES: RangeInclusive<usize> = 2048..=32_768;
/// Least time between two reports of lines that were left out.
const LEFT_OUT_INTERVAL: Duration = Duration::from_secs(1);

/// Lines that may wait for a subscriber that asked for `per_second`: those of a quarter of a second, within [`LINES`]. The source hands
/// over the operations of [`POLL_INTERVAL`] at once.
fn queue(per_second: u32) -> usize {
    (per_second as usize / 4).clamp(*LINES.start(), *LINES.end())
}

struct Subscriber {
    filter: SlowFilter,
    lines: Sender<Bytes>,
    /// Operations left out and not yet reported.
    missed: u64,
    /// Time of the last line.
    last_line: Instant,
    /// Time of the last report of operations left out.
    reported: Option<Instant>,
    /// Begin of the current second, and number of operations sent in it.
    second: (Instant, u32),
}

impl Subscriber {
    /// Offers an operation to the subscriber; `line` gives its text.
    fn offer(
        &mut self,
        op: &SlowOp,
        limited: bool,
        now: Instant,
        line: impl FnOnce() -> Option<Bytes>,
    ) {
        if !slow_filter::wants(&self.filter, op) {
            return;
        }
        if now.duration_since(self.second.0) >= Duration::from_secs(1) {
            self.second = (now, 0);
        }
        let full = limited && self.second.1 >= self.filter.per_second;
        let sent = !full && line().is_some_and(|line| self.lines.try_send(line).is_ok());
        if sent {
            self.second.1 += 1;
            self.last_line = now;
        } else {
            self.missed += 1;
        }
    }

    fn report(&mut self, now: Instant) {
        let old = |at: Instant, age| now.duration_since(at) >= age;
        let due = self.missed > 0 && self.reported.is_none_or(|at| old(at, LEFT_OUT_INTERVAL));
        if !due && !old(self.last_line, HEARTBEAT_INTERVAL) {
            return;
        }
        let line = Line::LeftOut {
            left_out: self.missed,
        };
        // If the line does not fit, the count stays and is reported later.
        if let Ok(text) = line.encode()
            && self.lines.try_send(text.into()).is_ok()
        {
            (self.missed, self.last_line) = (0, now);
            self.reported = Some(now);
        }
    }
}

/// The subscribers of one source.
#[derive(Default)]
pub(crate) struct Subscribers {
    /// Names of clients.
    pub(super) names: Names,
    subscribers: Vec<Subscriber>,
    /// Filter that the source was asked for.
    asked: Option<SlowFilter>,
}

impl Subscribers {
    /// Returns true without subscribers.
    pub(crate) fn idle(&self) -> bool {
        self.subscribers.is_empty()
    }

    /// Adds a subscriber, which leaves by dropping the receiver.
    ///
    /// # Errors
    /// When there are too many, or with the source's reason.
    pub(crate) fn subscribe(
        &mut self,
        source: &mut dyn Source,
        filter: SlowFilter,
        now: Instant,
    ) -> anyhow::Result<Receiver<Bytes>> {
        // Operations for the other subscribers are handed out now, because the old filter's are lost with it.
        self.poll(source, now);
        anyhow::ensure!(
            self.subscribers.len() < MAX_SUBSCRIBERS,
            "this agent serves at most {MAX_SUBSCRIBERS} listeners for slow operations at once"
        );
        let (lines, receiver) = mpsc::channel(queue(filter.per_second));
        self.subscribers.push(Subscriber {
            filter,
            lines,
            missed: 0,
            last_line: now,
            reported: None,
            second: (now, 0),
        });
        if let Err(why) = self.ask(source) {
            self.subscribers.pop();
            // The subscribers before this one go on.
            self.asked = None;
            self.follow(source);
            return Err(why);
        }
        Ok(receiver)
    }

    /// Hands out the source's operations, and drops subscribers that have left.
    pub(crate) fn poll(&mut self, source: &mut dyn Source, now: Instant) {
        if self.asked.is_some() {
            let mut batch = source.take_slow();
            batch.ops.sort_by_key(|op| op.at);
            for op in &batch.ops {
                let mut line = None;
                for l in &mut self.subscribers {
                    // If the source already limits the rate as this subscriber asked, a second limit would only cut at other seconds.
                    let limited =
                        (self.asked.as_ref()).is_some_and(|a| a.per_second > l.filter.per_second);
                    l.offer(op, limited, now, || {
                        if line.is_none() {
                            let name = op.client.and_then(|c| self.names.client(&c.to_string()));
                            line = Line::Op(Box::new(op.clone()))
                                .encode_named(name.as_deref())
                                .ok()
                                .map(Bytes::from);
                        }
                        line.clone()
                    });
                }
            }
            for l in &mut self.subscribers {
                l.missed += batch.left_out;
                l.report(now);
            }
        }
        let before = self.subscribers.len();
        self.subscribers.retain(|l| !l.lines.is_closed());
        if self.subscribers.len() < before {
            self.follow(source);
        }
    }

    /// Asks the source for the operations that the subscribers want together.
    fn ask(&mut self, source: &mut dyn Source) -> anyhow::Result<()> {
        let want = slow_filter::union(self.subscribers.iter().map(|l| &l.filter));
        if want != self.asked {
            source.watch_slow(want.as_ref())?;
            self.asked = want;
        }
        Ok(())
    }

    /// Asks the source for the present subscribers. If the source refuses, they have nothing to wait for and end.
    fn follow(&mut self, source: &mut dyn Source) {
        if self.ask(source).is_err() {
            self.subscribers.clear();
            let _ = source.watch_slow(None);
            self.asked = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::query::QueryString;
    use nfscope_example as example;
    use nfscope_example::Script;
    use nfscope_model::SlowBatch;

    fn only(op: &str, per_second: u32) -> SlowFilter {
        SlowFilter {
            per_second,
            ..SlowFilter::from_query(&format!("op={op}")).unwrap()
        }
    }

    fn writes(n: usize, left_out: u64) -> SlowBatch {
        SlowBatch {
            ops: vec![example::op(); n],
            left_out,
        }
    }

    /// Operations received, and the numbers that were reported as left out.
    fn received(r: &mut Receiver<Bytes>) -> (usize, Vec<u64>) {
        let (mut ops, mut left_out) = (0, Vec::new());
        while let Ok(line) = r.try_recv() {
            match serde_json::from_slice(&line).unwrap() {
                Line::Op(_) => ops += 1,
                Line::LeftOut { left_out: n } => left_out.push(n),
            }
        }
        (ops, left_out)
    }

    #[test]
    fn the_source_watches_for_all_and_ends_with_the_last() {
        let (mut subscribers, mut source) = (Subscribers::default(), Script::default());
        let now = Instant::now();
        let a = subscribers
            .subscribe(&mut source, only("write", 10), now)
            .unwrap();
        let b = subscribers
            .subscribe(&mut source, only("read", 20), now)
            .unwrap();
        drop(b);
        subscribers.poll(&mut source, now);
        drop(a);
        subscribers.poll(&mut source, now);
        assert!(subscribers.idle());
        let both = Some(SlowFilter {
            ops: vec!["read".into(), "write".into()],
            ..only("read", 20)
        });
        let write = Some(only("write", 10));
        assert_eq!(source.asked, [write.clone(), both, write, None]);
    }

    #[test]
    fn a_refused_listener_disturbs_nobody() {
        let (mut subscribers, mut source) = (Subscribers::default(), Script::default());
        let now = Instant::now();
        source.refuses = Some("no room");
        let mut a = subscribers
            .subscribe(&mut source, only("write", 10), now)
            .unwrap();
        let why = subscribers
            .subscribe(&mut source, only("", 10), now)
            .unwrap_err();
        assert_eq!(why.to_string(), "no room");
        assert_eq!(source.asked.last(), Some(&Some(only("write", 10))));
        source.batch = writes(3, 0);
        subscribers.poll(&mut source, now);
        assert_eq!(received(&mut a), (3, vec![]));
        let rest: Vec<_> = (1..MAX_SUBSCRIBERS)
            .map(|_| {
                subscribers
                    .subscribe(&mut source, only("write", 1), now)
                    .unwrap()
            })
            .collect();
        assert!(
            subscribers
                .subscribe(&mut source, only("write", 1), now)
                .is_err()
        );
        drop(rest);
        assert!(
            subscribers
                .subscribe(&mut source, only("write", 1), now)
                .is_ok()
        );
    }

    #[test]
    fn each_listener_has_its_own_limit_and_account() {
        let (mut subscribers, mut source) = (Subscribers::default(), Script::default());
        let start = Instant::now();
        let mut few = subscribers
            .subscribe(&mut source, only("write", 2), start)
            .unwrap();
        let mut many = subscribers
            .subscribe(&mut source, only("write", 9), start)
            .unwrap();
        let mut other = subscribers
            .subscribe(&mut source, only("read", 9), start)
            .unwrap();
        source.batch = writes(5, 7);
        subscribers.poll(&mut source, start);
        assert_eq!(received(&mut few), (2, vec![10]));
        assert_eq!(received(&mut many), (5, vec![7]));
        assert_eq!(received(&mut other), (0, vec![7]));
        // The number left out is reported once a second, not at every poll.
        source.batch = writes(1, 0);
        subscribers.poll(&mut source, start + POLL_INTERVAL);
        assert_eq!(received(&mut few), (0, vec![]));
        source.batch = writes(1, 0);
        subscribers.poll(&mut source, start + Duration::from_secs(1));
        assert_eq!(received(&mut few), (1, vec![1]));
        subscribers.poll(&mut source, start + HEARTBEAT_INTERVAL - POLL_INTERVAL);
        assert_eq!(received(&mut other), (0, vec![]));
        subscribers.poll(&mut source, start + HEARTBEAT_INTERVAL);
        assert_eq!(received(&mut other), (0, vec![0]));
    }

    #[test]
    fn a_listener_that_takes_nothing_is_bounded_and_told() {
        let (mut subscribers, mut source) = (Subscribers::default(), Script::default());
        let start = Instant::now();
        let filter = only("write", nfscope_text::parse::MAX_EVENTS_PER_SECOND);
        let most = *LINES.end();
        let mut stalled = subscribers.subscribe(&mut source, filter, start).unwrap();
        source.batch = writes(most + 100, 0);
        subscribers.poll(&mut source, start);
        source.batch = writes(23, 4);
        subscribers.poll(&mut source, start + HEARTBEAT_INTERVAL);
        assert_eq!(received(&mut stalled), (most, vec![]));
        subscribers.poll(&mut source, start + HEARTBEAT_INTERVAL + POLL_INTERVAL);
        assert_eq!(received(&mut stalled), (0, vec![127]));
    }
}
