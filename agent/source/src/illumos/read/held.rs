//! Old requests in hand, from the lines of scripts `rpc` and `nfs` for each thread: `rpc` knows requests, `nfs` the operations in them and
//! the causes of their threads' sleep.

use crate::illumos::scripts::op_by_number;
use crate::illumos::totals::Totals;
use nfscope_model::family as f;
use nfscope_model::held_request::{STUCK_SECONDS, WAITS};
use nfscope_model::{HeldRequest, Snapshot};
use std::collections::BTreeMap;
use std::time::Duration;

/// Age from which requests are reported.
const MIN_SECONDS: f64 = 0.5;
/// Number of requests that are described; the others are only counted.
const MOST: usize = 32;

/// Waits of a thread, by their number in the scripts.
const KINDS: [&str; 9] = [
    "unknown", "cpu", "log", "disk", "lock", "throttle", "upcall", "recall", "reclaim",
];
/// Versions of operations in hand, by the number in script `nfs`.
const VERSIONS: [&str; 4] = ["3", "4.0", "4.1", "4.2"];

/// Frames of a script that has a line for each thread.
pub struct Told<'a> {
    /// Totals of its frames.
    pub totals: &'a Totals,
    /// Time of the last frame; `None` if the script does not run.
    pub at_ns: Option<u64>,
}

/// A value of a thread: a time in units of 64 ns, and a number below them.
struct Moment {
    ns: u64,
    number: u64,
}

/// Splits the value of a thread, whose lowest part is a number below `base`.
fn moment(value: i64, base: u64) -> Moment {
    let value = u64::try_from(value).unwrap_or(0);
    Moment {
        ns: (value / base).saturating_mul(64),
        number: value % base,
    }
}

/// Id of a thread: process and number.
type Thread = (u32, u32);

fn by_thread<'a>(totals: &'a Totals, name: &'a str) -> impl Iterator<Item = (Thread, i64)> {
    totals.gauges(name).filter_map(|(fields, value)| {
        let [process, thread] = fields[..] else {
            return None;
        };
        Some(((process.parse().ok()?, thread.parse().ok()?), value))
    })
}

/// Number of threads for which a script has a line.
pub fn threads(totals: &Totals) -> usize {
    totals.gauges("hand").count()
}

/// True if any thread has a request or operation in hand, by the numbers of either script.
pub fn any(totals: &Totals) -> bool {
    let of_ops = |value| moment(value, 2048).number != 2047;
    let of_requests = |value| (1..4).contains(&moment(value, 16).number);
    let requests = totals.gauge("busy").is_some();
    by_thread(totals, "hand").any(|(_, value)| match requests {
        true => of_requests(value),
        false => of_ops(value),
    })
}

struct Operation {
    since_ns: u64,
    version: &'static str,
    op: &'static str,
    wait: &'static str,
}

/// Operations in hand.
fn operations(nfs: &Totals, phases: bool) -> BTreeMap<Thread, Operation> {
    let left: BTreeMap<Thread, i64> = by_thread(nfs, "left").collect();
    let of = |(thread, value): (Thread, i64)| {
        let start = moment(value, 2048);
        if start.number == 2047 {
            return None;
        }
        let number = start.number as usize;
        let version = VERSIONS.get(number / 128)?;
        let left = left.get(&thread).map(|value| moment(*value, 16));
        // A thread that has not left its CPU since the start of the operation runs.
        let kind = left.filter(|left| left.ns >= start.ns);
        let kind = kind.map_or(1, |left| left.number as usize);
        Some((
            thread,
            Operation {
                since_ns: start.ns,
                version,
                op: op_by_number(version, number % 128).unwrap_or("compound"),
                wait: match phases {
                    true => KINDS.get(kind).unwrap_or(&KINDS[0]),
                    false => KINDS[0],
                },
            },
        ))
    };
    by_thread(nfs, "hand").filter_map(of).collect()
}

/// Adds the old requests in hand, the oldest first, and the number of stuck ones. `phases`: the kinds of waits are distinguished. Without
/// script `rpc` only operations are seen, so that there may be a stuck request without a stuck operation.
pub fn read(rpc: &Told, nfs: &Told, phases: bool, s: &mut Snapshot) {
    let ops = match nfs.at_ns {
        Some(_) => operations(nfs.totals, phases),
        None => BTreeMap::new(),
    };
    let age = |at_ns: u64, since_ns: u64| {
        Duration::from_nanos(at_ns.saturating_sub(since_ns)).as_secs_f64()
    };
    let mut all = match (rpc.at_ns, nfs.at_ns) {
        (Some(at_ns), _) => {
            let asks: BTreeMap<Thread, i64> = by_thread(rpc.totals, "asks").collect();
            let of = |(thread, value): (Thread, i64)| {
                let taken = moment(value, 16);
                (1..4).contains(&taken.number).then(|| {
                    let ask = asks.get(&thread).map(|value| moment(*value, 2));
                    let asks = ask.is_some_and(|a| a.number == 1 && a.ns >= taken.ns);
                    let op = ops.get(&thread).filter(|op| op.since_ns >= taken.ns);
                    let wait = match (taken.number, asks, op) {
                        (3, ..) => "reply",
                        (_, true, _) => "upcall",
                        (_, _, Some(op)) => op.wait,
                        _ => "unknown",
                    };
                    described(thread, age(at_ns, taken.ns), op, wait)
                })
            };
            by_thread(rpc.totals, "hand").filter_map(of).collect()
        }
        (None, Some(at_ns)) => ops
            .iter()
            .map(|(thread, op)| described(*thread, age(at_ns, op.since_ns), Some(op), op.wait))
            .collect(),
        (None, None) => Vec::new(),
    };
    all.retain(|r: &HeldRequest| r.seconds >= MIN_SECONDS);
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    for wait in WAITS {
        let same = || all.iter().filter(|r| r.wait == wait).map(|r| r.seconds);
        let measured = rpc.at_ns.is_some()
            && match wait {
                "reply" | "upcall" => true,
                // Most servers never have these waits.
                "throttle" | "recall" | "reclaim" => false,
                "unknown" => !phases,
                _ => phases,
            };
        if measured || same().next().is_some() {
            let stuck = same().filter(|s| *s >= STUCK_SECONDS).count();
            s.gauge(&f::STUCK_REQUESTS, [wait], stuck as f64);
            s.gauge(&f::OLDEST_REQUEST, [wait], same().fold(0.0, f64::max));
        }
    }
    all.truncate(MOST);
    s.held = all;
}

fn described((_, thread): Thread, seconds: f64, op: Option<&Operation>, wait: &str) -> HeldRequest {
    HeldRequest {
        thread,
        seconds,
        version: op.map_or("", |op| op.version).to_owned(),
        op: op.map_or("", |op| op.op).to_owned(),
        wait: wait.to_owned(),
        ..HeldRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::illumos::frame::Frame;

    const SECOND: u64 = 1_000_000_000;

    fn totals(lines: &[(&str, u64)]) -> Totals {
        let mut frame = Frame::default();
        for (key, value) in lines {
            frame.gauges.insert((*key).to_owned(), *value as i64);
        }
        let mut totals = Totals::default();
        totals.add(&frame);
        totals
    }

    fn at(seconds: u64, base: u64, number: u64) -> u64 {
        seconds * SECOND / 64 * base + number
    }

    /// Requests in hand 100 s after the start: seconds, version, operation and wait.
    fn held(
        rpc: Option<Totals>,
        nfs: Option<Totals>,
        phases: bool,
    ) -> (Snapshot, Vec<(u64, String)>) {
        let at_ns = |t: &Option<Totals>| t.as_ref().map(|_| 100 * SECOND);
        let ran = [at_ns(&rpc), at_ns(&nfs)];
        let [rpc, nfs] = [rpc, nfs].map(Option::unwrap_or_default);
        let told = |totals, at_ns| Told { totals, at_ns };
        let mut s = Snapshot::default();
        read(&told(&rpc, ran[0]), &told(&nfs, ran[1]), phases, &mut s);
        let all = s.held.iter();
        let all = all.map(|r| {
            let what = format!("{} {} {}", r.version, r.op, r.wait);
            (r.seconds.round() as u64, what)
        });
        let all = all.collect();
        (s, all)
    }

    fn text(all: &[(u64, String)]) -> Vec<(u64, &str)> {
        all.iter().map(|(s, what)| (*s, what.as_str())).collect()
    }

    /// Cases with a thread for each: lines of the scripts, and the expected request.
    #[test]
    fn what_each_thread_has_in_hand() {
        let rpc = totals(&[
            ("busy", 6),
            ("hand\t9\t1", at(90, 16, 2)),
            ("hand\t9\t2", at(91, 16, 4)),
            ("hand\t9\t3", at(92, 16, 3)),
            ("hand\t9\t4", at(93, 16, 1)),
            ("asks\t9\t4", at(93, 2, 1)),
            ("hand\t9\t5", at(94, 16, 2)),
            ("asks\t9\t5", at(94, 2, 2)),
            ("hand\t9\t6", at(95, 16, 2)),
            ("hand\t9\t7", at(100, 16, 2)),
        ]);
        let nfs = totals(&[
            // A WRITE over NFSv3 that sleeps in the log.
            ("hand\t9\t1", at(90, 2048, 7)),
            ("left\t9\t1", at(90, 16, 2)),
            ("hand\t9\t3", at(92, 2048, 2047)),
            // An operation that NFSv4.1 added; its thread has not slept since it began.
            ("hand\t9\t5", at(94, 2048, 2 * 128)),
            ("left\t9\t5", at(93, 16, 4)),
            // An operation of the request before.
            ("hand\t9\t6", at(80, 2048, 128 + 38)),
        ]);
        assert!(any(&rpc) && any(&nfs));
        assert_eq!([threads(&rpc), threads(&nfs)], [7, 4]);
        let (s, all) = held(Some(rpc), Some(nfs), true);
        assert_eq!(
            text(&all),
            [
                (10, "3 write log"),
                (8, "  reply"),
                (7, "  upcall"),
                (6, "4.1 compound cpu"),
                (5, "  unknown"),
            ]
        );
        assert_eq!(s.value(&f::STUCK_REQUESTS, ["log"]), Some(1.0));
        assert_eq!(s.value(&f::STUCK_REQUESTS, ["disk"]), Some(0.0));
        assert_eq!(s.value(&f::OLDEST_REQUEST, ["reply"]), Some(8.0));
        assert_eq!(s.value(&f::STUCK_REQUESTS, ["recall"]), None);
    }

    #[test]
    fn one_script_alone_tells_what_it_knows() {
        let nfs = || {
            totals(&[
                ("hand\t9\t1", at(97, 2048, 128 + 38)),
                ("left\t9\t1", at(98, 16, 3)),
            ])
        };
        let rpc = || totals(&[("busy", 1), ("hand\t9\t1", at(97, 16, 2))]);
        let (s, all) = held(None, Some(nfs()), true);
        assert_eq!(text(&all), [(3, "4.0 write disk")]);
        assert_eq!(s.value(&f::STUCK_REQUESTS, ["disk"]), Some(1.0));
        // There may be a stuck request that is no operation yet.
        assert_eq!(s.value(&f::STUCK_REQUESTS, ["log"]), None);
        assert_eq!(text(&held(Some(rpc()), None, true).1), [(3, "  unknown")]);
        assert_eq!(
            text(&held(Some(rpc()), Some(nfs()), false).1),
            [(3, "4.0 write unknown")]
        );
        assert_eq!(
            held(None, None, true)
                .0
                .series(&f::STUCK_REQUESTS.info)
                .len(),
            0
        );
    }

    /// Values that no script prints cause no panic, and no request is older than the clock.
    #[test]
    fn values_that_cannot_be_are_harmless() {
        for value in [0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, 2047] {
            let lines = [
                ("busy", 1),
                ("hand\t9\t1", value),
                ("left\t9\t1", value),
                ("asks\t9\t1", value),
            ];
            let (_, all) = held(Some(totals(&lines)), Some(totals(&lines)), true);
            assert!(all.iter().all(|(s, _)| *s <= 100), "{value}: {all:?}");
        }
        assert_eq!(threads(&totals(&[("hand\tx", 1), ("hand", 1)])), 1);
        assert!(!any(&totals(&[("hand\tx", 1)])));
    }
}
