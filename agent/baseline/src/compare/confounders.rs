//! What differs between two recordings beside what was to be compared, so that nobody compares different work.

use crate::compare::result::Warning;
use crate::compare::{clients, labels as words};
use crate::series::Columns;
use nfscope_model::family as f;
use nfscope_stats as stats;
use nfscope_stats::Measured;
use nfscope_text::units::{percent, rate, seconds};
use std::collections::BTreeMap;

/// A load is another one beyond this factor.
const LOAD: f64 = 1.2;
/// A mix is another one if more than this part of the operations would have to be others.
const MIX: f64 = 0.1;
/// A recording drifts if its halves differ by more than this factor.
const DRIFT: f64 = 1.25;

pub(super) fn about(before: &Columns, after: &Columns) -> Vec<Warning> {
    let mut w = Vec::new();
    let mut say = |kind, text: String| w.push(Warning { kind, text });
    load(before, after, &mut say);
    mix(before, after, &mut say);
    let (b, a) = (clients(before), clients(after));
    if b != a {
        say("clients", format!("{b} clients before, {a} after"));
    }
    same("host", &before.about.host, &after.about.host, &mut say);
    let kernel = |c: &Columns| c.about.kernel.clone().unwrap_or_else(|| "unknown".into());
    same("kernel", &kernel(before), &kernel(after), &mut say);
    same("agent", &before.about.agent, &after.about.agent, &mut say);
    let threads = |c: &Columns| {
        let all = c.numbers(&f::THREADS, |_| true)?;
        let n = all.iter().sum::<f64>() / all.len().max(1) as f64;
        Some(format!("{}", (n * 10.0).round() / 10.0))
    };
    if let (Some(before), Some(after)) = (threads(before), threads(after))
        && before != after
    {
        let text = format!("the number of threads differs: {before} before, {after} after");
        say("threads", text);
    }
    for (side, c) in [("before", before), ("after", after)] {
        drift(side, c, &mut say);
        if c.missing() > 0.05 * c.seconds() {
            say(
                "gaps",
                format!(
                    "{side}: {} of the time between the first and the last window are in none",
                    words::length(c.missing())
                ),
            );
        }
        lost(side, c, &mut say);
    }
    w
}

fn same(kind: &'static str, before: &str, after: &str, say: &mut impl FnMut(&'static str, String)) {
    if before != after {
        say(
            kind,
            format!("{kind} differs: {before} before, {after} after"),
        );
    }
}

fn load(before: &Columns, after: &Columns, say: &mut impl FnMut(&'static str, String)) {
    let of = |c: &Columns| {
        let all = c.spreads(&f::RPC_DURATION, |_| true)?;
        Some(all.count() / c.seconds().max(f64::MIN_POSITIVE))
    };
    let (b, a) = (of(before).unwrap_or(0.0), of(after).unwrap_or(0.0));
    if b.max(a) > LOAD * b.min(a) {
        say(
            "load",
            format!(
                "the load differs: {} requests a second before, {} after. Clients that wait for replies send more when \
                 replies are faster; if yours do not, compare under one load",
                rate(b),
                rate(a)
            ),
        );
    }
}

fn mix(before: &Columns, after: &Columns, say: &mut impl FnMut(&'static str, String)) {
    let of = |c: &Columns| {
        let mut parts: BTreeMap<String, f64> = BTreeMap::new();
        for ([version, op], h) in c.totals(&f::OP_DURATION) {
            *parts.entry(words::operation(version, op)).or_default() += h.count() as f64;
        }
        let all: f64 = parts.values().sum();
        parts.values_mut().for_each(|n| *n /= all.max(1.0));
        parts
    };
    let (b, a) = (of(before), of(after));
    let part = |of: &BTreeMap<String, f64>, op: &str| of.get(op).copied().unwrap_or(0.0);
    let mut moved: Vec<(&String, f64)> = b
        .keys()
        .chain(a.keys().filter(|k| !b.contains_key(*k)))
        .map(|op| (op, part(&a, op) - part(&b, op)))
        .collect();
    let distance = moved.iter().map(|(_, d)| d.abs()).sum::<f64>() / 2.0;
    if distance > MIX {
        moved.sort_by(|x, y| y.1.abs().total_cmp(&x.1.abs()));
        let most: Vec<_> = moved
            .iter()
            .take(2)
            .map(|(op, _)| {
                let (b, a) = (percent(part(&b, op)), percent(part(&a, op)));
                format!("{op} {b} of the operations before, {a} after")
            })
            .collect();
        say("mix", format!("the mix differs: {}", most.join("; ")));
    }
    for (op, what) in [("read", "READs"), ("write", "WRITEs")] {
        let size = |c: &Columns| {
            let sizes = c.spreads(&f::IO_SIZE, |[_, o]| o == op)?;
            sizes.mean().filter(|_| sizes.count() >= 10.0)
        };
        if let (Some(b), Some(a)) = (size(before), size(after))
            && b.max(a) > LOAD * b.min(a)
        {
            say(
                "mix",
                format!("{what} differ: {b:.0} bytes on average before, {a:.0} after"),
            );
        }
    }
}

/// Whether the two halves of one recording are of one kind.
fn drift(side: &str, c: &Columns, say: &mut impl FnMut(&'static str, String)) {
    let Some(all) = c.spreads(&f::OP_DURATION, |_| true) else {
        return;
    };
    let middle = all.counts.len() / 2;
    let halves = |y: &[f64], x: &[f64]| -> Option<[Measured; 2]> {
        Some([
            stats::ratio(&y[..middle], &x[..middle])?,
            stats::ratio(&y[middle..], &x[middle..])?,
        ])
    };
    for (what, y, x, show) in [
        (
            "latency",
            &all.sums,
            &all.counts,
            seconds as fn(f64) -> String,
        ),
        ("operations a second", &all.counts, &c.lengths, rate),
    ] {
        let Some([first, second]) = halves(y, x) else {
            continue;
        };
        let change = stats::change(&first, &second, 0.0);
        let factor = change.ratio.value.max(1.0 / change.ratio.value);
        if change.p < 0.01 && factor > DRIFT {
            say(
                "drift",
                format!(
                    "{side}: {what} changed while it was recorded, from {} in its first half to {} in its second",
                    show(first.value),
                    show(second.value)
                ),
            );
        }
    }
}

/// Events that the probes missed make counts too low.
fn lost(side: &str, c: &Columns, say: &mut impl FnMut(&'static str, String)) {
    let missed = |[_, why]: [&str; 2]| matches!(why, "recursion" | "record" | "map_full");
    let lost = c.total(&f::EVENTS_LOST, missed);
    let all = c.spreads(&f::OP_DURATION, |_| true);
    let all = all.map_or(0.0, |s| s.count());
    if lost > 0.001 * all {
        say(
            "lost",
            format!("{side}: {lost:.0} events were lost, of {all:.0} operations"),
        );
    }
}
