//! Plot of a rate or a latency over time, each side from its own start.

use crate::compare::html::plot::frame::{Frame, SIDES, empty, figure, legend, px};
use crate::compare::html::plot::ticks;
use crate::compare::labels::length;
use crate::compare::result::TimeSeries;
use maud::{Markup, html};
use nfscope_text::units::{rate, seconds};

/// Points of one line: more than the drawing has pixels on a phone.
const POINTS: usize = 300;
const HEIGHT: f64 = 238.0;

/// Draws two lines with gaps where values are missing.
pub(in crate::compare::html) fn draw(c: &TimeSeries) -> Markup {
    let lines = [thin(&c.before), thin(&c.after)];
    let points = || lines.iter().flatten().filter(|(_, v)| v.is_finite());
    if points().next().is_none() {
        return empty(&c.title);
    }
    let end = lines.iter().flatten().map(|(t, _)| *t).fold(0.0, f64::max);
    let end = if end > 0.0 { end } else { 1.0 };
    let highest = points().map(|(_, v)| *v).fold(0.0, f64::max);
    let (up, counted) = if c.latency {
        (ticks::upwards(highest, ticks::time), "latency")
    } else {
        (ticks::upwards(highest, ticks::count), "per second")
    };
    let frame = Frame {
        top: 66.0,
        bottom: HEIGHT - 26.0,
        x: (0.0, end),
        y_max: up.last().map_or(1.0, |(v, _)| *v),
    };
    let words = [0, 1].map(|side| {
        let of = [&c.before, &c.after][side];
        format!("{}: {}", SIDES[side], range(of, c.latency))
    });
    let drawing = html! {
        (frame.axes(&ticks::elapsed(end), &up, counted))
        @for side in [1, 0] {
            (legend(side, &words[side]))
            path class={ "line thin " (SIDES[side]) } d=(path(&frame, &lines[side])) {}
        }
    };
    let words = format!("{}; over {}", words.join("; "), length(end));
    figure(&c.title, &words, HEIGHT, drawing, html! {})
}

/// The mean and the extremes of all points, not only of those that are drawn.
fn range(points: &[(f64, f64)], latency: bool) -> String {
    let values: Vec<f64> = points
        .iter()
        .map(|(_, v)| *v)
        .filter(|v| v.is_finite())
        .collect();
    if values.is_empty() {
        return "no values".to_owned();
    }
    let text = |v: f64| {
        if latency {
            seconds(v)
        } else {
            format!("{}/s", rate(v))
        }
    };
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    format!("{} to {} per window", text(low), text(high))
}

/// Averages of neighbours, so that a long recording does not become a large page.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let points: Vec<_> = points
        .iter()
        .filter(|(t, _)| t.is_finite() && *t >= 0.0)
        .collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    points
        .chunks(points.len().div_ceil(POINTS).max(1))
        .map(|chunk| {
            let times: Vec<f64> = chunk.iter().map(|(t, _)| *t).collect();
            let values = chunk.iter().map(|(_, v)| *v).filter(|v| v.is_finite());
            (mean(&times), mean(&values.collect::<Vec<_>>()))
        })
        .collect()
}

fn path(frame: &Frame, line: &[(f64, f64)]) -> String {
    let mut d = String::new();
    let mut pen = false;
    for (t, v) in line {
        if v.is_finite() {
            let (x, y) = (px(frame.x(*t)), px(frame.y(*v)));
            // A line of no length, so that a point between two gaps is a dot.
            d += &if pen {
                format!("L{x} {y}")
            } else {
                format!("M{x} {y}h0")
            };
        }
        pen = v.is_finite();
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_become_averages_and_gaps_stay() {
        let points: Vec<_> = (0..8640)
            .map(|i| (f64::from(i), if i < 8000 { 2.0 } else { f64::NAN }))
            .collect();
        let few = thin(&points);
        assert!(few.len() <= POINTS && few.len() > POINTS / 2);
        assert_eq!(few[0], (14.0, 2.0));
        assert!(few.last().is_some_and(|(_, v)| v.is_nan()));
        assert!(thin(&[]).is_empty());
        assert_eq!(thin(&[(0.0, 1.0), (1.0, f64::NAN)]).len(), 2);
    }

    #[test]
    fn a_gap_is_no_line() {
        let frame = Frame {
            top: 0.0,
            bottom: 10.0,
            x: (0.0, 3.0),
            y_max: 1.0,
        };
        let d = path(
            &frame,
            &[(0.0, 1.0), (1.0, f64::NAN), (2.0, 1.0), (3.0, 0.0)],
        );
        assert_eq!(d, "M54 0h0M306 0h0L432 10");
    }
}
