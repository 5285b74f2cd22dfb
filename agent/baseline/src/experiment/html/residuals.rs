//! Residuals against the order of the runs, and against the fitted values: neither should have a shape.

use crate::experiment::html::scale::Scale;
use crate::experiment::result::{Analysed, RunResult};
use crate::html::frame::{WIDTH, figure, px};
use maud::{Markup, html};
use nfscope_text::units::percent;

const HEIGHT: f64 = 220.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = HEIGHT - 40.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 28.0;
/// Most runs with a number at the axis.
const NUMBERS: usize = 12;

/// The two drawings of the residuals; none if each combination was run once, because then there are no residuals.
pub(super) fn draw(a: &Analysed) -> Vec<Markup> {
    if a.runs.iter().all(|r| r.residual == 0.0) || a.half_normal.is_some() {
        return Vec::new();
    }
    let shown = |v: f64| if a.logarithm { v.exp_m1() } else { v };
    let most = a.runs.iter().map(|r| shown(r.residual).abs());
    let most = most.fold(f64::MIN_POSITIVE, f64::max) * 1.15;
    let y = |r: &RunResult| (TOP + BOTTOM) / 2.0 - shown(r.residual) / most * (BOTTOM - TOP) / 2.0;
    let label = |v: f64| match a.logarithm {
        true => percent(v),
        false => format!("{v:.4}"),
    };
    let axes = html! {
        @for part in [-0.8, 0.0, 0.8] {
            @let at = (TOP + BOTTOM) / 2.0 - part * (BOTTOM - TOP) / 2.0;
            path class=(if part == 0.0 { "axis" } else { "grid" }) d={ "M" (px(LEFT)) " " (px(at)) "H" (px(RIGHT)) } {}
            text.tick x=(px(LEFT - 6.0)) y=(px(at + 4.0)) text-anchor="end" { (if part == 0.0 { "0".to_owned() } else { label(part * most) }) }
        }
    };
    let n = a.runs.len();
    let step = n.div_ceil(NUMBERS).max(1);
    let order = |i: f64| LEFT + (i + 0.5) / n as f64 * (RIGHT - LEFT);
    let by_order = html! {
        (axes)
        @for (i, pair) in a.runs.windows(2).enumerate() {
            @if pair[0].block != pair[1].block {
                path.grid d={ "M" (px(order(i as f64 + 0.5))) " " (px(TOP)) "V" (px(BOTTOM)) } {}
            }
        }
        @for (i, r) in a.runs.iter().enumerate() {
            circle.mark.full.after cx=(px(order(i as f64))) cy=(px(y(r))) r="3.5" { title { "run " (r.run) ": " (r.levels) } }
            @if i % step == 0 { text.tick x=(px(order(i as f64))) y=(px(BOTTOM + 18.0)) text-anchor="middle" { (r.run) } }
        }
        text.tick x=(px((LEFT + RIGHT) / 2.0)) y=(px(BOTTOM + 35.0)) text-anchor="middle" { "run; lines divide blocks" }
    };
    let scale = Scale::of(a, a.runs.iter().map(|r| r.fitted));
    let x = |v: f64| LEFT + scale.at(v) * (RIGHT - LEFT);
    let by_fit = html! {
        (axes)
        @for (v, label) in scale.ticks() {
            path.grid d={ "M" (px(x(v))) " " (px(TOP)) "V" (px(BOTTOM + 4.0)) } {}
            text.tick x=(px(x(v))) y=(px(BOTTOM + 18.0)) text-anchor="middle" { (label) }
        }
        @for r in &a.runs {
            circle.mark.full.after cx=(px(x(r.fitted))) cy=(px(y(r))) r="3.5" { title { "run " (r.run) ": " (r.levels) } }
        }
        text.tick x=(px((LEFT + RIGHT) / 2.0)) y=(px(BOTTOM + 35.0)) text-anchor="middle" { "mean of the combination" }
    };
    let words = format!("{n} residuals, the largest of {}", label(most / 1.15));
    vec![
        figure(
            "Residuals in the order of the runs",
            &words,
            HEIGHT,
            by_order,
            html! {},
        ),
        figure(
            "Residuals by the mean of the combination",
            &words,
            HEIGHT,
            by_fit,
            html! {},
        ),
    ]
}
