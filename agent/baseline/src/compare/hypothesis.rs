//! Tests whether the quantities of two sides differ.

use crate::compare::errors;
use crate::compare::evidence::{Evidence, of_side};
use crate::compare::explained;
use crate::compare::families::{self, LEVEL, is_failure};
use crate::compare::matching;
use crate::compare::mix::Mix;
use crate::compare::one_side;
use crate::compare::options::Options;
use crate::compare::primary;
use crate::compare::quantities;
use crate::compare::quantities::InAll;
use crate::compare::result::{Components, Quantity, Row, Subject, Verdict};
use crate::compare::sides::Sides;
use crate::durability::DurabilityChange;
use nfscope_stats as stats;
use nfscope_stats::{Change, Estimate, Interval, MIN_STRETCHES, MIN_WINDOWS, Replicated};
use nfscope_text::units::percent;

/// Power of the change that a row without evidence names.
const POWER: f64 = 0.8;

/// Change for which the number of recordings is reported.
pub(super) const LARGE: f64 = 1.1;

/// A row, and the test behind it, if there is one.
struct Tested {
    row: Row,
    test: Option<Test>,
}

/// The test of a row.
#[derive(Clone, Copy)]
enum Test {
    /// Test of one recording on each side, or of pairs of hours.
    Windows(Change),
    /// Test of several recordings.
    Recordings(Replicated),
}

impl Test {
    fn change(&self) -> &Change {
        match self {
            Test::Windows(change) => change,
            Test::Recordings(r) => &r.change,
        }
    }
}

/// All rows with their verdicts, p values corrected for multiple comparisons.
pub(super) fn rows(
    sides: &Sides,
    subjects: &[Subject],
    options: &Options,
    durability: Option<&DurabilityChange>,
    mix: &Mix,
    is_judged: bool,
) -> Vec<Row> {
    let mut all: Vec<Tested> = subjects
        .iter()
        .flat_map(|s| of_subject(sides, s, options, mix))
        .collect();
    let failing = subjects.iter().filter(|s| errors::is_of_operation(s));
    let rarely: Vec<&Subject> = failing.skip(errors::WITH_RATE).collect();
    all.retain(|t| t.row.quantity == Quantity::Share || !rarely.contains(&&t.row.subject));
    if !is_judged {
        for t in all.iter_mut() {
            t.test = None;
            if t.row.p.take().is_some() {
                t.row.verdict = Verdict::NotJudged;
            }
        }
    }
    let mut rows: Vec<&mut Row> = all.iter_mut().map(|t| &mut t.row).collect();
    primary::mark(&mut rows, sides, options);
    for t in all.iter_mut().filter(|t| t.row.primary) {
        any_change(t, sides, options, mix);
    }
    let mut rows: Vec<&mut Row> = all.iter_mut().map(|t| &mut t.row).collect();
    families::correct(&mut rows, options);
    let rows: Vec<&Row> = all.iter().map(|t| &t.row).collect();
    let levels = families::levels(&rows, options);
    let courses = one_side::find(sides);
    for (t, levels) in all.iter_mut().zip(levels) {
        let least = least(&t.row, options);
        if let Some(Test::Recordings(r)) = &t.test {
            // The level is that of another comparison with as many quantities, in which none of the others is found.
            t.row.components = Some(components(r, least, levels.first));
        }
        let Some(p) = t.row.p else {
            explained::by_mix(&mut t.row, mix, options.min_effect);
            continue;
        };
        let Some(change) = t.test.as_ref().map(Test::change) else {
            t.row.verdict = of_one_side(&t.row, p);
            explained::by_course(&mut t.row, &courses);
            explained::by_durability(&mut t.row, sides, durability);
            continue;
        };
        t.row.verdict = verdict(&t.row, change, p, options.min_effect);
        if t.row.verdict == Verdict::NoEvidence {
            let found = change.smallest_found(least, levels.last, POWER) - 1.0;
            t.row.finds = Some(found).filter(|f| f.is_finite());
            agree(&mut t.row, change, least, levels.last);
        }
        if t.row.primary && t.row.verdict.is_change() {
            t.row.may_be_small = may_be_small(&t.row, change, options.min_effect, levels.first);
            let note = may_be_less(options.min_effect);
            t.row.why = t.row.may_be_small.then_some(note);
        }
        explained::by_failures(&mut t.row, sides, options.min_effect);
        explained::by_mix(&mut t.row, mix, options.min_effect);
        explained::by_course(&mut t.row, &courses);
        explained::by_durability(&mut t.row, sides, durability);
    }
    all.into_iter().map(|t| t.row).collect()
}

/// Change that a row counts as none. For a primary quantity that is no change at all.
fn least(row: &Row, options: &Options) -> f64 {
    match row.primary {
        true => 0.0,
        false => options.min_effect,
    }
}

/// Tests a row for any change. A change beyond the least one that matters is a change, so this test comes first in a fixed sequence, and
/// costs nothing.
fn any_change(t: &mut Tested, sides: &Sides, options: &Options, mix: &Mix) {
    let options = Options {
        min_effect: 0.0,
        ..options.clone()
    };
    let all = of_subject(sides, &t.row.subject, &options, mix).into_iter();
    let mut same = all.filter(|other| other.row.quantity == t.row.quantity);
    if let Some(any) = same.find(|other| other.test.is_some()) {
        (t.row.p, t.test) = (any.row.p, any.test);
    }
}

/// Returns true for a found change of the primary quantity that is not shown to be of a size that matters: the second test of the sequence,
/// at the level of the first.
fn may_be_small(row: &Row, change: &Change, min_effect: f64, level: f64) -> bool {
    let least = 1.0 + min_effect;
    let at_level = change.wider(1.0 - level);
    let all = row.ratio.into_iter().chain([at_level]);
    let reaches = |r: Interval| r.low <= least && r.high >= 1.0 / least;
    // A quantity that only one side has has no ratio, and may be of any size.
    min_effect > 0.0 && row.ratio.is_some() && all.into_iter().any(reaches)
}

/// A note on a change that may be too small to matter.
fn may_be_less(min_effect: f64) -> String {
    format!(
        "there is a change, and it may be less than {}",
        percent(min_effect)
    )
}

fn verdict(row: &Row, change: &Change, p: f64, min_effect: f64) -> Verdict {
    match p <= LEVEL {
        // A change of a primary quantity may be too small to matter.
        _ if change.is_small(min_effect) => Verdict::Small,
        false => Verdict::NoEvidence,
        true if change.ratio.value < 1.0 => fell(row),
        true => rose(row),
    }
}

/// Verdict if one side has none of the quantity.
fn of_one_side(row: &Row, p: f64) -> Verdict {
    match p <= LEVEL {
        false => Verdict::NoEvidence,
        true if is_zero(row.before) => rose(row),
        true => fell(row),
    }
}

/// Makes the interval of a row without evidence agree with its p value, which is corrected for all rows. The interval of 95 % for one row
/// alone may exclude every change that is too small to matter. It is then replaced by the interval at the level of the row's test. Holm's
/// procedure found nothing at that level, so this interval reaches such a change. A note explains an interval that excludes no change at
/// all.
fn agree(row: &mut Row, change: &Change, min_effect: f64, level: f64) {
    let Some(ratio) = row.ratio.as_mut() else {
        return;
    };
    let least = 1.0 + min_effect;
    let leaves_out = |r: &Interval, least: f64| r.low > least || r.high < 1.0 / least;
    let mut notes = Vec::new();
    if leaves_out(ratio, least) {
        let wider = change.wider(1.0 - level);
        *ratio = Interval {
            value: ratio.value,
            low: wider.low.min(least),
            high: wider.high.max(1.0 / least),
        };
        notes.push(format!(
            "this interval has the {} confidence of as many tests",
            percent(1.0 - level)
        ));
    }
    if min_effect > 0.0 && leaves_out(ratio, 1.0) {
        notes.push(format!(
            "{}: --min-change 0 tests for any",
            may_be_less(min_effect)
        ));
    }
    row.why = (!notes.is_empty()).then(|| notes.join("; "));
}

fn is_zero(side: Option<Interval>) -> bool {
    side.is_some_and(|i| i.value == 0.0)
}

fn of_subject(sides: &Sides, subject: &Subject, options: &Options, mix: &Mix) -> Vec<Tested> {
    let all = sides.all();
    let mut quantities = quantities::of(&all, subject);
    let one_mix = match subject {
        Subject::Requests { version } => mix.one(version, options.min_effect),
        _ => None,
    };
    let is_mean = |of: &InAll| of.quantity == Quantity::Mean;
    if let (Some(one), Some(at)) = (&one_mix, quantities.iter().position(is_mean)) {
        let standardised = quantities::ratios(Quantity::MeanAtOneMix, &all, |_, c| one.of(c));
        quantities.insert(at + 1, standardised);
    }
    let rows = quantities.into_iter();
    let rows = rows.map(|of| {
        let mut t = row(sides, subject, of, options);
        // The mean at one mix is tested in place of the mean.
        if one_mix.is_some() && t.row.quantity == Quantity::Mean {
            (t.test, t.row.p, t.row.verdict) = (None, None, Verdict::NotComparable);
            t.row.why = mix.explains(subject, &Quantity::Mean).map(|e| e.text());
        }
        t
    });
    rows.filter(|t| t.row.before.is_some() || t.row.after.is_some())
        .collect()
}

fn row(sides: &Sides, subject: &Subject, of: InAll, options: &Options) -> Tested {
    let (before, rest) = of.evidence.split_at(sides.before.len());
    let (after, mut rest) = rest.split_at(sides.after.len());
    let mut earlier = Vec::new();
    for group in sides.earlier {
        let (this, more) = rest.split_at(group.len());
        rest = more;
        // Recordings that have the quantity show how much recordings differ.
        let known: Vec<Estimate> = (this.iter())
            .filter_map(|e| match of.quantity.is_count() {
                true => e.at_least_half().cloned(),
                false => e.estimate().cloned(),
            })
            .collect();
        if known.len() > 1 {
            earlier.push(known);
        }
    }
    let replicates = options.matching.is_none() && sides.has_replicates();
    let several = replicates || before.len() + after.len() > 2;
    let both = [of_side(before), of_side(after)];
    let stretches = |all: &[Evidence]| {
        let each = all.iter().filter_map(Evidence::estimate);
        each.map(|e| e.stretches).reduce(f64::min)
    };
    let mut row = Row {
        subject: subject.clone(),
        before: both[0].interval(),
        after: both[1].interval(),
        ratio: None,
        p: None,
        verdict: Verdict::NotComparable,
        why: None,
        primary: false,
        may_be_small: false,
        finds: None,
        stretches: [stretches(before), stretches(after)],
        components: None,
        quantity: of.quantity,
    };
    let mut tested = None;
    match &both {
        [Evidence::Known { .. }, Evidence::Known { .. }] => {
            let (b, a) = (estimates(before), estimates(after));
            if let (Some(b), Some(a)) = (b, a) {
                tested = test(&mut row, sides, &of.windows, &b, &a, &earlier, options);
            }
        }
        [Evidence::None { .. }, Evidence::None { .. }] => row.verdict = Verdict::NoEvidence,
        [Evidence::NotMeasured, _] => row.why = Some("not measured before".into()),
        [_, Evidence::NotMeasured] => row.why = Some("not measured after".into()),
        [Evidence::TooLittle, _] => row.why = Some(too_little("before")),
        [_, Evidence::TooLittle] => row.why = Some(too_little("after")),
        _ if replicates && row.quantity.is_count() => {
            tested = of_counts(&mut row, before, after, &earlier, options);
        }
        [Evidence::Mixed, _] => row.why = Some(mixed("before")),
        [_, Evidence::Mixed] => row.why = Some(mixed("after")),
        [Evidence::None { .. }, _] if several => row.why = Some("absent before".into()),
        [_, Evidence::None { .. }] if several => row.why = Some("absent after".into()),
        [Evidence::None { .. }, Evidence::Known { estimate }] => {
            one_sided(&mut row, &of.windows[1], &of.windows[0], estimate, options);
        }
        [Evidence::Known { estimate }, Evidence::None { .. }] => {
            one_sided(&mut row, &of.windows[0], &of.windows[1], estimate, options);
        }
    }
    // There is no ratio to zero.
    let change = tested.as_ref().map(Test::change);
    let ratio = change.map(|c| c.ratio).or(row.ratio);
    row.ratio = ratio.filter(|_| !is_zero(row.before) && !is_zero(row.after));
    row.p = change.map(|c| c.p).or(row.p);
    Tested { row, test: tested }
}

/// Tests a quantity that one recording has and the other lacks entirely: by the windows that have it.
fn one_sided(row: &mut Row, with: &[f64], none: &[f64], known: &Estimate, options: &Options) {
    if !known.is_known() {
        row.verdict = Verdict::Few;
        row.why = Some(format!(
            "absent on one side, and {:.1} independent stretches on the other: a verdict needs {MIN_STRETCHES:.0}",
            known.stretches
        ));
        return;
    }
    let n = with.len() as f64;
    let events = with.iter().filter(|v| **v > 0.0).count() as f64;
    // Correlated windows count as fewer independent ones.
    let independent = events * (known.stretches / n).min(1.0);
    // Two recordings may differ by the stated variance: almost always by less than two standard deviations.
    let between = options.between.unwrap_or(0.0).ln_1p() * 8f64.sqrt();
    let factor = (1.0 + options.min_effect) * between.exp();
    row.p = Some(stats::one_sided(
        independent,
        n / (n + none.len() as f64),
        factor,
    ));
}

/// Tests counts that some recordings have and others lack: zero counts as half an event.
fn of_counts(
    row: &mut Row,
    before: &[Evidence],
    after: &[Evidence],
    earlier: &[Vec<Estimate>],
    options: &Options,
) -> Option<Test> {
    let of = |side: &[Evidence]| -> Option<Vec<Estimate>> {
        side.iter().map(|e| e.at_least_half().cloned()).collect()
    };
    let (b, a) = (of(before)?, of(after)?);
    let none = |side: &[Evidence]| side.iter().all(|e| matches!(e, Evidence::None { .. }));
    let shown = (row.before, row.after);
    let r = replicated(row, &b, &a, earlier, options)?;
    if none(before) {
        row.before = shown.0;
    }
    if none(after) {
        row.after = shown.1;
    }
    Some(r)
}

/// Estimates of all this evidence; `None` if one has none.
fn estimates(of: &[Evidence]) -> Option<Vec<Estimate>> {
    of.iter().map(|e| e.estimate().cloned()).collect()
}

/// Tests a quantity that both sides have; `None` if there are too few independent observations.
fn test(
    row: &mut Row,
    sides: &Sides,
    windows: &[Vec<f64>],
    before: &[Estimate],
    after: &[Estimate],
    earlier: &[Vec<Estimate>],
    options: &Options,
) -> Option<Test> {
    if let Some(by) = options.matching {
        let hidden = before[0].hidden() + after[0].hidden();
        let pairs = match matching::pairs(sides, windows, by) {
            Ok(pairs) => pairs,
            Err(unpaired) => {
                row.why = Some(unpaired.why(by));
                return None;
            }
        };
        // Days or weeks are the unit, so the number of their independent hours does not matter.
        if matching::has_several(sides, by) {
            let rounds = matching::rounds(sides, windows, by);
            // The error within a bucket is the same in every round, so more rounds do not average it out.
            let several = rounds
                .and_then(|[b, a]| stats::replicated(&b, &a, &[], hidden, options.min_effect));
            if several.is_none() {
                row.why = Some(format!("too few hours are in every {}", by.round()));
            }
            return several.map(|r| Test::Windows(r.change));
        }
        let change = stats::paired(&pairs, hidden, options.min_effect);
        let known = change.filter(|(_, independent)| *independent >= MIN_STRETCHES);
        if known.is_none() {
            row.verdict = Verdict::Few;
            row.why = Some(format!(
                "{} pairs of hours, of which {:.1} are independent: a verdict needs {MIN_STRETCHES:.0}",
                pairs.len(),
                change.map_or(0.0, |(_, independent)| independent)
            ));
        }
        row.ratio = change.map(|(c, _)| c.ratio);
        // A comparison with one round on each side is shown, and not judged.
        return known.map(|(c, _)| Test::Windows(c));
    }
    if let Some(test) = replicated(row, before, after, earlier, options) {
        return Some(test);
    }
    if sides.has_replicates() {
        row.why = Some("too few recordings have it to tell how much recordings differ".into());
        return None;
    }
    let (b, a) = (&before[0], &after[0]);
    let change = stats::change(b, a, options.min_effect, options.between.unwrap_or(0.0));
    // A fall rests on the lower end before and on the upper end after, a rise on the opposite ends.
    let (below, above) = match change.ratio.value < 1.0 {
        true => (b, a),
        false => (a, b),
    };
    if below.is_known_from_below() && above.is_known() {
        return Some(Test::Windows(change));
    }
    row.ratio = Some(change.ratio);
    row.verdict = Verdict::Few;
    row.why = Some(format!(
        "{:.1} independent stretches before, {:.1} after: a verdict needs {MIN_STRETCHES:.0} on each side",
        b.stretches, a.stretches
    ));
    None
}

/// Tests several recordings; `None` if their variance is not known.
fn replicated(
    row: &mut Row,
    before: &[Estimate],
    after: &[Estimate],
    earlier: &[Vec<Estimate>],
    options: &Options,
) -> Option<Test> {
    let r = stats::replicated(before, after, earlier, 0.0, options.min_effect)?;
    (row.before, row.after) = (Some(r.before), Some(r.after));
    Some(Test::Recordings(r))
}

/// Variances of recordings, and the number of recordings that find a large change at this level.
fn components(r: &Replicated, min_effect: f64, level: f64) -> Components {
    Components {
        within: r.within.sqrt(),
        between: r.between.sqrt(),
        recordings_to_find: r.recordings_to_find(LARGE, min_effect, level, POWER),
        recordings_to_find_first: r.recordings_to_find(LARGE, 0.0, LEVEL, POWER),
    }
}

fn is_neutral(row: &Row) -> bool {
    row.quantity.is_count() && !is_failure(row)
}

/// Returns true for the rate of a workload, of which more is better: it does its work as fast as it can, or at the rate that was set.
fn is_throughput(row: &Row) -> bool {
    matches!(row.subject, Subject::Workload { .. }) && row.quantity == Quantity::Rate
}

fn fell(row: &Row) -> Verdict {
    match is_neutral(row) {
        true if is_throughput(row) => Verdict::Worse,
        true => Verdict::Less,
        false => Verdict::Better,
    }
}

fn rose(row: &Row) -> Verdict {
    match is_neutral(row) {
        true if is_throughput(row) => Verdict::Better,
        true => Verdict::More,
        false => Verdict::Worse,
    }
}

fn mixed(side: &str) -> String {
    format!("present in some of the recordings {side}, and absent in others")
}

fn too_little(side: &str) -> String {
    format!(
        "too few values {side}: at least {MIN_WINDOWS} windows are needed, and ten values beyond a quantile"
    )
}
