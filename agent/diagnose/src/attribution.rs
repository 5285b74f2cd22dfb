//! Who is charged with the time that requests spend in the server.
//!
//! What operations waited for is charged to that. What requests waited for a thread is charged to what kept the threads,
//! in proportion to what they did with requests in hand: to a slow log, a slow disk, to locks and to slow readers, because
//! more threads would only wait for the same; to the processors where none is idle; and else to the number of threads.
//! What requests waited beside a free thread is charged to the processors: the thread was woken up and did not run.
//! No time is charged twice, so that shares add up to one at most.

use crate::breakdown::{Account, Disk, Log, Op, mean, part, sum};

/// A wait for a log or a disk is slow from here on, on average: above what flash memory takes, below a disk's half turn
/// (7200 rpm: 4.2 ms).
pub const SLOW: f64 = 2e-3;
/// Waits for each other, for a processor or for a reader are long from here on, on average: what is shorter is the work of
/// locking, waking up and sending.
pub const LONG: f64 = 1e-3;
/// Fewer waits, operations or requests in a window are not judged.
pub const FEW: f64 = 20.0;
/// Processors of which less is idle are busy.
pub const IDLE: f64 = 0.1;

/// Seconds by cause.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Charge {
    /// Operations that waited for the log, where it is slow.
    pub log: f64,
    /// The same for disks.
    pub disk: f64,
    /// For locks.
    pub lock: f64,
    /// For a processor; where none is idle, what long replies took, too.
    pub runqueue: f64,
    /// Replies that waited to be taken.
    pub reply: f64,
    /// Requests that waited for a thread, by what kept the threads.
    pub queue: Queue,
}

/// Seconds of waiting for a thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    /// Threads waited for a slow log.
    pub log: f64,
    /// For a slow disk.
    pub disk: f64,
    /// For locks.
    pub lock: f64,
    /// For processors; or the requests did, beside free threads.
    pub processors: f64,
    /// For somebody to take replies.
    pub reply: f64,
    /// For nothing slow: they were too few.
    pub threads: f64,
}

/// Whether its waits are slow.
fn is_slow(l: &Log) -> bool {
    l.waits.count() as f64 >= FEW && l.waits.mean().is_some_and(|m| m >= SLOW)
}

/// The slow log that was waited for most.
pub fn slow_log(a: &Account) -> Option<&Log> {
    a.logs.iter().find(|l| is_slow(l))
}

/// What operations waited for slow logs, at least: the waits for those that are not slow may all have been theirs, and
/// those for a slow one a local program's.
fn waited_for_slow_logs(a: &Account, all: f64) -> f64 {
    let others = a.logs.iter().filter(|l| !is_slow(l));
    (all - sum(others.map(|l| l.waits.sum))).max(0.0)
}

/// The operation that waited most for disks, and how long one did on average.
pub fn disk_wait(a: &Account) -> Option<(&Op, f64)> {
    let (op, seconds) = a.most(|p| p.disk)?;
    Some((op, mean(seconds, op.count)))
}

/// The slowest device with enough requests, and its mean time.
pub fn slowest_disk(a: &Account) -> Option<(&Disk, f64)> {
    let enough = a.disks.iter().filter(|d| d.requests.count() as f64 >= FEW);
    enough
        .filter_map(|d| Some((d, d.requests.mean()?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// True where disks are slow: an operation's wait for them takes long on average, or, because the page cache answers most
/// operations without one, a device's requests do.
pub fn slow_disk(a: &Account) -> bool {
    disk_wait(a).is_some_and(|(op, each)| {
        op.count >= FEW && (each >= SLOW || slowest_disk(a).is_some_and(|(_, m)| m >= 2.0 * SLOW))
    })
}

/// The operation that slept most for something that is neither log nor disk, and how long one did on average.
pub fn lock_wait(a: &Account) -> Option<(&Op, f64)> {
    let (op, seconds) = a.most(|p| p.lock)?;
    Some((op, mean(seconds, op.count)))
}

fn locks_are_long(a: &Account) -> bool {
    lock_wait(a).is_some_and(|(op, each)| op.count >= FEW && each >= LONG)
}

/// True where next to no processor time is left over.
pub fn processors_busy(a: &Account) -> bool {
    a.idle.is_some_and(|idle| idle < IDLE)
}

impl Charge {
    /// Charges.
    pub fn of(a: &Account) -> Charge {
        let p = a.phases.unwrap_or_default();
        let log_is_slow = slow_log(a).is_some();
        let log = waited_for_slow_logs(a, p.log.unwrap_or(0.0));
        let disk_is_slow = slow_disk(a);
        let if_slow = |slow: bool, seconds: f64| if slow { seconds } else { 0.0 };
        let runqueue = p.runqueue.unwrap_or(0.0);
        let busy = processors_busy(a);
        // A thread that sends may wait for a processor as well as for the reader; where none is idle, nothing tells which.
        let reply = if_slow(mean(a.reply, a.requests) >= LONG, a.reply);
        let (reply, runqueue) = match busy {
            true => (0.0, runqueue + reply),
            false => (reply, runqueue),
        };
        let mut c = Charge {
            log: if_slow(log_is_slow, log),
            disk: if_slow(disk_is_slow, p.disk),
            lock: if_slow(locks_are_long(a), p.lock),
            runqueue,
            reply,
            queue: Queue::default(),
        };
        let of_threads = queue_of_threads(a);
        // What threads did while requests waited for them.
        let did = |seconds: f64| of_threads * part(seconds, a.occupied());
        c.queue.log = did(c.log);
        c.queue.disk = did(c.disk);
        c.queue.lock = did(c.lock);
        c.queue.reply = did(c.reply);
        c.queue.processors = did(c.runqueue);
        let slow = &c.queue;
        let others = slow.log + slow.disk + slow.lock + slow.reply + slow.processors;
        let rest = (of_threads - others).max(0.0);
        c.queue.processors += a.queue - of_threads;
        // More threads would wait for the same processors.
        if busy {
            c.queue.processors += rest;
        } else {
            c.queue.threads = rest;
        }
        if mean(c.runqueue + c.queue.processors, a.requests) < LONG {
            (c.runqueue, c.queue.processors) = (0.0, 0.0);
        }
        c
    }

    /// Everything that is charged to a cause.
    pub fn all(&self) -> f64 {
        let q = &self.queue;
        let queue = q.log + q.disk + q.lock + q.processors + q.reply + q.threads;
        self.log + self.disk + self.lock + self.runqueue + self.reply + queue
    }

    /// What remains of an operation's time without what is charged to something slow.
    pub fn net(&self, op: &Op) -> f64 {
        let p = &op.phases;
        let charged = [
            (self.log, p.log.unwrap_or(0.0)),
            (self.disk, p.disk),
            (self.lock, p.lock),
            (self.runqueue, p.runqueue.unwrap_or(0.0)),
        ];
        let charged = charged.iter().filter(|(all, _)| *all > 0.0);
        (op.seconds - sum(charged.map(|(_, of_it)| *of_it))).max(0.0)
    }
}

/// The waiting for a thread while none was free. The rest waited beside a free one, which had been woken up and did not get
/// to run.
fn queue_of_threads(a: &Account) -> f64 {
    let Some(saturated) = a.saturated else {
        return 0.0;
    };
    if saturated < NEVER {
        return 0.0;
    }
    if processors_busy(a) {
        return a.queue * saturated;
    }
    if saturated >= 0.5 {
        return a.queue;
    }
    // Most of the time a thread was free, and for the luckiest requests the wait is how long that took to run.
    let wake_up = a.queue_p10.unwrap_or(0.0);
    (a.queue - a.requests * wake_up).max(0.0)
}

/// A pool without a free thread for less of the time always has one.
const NEVER: f64 = 0.02;
