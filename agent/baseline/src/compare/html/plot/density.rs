//! Plot of two latency distributions.

use crate::compare::result::Curve;
use crate::html::frame::{Frame, SIDES, empty, figure, legend, px};
use crate::html::ticks;
use maud::{Markup, html};
use nfscope_text::units::{percent, seconds};

/// Share of the values at each end that is not shown.
const TRIMMED_SHARE: f64 = 1e-4;
const HEIGHT: f64 = 266.0;

/// A bucket that can be drawn: decimal logarithms of its edges, and the share of the values of each side in it.
struct Bucket {
    from: f64,
    to: f64,
    /// Representative value, in seconds.
    middle: f64,
    share: [f64; 2],
}

/// Common properties of all drawings, for comparison side by side: the ends of the horizontal axis, and the highest share.
struct Common {
    x: (f64, f64),
    highest: f64,
}

/// Draws steps, because the distribution within a bucket is unknown. Buckets are equally wide on the logarithmic axis, so shares are
/// densities. A curve is given without the edges that divide buckets.
pub(in crate::compare::html) fn draw(curves: &[Curve]) -> Vec<Markup> {
    let all: Vec<(&Curve, Vec<Bucket>)> = curves.iter().map(|c| (c, buckets(c))).collect();
    let shown = || all.iter().flat_map(|(_, buckets)| trimmed(buckets));
    let common = Common {
        x: (
            shown().map(|b| b.from).fold(f64::INFINITY, f64::min),
            shown().map(|b| b.to).fold(f64::NEG_INFINITY, f64::max),
        ),
        highest: shown().flat_map(|b| b.share).fold(0.0, f64::max),
    };
    all.iter()
        .map(|(c, buckets)| one(c, buckets, &common))
        .collect()
}

fn one(c: &Curve, all: &[Bucket], common: &Common) -> Markup {
    let shown = trimmed(all);
    if shown.is_empty() {
        return empty(&c.title);
    }
    let up = ticks::upwards(common.highest, |v| percent(v).replace(".0 %", " %"));
    let (from, to) = common.x;
    let frame = Frame {
        top: 92.0,
        bottom: HEIGHT - 26.0,
        x: common.x,
        y_max: up.last().map_or(1.0, |(v, _)| *v),
    };
    let across = ticks::logarithmic(10f64.powf(from), 10f64.powf(to));
    let marks = [0, 1].map(|side| match c.marks[side] {
        Some([p50, p99]) => Some((p50, p99)),
        None => quantile(all, side, 0.5).zip(quantile(all, side, 0.99)),
    });
    let words = [0, 1].map(|side| match marks[side] {
        Some((p50, p99)) => {
            format!(
                "{}: p50 {}, p99 {}",
                SIDES[side],
                seconds(p50),
                seconds(p99)
            )
        }
        None => format!("{}: no values", SIDES[side]),
    });
    let drawing = html! {
        (frame.axes(&across, &up, "share of values per bucket; ○ p50, ◆ p99"))
        path.area d=(steps(&frame, shown, 1)) {}
        // The dashed line is drawn last, so that both are visible where they coincide.
        @for side in [1, 0] {
            (legend(side, &words[side]))
            @if marks[side].is_some() {
                path class={ "line " (SIDES[side]) } d=(steps(&frame, shown, side)) {}
            }
            @if let Some((p50, p99)) = marks[side] { (mark(&frame, side, p50, p99)) }
        }
    };
    figure(&c.title, &words.join("; "), HEIGHT, drawing, html! {})
}

/// A line from the median to p99 above the curves.
fn mark(frame: &Frame, side: usize, p50: f64, p99: f64) -> Markup {
    let y = 47.0 + 12.0 * side as f64;
    let (from, to) = (frame.x(p50.log10()), frame.x(p99.log10()));
    html! {
        path class={ "line " (SIDES[side]) } d={ "M" (px(from)) " " (px(y)) "H" (px(to)) } {}
        circle class={ "mark " (SIDES[side]) } cx=(px(from)) cy=(px(y)) r="4" {}
        path class={ "mark full " (SIDES[side]) } d={ "M" (px(to - 5.0)) " " (px(y)) "l5-5 5 5-5 5z" } {}
    }
}

fn steps(frame: &Frame, shown: &[Bucket], side: usize) -> String {
    let mut d = format!("M{} {}", px(frame.x(shown[0].from)), px(frame.y(0.0)));
    // Equal neighbours are one step: joints within a straight line would fill the gaps of a dashed line.
    for same in shown.chunk_by(|a, b| a.share[side] == b.share[side]) {
        let (height, end) = (same[0].share[side], same[same.len() - 1].to);
        d += &format!("V{}H{}", px(frame.y(height)), px(frame.x(end)));
    }
    d + &format!("V{}", px(frame.y(0.0)))
}

/// Buckets whose edges have a place on a logarithmic axis. A bucket without an end is as wide as the one before it.
fn buckets(c: &Curve) -> Vec<Bucket> {
    let counts = |side: &[f64]| -> Vec<f64> {
        let sound = |n: &f64| if n.is_finite() { n.max(0.0) } else { 0.0 };
        side.iter().map(sound).collect()
    };
    let counts = [counts(&c.before), counts(&c.after)];
    let totals = [0, 1].map(|side| counts[side].iter().sum::<f64>().max(f64::MIN_POSITIVE));
    let edges: Vec<f64> = c.edges.iter().map(|e| e.log10()).collect();
    let mut out: Vec<Bucket> = Vec::new();
    for (i, &to) in edges.iter().enumerate() {
        let width = match i {
            0 => edges.get(1).map_or(1.0, |next| next - to),
            1 => to - edges[0],
            _ => edges[i - 1] - edges[i - 2],
        };
        let from = if i == 0 { to - width } else { edges[i - 1] };
        let (lo, hi) = (10f64.powf(from), 10f64.powf(to));
        // Middle of the bucket as everywhere else: the harmonic mean of its edges, or the only finite edge.
        let middle = match i {
            0 => hi,
            _ if hi.is_finite() => 2.0 * lo * hi / (lo + hi),
            _ => lo,
        };
        let to = if to.is_finite() { to } else { from + width };
        let share = [0, 1].map(|s| counts[s].get(i).map_or(0.0, |n| n / totals[s]));
        if from.is_finite() && to.is_finite() && to > from {
            out.push(Bucket {
                from,
                to,
                middle,
                share,
            });
        }
    }
    out
}

/// Buckets from the first to the last that matter, and one more at each end for the curve to fall to zero.
fn trimmed(all: &[Bucket]) -> &[Bucket] {
    let matters = |seen: &mut [f64; 2], b: &Bucket| {
        *seen = [seen[0] + b.share[0], seen[1] + b.share[1]];
        seen.iter().any(|s| *s > TRIMMED_SHARE)
    };
    let (mut low, mut high) = ([0.0; 2], [0.0; 2]);
    let first = all.iter().position(|b| matters(&mut low, b));
    let last = all.iter().rposition(|b| matters(&mut high, b));
    match first.zip(last) {
        Some((first, last)) => &all[first.saturating_sub(1)..(last + 2).min(all.len())],
        None => &[],
    }
}

/// Quantile in seconds.
fn quantile(all: &[Bucket], side: usize, q: f64) -> Option<f64> {
    let mut seen = 0.0;
    let found = all.iter().find(|b| {
        seen += b.share[side];
        // Sums of shares end a little below 1.
        seen >= q - 1e-9 && b.share[side] > 0.0
    });
    found.map(|b| b.middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{Histogram, Scheme};

    #[test]
    fn marks_are_where_every_other_view_has_them() {
        for at in [0, 1, 40, 104, 105] {
            let scheme = Scheme::TIME.undivided();
            let mut h = Histogram::new(scheme);
            h.counts[at] = 7;
            let count = |h: &Histogram| h.counts.iter().map(|n| *n as f64).collect();
            let all = buckets(&Curve {
                title: String::new(),
                edges: (0..scheme.len).map(|i| scheme.upper(i)).collect(),
                before: count(&h),
                after: Vec::new(),
                marks: [None; 2],
            });
            let (drawn, expected) = (quantile(&all, 0, 0.99), h.quantile(0.99));
            assert!(
                drawn
                    .zip(expected)
                    .is_some_and(|(a, b)| (a / b - 1.0).abs() < 1e-9)
            );
            assert_eq!(quantile(&all, 1, 0.5), None);
        }
    }
}
