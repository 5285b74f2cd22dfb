//! Recordings of both sides as dots, each with its interval, above the intervals of the sides.

use crate::compare::labels;
use crate::compare::result::{Comparison, Dots};
use crate::html::frame::{SIDES, WIDTH, figure, px};
use crate::html::ticks;
use maud::{Markup, html};
use nfscope_stats::Interval;

/// Height of a side with dots, and of a side without. The first page is one sheet, however many recordings there are.
const DOTS: f64 = 60.0;
/// Most dots that have room for their values; fewer dots have the height of as many.
const ROOM: usize = 4;
const SIDE: f64 = 24.0;
const TOP: f64 = 14.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 84.0;

/// Draws the dots; `None` if no recording has a value.
pub(super) fn draw(c: &Comparison, dots: &Dots, sides: [Option<Interval>; 2]) -> Option<Markup> {
    let sound = |i: &&Interval| i.value.is_finite() && i.value > 0.0;
    let shown = || {
        dots.values
            .iter()
            .flatten()
            .flatten()
            .chain(sides.iter().flatten())
            .filter(sound)
    };
    shown().next()?;
    let ends = |i: &Interval| {
        [i.low, i.value, i.high].map(|v| if v.is_finite() && v > 0.0 { v } else { i.value })
    };
    let (low, high) = shown()
        .flat_map(ends)
        .fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let (from, to) = (low / 1.1, high * 1.1);
    let x = |v: f64| LEFT + (v / from).ln() / (to / from).ln() * (RIGHT - LEFT);
    let counts = [0, 1].map(|side| dots.values[side].len());
    let lines = counts.map(|n| DOTS / n.max(ROOM) as f64);
    let heights = [0, 1].map(|side| lines[side] * counts[side] as f64);
    let begin = [TOP, TOP + SIDE + heights[0] + 6.0];
    let bottom = begin[1] + SIDE + heights[1];
    let ticks = ticks::powers(from, to)
        .into_iter()
        .filter(|v| (from..=to).contains(v));
    let label = |v: f64| labels::value(&dots.quantity, v);
    let axis = |v: f64| match dots.quantity.is_count() {
        true => label(v),
        false => ticks::time(v),
    };
    let line = |i: &Interval| {
        let [low, _, high] = ends(i);
        (px(x(low)), px(x(high)))
    };
    let drawing = html! {
        @for v in ticks {
            path.grid d={ "M" (px(x(v))) " " (px(TOP)) "V" (px(bottom + 4.0)) } {}
            text.tick x=(px(x(v))) y=(px(bottom + 18.0)) text-anchor="middle" { (axis(v)) }
        }
        @for side in [0, 1] {
            @let y = begin[side] + 12.0;
            text x="0" y=(px(y + 4.0)) { (SIDES[side]) }
            @if let Some(i) = sides[side].as_ref().filter(sound) {
                @let (l, h) = line(i);
                path class={ "whole " (SIDES[side]) } d={ "M" (l) " " (px(y)) "H" (h) } {}
                path class={ "mark full " (SIDES[side]) } d={ "M" (px(x(i.value))) " " (px(y - 6.0)) "l5 6l-5 6l-5 -6z" } {}
                text x=(px(RIGHT + 8.0)) y=(px(y + 4.0)) { (label(i.value)) }
            }
            @for (n, i) in dots.values[side].iter().enumerate() {
                @let y = begin[side] + SIDE + lines[side] * (n as f64 + 0.5);
                @if let Some(i) = i.as_ref().filter(sound) {
                    @let (l, h) = line(i);
                    path class={ "span " (SIDES[side]) } d={ "M" (l) " " (px(y)) "H" (h) } {}
                    circle class={ "mark full " (SIDES[side]) } cx=(px(x(i.value))) cy=(px(y)) r="3.5" {}
                    @if counts[side] <= ROOM { text.tick x=(px(RIGHT + 8.0)) y=(px(y + 4.0)) { (label(i.value)) } }
                }
            }
        }
    };
    let sums = [&c.before, &c.after].map(|s| s.recordings.len());
    let words = format!(
        "{}: {} and {} recordings, each with its 95 % interval, over the value of each side",
        dots.title, sums[0], sums[1]
    );
    Some(figure(
        &format!(
            "{}: each recording is a dot with its 95 % interval, and each side a diamond",
            dots.title
        ),
        &words,
        bottom + 24.0,
        drawing,
        html! {},
    ))
}
