//! Attributes the time that requests spend in the server to causes.
//!
//! Time that operations wait for a resource is attributed to that resource.
//! Time that requests wait for a thread is attributed to what keeps the threads: slow logs, slow disks, locks and slow
//! readers, each in proportion to the threads' time. More threads would only wait for the same resource.
//! If the CPUs are busy, the rest of that wait is attributed to the CPUs, and else to the number of threads.
//! A request that waits although a thread is free waits for a CPU: the thread was woken up and did not run.
//! No second is attributed twice, so the shares add up to at most one.

use crate::breakdown::{Breakdown, Disk, Log, Op, mean, part, sum};

/// A mean wait for a log or a disk is slow from here on. Flash memory takes less, half a turn of a disk takes more
/// (7200 rpm: 4.2 ms).
pub const SLOW_WAIT_SECONDS: f64 = 2e-3;
/// A mean block request is slow from here on.
const SLOW_DISK_REQUEST_SECONDS: f64 = 2.0 * SLOW_WAIT_SECONDS;
/// A mean wait for a lock, a thread, a CPU or a reader is long from here on. A shorter one is the normal work of locking,
/// waking up and sending.
pub const LONG_WAIT_SECONDS: f64 = 1e-3;
/// A mean needs at least so many waits, operations or requests in the window.
pub const MIN_COUNT: f64 = 20.0;
/// CPUs with a smaller idle part are busy.
pub const BUSY_CPU_IDLE_RATIO: f64 = 0.1;
/// A pool that has no free thread for a smaller part of the window counts as a pool that always has one.
const NEGLIGIBLE_SATURATION_RATIO: f64 = 0.02;
/// A pool that has no free thread for this part of the window makes its requests wait for threads alone.
const MOSTLY_SATURATED_RATIO: f64 = 0.5;

/// Seconds by cause.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attribution {
    /// Operations waited for a slow log.
    pub log: f64,
    /// Operations waited for slow disks.
    pub disk: f64,
    /// Operations waited for locks or other threads.
    pub lock: f64,
    /// Operations waited for a CPU. If the CPUs are busy, long replies count here, too.
    pub runqueue: f64,
    /// Replies waited for the client or the network.
    pub reply: f64,
    /// Requests waited for a thread.
    pub queue: QueueAttribution,
}

/// Seconds that requests waited for a thread, by what kept the threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueAttribution {
    /// Threads waited for a slow log.
    pub log: f64,
    /// Threads waited for slow disks.
    pub disk: f64,
    /// Threads waited for locks or other threads.
    pub lock: f64,
    /// Threads waited for a CPU, also those that were free.
    pub cpu: f64,
    /// Threads waited for the client or the network.
    pub reply: f64,
    /// Threads waited for nothing slow: the pool is too small.
    pub threads: f64,
}

fn log_is_slow(l: &Log) -> bool {
    let enough = l.waits.count() as f64 >= MIN_COUNT;
    enough && l.waits.mean().is_some_and(|m| m >= SLOW_WAIT_SECONDS)
}

/// `slow_intent_log`: of the slow logs, the one with the most waiting time.
pub fn slow_intent_log(b: &Breakdown) -> Option<&Log> {
    b.logs.iter().find(|l| log_is_slow(l))
}

/// Seconds that operations waited for slow logs, at least. Local programs wait for logs, too: every wait for a fast log may
/// belong to an operation, and every wait for a slow log to a local program.
fn slow_log_seconds(b: &Breakdown, all_logs: f64) -> f64 {
    let fast = b.logs.iter().filter(|l| !log_is_slow(l));
    (all_logs - sum(fast.map(|l| l.waits.sum))).max(0.0)
}

/// The operation that waited most for disks, and the mean wait of one such operation.
pub fn disk_wait(b: &Breakdown) -> Option<(&Op, f64)> {
    let (op, seconds) = b.op_with_most(|p| p.disk)?;
    Some((op, mean(seconds, op.count)))
}

/// The slowest block device with enough requests, and its mean time per request.
pub fn slowest_disk(b: &Breakdown) -> Option<(&Disk, f64)> {
    let enough = (b.disks.iter()).filter(|d| d.requests.count() as f64 >= MIN_COUNT);
    enough
        .filter_map(|d| Some((d, d.requests.mean()?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// `slow_disk`: whether operations wait long for disks on average.
/// The page cache answers most operations without a disk, so a slow mean of a device's requests suffices, too.
pub fn slow_disk(b: &Breakdown) -> bool {
    disk_wait(b).is_some_and(|(op, each)| {
        let device_is_slow =
            || slowest_disk(b).is_some_and(|(_, m)| m >= SLOW_DISK_REQUEST_SECONDS);
        op.count >= MIN_COUNT && (each >= SLOW_WAIT_SECONDS || device_is_slow())
    })
}

/// The operation that slept most for neither log nor disk, and the mean sleep of one such operation.
pub fn lock_wait(b: &Breakdown) -> Option<(&Op, f64)> {
    let (op, seconds) = b.op_with_most(|p| p.lock)?;
    Some((op, mean(seconds, op.count)))
}

/// `lock_contention`: whether operations sleep long for neither log nor disk on average.
fn lock_contention(b: &Breakdown) -> bool {
    lock_wait(b).is_some_and(|(op, each)| op.count >= MIN_COUNT && each >= LONG_WAIT_SECONDS)
}

fn cpus_are_busy(b: &Breakdown) -> bool {
    b.cpu_idle.is_some_and(|idle| idle < BUSY_CPU_IDLE_RATIO)
}

impl Attribution {
    /// Attributes the time of a window.
    pub fn of(b: &Breakdown) -> Attribution {
        let p = b.phases.unwrap_or_default();
        let if_slow = |slow: bool, seconds: f64| if slow { seconds } else { 0.0 };
        let log = slow_log_seconds(b, p.log.unwrap_or(0.0));
        let runqueue = p.runqueue.unwrap_or(0.0);
        let busy = cpus_are_busy(b);
        let reply = if_slow(mean(b.reply, b.requests) >= LONG_WAIT_SECONDS, b.reply);
        // A thread that sends may wait for a CPU as well as for the reader. If the CPUs are busy, nothing tells these apart.
        let (reply, runqueue) = match busy {
            true => (0.0, runqueue + reply),
            false => (reply, runqueue),
        };
        let mut attribution = Attribution {
            log: if_slow(slow_intent_log(b).is_some(), log),
            disk: if_slow(slow_disk(b), p.disk),
            lock: if_slow(lock_contention(b), p.lock),
            runqueue,
            reply,
            queue: QueueAttribution::default(),
        };
        attribution.queue = attribution.queue_of(b, busy);
        if mean(attribution.runqueue + attribution.queue.cpu, b.requests) < LONG_WAIT_SECONDS {
            (attribution.runqueue, attribution.queue.cpu) = (0.0, 0.0);
        }
        attribution
    }

    fn queue_of(&self, b: &Breakdown, cpus_are_busy: bool) -> QueueAttribution {
        let without_free_thread = queue_without_free_thread(b, cpus_are_busy);
        // While requests wait for threads, the threads spend their time as in the whole window.
        let in_proportion = |seconds: f64| without_free_thread * part(seconds, b.thread_seconds());
        let mut queue = QueueAttribution {
            log: in_proportion(self.log),
            disk: in_proportion(self.disk),
            lock: in_proportion(self.lock),
            cpu: in_proportion(self.runqueue),
            reply: in_proportion(self.reply),
            threads: 0.0,
        };
        let slow = queue.log + queue.disk + queue.lock + queue.reply + queue.cpu;
        let rest = (without_free_thread - slow).max(0.0);
        queue.cpu += b.queue - without_free_thread;
        // More threads would wait for the same busy CPUs.
        if cpus_are_busy {
            queue.cpu += rest;
        } else {
            queue.threads = rest;
        }
        queue
    }

    /// Seconds that are attributed to any cause.
    pub fn total(&self) -> f64 {
        let q = &self.queue;
        let queue = q.log + q.disk + q.lock + q.cpu + q.reply + q.threads;
        self.log + self.disk + self.lock + self.runqueue + self.reply + queue
    }

    /// Seconds of an operation that are not attributed to a slow resource.
    pub fn unattributed(&self, op: &Op) -> f64 {
        let p = &op.phases;
        let causes = [
            (self.log, p.log.unwrap_or(0.0)),
            (self.disk, p.disk),
            (self.lock, p.lock),
            (self.runqueue, p.runqueue.unwrap_or(0.0)),
        ];
        let slow = causes.iter().filter(|(of_all, _)| *of_all > 0.0);
        (op.seconds - sum(slow.map(|(_, of_op)| *of_op))).max(0.0)
    }
}

/// Seconds that requests waited while no thread was free. During the rest of the queue a thread was free: it had been woken
/// up and did not run yet.
fn queue_without_free_thread(b: &Breakdown, cpus_are_busy: bool) -> f64 {
    let Some(saturated) = b.saturated else {
        return 0.0;
    };
    if saturated < NEGLIGIBLE_SATURATION_RATIO {
        return 0.0;
    }
    if cpus_are_busy {
        return b.queue * saturated;
    }
    if saturated >= MOSTLY_SATURATED_RATIO {
        return b.queue;
    }
    // A thread was free for most of the window. The shortest waits show how long a woken thread takes to run.
    let wake_up = b.queue_p10.unwrap_or(0.0);
    (b.queue - b.requests * wake_up).max(0.0)
}
