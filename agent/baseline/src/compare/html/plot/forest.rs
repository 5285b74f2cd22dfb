//! Forest plot: each change and its interval on a line, with zero and the band of changes that do not matter.

use crate::compare::labels;
use crate::compare::result::{Row, Subject, Verdict};
use crate::html::frame::{WIDTH, figure, px};
use crate::html::ticks;
use crate::workload;
use maud::{Markup, html};
use nfscope_stats::Interval;

/// Most lines; readers skip more, and the table has them all.
const MOST: usize = 40;
const LINE: f64 = 18.0;
const TOP: f64 = 34.0;
/// Width of a letter of a name on a phone; names are left of the scale.
const LETTER: f64 = 7.6;
/// Letters of the longest name.
const LETTERS: usize = 28;
/// Distance of the middles of two ticks' labels, on a phone.
const APART: f64 = 46.0;
/// Right end of the scale.
const RIGHT: f64 = WIDTH - 12.0;
/// Largest factor; changes beyond it end at the edge.
const LARGEST: f64 = 1000.0;

/// Draws the changes of rows that have one; `None` if no row does.
pub(in crate::compare::html) fn draw(rows: &[Row], min_effect: f64) -> Option<Markup> {
    let sound = |r: &Interval| {
        [r.value, r.low, r.high]
            .iter()
            .all(|v| v.is_finite() && *v > 0.0)
    };
    let with = |row: &&Row| row.p.is_some() && row.ratio.as_ref().is_some_and(sound);
    let shown: Vec<&Row> = rows.iter().filter(with).take(MOST).collect();
    if shown.is_empty() {
        return None;
    }
    let longest = shown.iter().map(|r| name(r).chars().count()).max();
    let left = LETTER * longest.unwrap_or(0) as f64 + 10.0;
    let ends = shown.iter().filter_map(|r| r.ratio);
    let furthest = ends.map(|r| r.high.max(1.0 / r.low)).fold(1.1, f64::max);
    let scale = furthest.min(LARGEST).ln() * 1.05;
    let x = |ratio: f64| {
        let middle = (left + RIGHT) / 2.0;
        middle + (ratio.ln() / scale).clamp(-1.0, 1.0) * (RIGHT - left) / 2.0
    };
    let height = TOP + LINE * shown.len() as f64 + 8.0;
    let band = min_effect.max(0.0);
    let drawing = html! {
        rect.band x=(px(x(1.0 / (1.0 + band)))) y=(px(TOP - 6.0)) width=(px(x(1.0 + band) - x(1.0 / (1.0 + band)))) height=(px(height - TOP)) {}
        @for (tick, label) in apart(ticks::factors(scale.exp()), x) {
            path.grid d={ "M" (px(x(tick))) " " (px(TOP - 6.0)) "V" (px(height - 8.0)) } {}
            text.tick x=(px(x(tick))) y="14" text-anchor="middle" { (label) }
        }
        path.axis d={ "M" (px(x(1.0))) " " (px(TOP - 6.0)) "V" (px(height - 8.0)) } {}
        @for (i, row) in shown.iter().enumerate() {
            @let y = TOP + LINE * (i as f64 + 0.5);
            @if let Some(r) = row.ratio {
                text.tick x="0" y=(px(y + 4.0)) { (name(row)) }
                path class={ "forest " (class(row.verdict)) } d={ "M" (px(x(r.low))) " " (px(y)) "H" (px(x(r.high))) } {}
                circle class={ "forest " (class(row.verdict)) } cx=(px(x(r.value))) cy=(px(y)) r="3.5" {}
            }
        }
    };
    let changed = shown.iter().filter(|r| r.verdict.is_change());
    let words = format!(
        "{} quantities, after divided by before with the 95 % interval; {} with evidence of a change",
        shown.len(),
        changed.count()
    );
    Some(figure("Changes", &words, height, drawing, html! {}))
}

/// Ticks whose labels have room: no change first, then the furthest ones.
fn apart(mut ticks: Vec<(f64, String)>, x: impl Fn(f64) -> f64) -> Vec<(f64, String)> {
    let of_no_change = |f: f64| if f == 1.0 { f64::MAX } else { f.ln().abs() };
    ticks.sort_by(|a, b| of_no_change(b.0).total_cmp(&of_no_change(a.0)));
    let mut kept: Vec<(f64, String)> = Vec::new();
    for tick in ticks {
        if kept.iter().all(|k| (x(k.0) - x(tick.0)).abs() >= APART) {
            kept.push(tick);
        }
    }
    kept
}

/// Name of a row, `WRITE 4.2 p99`; a long subject is cut.
fn name(row: &Row) -> String {
    let quantity = labels::quantity(&row.quantity);
    let subject = match &row.subject {
        Subject::Workload { job, operation } => workload::label(job, operation),
        other => labels::subject(other),
    };
    let short = subject.split(',').next().unwrap_or_default();
    let letters = LETTERS.saturating_sub(quantity.chars().count() + 1);
    let short: String = short.chars().take(letters).collect();
    format!("{} {quantity}", short.trim_end())
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "gain",
        Verdict::Worse => "worse",
        Verdict::More | Verdict::Less => "neutral",
        Verdict::NoEvidence
        | Verdict::Small
        | Verdict::Few
        | Verdict::NotComparable
        | Verdict::NotTested
        | Verdict::NotJudged => "nothing",
    }
}

#[cfg(test)]
mod tests {
    use super::{APART, apart};
    use crate::html::ticks;

    #[test]
    fn no_label_stands_on_another() {
        for largest in [1.1, 1.3, 2.6, 5.0, 13.0, 20.0, 100.0, 900.0f64] {
            let x = |factor: f64| 200.0 + 130.0 * factor.ln() / largest.ln();
            let mut at: Vec<f64> = apart(ticks::factors(largest), x)
                .into_iter()
                .map(|(f, _)| x(f))
                .collect();
            assert!(at.contains(&200.0) && at.len() >= 2, "{largest}: {at:?}");
            at.sort_by(f64::total_cmp);
            assert!(at.windows(2).all(|w| w[1] - w[0] >= APART), "{largest}");
        }
    }
}
