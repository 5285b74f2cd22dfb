//! What to record next: longer recordings, or more of them.

use crate::compare::labels;
use crate::compare::options::Options;
use crate::compare::result::{Components, Quantity, Row, Subject, Verdict};
use crate::compare::sides::Sides;
use crate::series::SeriesSet;
use nfscope_text::units::percent;

/// Most rows that are spoken of.
const MOST: usize = 2;

/// Recordings that are nearly as long as a day have its wave.
const DAY: f64 = 0.75 * 86_400.0;

/// What else to try: whole days in pairs of hours, and what both components of variance say for the primary quantity or the p99 and
/// mean of the first operation.
pub(super) fn advice(sides: &Sides, rows: &[Row], options: &Options) -> Vec<String> {
    let mut all = Vec::new();
    let days = |side: &[SeriesSet]| side.iter().any(|c| c.seconds() >= DAY);
    let few = rows.iter().any(|r| r.verdict == Verdict::Few);
    if few && options.matching.is_none() && days(sides.before) && days(sides.after) {
        all.push(
            "A wave of the day leaves few independent stretches. Compare each hour with the same hour of the other day: --match hour."
                .to_owned(),
        );
    }
    all.extend(components(rows));
    all
}

fn components(rows: &[Row]) -> Vec<String> {
    let matters = |r: &&Row| {
        r.primary
            || matches!(r.subject, Subject::Op { .. } | Subject::Workload { .. })
                && matches!(
                    r.quantity,
                    Quantity::Quantile { percent: 99 } | Quantity::Mean
                )
    };
    let mut rows: Vec<_> = rows.iter().filter(matters).collect();
    // Stable: primary ones first, the others in order of importance.
    rows.sort_by_key(|r| !r.primary);
    rows.into_iter()
        .filter_map(|r| Some(sentence(r, r.components?)))
        .take(MOST)
        .collect()
}

fn sentence(row: &Row, c: Components) -> String {
    let name = format!(
        "{} {}",
        labels::subject(&row.subject),
        labels::quantity(&row.quantity)
    );
    let what = match c.between > c.within {
        true => "More recordings narrow the interval; longer ones hardly do",
        false => "Longer recordings narrow the interval as well as more of them do",
    };
    let enough = match c.recordings_to_find {
        Some(n) => format!(
            "{n:.0} on each side find a change of 10 % in four of five comparisons of as many quantities"
        ),
        None => "No number of them finds a change of 10 %: its histogram bucket hides it".into(),
    };
    format!(
        "{name}: recordings of one side differ by {} (standard deviation), and by {} within their windows. {what}. {enough}.",
        percent(c.between),
        percent(c.within)
    )
}
