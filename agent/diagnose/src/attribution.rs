//! Attributes the time that requests spend in the server to causes.
//!
//! Time that operations wait for a resource is attributed to that resource.
//! Time that requests wait for a thread is attributed to the number of threads, whatever the threads wait for: a journal makes
//! the changes of many threads durable at once, and a device serves many requests at once. If the CPUs are busy, the part in
//! which threads wait for nothing slow is attributed to the CPUs.
//! A request that waits although a thread is free waits for a CPU: the thread was woken up and did not run.
//! Operations that wait for a lock and for a slow log that is always in use are the queue of that log. Changes that wait for the lock of
//! a directory or file are the queue of what its holders wait for: [`behind_holders`].
//! No second is attributed twice, so the shares add up to at most one.

use crate::breakdown::{Breakdown, Disk, Log, Op, Phases, mean, part, sum};
use crate::changes::{CHANGES_OF_DIRECTORIES, FILE_CHANGES, holders_explain};
use crate::long_waits::{long_waits, mean_weight, weight};
use crate::thresholds::{
    BEGIN_SHARE, BUSY_CPU_IDLE, FELT_SECONDS, HOLDERS_PART, LOG_IN_USE, LONG_PART,
    LONG_WAIT_SECONDS, MIN_COUNT, MOSTLY_SATURATED, NEGLIGIBLE_SATURATION,
    SLOW_DISK_REQUEST_SECONDS, SLOW_DISK_SECONDS, SLOW_LOG_SECONDS, UNEXPLAINED,
};
use nfscope_model::Histogram;
use nfscope_model::family as f;
use nfscope_model::finding::Kind;
use std::collections::BTreeMap;

/// Seconds by cause.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attribution {
    /// Operations waited for a slow log.
    pub log: f64,
    /// Operations waited for locks whose holders waited for a slow log, or for blocks that it was writing.
    pub behind_log: f64,
    /// Seconds that operations waited for blocks that a slow log was writing; part of `behind_log`.
    pub disk_behind_log: f64,
    /// Operations waited for slow disks.
    pub disk: f64,
    /// Operations were throttled for long, or waited behind one that was.
    pub throttle: f64,
    /// Seconds that operations waited for locks whose holders waited for a cause, by cause; a part of `disk`, `throttle`, `upcall`,
    /// `recall` and `reclaim`.
    pub behind: BTreeMap<Kind, f64>,
    /// Requests and operations waited long for daemons.
    pub upcall: f64,
    /// Operations waited long for clients to return delegations.
    pub recall: f64,
    /// Operations waited long for free memory.
    pub reclaim: f64,
    /// Operations were in long waits that have no name: for locks, other threads, or anything else.
    pub lock: f64,
    /// Operations waited for a CPU. If the CPUs are busy, long replies count here, too.
    pub runqueue: f64,
    /// Replies waited for the client or the network.
    pub reply: f64,
    /// True if waits for daemons are long, whether their requests have ended or not.
    pub upcalls_are_slow: bool,
    /// True if there are single waits for daemons that a client feels.
    pub upcalls_are_felt: bool,
    /// Requests waited for a thread.
    pub queue: QueueAttribution,
}

/// Seconds that requests waited for a thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueAttribution {
    /// No thread was free.
    pub threads: f64,
    /// A thread waited for a CPU.
    pub cpu: f64,
}

/// Returns true if most of the waiting is in waits of `limit` seconds or more, and these are many, or some are felt.
fn mostly_long(waits: &Histogram, limit: f64) -> bool {
    let long = long_waits(waits, limit);
    let felt = long_waits(waits, FELT_SECONDS);
    (long.count >= MIN_COUNT || felt.count > 0.0) && long.of_time >= LONG_PART
}

fn log_is_slow(l: &Log) -> bool {
    waits_are_long(l) && !writes_are_quick(l)
}

/// Weight of the waits for a log by their length, 0 to 1; 0 if these are few, and none is felt. A mean hides a journal that stalls and is
/// quick in between: there the time counts as far as most of it lies in long waits.
pub fn log_weight(l: &Log) -> f64 {
    let some = long_waits(&l.waits, SLOW_LOG_SECONDS / 2.0).count >= MIN_COUNT
        || long_waits(&l.waits, FELT_SECONDS).count > 0.0;
    let Some(each) = l.waits.mean().filter(|_| some) else {
        return 0.0;
    };
    let of_time = mean_weight(&l.waits, SLOW_LOG_SECONDS, 1);
    let mostly_long = (of_time - LONG_PART) / (1.0 - LONG_PART);
    // The mean is rounded to the middle of its bucket, as every wait in the sentences about long ones is.
    let each = l.waits.scheme.middle(l.waits.scheme.bucket(each));
    weight(each, SLOW_LOG_SECONDS).max(mostly_long)
}

/// Returns true if waits for a log are long, whatever the log waits for.
pub fn waits_are_long(l: &Log) -> bool {
    log_weight(l) >= BEGIN_SHARE
}

/// Returns true if a log's own writes are too short to call it slow.
///
/// A wait for ext4's journal is for the rest of one commit and for the next one. A commit is timed from its start until its transaction is
/// in the log (fs/jbd2/commit.c), without the wake-ups around it, and without the discards of `-o discard` that older kernels make behind
/// it. Fast commits wait for one another within that time, so that nothing changes for them. The writes of other logs do not show all their
/// waits: XFS gathers changes first, and OpenZFS and btrfs wait for data.
fn writes_are_quick(l: &Log) -> bool {
    let writes = l.writes_in_turn().filter(|w| w.count() > 0);
    writes.is_some_and(|w| mean_weight(w, SLOW_LOG_SECONDS, 2) < BEGIN_SHARE)
}

/// `slow_intent_log`: the slow log with the most waiting time.
pub fn slow_intent_log(b: &Breakdown) -> Option<&Log> {
    b.logs.iter().find(|l| log_is_slow(l))
}

/// Least seconds that operations waited for slow logs. Local programs wait for logs, too: every wait for a fast log may belong to an
/// operation, and every wait for a slow log to a local program.
fn slow_log_seconds(b: &Breakdown, all_logs: f64) -> f64 {
    let fast = b.logs.iter().filter(|l| !waits_are_long(l));
    (all_logs - sum(fast.map(|l| l.waits.sum))).max(0.0)
}

/// The part of the window in which a log was written to. A log whose writes may overlap has the number of operations that waited for it, on
/// average and at most 1, in place of that part.
pub fn log_in_use(b: &Breakdown, l: &Log) -> f64 {
    part(l.writes_in_turn().unwrap_or(&l.waits).sum, b.length)
}

/// Seconds that operations waited for locks whose holders waited for a slow log. These operations wait for that log themselves, and the log
/// is in use all the time.
fn behind_log(b: &Breakdown) -> f64 {
    let in_use = |l: &Log| log_in_use(b, l) >= LOG_IN_USE;
    if !b.logs.iter().any(|l| log_is_slow(l) && in_use(l)) {
        return 0.0;
    }
    let wait_for_it = |o: &&Op| mean(o.phases.log.unwrap_or(0.0), o.count) >= SLOW_LOG_SECONDS;
    sum(b.ops.iter().filter(wait_for_it).map(|o| o.phases.lock))
}

/// A kind, its phase, and the seconds that are attributed to it.
type Waits = (Kind, fn(&Phases) -> f64, f64);

/// Seconds that changes waited for the lock of a directory or file whose holders waited for one of these causes, by cause.
///
/// Such changes hold the lock for most of their own time: fs/namei.c and fs/nfsd/vfs.c hold the parent's, and `write_iter` holds the file's
/// while it reads blocks, is throttled (mm/filemap.c, `generic_perform_write`) or frees memory. The holder of the lock therefore spends its
/// time as these changes do without their own waits for the lock.
fn behind_holders(b: &Breakdown, causes: &[Waits]) -> BTreeMap<Kind, f64> {
    let mut behind = BTreeMap::new();
    for changes in [&CHANGES_OF_DIRECTORIES[..], &FILE_CHANGES] {
        let ops = || b.ops.iter().filter(|o| changes.contains(&o.op.as_str()));
        let waited = sum(ops().map(|o| o.phases.lock));
        let held = sum(ops().map(|o| (o.seconds - o.phases.lock).max(0.0)));
        if !holders_explain(b, waited, held) {
            continue;
        }
        for (kind, phase, attributed) in causes {
            let of_holders = part(sum(ops().map(|o| phase(&o.phases))), held).min(1.0);
            if *attributed > 0.0 && of_holders >= HOLDERS_PART && waited > 0.0 {
                *behind.entry(*kind).or_insert(0.0) += waited * of_holders;
            }
        }
    }
    behind
}

/// Seconds that operations slept for I/O that the devices of exports do not explain, if the log of an export is slow and lies on a device
/// of its own. A thread that changes a block which the journal is writing sleeps until the write is done (fs/jbd2/transaction.c,
/// do_get_write_access), and not in a function that waits for the log.
fn disk_behind_log(b: &Breakdown) -> f64 {
    let of_exports = |device: &str| b.export_of(device).is_some();
    let stalls = |l: &Log| log_is_slow(l) && l.separate == Some(true) && of_exports(&l.volume);
    let (Some(p), true) = (b.phases, b.logs.iter().any(stalls)) else {
        return 0.0;
    };
    // The devices of exports explain I/O only if requests to one of them were seen.
    let quick = |(d, mean): (&Disk, f64)| of_exports(&d.device) && mean < SLOW_DISK_REQUEST_SECONDS;
    if !slowest_disk(b).is_some_and(quick) {
        return 0.0;
    }
    let disks = || b.disks.iter().filter(|d| of_exports(&d.device));
    let times =
        || disks().flat_map(|d| [Some(&d.requests), d.queue.as_ref()].into_iter().flatten());
    let busy = sum(times().map(|h| h.sum));
    let longest = (times().map(|h| long_waits(h, 0.0).longest)).fold(0.0, f64::max);
    let Some((op, _)) = b.op_with_most(|p| p.disk) else {
        return 0.0;
    };
    let far_longer = (op.durations.as_ref())
        .is_some_and(|h| long_waits(h, longest * UNEXPLAINED).of_time >= LONG_PART);
    // An operation that reads many blocks one after the other takes long, too, but then the times of its requests add up to that.
    match far_longer && busy * UNEXPLAINED < p.disk {
        true => p.disk,
        false => 0.0,
    }
}

/// Returns false if operations slept longer for I/O than for a slow log of ext4, and it is not known whether the log is behind that I/O:
/// see [`disk_behind_log`]. A log that shares its data's device never is, so nothing need be known about the devices.
pub fn io_behind_log_is_known(b: &Breakdown) -> bool {
    if b.phases.is_none_or(|p| p.disk <= p.log.unwrap_or(0.0)) {
        return true;
    }
    let devices = b.export_devices.is_some() && !b.lacks(&f::BLOCK_DEVICE.info);
    let mut slow = b.logs.iter().filter(|l| l.fs == "ext4" && log_is_slow(l));
    slow.all(|l| l.separate.is_some_and(|separate| devices || !separate))
}

/// The slowest block device of exports with enough requests, and its mean time per request. All devices count if the devices of exports are
/// not known, or if none of them had requests: then the exports lie on others.
pub fn slowest_disk(b: &Breakdown) -> Option<(&Disk, f64)> {
    let is_of_export = |d: &&Disk| b.export_of(&d.device).is_some();
    let known = b.disks.iter().any(|d| is_of_export(&d));
    let enough = (b.disks.iter()).filter(|d| d.requests.count() as f64 >= MIN_COUNT);
    enough
        .filter(|d| !known || is_of_export(d))
        .filter_map(|d| Some((d, d.requests.mean()?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns true if an operation spends long in a wait: on average, or in single operations that are felt.
fn waits_long(op: &Op, each: f64, limit: f64) -> bool {
    (op.count >= MIN_COUNT && each >= limit) || (op.felt > 0.0 && each * op.count >= FELT_SECONDS)
}

/// Weight of the operations' waits for disks by their length, 0 to 1. A slow mean of a device's requests suffices, too.
pub fn disk_weight(b: &Breakdown) -> f64 {
    let waits = weight_of_disk_waits(b);
    let counts = longest_wait(b, |p| p.disk).is_some_and(|(op, _)| op.count >= MIN_COUNT);
    let slowest = slowest_disk(b).filter(|_| counts);
    let by_device = slowest.map_or(0.0, |(_, m)| weight(m, SLOW_DISK_REQUEST_SECONDS));
    waits.max(by_device)
}

/// Weight of the waits themselves. The page cache answers most operations without a disk, so a mean hides the others. Therefore the time
/// decides for operations that mostly wait for disks.
fn weight_of_disk_waits(b: &Breakdown) -> f64 {
    let Some((op, each)) = longest_wait(b, |p| p.disk) else {
        return 0.0;
    };
    if op.felt > 0.0 && op.phases.disk >= FELT_SECONDS {
        return 1.0;
    }
    if op.count < MIN_COUNT {
        return 0.0;
    }
    let mostly_disk = part(op.phases.disk, op.seconds) >= LONG_PART;
    let by_time = (op.durations.as_ref())
        .filter(|_| mostly_disk)
        .map_or(0.0, |h| mean_weight(h, SLOW_DISK_SECONDS, 1));
    weight(each, SLOW_DISK_SECONDS).max(by_time)
}

/// `slow_disk`: returns true if operations wait long for disks.
pub fn slow_disk(b: &Breakdown) -> bool {
    disk_weight(b) >= BEGIN_SHARE
}

/// Returns true if disks are slow, or not, whichever device belongs to an export.
pub fn slowness_of_disks_is_known(b: &Breakdown) -> bool {
    b.export_devices.is_some() || weight_of_disk_waits(b) >= BEGIN_SHARE || !slow_disk(b)
}

/// The operation that waited most in a phase, and the mean wait of one such operation.
pub fn longest_wait(b: &Breakdown, phase: fn(&Phases) -> f64) -> Option<(&Op, f64)> {
    let (op, seconds) = b.op_with_most(phase)?;
    Some((op, mean(seconds, op.count)))
}

/// Returns true if one operation waits long in a phase.
fn is_long(b: &Breakdown, phase: fn(&Phases) -> f64) -> bool {
    longest_wait(b, phase).is_some_and(|(op, each)| waits_long(op, each, LONG_WAIT_SECONDS))
}

/// The seconds that operations waited in a phase, if one operation waits long in it.
fn if_long(b: &Breakdown, phase: fn(&Phases) -> f64) -> f64 {
    match is_long(b, phase) {
        true => b.phases.as_ref().map_or(0.0, phase),
        false => 0.0,
    }
}

/// Seconds that threads waited for daemons, for requests that ended.
pub fn upcall_seconds(b: &Breakdown) -> f64 {
    b.asking + b.phases.map_or(0.0, |p| p.upcall)
}

/// Seconds that threads waited for daemons, for requests that were deferred after that: their time is in no residence.
pub fn deferred_seconds(b: &Breakdown) -> f64 {
    // Without a deferred request the difference is time in which threads waited for a CPU.
    if b.deferred == 0.0 {
        return 0.0;
    }
    let all = sum(b.upcalls.iter().map(|u| u.waits.sum));
    (all - upcall_seconds(b)).max(0.0)
}

/// `slow_upcall`: returns true if waits for daemons are long. A few felt waits are enough, because caches of answers make waits rare.
fn upcalls_are_slow(b: &Breakdown) -> bool {
    Histogram::merged(b.upcalls.iter().map(|u| &u.waits))
        .is_some_and(|waits| mostly_long(&waits, LONG_WAIT_SECONDS))
}

/// Returns true if the CPUs are mostly in use.
pub fn cpus_are_busy(b: &Breakdown) -> bool {
    b.cpu_idle.is_some_and(|idle| idle < BUSY_CPU_IDLE)
}

/// Returns true if operations wait for a CPU for at least `BEGIN_SHARE` of residence. A request's wait for a thread may be a wait for a
/// CPU, too, which is not known.
pub fn waits_much_for_cpu(b: &Breakdown) -> bool {
    let runqueue = b.phases.and_then(|p| p.runqueue).unwrap_or(0.0);
    part(runqueue, b.residence) >= BEGIN_SHARE
}

impl Attribution {
    /// Attributes the time of a window.
    pub fn of(b: &Breakdown) -> Attribution {
        let p = b.phases.unwrap_or_default();
        let if_slow = |slow: bool, seconds: f64| if slow { seconds } else { 0.0 };
        let log = slow_log_seconds(b, p.log.unwrap_or(0.0));
        let runqueue = p.runqueue.unwrap_or(0.0);
        let busy = cpus_are_busy(b);
        let long_reply = mean(b.reply, b.requests) >= LONG_WAIT_SECONDS
            || (b.felt > 0.0 && b.reply >= FELT_SECONDS);
        let reply = if_slow(long_reply, b.reply);
        // A thread that sends may wait for a CPU as well as for the reader. If the CPUs are busy, these waits cannot be distinguished.
        let (reply, runqueue) = match busy {
            true => (0.0, runqueue + reply),
            false => (reply, runqueue),
        };
        // The phase `lock` is sleep for neither log nor disk nor anything else that has a name.
        let locks_are_long = is_long(b, |p| p.lock);
        let upcalls_are_slow = upcalls_are_slow(b);
        let disk_behind_log = if_slow(slow_disk(b), disk_behind_log(b));
        let log = if_slow(slow_intent_log(b).is_some(), log);
        let disk = if_slow(slow_disk(b) && disk_behind_log == 0.0, p.disk);
        let throttle = if_long(b, |p| p.throttle);
        let upcall = if_slow(upcalls_are_slow, upcall_seconds(b));
        let recall = if_long(b, |p| p.recall);
        let reclaim = if_long(b, |p| p.reclaim);
        let mut behind = match locks_are_long {
            true => behind_holders(
                b,
                &[
                    (Kind::SlowIntentLog, |p| p.log.unwrap_or(0.0), log),
                    (Kind::SlowDisk, |p| p.disk, disk),
                    (Kind::WriteThrottle, |p| p.throttle, throttle),
                    (Kind::SlowUpcall, |p| p.upcall, upcall),
                    (Kind::DelegationRecalls, |p| p.recall, recall),
                    (Kind::MemoryReclaim, |p| p.reclaim, reclaim),
                ],
            ),
            false => BTreeMap::new(),
        };
        let of_holders = behind.remove(&Kind::SlowIntentLog).unwrap_or(0.0);
        let behind_log = if_slow(locks_are_long, behind_log(b).max(of_holders));
        // A log that is always in use has all of these waits.
        let rest = (p.lock - behind_log).max(0.0);
        let others = sum(behind.values().copied());
        if others > rest {
            (behind.values_mut()).for_each(|seconds| *seconds *= part(rest, others));
        }
        let behind_one = |kind| behind.get(&kind).copied().unwrap_or(0.0);
        let mut attribution = Attribution {
            log,
            disk: disk + behind_one(Kind::SlowDisk),
            behind_log: behind_log + disk_behind_log,
            disk_behind_log,
            throttle: throttle + behind_one(Kind::WriteThrottle),
            upcall: upcall + behind_one(Kind::SlowUpcall),
            recall: recall + behind_one(Kind::DelegationRecalls),
            reclaim: reclaim + behind_one(Kind::MemoryReclaim),
            lock: if_slow(locks_are_long, (rest - others).max(0.0)),
            behind,
            runqueue,
            reply,
            upcalls_are_slow,
            upcalls_are_felt: (b.upcalls.iter())
                .any(|u| long_waits(&u.waits, FELT_SECONDS).count > 0.0),
            queue: QueueAttribution::default(),
        };
        attribution.queue = attribution.queue_of(b, busy);
        // Short waits for a CPU are normal while one is idle. If none is, they are the server's limit, however short each is.
        let at_limit = busy && waits_much_for_cpu(b);
        let each = mean(attribution.runqueue + attribution.queue.cpu, b.requests);
        if !at_limit && each < LONG_WAIT_SECONDS {
            (attribution.runqueue, attribution.queue.cpu) = (0.0, 0.0);
        }
        attribution
    }

    /// Seconds that operations waited for locks whose holders waited for a cause.
    pub fn behind(&self, kind: Kind) -> f64 {
        self.behind.get(&kind).copied().unwrap_or(0.0)
    }

    fn queue_of(&self, b: &Breakdown, cpus_are_busy: bool) -> QueueAttribution {
        let without_free_thread = queue_without_free_thread(b, cpus_are_busy);
        let mut queue = QueueAttribution {
            threads: without_free_thread,
            cpu: b.queue - without_free_thread,
        };
        // More threads would wait for the same busy CPUs, unless the threads wait for something else.
        if cpus_are_busy {
            let waits = self.waits() + self.reply;
            queue.threads *= part(waits, b.thread_seconds());
            queue.cpu = b.queue - queue.threads;
        }
        queue
    }

    /// Seconds in which threads slept for something slow.
    fn waits(&self) -> f64 {
        let rare = self.throttle + self.upcall + self.recall + self.reclaim;
        self.log + self.behind_log + self.disk + self.lock + rare
    }

    /// Seconds that are attributed to any cause.
    pub fn total(&self) -> f64 {
        let queue = self.queue.threads + self.queue.cpu;
        self.waits() + self.runqueue + self.reply + queue
    }

    /// Seconds of an operation that are not attributed to a slow resource.
    pub fn unattributed(&self, op: &Op) -> f64 {
        let p = &op.phases;
        let causes = [
            (self.log, p.log.unwrap_or(0.0)),
            (self.disk + self.disk_behind_log, p.disk),
            (self.throttle, p.throttle),
            (self.upcall, p.upcall),
            (self.recall, p.recall),
            (self.reclaim, p.reclaim),
            (
                self.lock + sum(self.behind.values().copied()) + self.behind_log
                    - self.disk_behind_log,
                p.lock,
            ),
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
    if saturated < NEGLIGIBLE_SATURATION {
        return 0.0;
    }
    if cpus_are_busy {
        return b.queue * saturated;
    }
    if saturated >= MOSTLY_SATURATED {
        return b.queue;
    }
    // A thread was free for most of the window. The shortest waits show how long a woken thread takes to run.
    let wake_up = b.queue_p10.unwrap_or(0.0);
    (b.queue - b.queued * wake_up).max(0.0)
}
