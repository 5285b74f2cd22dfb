//! Who listens for slow operations, and what each gets. Lives on the thread that owns the source.
//!
//! The source watches for all listeners at once, and only while there are any. What a listener does not take in time
//! is left out for it alone, and counted: memory holds at most [`LINES`] for each.

use crate::api::slow_filter as filter;
use crate::api::slow_line::Line;
use bytes::Bytes;
use nfscope_model::{SlowFilter, SlowOp};
use nfscope_source::Source;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Most listeners at once.
pub const LISTENERS: usize = 8;
/// How often to look while somebody listens.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// Lines of some 300 bytes that wait for one listener.
const LINES: usize = 2048;
/// A line at least this often, so that a peer that is gone is noticed.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// What was left out is told at most this often.
const TELL: Duration = Duration::from_secs(1);

struct Listener {
    filter: SlowFilter,
    lines: Sender<Bytes>,
    /// Left out and not told.
    missed: u64,
    /// When the last line was sent.
    spoke: Instant,
    /// When it was last told what was left out.
    told: Option<Instant>,
    /// Begin of the running second, and operations sent in it.
    second: (Instant, u32),
}

impl Listener {
    /// `line` gives the operation's text.
    fn offer(
        &mut self,
        op: &SlowOp,
        limited: bool,
        now: Instant,
        line: impl FnOnce() -> Option<Bytes>,
    ) {
        if !filter::wants(&self.filter, op) {
            return;
        }
        if now.duration_since(self.second.0) >= Duration::from_secs(1) {
            self.second = (now, 0);
        }
        let full = limited && self.second.1 >= self.filter.per_second;
        let sent = !full && line().is_some_and(|line| self.lines.try_send(line).is_ok());
        if sent {
            self.second.1 += 1;
            self.spoke = now;
        } else {
            self.missed += 1;
        }
    }

    fn tell(&mut self, now: Instant) {
        let old = |at: Instant, age| now.duration_since(at) >= age;
        let news = self.missed > 0 && self.told.is_none_or(|at| old(at, TELL));
        if !news && !old(self.spoke, SIGN_OF_LIFE) {
            return;
        }
        let line = Line::LeftOut {
            left_out: self.missed,
        };
        // Where it does not fit, its number stays and is told later.
        if let Ok(text) = line.encode()
            && self.lines.try_send(text.into()).is_ok()
        {
            (self.missed, self.spoke) = (0, now);
            self.told = Some(now);
        }
    }
}

/// The listeners of one source.
#[derive(Default)]
pub(crate) struct Hub {
    listeners: Vec<Listener>,
    /// What the source was asked for.
    asked: Option<SlowFilter>,
}

impl Hub {
    /// True while nobody listens.
    pub(crate) fn idle(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Adds a listener; it leaves by dropping the receiver.
    ///
    /// # Errors
    /// When there are too many, or with the source's reason.
    pub(crate) fn listen(
        &mut self,
        source: &mut dyn Source,
        filter: SlowFilter,
        now: Instant,
    ) -> anyhow::Result<Receiver<Bytes>> {
        // What the others asked for must not go down with the old filter.
        self.look(source, now);
        anyhow::ensure!(
            self.listeners.len() < LISTENERS,
            "{LISTENERS} listeners for slow operations are all that this agent serves at once"
        );
        let (lines, receiver) = mpsc::channel(LINES);
        self.listeners.push(Listener {
            filter,
            lines,
            missed: 0,
            spoke: now,
            told: None,
            second: (now, 0),
        });
        if let Err(why) = self.ask(source) {
            self.listeners.pop();
            // Whoever listened before goes on doing so.
            self.asked = None;
            self.follow(source);
            return Err(why);
        }
        Ok(receiver)
    }

    /// Hands out what the source has, and lets go of listeners that have left.
    pub(crate) fn look(&mut self, source: &mut dyn Source, now: Instant) {
        if self.asked.is_some() {
            let mut batch = source.take_slow();
            batch.ops.sort_by_key(|op| op.at);
            for op in &batch.ops {
                let mut line = None;
                for l in &mut self.listeners {
                    // Where the source limits as this listener asked, limiting once more would only cut at other
                    // seconds.
                    let limited =
                        (self.asked.as_ref()).is_some_and(|a| a.per_second > l.filter.per_second);
                    l.offer(op, limited, now, || {
                        if line.is_none() {
                            line = Line::Op(Box::new(op.clone()))
                                .encode()
                                .ok()
                                .map(Bytes::from);
                        }
                        line.clone()
                    });
                }
            }
            for l in &mut self.listeners {
                l.missed += batch.left_out;
                l.tell(now);
            }
        }
        let before = self.listeners.len();
        self.listeners.retain(|l| !l.lines.is_closed());
        if self.listeners.len() < before {
            self.follow(source);
        }
    }

    /// Asks the source for what the listeners want together.
    fn ask(&mut self, source: &mut dyn Source) -> anyhow::Result<()> {
        let want = filter::union(self.listeners.iter().map(|l| &l.filter));
        if want != self.asked {
            source.watch_slow(want.as_ref())?;
            self.asked = want;
        }
        Ok(())
    }

    /// The same where nobody waits for the answer: a source that refuses now leaves the listeners nothing to wait for.
    fn follow(&mut self, source: &mut dyn Source) {
        if self.ask(source).is_err() {
            self.listeners.clear();
            let _ = source.watch_slow(None);
            self.asked = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::example;
    use crate::api::example::Script;
    use nfscope_model::SlowBatch;

    fn only(op: &str, per_second: u32) -> SlowFilter {
        SlowFilter {
            per_second,
            ..filter::from_query(&format!("op={op}")).unwrap()
        }
    }

    fn writes(n: usize, left_out: u64) -> SlowBatch {
        SlowBatch {
            ops: vec![example::op(); n],
            left_out,
        }
    }

    /// Operations received, and what was said to be left out.
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
        let (mut hub, mut source) = (Hub::default(), Script::default());
        let now = Instant::now();
        let a = hub.listen(&mut source, only("write", 10), now).unwrap();
        let b = hub.listen(&mut source, only("read", 20), now).unwrap();
        drop(b);
        hub.look(&mut source, now);
        drop(a);
        hub.look(&mut source, now);
        assert!(hub.idle());
        let both = Some(SlowFilter {
            ops: vec!["read".into(), "write".into()],
            ..only("read", 20)
        });
        let write = Some(only("write", 10));
        assert_eq!(source.asked, [write.clone(), both, write, None]);
    }

    #[test]
    fn a_refused_listener_disturbs_nobody() {
        let (mut hub, mut source) = (Hub::default(), Script::default());
        let now = Instant::now();
        source.refuses = Some("no room");
        let mut a = hub.listen(&mut source, only("write", 10), now).unwrap();
        let why = hub.listen(&mut source, only("", 10), now).unwrap_err();
        assert_eq!(why.to_string(), "no room");
        assert_eq!(source.asked.last(), Some(&Some(only("write", 10))));
        source.batch = writes(3, 0);
        hub.look(&mut source, now);
        assert_eq!(received(&mut a), (3, vec![]));
        let rest: Vec<_> = (1..LISTENERS)
            .map(|_| hub.listen(&mut source, only("write", 1), now).unwrap())
            .collect();
        assert!(hub.listen(&mut source, only("write", 1), now).is_err());
        drop(rest);
        assert!(hub.listen(&mut source, only("write", 1), now).is_ok());
    }

    #[test]
    fn each_listener_has_its_own_limit_and_account() {
        let (mut hub, mut source) = (Hub::default(), Script::default());
        let start = Instant::now();
        let mut few = hub.listen(&mut source, only("write", 2), start).unwrap();
        let mut many = hub.listen(&mut source, only("write", 9), start).unwrap();
        let mut other = hub.listen(&mut source, only("read", 9), start).unwrap();
        source.batch = writes(5, 7);
        hub.look(&mut source, start);
        assert_eq!(received(&mut few), (2, vec![10]));
        assert_eq!(received(&mut many), (5, vec![7]));
        assert_eq!(received(&mut other), (0, vec![7]));
        // Told once a second, not at every look.
        source.batch = writes(1, 0);
        hub.look(&mut source, start + LOOK);
        assert_eq!(received(&mut few), (0, vec![]));
        source.batch = writes(1, 0);
        hub.look(&mut source, start + Duration::from_secs(1));
        assert_eq!(received(&mut few), (1, vec![1]));
        hub.look(&mut source, start + SIGN_OF_LIFE - LOOK);
        assert_eq!(received(&mut other), (0, vec![]));
        hub.look(&mut source, start + SIGN_OF_LIFE);
        assert_eq!(received(&mut other), (0, vec![0]));
    }

    #[test]
    fn a_listener_that_takes_nothing_is_bounded_and_told() {
        let (mut hub, mut source) = (Hub::default(), Script::default());
        let start = Instant::now();
        let filter = only("write", filter::HIGHEST_LIMIT);
        let mut stalled = hub.listen(&mut source, filter, start).unwrap();
        source.batch = writes(LINES + 100, 0);
        hub.look(&mut source, start);
        source.batch = writes(23, 4);
        hub.look(&mut source, start + SIGN_OF_LIFE);
        assert_eq!(received(&mut stalled), (LINES, vec![]));
        hub.look(&mut source, start + SIGN_OF_LIFE + LOOK);
        assert_eq!(received(&mut stalled), (0, vec![127]));
    }
}
