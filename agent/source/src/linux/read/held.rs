//! Old requests in hand: a stuck request shows here before it shows in any histogram, which counts ends.
//!
//! Probe nfsd keeps a record of each thread's request; [`nfsd_request`](nfscope_probes::types::request_record) has its begin. A reading
//! looks at every record, and in detail only at those of old requests.

use super::decode::{monotonic_ns, seconds};
use super::nfsd::op_name;
use super::top_k::address;
use crate::linux::host::file_handle::{Exports, Handle};
use crate::linux::host::task;
use crate::linux::load::object::Loaded;
use nfscope_model::family as f;
use nfscope_model::held_request::{STUCK_SECONDS, WAITS};
use nfscope_model::phase::RARE;
use nfscope_model::{HeldRequest, HeldRequests, Snapshot};
use nfscope_probes::types as t;
use std::time::Duration;

/// Age from which requests are reported. It is long enough that no record of a healthy server is read twice.
const MIN_SECONDS: f64 = 0.5;
/// Limit of requests that are described in a snapshot; the others are counted.
const MOST: usize = 32;
/// Limit of requests that are described when all are asked for.
const MOST_ASKED_FOR: usize = 1024;

/// `PENDING_AT_A_TIME` of nfsd/pending.h: connections that one run of the program looks at.
const PENDING_AT_A_TIME: usize = 64;

/// Records that are mapped at a time: a quarter of a mebibyte.
const RECORDS_AT_A_TIME: u32 = 1024;

/// `DISK` of wait_kind.h.
const DISK: u8 = 2;
/// `THROTTLE` of wait_kind.h; the other rare waits follow it.
const THROTTLE: u8 = 4;
/// `enum stage` of lib/request.h.
const DEQUEUED: u8 = 1;
const RUNNING: u8 = 2;
const REPLYING: u8 = 3;

/// Adds the old requests in hand, the oldest first, and the number of stuck ones. `phases`: the kinds of waits are distinguished.
pub fn read(l: &Loaded, exports: &mut Exports, phases: bool, s: &mut Snapshot) {
    let Some(old) = old_requests(l, MIN_SECONDS) else {
        return;
    };
    let now = monotonic_ns();
    let mut count = [0.0; WAITS.len()];
    let mut oldest = [0.0f64; WAITS.len()];
    for (since, r) in old {
        let age = seconds(now.saturating_sub(since));
        // A thread in state idle waits for work, and the end of its request was not seen. A thread without a state has ended.
        let Some(state) = task::state(r.tid).filter(|state| *state != task::State::Idle) else {
            continue;
        };
        let wait = wait(&r, state, phases);
        if age >= STUCK_SECONDS {
            count[wait] += 1.0;
        }
        oldest[wait] = oldest[wait].max(age);
        if s.held.len() < MOST {
            s.held.push(describe(l, exports, &r, age, WAITS[wait]));
        }
    }
    for (i, name) in WAITS.iter().enumerate() {
        let measured = match *name {
            "upcall" | "reply" => true,
            "unknown" => !phases,
            // Most servers never have these waits.
            "throttle" | "recall" | "reclaim" => oldest[i] > 0.0,
            _ => phases,
        };
        if measured {
            s.gauge(&f::STUCK_REQUESTS, [name], count[i]);
            s.gauge(&f::OLDEST_REQUEST, [name], oldest[i]);
        }
    }
}

/// Records of requests that are at least `least` seconds old, with the begin of each, the oldest first. `None` without records.
fn old_requests(l: &Loaded, least: f64) -> Option<Vec<(u64, t::request_record)>> {
    let places = l.map("nfsd_request")?;
    let now = monotonic_ns();
    let mut old: Vec<(u64, t::request_record)> = Vec::new();
    let mut add = |read: &dyn Fn() -> Option<t::request_record>| {
        let Some(r) = read() else { return };
        let Some(since) = held_since(&r, now, least) else {
            return;
        };
        // A record is read a word at a time. The record of a request that began or ended meanwhile is now another one.
        if read().is_some_and(|again| held_since(&again, now, least) == Some(since)) {
            old.push((since, r));
        }
    };
    let all = places.capacity();
    for i in 0..all {
        // Mapped records count as memory of the agent.
        if i % RECORDS_AT_A_TIME == 0 {
            l.unmap();
        }
        // The first word is the time of the dequeue; most places were never used.
        if places.first_word(all, i) != 0 {
            add(&|| places.at(i));
        }
    }
    if let Some(more) = l.map("nfsd_more") {
        for key in more.keys::<u32>() {
            add(&|| more.value(&key));
        }
    }
    old.sort_by_key(|(since, _)| *since);
    Some(old)
}

/// All requests in hand for longer than `over`.
pub fn all(l: &Loaded, exports: &mut Exports, phases: bool, over: Duration) -> HeldRequests {
    let mut out = HeldRequests::default();
    let over = over.as_secs_f64();
    for (since, r) in old_requests(l, over).unwrap_or_default() {
        if out.requests.len() == MOST_ASKED_FOR {
            out.left_out += 1;
            continue;
        }
        let Some(state) = task::state(r.tid).filter(|state| *state != task::State::Idle) else {
            continue;
        };
        let age = seconds(monotonic_ns().saturating_sub(since));
        let wait = WAITS[wait(&r, state, phases)];
        out.requests.push(describe(l, exports, &r, age, wait));
    }
    out
}

/// Adds the connections whose requests no thread has taken.
pub fn read_pending(l: &Loaded, s: &mut Snapshot) {
    const NOW: &str = ".data.nfsd_pending_now";
    let Some(connections) = l.map("nfsd_connection") else {
        return;
    };
    if l.set(NOW, &t::pending::default()).is_err() {
        return;
    }
    for first in (0..connections.capacity()).step_by(PENDING_AT_A_TIME) {
        if !l.run("nfsd_pending", u64::from(first)) {
            return;
        }
    }
    let Some(pending) = l.get::<t::pending>(NOW) else {
        return;
    };
    let age = match pending.since_ns {
        0 => 0.0,
        since => seconds(monotonic_ns().saturating_sub(since)),
    };
    s.gauge(&f::PENDING_CONNECTIONS, [], pending.connections as f64);
    s.gauge(&f::OLDEST_PENDING, [], age);
}

/// Time at which the thread took the request that it has in hand, if that is at least `least` seconds ago.
fn held_since(r: &t::request_record, now: u64, least: f64) -> Option<u64> {
    let held = match r.stage {
        // A thread that stays in this stage nearly always found nothing to read. Only a thread that asks mountd counts as busy.
        DEQUEUED => r.t_busy > 0,
        RUNNING | REPLYING => true,
        _ => false,
    };
    let long = seconds(now.saturating_sub(r.t_dequeue)) >= least;
    (r.tid > 0 && held && long && r.t_dequeue > 0).then_some(r.t_dequeue)
}

/// Cause of the thread's wait, as an index of [`WAITS`].
fn wait(r: &t::request_record, state: task::State, phases: bool) -> usize {
    let name = match r.stage {
        DEQUEUED => "upcall",
        REPLYING => "reply",
        _ if !phases => "unknown",
        _ if state == task::State::Running => "cpu",
        _ if r.rare >= THROTTLE => RARE.get(usize::from(r.rare - THROTTLE)).unwrap_or(&"lock"),
        _ if r.log_depth > 0 => "log",
        _ if r.disk_depth > 0 => "disk",
        // Without the scheduler's books the record has the cause of the sleep from the moment when the thread was switched out.
        _ if r.books == 0 && r.wait_from > 0 && r.off_wait == DISK => "disk",
        _ => "lock",
    };
    WAITS.iter().position(|w| *w == name).unwrap_or_default()
}

fn describe(
    l: &Loaded,
    exports: &mut Exports,
    r: &t::request_record,
    age: f64,
    wait: &str,
) -> HeldRequest {
    let asked = r.stage != DEQUEUED && l.run("nfsd_held", u64::from(r.tid));
    let held = asked
        .then(|| l.get::<t::held_op>(".data.nfsd_held_op"))
        .flatten();
    let row = match r.compound {
        0 => Some(u32::from(r.row)),
        _ => held.map(|h| h.row),
    };
    let name = row.and_then(|row| op_name(row, l.build));
    let (version, op) = match (r.stage, name) {
        (DEQUEUED, _) => ("", ""),
        (_, Some(name)) => name,
        (..) => ("4", "compound"),
    };
    let raw = (held.as_ref()).and_then(|h| h.handle.get(..h.handle_size as usize));
    let handle = raw.and_then(Handle::parse);
    let client = (r.stage != DEQUEUED).then(|| address(r.client)).flatten();
    HeldRequest {
        thread: r.tid,
        seconds: age,
        version: version.to_owned(),
        op: op.to_owned(),
        wait: wait.to_owned(),
        client: client.map(|a| a.to_string()),
        export: handle.and_then(|h| exports.path(h.export).map(str::to_owned)),
        inode: handle.and_then(|h| exports.file_name(h.export, &h.file?).inode()),
        xid: (held.map(|h| h.xid).filter(|xid| *xid != 0)).map(u32::from_be),
        stack: task::kernel_stack(r.tid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use task::State;

    const SECOND: u64 = 1_000_000_000;

    fn record(stage: u8, t_dequeue: u64) -> t::request_record {
        t::request_record {
            tid: 7,
            stage,
            t_dequeue,
            books: 1,
            ..t::request_record::default()
        }
    }

    #[test]
    fn only_a_request_in_hand_is_held_and_only_an_old_one_counts() {
        let now = 100 * SECOND;
        assert_eq!(
            held_since(&record(RUNNING, 60 * SECOND), now, 0.5),
            Some(60 * SECOND)
        );
        assert_eq!(
            held_since(&record(REPLYING, 60 * SECOND), now, 0.5),
            Some(60 * SECOND)
        );
        assert_eq!(
            held_since(&record(RUNNING, now - SECOND / 4), now, 0.5),
            None
        );
        // A thread that waits for work dequeued a long time ago, too.
        assert_eq!(held_since(&record(0, 60 * SECOND), now, 0.5), None);
        let mut idle = record(DEQUEUED, 60 * SECOND);
        assert_eq!(held_since(&idle, now, 0.5), None);
        idle.t_busy = 61 * SECOND;
        assert_eq!(held_since(&idle, now, 0.5), Some(60 * SECOND));
        // An empty place, and a time that the clock has not reached.
        assert_eq!(held_since(&t::request_record::default(), now, 0.5), None);
        assert_eq!(held_since(&record(RUNNING, now + SECOND), now, 0.5), None);
    }

    #[test]
    fn what_a_thread_waits_for() {
        let waits = |change: &dyn Fn(&mut t::request_record), state, phases| {
            let mut r = record(RUNNING, 1);
            change(&mut r);
            WAITS[wait(&r, state, phases)]
        };
        let asleep = State::Asleep;
        assert_eq!(waits(&|_| {}, asleep, true), "lock");
        assert_eq!(waits(&|_| {}, State::Running, true), "cpu");
        assert_eq!(waits(&|_| {}, asleep, false), "unknown");
        assert_eq!(waits(&|r| r.disk_depth = 1, asleep, true), "disk");
        // A wait for a log includes a wait for a disk.
        let both = |r: &mut t::request_record| (r.log_depth, r.disk_depth) = (1, 1);
        assert_eq!(waits(&both, asleep, true), "log");
        assert_eq!(waits(&|r| r.stage = REPLYING, asleep, true), "reply");
        assert_eq!(waits(&|r| r.stage = DEQUEUED, asleep, true), "upcall");
        assert_eq!(waits(&|r| r.rare = 4, asleep, true), "throttle");
        assert_eq!(waits(&|r| r.rare = 7, asleep, true), "reclaim");
        // Memory is reclaimed by writing to a log.
        let within = |r: &mut t::request_record| (r.rare, r.log_depth) = (7, 1);
        assert_eq!(waits(&within, asleep, true), "reclaim");
        let noted = |r: &mut t::request_record| {
            (r.books, r.wait_from, r.off_wait) = (0, 1, DISK);
        };
        assert_eq!(waits(&noted, asleep, true), "disk");
    }
}
