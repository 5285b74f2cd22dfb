//! Plot of a rate or a latency over time, each side from its own start; the axis has the times of the day.

use crate::compare::labels::length;
use crate::compare::result::TimeSeries;
use crate::html::frame::{Frame, SIDES, empty, figure, legend, px};
use crate::html::ticks;
use crate::list::began;
use maud::{Markup, html};
use nfscope_text::units::{rate, seconds};

/// Most points of one line: more than the drawing has pixels on a phone.
const POINTS: usize = 300;
const HEIGHT: f64 = 254.0;

/// Common properties of the drawings, for comparison side by side: the length, and the highest latency.
struct Common {
    end: f64,
    latency: f64,
    /// Begin of each side, in milliseconds since 1970.
    began_ms: [i64; 2],
}

/// Draws two lines with gaps where values are missing.
pub(in crate::compare::html) fn draw(all: &[TimeSeries], began_ms: [i64; 2]) -> Vec<Markup> {
    let lines: Vec<_> = all
        .iter()
        .map(|c| (c, [thin(&c.before), thin(&c.after)]))
        .collect();
    let end = lines.iter().flat_map(|(_, lines)| lines.iter().flatten());
    let end = end.map(|(t, _)| *t).fold(0.0, f64::max);
    let latencies = lines.iter().filter(|(c, _)| c.latency);
    let common = Common {
        end: if end > 0.0 { end } else { 1.0 },
        latency: latencies
            .map(|(_, lines)| highest(lines))
            .fold(0.0, f64::max),
        began_ms,
    };
    lines
        .iter()
        .map(|(c, lines)| one(c, lines, &common))
        .collect()
}

fn highest(lines: &[Vec<(f64, f64)>; 2]) -> f64 {
    let values = lines.iter().flatten().map(|(_, v)| *v);
    values.filter(|v| v.is_finite()).fold(0.0, f64::max)
}

fn one(c: &TimeSeries, lines: &[Vec<(f64, f64)>; 2], common: &Common) -> Markup {
    if !lines.iter().flatten().any(|(_, v)| v.is_finite()) {
        return empty(&c.title);
    }
    let end = common.end;
    let (up, counted) = if c.latency {
        (ticks::upwards(common.latency, ticks::time), "latency")
    } else {
        (ticks::upwards(highest(lines), ticks::count), "per second")
    };
    // The name of the row is at the first tick.
    let [first, second] = common.began_ms.map(|ms| {
        let mut all = ticks::times_of_day(ms, end);
        all.iter_mut().take(1).for_each(|(_, label)| label.clear());
        all
    });
    let frame = Frame {
        top: 66.0,
        bottom: HEIGHT - 42.0,
        x: (0.0, end),
        y_max: up.last().map_or(1.0, |(v, _)| *v),
    };
    let words = [0, 1].map(|side| {
        let of = [&c.before, &c.after][side];
        let changed = changed(&c.changes[side], common.began_ms[side]);
        format!("{}: {}{changed}", SIDES[side], range(of, c.latency))
    });
    let drawing = html! {
        (frame.axes(&first, &up, counted))
        // If the sides began at different times of the day, the second side has a row of times of its own.
        @if first != second {
            @for (v, label) in &second {
                text.tick x=(px(frame.x(*v))) y=(px(HEIGHT - 8.0)) text-anchor="middle" { (label) }
            }
            text.tick x="2" y=(px(HEIGHT - 24.0)) { "before" }
            text.tick x="2" y=(px(HEIGHT - 8.0)) { "after" }
        } @else {
            text.tick x="2" y=(px(HEIGHT - 24.0)) { "UTC" }
        }
        @for side in [1, 0] {
            (legend(side, &words[side]))
            path class={ "line thin " (SIDES[side]) } d=(path(&frame, &lines[side])) {}
            @for at in &c.changes[side] {
                path class={ "changed " (SIDES[side]) } d={ "M" (px(frame.x(*at))) " " (px(frame.top)) "V" (px(frame.bottom)) } {}
            }
        }
    };
    let words = format!("{}; over {}", words.join("; "), length(end));
    figure(&c.title, &words, HEIGHT, drawing, html! {})
}

/// Most changes whose times are written; the drawing has them all.
const TOLD: usize = 2;

/// `, changed at 09:47`
fn changed(at: &[f64], began_ms: i64) -> String {
    let time = |at: &f64| began(began_ms + (at * 1e3) as i64)[11..16].to_owned();
    let times: Vec<_> = at.iter().take(TOLD).map(time).collect();
    match at.len() {
        0 => String::new(),
        n if n > TOLD => format!(
            ", changed at {} and {} times more",
            times.join(", "),
            n - TOLD
        ),
        _ => format!(", changed at {}", times.join(", ")),
    }
}

/// Mean and extremes of all points, not only of those that are drawn.
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

/// Averages of neighbouring points, so that a long recording does not become a large page.
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
            // A line of no length is drawn, so that a point between two gaps is a dot.
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
