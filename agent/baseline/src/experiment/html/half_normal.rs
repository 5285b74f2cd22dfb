//! Half-normal drawing: effects of noise lie on a line, and others beyond its end.

use crate::experiment::result::Analysed;
use crate::html::frame::{WIDTH, figure, px};
use crate::html::ticks;
use maud::{Markup, html};

const HEIGHT: f64 = 280.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = HEIGHT - 44.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = WIDTH - 60.0;
/// Most effects with a name in the drawing, the largest first, beside those that stand out.
const NAMED: usize = 3;

/// Draws effects without replicates, against the size that noise would give to effects of their rank.
pub(super) fn draw(a: &Analysed) -> Option<Markup> {
    let h = a.half_normal.as_ref()?;
    let most = h
        .sizes
        .iter()
        .map(|s| s.size)
        .fold(h.margin, f64::max)
        .max(f64::MIN_POSITIVE)
        * 1.05;
    let noise = h
        .sizes
        .iter()
        .map(|s| s.of_noise)
        .fold(f64::MIN_POSITIVE, f64::max);
    let x = |v: f64| LEFT + v / most * (RIGHT - LEFT);
    let y = |v: f64| BOTTOM - v / noise * (BOTTOM - TOP) * 0.94;
    let end = noise.min(most);
    let drawing = html! {
        path.axis d={ "M" (px(LEFT)) " " (px(BOTTOM)) "H" (px(RIGHT)) } {}
        @for (v, label) in axis(a.logarithm, most) {
            path.grid d={ "M" (px(x(v))) " " (px(TOP)) "V" (px(BOTTOM + 4.0)) } {}
            text.tick x=(px(x(v))) y=(px(BOTTOM + 18.0)) text-anchor="middle" { (label) }
        }
        path.line.thin.before d={ "M" (px(x(0.0))) " " (px(y(0.0))) "L" (px(x(end))) " " (px(y(end))) } {}
        path.axis d={ "M" (px(x(h.margin))) " " (px(TOP)) "V" (px(BOTTOM)) } {}
        text.tick x=(px(x(h.margin) + 4.0)) y=(px(BOTTOM - 6.0)) { "margin" }
        @for (i, s) in h.sizes.iter().enumerate() {
            @let out = s.size > h.margin;
            circle class={ @if out { "mark full after" } @else { "mark after" } } cx=(px(x(s.size))) cy=(px(y(s.of_noise))) r="4" { title { (s.factors) } }
            @if out || i < NAMED {
                @let left = x(s.size) > (LEFT + RIGHT) / 2.0;
                text.halo x=(px(x(s.size) + if left { -9.0 } else { 9.0 })) y=(px(y(s.of_noise) + 4.0)) text-anchor=(if left { "end" } else { "start" }) { (s.factors) }
            }
        }
        text.tick x=(px((LEFT + RIGHT) / 2.0)) y=(px(BOTTOM + 36.0)) text-anchor="middle" { "size of the effect" }
    };
    let out = h.sizes.iter().filter(|s| s.size > h.margin).count();
    let words = format!(
        "{} effects by size against what noise gives; {out} beyond the margin",
        h.sizes.len()
    );
    Some(figure(
        "Half-normal: the dashed line is where noise lies",
        &words,
        HEIGHT,
        drawing,
        html! {},
    ))
}

/// Ticks at round sizes. An effect is half the logarithm of the factor from the low level to the high one.
fn axis(logarithm: bool, most: f64) -> Vec<(f64, String)> {
    if logarithm {
        let factors = ticks::factors((2.0 * most).exp()).into_iter();
        let up = factors.filter(|(f, _)| *f >= 1.0);
        return up.map(|(f, label)| (f.ln() / 2.0, label)).collect();
    }
    let parts = [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| part * most / 1.05);
    parts.map(|v| (v, format!("{v:.3}"))).into()
}
