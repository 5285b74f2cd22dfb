//! `nfscope baseline compare`: the recordings of both sides, the output and the exit code.

pub(crate) mod earlier;
pub(crate) mod paper;
pub(crate) mod part;

use crate::baseline::compare::part::Part;
use crate::cli::{CompareArgs, FailOn, LESS_DURABLE, MatchUnit, UNDECIDED, WORSE};
use anyhow::{Context, bail, ensure};
use nfscope_baseline::compare::result::{Comparison, Row, Verdict};
use nfscope_baseline::compare::{self, Match, Options, Sides};
use nfscope_baseline::durability::Direction;
use nfscope_baseline::series::{Grid, SeriesSet};
use nfscope_baseline::slice::Slice;
use nfscope_baseline::store::{Entry, State, Store};
use nfscope_text::console::{self, print, say};
use nfscope_text::units::percent;
use std::collections::BTreeSet;
use std::time::Duration;

/// Compares two sides and prints the result; returns the exit code.
pub(super) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    let store = Store::read(&args.store.path)?;
    let entries = store.list()?;
    let plan = plan(args, &store, &entries)?;
    let read = |parts: &[Part]| -> anyhow::Result<Vec<SeriesSet>> {
        let store = Store::read(&args.store.path)?;
        parts
            .iter()
            .map(|part| part.read(&store, plan.matching.map(|_| Grid::Hours)))
            .collect()
    };
    // Both sides are read in parallel: a recording of a day takes a second.
    let (before, after) = std::thread::scope(|both| {
        let before = both.spawn(|| read(&plan.before));
        let after = read(&plan.after);
        let before = before
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        anyhow::Ok((before, after?))
    })?;
    for c in before.iter().chain(&after) {
        ensure!(
            args.slice_before.is_none() || c.windows > 0,
            "`{0}` has no windows in that time; fix: `nfscope baseline show {0}` tells when it began, in UTC",
            c.metadata.name
        );
    }
    let earlier = earlier::read(&store, &plan.earlier, [&before[0], &after[0]])?;
    let sides = Sides {
        before: &before,
        after: &after,
        earlier: &earlier,
    };
    let c = compare::compare_sides(&sides, &options(args, plan.matching));
    print(&match args.json {
        true => console::json(&c)?,
        false => compare::text::render(&c, console::colors()),
    })?;
    if let Some(file) = &args.html {
        let mut c = c.clone();
        compare::mark_changes(&mut c.time_series, &before[0], &after[0]);
        let paper = paper::paper(args, &store, [&plan.before, &plan.after])?;
        std::fs::write(file, compare::html::page_to_sign(&c, &paper))
            .with_context(|| format!("cannot write {}", file.display()))?;
        say(&format!("wrote {}", file.display()));
    }
    exit_code(args, &c)
}

/// Exit code of a comparison. Lost durability precedes every duration. A comparison without verdicts proves nothing: it is undecided.
fn exit_code(args: &CompareArgs, c: &Comparison) -> anyhow::Result<u8> {
    if c.durability
        .as_ref()
        .is_some_and(|d| d.direction == Direction::Less)
    {
        return Ok(LESS_DURABLE);
    }
    let Some(FailOn::Worse) = args.fail_on else {
        return Ok(0);
    };
    if c.rows.iter().any(Row::is_worse) {
        return Ok(WORSE);
    }
    if c.rows.iter().any(|r| r.verdict == Verdict::Worse) {
        say(&format!(
            "not counted by --fail-on worse: the primary quantity is worse, and may be so by less than {}; fix: record longer, or \
             --min-change 0, which counts any change",
            percent(c.min_effect)
        ));
    }
    if let Some(why) = &c.not_judged {
        let fix = c.next.first().map_or("", String::as_str);
        say(&format!("undecided: nothing was judged: {why}; fix: {fix}"));
        return Ok(UNDECIDED);
    }
    // Failed operations are tested beside a primary quantity. They can make the result worse, but cannot replace a test of that quantity.
    let answered = |r: &Row| r.p.is_some() && (r.primary || args.primary.is_none());
    if !c.rows.iter().any(answered) {
        let what = match args.primary {
            Some(_) => "the primary quantity could not",
            None => "nothing could",
        };
        say(&format!(
            "undecided: {what} be tested; fix: record longer on both sides"
        ));
        return Ok(UNDECIDED);
    }
    Ok(0)
}

fn options(args: &CompareArgs, matching: Option<Match>) -> Options {
    Options {
        min_effect: args.least,
        between: args.between,
        primary: args.primary.clone(),
        matching,
    }
}

/// Recordings to compare.
struct Plan {
    before: Vec<Part>,
    after: Vec<Part>,
    /// Recordings that may show the variance between recordings of this server, the latest first.
    earlier: Vec<Part>,
    /// Strata that are compared with each other, such as hours of the day.
    matching: Option<Match>,
}

/// Least length of a recording that has a daily pattern. The day is the unit of analysis then.
const DAY: Duration = Duration::from_secs(86_400 / 4 * 3);
/// Least length of a recording that may have two days.
const TWO_DAYS: Duration = Duration::from_secs(86_400 / 4 * 7);

/// Strata of `--match`. Without it: hours of the day if every recording has a whole day and a side has several days, else none.
fn matching(args: &CompareArgs, before: &[Entry], after: &[Entry]) -> Option<Match> {
    let is_plain = args.between.is_none() && args.slice_before.is_none();
    let all = || before.iter().chain(after);
    let are_days = all().all(|e| e.length >= DAY);
    let several = before.len() > 1 || after.len() > 1 || all().any(|e| e.length >= TWO_DAYS);
    match args.matching {
        Some(MatchUnit::Hour) => Some(Match::Hour),
        Some(MatchUnit::Weekday) => Some(Match::Weekday),
        Some(MatchUnit::None) => None,
        None if is_plain && are_days && several => {
            say(
                "these are whole days: each hour is compared with the same hour of the others, and the day is the unit \
                 (--match hour; --match none takes each recording as it is)",
            );
            Some(Match::Hour)
        }
        None => None,
    }
}

fn plan(args: &CompareArgs, store: &Store, entries: &[Entry]) -> anyhow::Result<Plan> {
    let [before, after] = match &args.by {
        Some(label) => by_label(label, entries)?,
        None => {
            let named = |names: &[String]| -> anyhow::Result<Vec<Entry>> {
                names.iter().map(|n| Ok(store.entry(n)?)).collect()
            };
            let before = args.before.as_ref().map_or(&[][..], |n| &n.0);
            let after = args.after.as_ref().map_or(before, |n| &n.0);
            [named(before)?, named(after)?]
        }
    };
    let name = |e: &Entry| e.metadata.name.clone();
    let slices = (args.slice_before, args.slice_after);
    if slices.0.is_none() {
        let mut seen = BTreeSet::new();
        for e in before.iter().chain(&after) {
            ensure!(
                seen.insert(name(e)),
                "`{}` is compared with itself; fix: name another baseline (`nfscope baseline list` shows all)",
                name(e)
            );
        }
    }
    let one_a_side = before.len() == 1 && after.len() == 1;
    ensure!(
        one_a_side || args.between.is_none(),
        "--between is for one recording on each side: several tell themselves how much they differ; fix: leave it out"
    );
    let matching = matching(args, &before, &after);
    let mut earlier = Vec::new();
    if one_a_side && args.between.is_none() && matching.is_none() && slices.0.is_none() {
        earlier = earlier::candidates([&before[0], &after[0]], entries);
    }
    Ok(Plan {
        before: parts(before, slices.0),
        after: parts(after, slices.1),
        earlier,
        matching,
    })
}

fn parts(entries: Vec<Entry>, slice: Option<Slice>) -> Vec<Part> {
    let each = entries.into_iter();
    each.map(|entry| Part { entry, slice }).collect()
}

/// Two sides by a label: KEY=BEFORE,AFTER, or KEY if it has two values. The value that was recorded first is the side before.
fn by_label(label: &str, entries: &[Entry]) -> anyhow::Result<[Vec<Entry>; 2]> {
    let (key, wanted) = match label.split_once('=') {
        Some((key, values)) => (key, values.split(',').map(str::to_owned).collect()),
        None => (label, Vec::new()),
    };
    let mut values: Vec<String> = Vec::new();
    for value in entries.iter().filter_map(|e| e.metadata.labels.get(key)) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    let values = if wanted.is_empty() { values } else { wanted };
    let [before, after] = &values[..] else {
        bail!(
            "the label `{key}` has {} values{}, and a comparison has two sides; fix: name them (--by {key}=BEFORE,AFTER)",
            values.len(),
            if values.is_empty() {
                String::new()
            } else {
                format!(" ({})", values.join(", "))
            }
        );
    };
    let side = |value: &String| -> anyhow::Result<Vec<Entry>> {
        let has = |e: &&Entry| e.metadata.labels.get(key) == Some(value);
        let (going_on, all): (Vec<_>, Vec<_>) = (entries.iter().filter(has).cloned())
            .partition(|e: &Entry| e.state == State::Recording);
        for e in going_on {
            say(&format!(
                "`{}` is left out: it is still being recorded",
                e.metadata.name
            ));
        }
        ensure!(
            !all.is_empty(),
            "no baseline has the label {key}={value}; `nfscope baseline list` shows labels"
        );
        Ok(all)
    };
    Ok([side(before)?, side(after)?])
}
