//! Confounders: differences between two recordings that may explain a change, such as another load or another mix.

use crate::compare::mix::Mix;
use crate::compare::options::Options;
use crate::compare::result::{Caveat, Row};
use crate::compare::sides::Sides;
use crate::compare::{course, errors, labels, mix, times};
use crate::durability::Durability;
use crate::series::SeriesSet;
use crate::workload;
use nfscope_model::family as f;
use nfscope_text::units::{percent, rate};
use std::collections::BTreeMap;

/// Factor from which on two loads count as different.
const LOAD: f64 = 1.2;
/// Share of operations that differ, from which on two mixes count as different.
const MIX: f64 = 0.1;
/// Share of operations that moved from some clients to others, from which on the clients count as different.
const MOVED: f64 = 0.1;
/// Share of untimed operations up to which the reason may be that both counters of a coverage are not read at once.
const UNTIMED: f64 = 0.01;

/// Finds every difference between the two sides. The first recording of each side is compared with the first of the other, the second with
/// the second. A difference of an earlier pair is not reported again.
pub(super) fn find(
    sides: &Sides,
    rows: &[Row],
    options: &Options,
    mix: &Mix,
    [before, after]: &[Durability; 2],
    not_judged: Option<&str>,
) -> Vec<Caveat> {
    let mut all: Vec<Caveat> = Vec::new();
    durability(before, after, &mut all);
    if sides.compared().iter().all(|c| c.windows > 0) {
        work(mix, rows, options, &mut all);
    }
    let pairs = sides.before.len().max(sides.after.len());
    let reversed = times::is_reversed(sides);
    for i in 0..pairs {
        let known: Vec<&str> = all.iter().map(|c| c.kind).collect();
        let (before, after) = (
            &sides.before[i.min(sides.before.len() - 1)],
            &sides.after[i.min(sides.after.len() - 1)],
        );
        for mut caveat in of_two(before, after, reversed) {
            if known.contains(&caveat.kind) {
                continue;
            }
            if pairs > 1 {
                let (b, a) = (&before.metadata.name, &after.metadata.name);
                let (first, rest) = caveat.text.split_at(first_sentence(&caveat.text).len());
                caveat.text = format!("{first} ({b} and {a}){rest}");
            }
            all.push(caveat);
        }
    }
    if let Some(why) = not_judged {
        all.push(Caveat {
            kind: "replicates",
            text: format!("{why}. Nothing is judged: a difference may be a change, or chance"),
        });
    }
    if options.primary.is_some() && not_judged.is_none() && !rows.iter().any(|r| r.primary) {
        all.push(Caveat {
            kind: "primary",
            text: "the primary quantity could not be tested, and nothing is tested behind it"
                .into(),
        });
    }
    all
}

/// Other operations, sizes and stabilities: those that move any quantity by a relevant factor, and a mix that differs by a tenth of all
/// operations.
fn work(mix: &Mix, rows: &[Row], options: &Options, all: &mut Vec<Caveat>) {
    let explained = rows.iter().filter(|r| r.ratio.is_some()).filter_map(|r| {
        let explained = mix.explains(&r.subject, &r.quantity)?;
        (!explained.is_nothing(options.min_effect)).then_some(explained.causes)
    });
    for cause in mix.moved(MIX).into_iter().chain(explained.flatten()) {
        // The mix of one version's operations is reported with that of all.
        let is_known = |w: &Caveat| match cause.kind {
            "mix" => w.kind == "mix",
            _ => *w == cause,
        };
        if !all.iter().any(is_known) {
            all.push(cause);
        }
    }
}

/// Caveats of durability: unknown on a side, or writes at risk on both.
fn durability(before: &Durability, after: &Durability, all: &mut Vec<Caveat>) {
    if before.change(after).is_none() {
        let moved = [
            before.moved_to_unflushed(after, ["before", "after"]),
            after.moved_to_unflushed(before, ["after", "before"]),
        ];
        let kind = "write_cache";
        all.extend(
            moved
                .into_iter()
                .flatten()
                .map(|text| Caveat { kind, text }),
        );
        let mut say = |text: String| {
            let kind = "durability";
            all.push(Caveat { kind, text });
        };
        let unused = after.added(before).filter(|_| before.risk().is_none());
        match (before.unknown(), after.unknown()) {
            _ if unused.is_some() => say(format!(
                "after, {}; hardly a write went there",
                unused.unwrap_or_default()
            )),
            (Some(why), None) => say(format!(
                "before, it is not known whether acknowledged writes were durable: {why}"
            )),
            (Some(why), Some(_)) => say(format!(
                "it is not known whether acknowledged writes were durable: {why}. A latency may be short because they were not"
            )),
            _ => {}
        }
    }
    if let (Some(_), Some(risk)) = (before.risk(), after.risk()) {
        all.push(Caveat {
            kind: "durability",
            text: format!("a crash of the server loses acknowledged writes on both sides: {risk}"),
        });
    }
}

/// The first sentence of a caveat, without its full stop.
pub(super) fn first_sentence(text: &str) -> &str {
    text.split(". ").next().unwrap_or(text)
}

fn of_two(before: &SeriesSet, after: &SeriesSet, reversed: bool) -> Vec<Caveat> {
    let mut w = Vec::new();
    let mut empty = false;
    for (side, c) in [("before", before), ("after", after)] {
        if c.windows == 0 {
            empty = true;
            let text = format!("{side}: the recording has no windows");
            w.push(Caveat {
                kind: "empty",
                text,
            });
        }
    }
    // An empty recording differs from all others in work, load and times, which shows nothing.
    if empty {
        return w;
    }
    times::find(before, after, reversed, &mut |caveat| w.push(caveat));
    errors::caveats(before, after, &mut |caveat| w.push(caveat));
    let mut say = |kind, text: String| w.push(Caveat { kind, text });
    load(before, after, &mut say);
    moved(before, after, &mut say);
    let told = |c: &SeriesSet| {
        let label = |name| c.metadata.labels.get(name).map(String::as_str);
        let all = [label(workload::NAME), label(workload::PARAMETERS)];
        let all: Vec<_> = all.into_iter().flatten().collect();
        match all.is_empty() {
            true => "none".to_owned(),
            false => all.join(" "),
        }
    };
    same("workload", &told(before), &told(after), &mut say);
    same(
        "host",
        &before.metadata.host,
        &after.metadata.host,
        &mut say,
    );
    let kernel = |c: &SeriesSet| {
        c.metadata
            .kernel
            .clone()
            .unwrap_or_else(|| "unknown".into())
    };
    same("kernel", &kernel(before), &kernel(after), &mut say);
    same(
        "agent",
        &before.metadata.agent,
        &after.metadata.agent,
        &mut say,
    );
    let threads = |c: &SeriesSet| {
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
        coverage(side, c, &mut say);
        course::find(side, c, &mut say);
        if c.metadata.has_few_edges() {
            say(
                "few_edges",
                format!(
                    "{side}: imported from classic histograms, whose edges for operations are 1, 10 and 100 ms and 1 s. Rates and \
                     means are exact. Quantiles lie between two edges, nobody knows where, and are not compared"
                ),
            );
        }
        // A workload is not recorded between its repeats, so those gaps do not count.
        let missing = match c.metadata.labels.contains_key(workload::NAME) {
            true => c.untimed,
            false => c.missing(),
        };
        if missing > 0.05 * c.seconds() {
            say(
                "gaps",
                format!(
                    "{side}: windows are missing for {} between the first and the last window",
                    labels::length(missing)
                ),
            );
        }
        lost(side, c, &mut say);
    }
    w
}

/// Part of the load that moved from some clients to others. The number of clients alone shows little: one that comes or goes may do
/// nothing.
fn moved(before: &SeriesSet, after: &SeriesSet, say: &mut impl FnMut(&'static str, String)) {
    let of = |c: &SeriesSet| -> BTreeMap<String, f64> {
        let all = c.sums(&f::CLIENT_OPS);
        let sum: f64 = all.iter().map(|(_, n)| n).sum();
        let parts = all.into_iter();
        parts
            .map(|([client], n)| (client.to_owned(), n / sum.max(1.0)))
            .collect()
    };
    let (b, a) = (of(before), of(after));
    if b.values().sum::<f64>() == 0.0 || a.values().sum::<f64>() == 0.0 {
        return;
    }
    let part = |client: &String| format!("{client} had");
    if let Some((share, most)) = mix::moved(&b, &a, MOVED, part, "operations") {
        let share = percent(share);
        let text = format!("{share} of the load moved to other clients: {most}");
        say("clients", text);
    }
}

/// Number of clients with operations.
pub(super) fn clients(c: &SeriesSet) -> usize {
    let all = c.sums(&f::CLIENT_OPS);
    all.iter().filter(|(_, n)| *n > 0.0).count()
}

fn same(kind: &'static str, before: &str, after: &str, say: &mut impl FnMut(&'static str, String)) {
    if before != after {
        say(
            kind,
            format!("the {kind} differs: {before} before, {after} after"),
        );
    }
}

fn load(before: &SeriesSet, after: &SeriesSet, say: &mut impl FnMut(&'static str, String)) {
    let of = |c: &SeriesSet| {
        let all = c.histograms(&f::RPC_DURATION, |_| true)?;
        Some(all.count() / c.seconds().max(f64::MIN_POSITIVE))
    };
    let (b, a) = (of(before).unwrap_or(0.0), of(after).unwrap_or(0.0));
    if b.max(a) > LOAD * b.min(a) {
        say(
            "load",
            format!(
                "the load differs: {} requests per second before, {} after. Clients that wait for replies send more when \
                 replies are faster. If yours do not, compare recordings under the same load",
                rate(b),
                rate(a)
            ),
        );
    }
}

/// Caveat about operations that the kernel counted and the probes did not time: they are in no latency.
fn coverage(side: &str, c: &SeriesSet, say: &mut impl FnMut(&'static str, String)) {
    for ([version], counted) in c.sums(&f::KERNEL_OPS) {
        let timed = c.total(&f::TIMED_OPS, |[v]| v == version);
        if counted > 0.0 && timed < (1.0 - UNTIMED) * counted {
            let share = percent(timed / counted);
            let text = format!(
                "{side}, {share} of NFSv{version} operations were timed: no latency has the others"
            );
            say("coverage", text);
        }
    }
}

/// Caveat about events that the probes lost, which make counts too low.
fn lost(side: &str, c: &SeriesSet, say: &mut impl FnMut(&'static str, String)) {
    let missed = |[_, why]: [&str; 2]| matches!(why, "recursion" | "record" | "map_full");
    let lost = c.total(&f::EVENTS_LOST, missed);
    let all = c.histograms(&f::OP_DURATION, |_| true);
    let all = all.map_or(0.0, |s| s.count());
    if lost > 0.001 * all {
        say(
            "lost",
            format!("{side}: the probes lost {lost:.0} events; {all:.0} operations were counted"),
        );
    }
}
