//! Three factors as a cube with the mean response at its corners.

use crate::experiment::html::scale::mean;
use crate::experiment::result::{Analysed, Response};
use crate::html::frame::{figure, px};
use maud::{Markup, html};

const HEIGHT: f64 = 308.0;
/// Near corner of all low levels, and the steps from there to the high level of each factor.
const ORIGIN: (f64, f64) = (66.0, 250.0);
const STEPS: [(f64, f64); 3] = [(190.0, 0.0), (0.0, -150.0), (110.0, -56.0)];

/// Draws the cube of the three factors that explain most of the variation by themselves; `None` for fewer than three factors.
pub(super) fn draw(a: &Analysed) -> Option<Markup> {
    let main = a.effects.iter().map(Response::factors_of);
    let mut three: Vec<usize> = main.filter(|of| of.len() == 1).flatten().take(3).collect();
    three.sort_unstable();
    let factors: [usize; 3] = three.try_into().ok()?;
    let corner = |n: usize| {
        let of = a
            .runs
            .iter()
            .filter(|r| (0..3).all(|f| r.at[factors[f]] == n >> f & 1));
        mean(a, &of.map(|r| r.response).collect::<Vec<_>>())
    };
    let at = |n: usize| {
        let steps = STEPS.iter().enumerate().filter(|(f, _)| n >> f & 1 == 1);
        steps.fold(ORIGIN, |(x, y), (_, (dx, dy))| (x + dx, y + dy))
    };
    let edges = (0..8usize).flat_map(|n| {
        let free = (0..3).filter(move |f| n >> f & 1 == 0);
        free.map(move |f| (n, n | 1 << f))
    });
    let name = |f: usize| &a.factors[factors[f]];
    let words: Vec<String> = (0..8)
        .map(|n| {
            let levels = (0..3).map(|f| format!("{}={}", name(f).name, name(f).levels[n >> f & 1]));
            let value = corner(n).map_or("not run".to_owned(), |v| a.unit.shown(v));
            format!("{}: {value}", levels.collect::<Vec<_>>().join(" "))
        })
        .collect();
    let drawing = html! {
        @for (from, to) in edges {
            @let ((x, y), (u, v)) = (at(from), at(to));
            path.axis d={ "M" (px(x)) " " (px(y)) "L" (px(u)) " " (px(v)) } {}
        }
        @for n in 0..8 {
            @let (x, y) = at(n);
            @let value = corner(n);
            @let anchor = if n & 1 == 1 { "start" } else { "end" };
            // An edge goes up at the right of a near corner, so the label is below.
            @let beside = if n & 1 == 1 { 9.0 } else { -9.0 };
            @let above = if n & 5 == 1 { -17.0 } else { 5.0 };
            circle class={ @if value.is_some() { "mark full after" } @else { "mark after" } } cx=(px(x)) cy=(px(y)) r="4" {}
            text.halo x=(px(x + beside)) y=(px(y - above)) text-anchor=(anchor) { (value.map_or("not run".to_owned(), |v| a.unit.shown(v))) }
        }
        text.tick x=(px(ORIGIN.0)) y=(px(ORIGIN.1 + 36.0)) text-anchor="middle" { (name(0).levels[0]) }
        text.tick x=(px(ORIGIN.0 + STEPS[0].0)) y=(px(ORIGIN.1 + 36.0)) text-anchor="middle" { (name(0).levels[1]) }
        text x=(px(ORIGIN.0 + STEPS[0].0 / 2.0)) y=(px(ORIGIN.1 + 36.0)) text-anchor="middle" { (name(0).name) " →" }
        text x=(px(ORIGIN.0 + STEPS[0].0 + STEPS[2].0 / 2.0 + 12.0)) y=(px(ORIGIN.1 + STEPS[2].1 / 2.0 + 14.0)) { "↗ " (name(2).name) }
        text.tick x=(px(ORIGIN.0 + STEPS[0].0 + STEPS[2].0 / 2.0 + 12.0)) y=(px(ORIGIN.1 + STEPS[2].1 / 2.0 + 29.0)) { (name(2).levels[0]) " to " (name(2).levels[1]) }
        text x="2" y="16" { "↑ " (name(1).name) }
        text.tick x="2" y="32" { (name(1).levels[0]) " to " (name(1).levels[1]) }
    };
    let title = match a.factors.len() {
        3 => "Mean response at each corner".to_owned(),
        n => format!("Mean response at each corner, of three of {n} factors"),
    };
    Some(figure(&title, &words.join("; "), HEIGHT, drawing, html! {}))
}
