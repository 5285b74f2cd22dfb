//! Interactions of two factors: lines that are parallel where there is none.

use crate::experiment::html::scale::{Scale, mean};
use crate::experiment::result::{Analysed, Response};
use crate::html::frame::{SIDES, WIDTH, figure, px};
use maud::{Markup, html};

/// Most drawings: those with the largest part of the variation.
const MOST: usize = 6;
const HEIGHT: f64 = 250.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = HEIGHT - 28.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = WIDTH - 28.0;
/// Places of the levels of the first factor.
const LEVELS: [f64; 2] = [0.2, 0.8];

/// Mean response for each level of a factor (outer) and of another one (inner).
type Means = [[Option<f64>; 2]; 2];

/// Drawings of the pairs, all on one scale.
pub(super) fn draw(a: &Analysed) -> Vec<Markup> {
    let pairs = a.effects.iter().filter_map(|e| Some((pair(a, e)?, e)));
    let drawn: Vec<_> = pairs
        .take(MOST)
        .map(|((i, j), e)| (i, j, means(a, i, j), e))
        .collect();
    let all = drawn
        .iter()
        .flat_map(|(_, _, m, _)| m.iter().flatten().flatten());
    let scale = Scale::of(a, all.copied());
    drawn
        .iter()
        .map(|(i, j, m, e)| one(a, &scale, *i, *j, m, e))
        .collect()
}

/// The two factors of an effect, if it has two.
fn pair(a: &Analysed, e: &Response) -> Option<(usize, usize)> {
    match e.factors_of()[..] {
        [i, j] if i < a.factors.len() && j < a.factors.len() => Some((i, j)),
        _ => None,
    }
}

fn means(a: &Analysed, i: usize, j: usize) -> Means {
    [0, 1].map(|second| {
        [0, 1].map(|first| {
            let of = a
                .runs
                .iter()
                .filter(|r| (r.at[i], r.at[j]) == (first, second));
            mean(a, &of.map(|r| r.response).collect::<Vec<_>>())
        })
    })
}

fn one(a: &Analysed, scale: &Scale, i: usize, j: usize, means: &Means, e: &Response) -> Markup {
    let (first, second) = (&a.factors[i], &a.factors[j]);
    let x = |level: usize| LEFT + LEVELS[level] * (RIGHT - LEFT);
    let y = |v: f64| BOTTOM - scale.at(v) * (BOTTOM - TOP);
    let title = format!(
        "{}{}",
        e.factors,
        if e.found { ": found" } else { ": no evidence" }
    );
    let words = [0, 1].map(|s| {
        let of = [0, 1].map(|l| means[s][l].map_or("-".to_owned(), |v| a.unit.shown(v)));
        format!(
            "{}={}: {} to {}",
            second.name, second.levels[s], of[0], of[1]
        )
    });
    let drawing = html! {
        @for (v, label) in scale.ticks() {
            path.grid d={ "M" (px(LEFT)) " " (px(y(v))) "H" (px(RIGHT)) } {}
            text.tick x=(px(LEFT - 6.0)) y=(px(y(v) + 4.0)) text-anchor="end" { (label) }
        }
        path.axis d={ "M" (px(LEFT)) " " (px(BOTTOM)) "H" (px(RIGHT)) } {}
        @for level in [0, 1] {
            text.tick x=(px(x(level))) y=(px(BOTTOM + 18.0)) text-anchor="middle" { (first.name) "=" (first.levels[level]) }
        }
        @for s in [1, 0] {
            path class={ "line " (SIDES[s]) } d={ "M2 " (px(10.0 + 18.0 * s as f64)) "h34" } {}
            text x="44" y=(px(14.0 + 18.0 * s as f64)) { (words[s]) }
            @if let [Some(low), Some(high)] = means[s] {
                path class={ "line " (SIDES[s]) } d={ "M" (px(x(0))) " " (px(y(low))) "L" (px(x(1))) " " (px(y(high))) } {}
            }
            @for (level, v) in means[s].iter().enumerate() {
                @if let Some(v) = v { circle class={ "mark full " (SIDES[s]) } cx=(px(x(level))) cy=(px(y(*v))) r="4" {} }
            }
        }
    };
    figure(&title, &words.join("; "), HEIGHT, drawing, html! {})
}
