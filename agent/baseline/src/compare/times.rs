//! Checks of the times of two recordings: order, overlap, hours and weekdays.

use crate::compare::result::Caveat;
use crate::compare::sides::Sides;
use crate::series::SeriesSet;
use std::ops::Range;

const DAY_MS: i64 = 86_400_000;
/// Length of the slots by which times of day are distinguished.
const SLOT_MS: i64 = 600_000;
const SLOTS: usize = (DAY_MS / SLOT_MS) as usize;
/// Largest distance of slots that count as the same time of day: two hours.
const NEAR: usize = 12;
/// Share of a side's time in hours that the other side lacks, from which on the load differs by the time of day.
const OTHER: f64 = 0.25;
/// Share of the time on Saturdays and Sundays, from which on the sides differ.
const WEEKEND: f64 = 0.5;

/// Start and end of a recording in milliseconds since 1970.
fn span(c: &SeriesSet) -> Range<i64> {
    let at = |seconds: f64| c.metadata.began_ms + (seconds * 1e3) as i64;
    let begin = c.begins.first().copied().unwrap_or(0.0);
    let last = c.begins.last().copied().unwrap_or(0.0);
    // A window that was merged from several has gaps inside; the end of the last one is precise enough.
    at(begin)..at(last + c.lengths.last().copied().unwrap_or(0.0))
}

/// Returns true if every recording before began later than every one after. Sides that took turns have no wrong order.
pub(super) fn is_reversed(sides: &Sides) -> bool {
    let begins = |side: &[SeriesSet]| -> Vec<i64> { side.iter().map(|c| span(c).start).collect() };
    let first = begins(sides.before).into_iter().min();
    let last = begins(sides.after).into_iter().max();
    first > last
}

/// Part of the shorter recording up to which two recordings may overlap. A recording begins when its first reading arrives, which is later
/// than the reading. It lasts as long by the agent's clock, so consecutive recordings overlap by that delay.
const IN_COMMON: f64 = 0.05;

/// Returns true if recordings of these times, in milliseconds since 1970, overlap.
pub fn in_common(a: &Range<i64>, b: &Range<i64>) -> bool {
    let length = |of: &Range<i64>| of.end.saturating_sub(of.start);
    let common = length(&(a.start.max(b.start)..a.end.min(b.end)));
    let shorter = length(a).min(length(b));
    common > 0 && common as f64 >= IN_COMMON * shorter as f64
}

/// Returns true for recordings of one host whose times overlap.
fn overlap(a: &SeriesSet, b: &SeriesSet) -> bool {
    a.metadata.host == b.metadata.host && in_common(&span(a), &span(b))
}

/// Names of the first two recordings of one side that overlap on the same host.
pub(super) fn overlapping(side: &[SeriesSet]) -> Option<(&str, &str)> {
    side.iter().enumerate().find_map(|(i, a)| {
        let b = side[..i].iter().find(|b| overlap(a, b))?;
        Some((b.metadata.name.as_str(), a.metadata.name.as_str()))
    })
}

pub(super) fn find(
    before: &SeriesSet,
    after: &SeriesSet,
    reversed: bool,
    say: &mut impl FnMut(Caveat),
) {
    let mut say = |kind, text: &str| {
        say(Caveat {
            kind,
            text: text.to_owned(),
        });
    };
    if before.begins.is_empty() || after.begins.is_empty() {
        return;
    }
    let same_host = before.metadata.host == after.metadata.host;
    if same_host && span(before) == span(after) && before.same_data(after) {
        say(
            "same",
            "both sides are the same data: a copy says nothing about a change",
        );
        return;
    }
    if overlap(before, after) {
        say(
            "overlap",
            "the recordings overlap in time: what both measured is compared with itself",
        );
    } else if reversed {
        say(
            "order",
            "the side called before was recorded after the other: exchange the names, or read every change the other way round",
        );
    }
    let (slots_before, slots_after) = (slots(before), slots(after));
    let there = other_of(&slots_before, &slots_after);
    if there.max(other_of(&slots_after, &slots_before)) > OTHER {
        say(
            "hours",
            "the recordings are of different hours of the day. Record at the same time of day, or compare \
             whole days with --match hour",
        );
    }
    let weekend =
        |c: &SeriesSet| share(c, |ms| matches!(ms.div_euclid(DAY_MS).rem_euclid(7), 2 | 3));
    if (weekend(before) - weekend(after)).abs() > WEEKEND {
        say(
            "weekdays",
            "one side is of a weekend and the other of weekdays. Record on the same days, or compare whole weeks with --match weekday",
        );
    }
}

/// Share of the time for which `holds` returns true.
fn share(c: &SeriesSet, holds: impl Fn(i64) -> bool) -> f64 {
    let at = |begin: &f64| c.metadata.began_ms + (begin * 1e3) as i64;
    let windows = c.begins.iter().zip(&c.lengths);
    let of: f64 = windows.filter(|(b, _)| holds(at(b))).map(|(_, l)| l).sum();
    of / c.seconds().max(f64::MIN_POSITIVE)
}

/// Share of the time in each slot of the day.
fn slots(c: &SeriesSet) -> Vec<f64> {
    let mut slots = vec![0.0; SLOTS];
    for (begin, length) in c.begins.iter().zip(&c.lengths) {
        let at = c.metadata.began_ms + (begin * 1e3) as i64;
        // A window may be longer than a slot.
        let parts = ((length * 1e3 / SLOT_MS as f64).ceil() as i64).clamp(1, SLOTS as i64);
        for part in 0..parts {
            let slot = (at + part * SLOT_MS).rem_euclid(DAY_MS) / SLOT_MS;
            slots[slot as usize] += length / parts as f64;
        }
    }
    let all = slots.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    slots.into_iter().map(|s| s / all).collect()
}

/// Share of one side's time that is far from every time of the other.
fn other_of(of: &[f64], than: &[f64]) -> f64 {
    let near = |slot: usize| (0..=2 * NEAR).any(|i| than[(slot + SLOTS + i - NEAR) % SLOTS] > 0.0);
    (0..SLOTS).filter(|s| !near(*s)).map(|s| of[s]).sum()
}
