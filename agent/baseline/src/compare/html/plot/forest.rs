//! Forest plot: each change and its interval on a line, with zero and the band of changes that do not matter.

use crate::compare::html::plot::frame::{WIDTH, figure, px};
use crate::compare::labels;
use crate::compare::result::{Row, Verdict};
use maud::{Markup, html};
use nfscope_stats::Interval;

/// Most lines; readers skip more, and the table has them all.
const MOST: usize = 40;
const LINE: f64 = 18.0;
const TOP: f64 = 34.0;
/// Where the scale begins and ends.
const LEFT: f64 = 170.0;
const RIGHT: f64 = WIDTH - 12.0;
/// Changes beyond this factor end at the edge.
const LARGEST: f64 = 20.0;

/// Draws the changes of rows that have one; `None` where no row does.
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
    let ends = shown.iter().filter_map(|r| r.ratio);
    let furthest = ends.map(|r| r.high.max(1.0 / r.low)).fold(1.1, f64::max);
    let scale = furthest.min(LARGEST).ln() * 1.05;
    let x = |ratio: f64| {
        let middle = (LEFT + RIGHT) / 2.0;
        middle + (ratio.ln() / scale).clamp(-1.0, 1.0) * (RIGHT - LEFT) / 2.0
    };
    let height = TOP + LINE * shown.len() as f64 + 8.0;
    let band = min_effect.max(0.0);
    let ticks = [0.1, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 10.0];
    let ticks = ticks.into_iter().filter(|t: &f64| t.ln().abs() <= scale);
    let drawing = html! {
        rect.band x=(px(x(1.0 / (1.0 + band)))) y=(px(TOP - 6.0)) width=(px(x(1.0 + band) - x(1.0 / (1.0 + band)))) height=(px(height - TOP)) {}
        @for tick in ticks {
            path.grid d={ "M" (px(x(tick))) " " (px(TOP - 6.0)) "V" (px(height - 8.0)) } {}
            text.tick x=(px(x(tick))) y="14" text-anchor="middle" { (factor(tick)) }
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

fn name(row: &Row) -> String {
    let subject = labels::subject(&row.subject);
    let short: String = subject
        .split(',')
        .next()
        .unwrap_or_default()
        .chars()
        .take(19)
        .collect();
    format!("{short} {}", labels::quantity(&row.quantity))
}

fn factor(ratio: f64) -> String {
    match ratio {
        1.0 => "same".to_owned(),
        r => format!("{r}x"),
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::More | Verdict::Less => "neutral",
        Verdict::NoEvidence
        | Verdict::Small
        | Verdict::Few
        | Verdict::NotComparable
        | Verdict::NotTested => "nothing",
    }
}
