//! Advice on the next recordings: longer ones, or more of them.

use crate::compare::labels;
use crate::compare::matching;
use crate::compare::options::{Match, Options};
use crate::compare::result::{Components, Quantity, Row, Subject, Verdict};
use crate::compare::sides::Sides;
use crate::html::quoted;
use crate::series::SeriesSet;
use nfscope_text::units::percent;

/// Most rows that the advice mentions.
const MOST: usize = 2;

/// Length in seconds from which on a recording has the wave of the day.
const DAY: f64 = 0.75 * 86_400.0;

/// Advice: whole days in pairs of hours, and the consequences of both components of variance for the primary quantity or the p99 and mean
/// of the first operation.
pub(super) fn advice(
    sides: &Sides,
    rows: &[Row],
    options: &Options,
    not_judged: bool,
) -> Vec<String> {
    let mut all = Vec::new();
    let days = |side| matching::are_several(side, Match::Hour);
    let one_each = not_judged && options.matching.is_none() && !sides.has_replicates();
    if one_each && days(sides.before) && days(sides.after) {
        all.push(
            "Both sides have several days: --match hour takes the days as the unit.".to_owned(),
        );
    }
    if not_judged {
        all.extend(more_recordings(sides, options));
    }
    let days = |side: &[SeriesSet]| side.iter().any(|c| c.seconds() >= DAY);
    let few = rows.iter().any(|r| r.verdict == Verdict::Few);
    if few && options.matching.is_none() && days(sides.before) && days(sides.after) {
        all.push(
            "A wave of the day leaves few independent stretches. Compare each hour with the same hour of the other day: --match hour."
                .to_owned(),
        );
    }
    let each = [sides.before.len(), sides.after.len()];
    all.extend(components(rows, each.into_iter().min().unwrap_or(0)));
    all
}

/// Recommended recordings of each side.
const EACH: usize = 3;
/// Recommended recordings of one side if the other cannot be recorded again.
const ONE: usize = 5;

/// Commands that make a verdict possible.
fn more_recordings(sides: &Sides, options: &Options) -> Vec<String> {
    if let Some(by) = options.matching {
        let round = by.round();
        return vec![format!(
            "Record {EACH} {round}s on each side, and name all of them: monday-1,monday-2,monday-3."
        )];
    }
    let [Some(before), Some(after)] = [sides.before, sides.after].map(|side| side.first()) else {
        return Vec::new();
    };
    let (before, after) = (&before.metadata.name, &after.metadata.name);
    let names = |name: &str, n: usize| {
        let all: Vec<_> = (1..=n).map(|i| format!("{name}-{i}")).collect();
        quoted(&all.join(","))
    };
    vec![
        format!(
            "Record each side {EACH} times (nfscope baseline record {} --repeat {EACH} --every 1h), then: nfscope baseline compare {} {}",
            quoted(after),
            names(before, EACH),
            names(after, EACH)
        ),
        format!(
            "Where one side cannot be recorded again, record the other {ONE} times; or state by how much recordings of this server \
             differ: --between 5%. Later comparisons take it from {ONE} earlier recordings of this host with the same kernel, threads, \
             exports and logs."
        ),
    ]
}

/// Advice by both components of variance. `each` is the number of recordings on the side that has fewer.
fn components(rows: &[Row], each: usize) -> Vec<String> {
    let matters = |r: &&Row| {
        r.primary
            || matches!(r.subject, Subject::Op { .. } | Subject::Workload { .. })
                && matches!(
                    r.quantity,
                    Quantity::Quantile { percent: 99 } | Quantity::Mean
                )
    };
    let mut rows: Vec<_> = rows.iter().filter(matters).collect();
    // The sort is stable: primary rows first, then those for which more recordings help, each in order of importance.
    let is_hidden = |r: &Row| r.components.is_some_and(|c| c.recordings_to_find.is_none());
    rows.sort_by_key(|r| (!r.primary, is_hidden(r)));
    rows.into_iter()
        .filter_map(|r| Some(sentence(r, r.components?, each)))
        .take(MOST)
        .collect()
}

fn sentence(row: &Row, c: Components, each: usize) -> String {
    let name = labels::named(row);
    let what = match c.between > c.within {
        true => "More recordings narrow the interval; longer ones hardly do",
        false => "Longer recordings narrow the interval as well as more of them do",
    };
    let enough = match c.recordings_to_find {
        Some(n) => format!(
            "{n:.0} on each side find a change of 10 % in four of five comparisons of as many quantities{}",
            cheapest(row, c, n, each as f64)
        ),
        None => "No number of them finds a change of 10 %: its histogram bucket hides it".into(),
    };
    format!(
        "{name}: recordings of one side differ by {} (standard deviation), and by {} within their windows. {what}. {enough}.",
        percent(c.between),
        percent(c.within)
    )
}

/// Sentence about the number of further recordings, and about the number if the quantity is tested first.
fn cheapest(row: &Row, c: Components, all: f64, each: f64) -> String {
    if row.verdict != Verdict::NoEvidence {
        return String::new();
    }
    let more = |n: f64| match n - each {
        more if more >= 1.0 => format!("{more:.0} more than now"),
        _ => "as many as now, or fewer".to_owned(),
    };
    let first = c.recordings_to_find_first.filter(|n| *n < all);
    match (first, asked(row)) {
        (Some(n), Some(metric)) => format!(
            " ({}). In the next comparison {n:.0} are enough with --primary {metric} ({})",
            more(all),
            more(n)
        ),
        _ => format!(" ({})", more(all)),
    }
}

/// Name of the quantity for --primary.
fn asked(row: &Row) -> Option<String> {
    let (Subject::Op { op, .. }, false) = (&row.subject, row.primary) else {
        return None;
    };
    match row.quantity {
        Quantity::Quantile { percent } => Some(format!("{op}:p{percent}")),
        Quantity::Mean => Some(format!("{op}:mean")),
        Quantity::Rate => Some(format!("{op}:rate")),
        _ => None,
    }
}
