//! Effects: a forest plot, and a table behind it.

use crate::experiment::result::{Analysed, Response};
use crate::html::frame::{WIDTH, figure, px};
use crate::html::ticks;
use maud::{Markup, html};
use nfscope_text::units::percent;

const LINE: f64 = 20.0;
const TOP: f64 = 34.0;
/// Left and right end of the scale.
const LEFT: f64 = 168.0;
const RIGHT: f64 = WIDTH - 14.0;
/// Most letters of a name beside the scale.
const LETTERS: usize = 21;
/// Most lines; the table has all.
const MOST: usize = 40;

/// Each effect with its interval on a line, the largest part of the variation first.
pub(super) fn forest(a: &Analysed) -> Markup {
    let shown: Vec<&Response> = a.effects.iter().take(MOST).collect();
    // Factors are placed by their logarithm, so that a half is as far from one as a double.
    let place = |v: f64| if a.logarithm { v.ln() } else { v };
    let ends = shown.iter().flat_map(|e| {
        let [low, high] = e.interval.unwrap_or([e.effect; 2]);
        [low, high, e.effect].map(place)
    });
    let least = if a.logarithm {
        1.1f64.ln()
    } else {
        f64::MIN_POSITIVE
    };
    let furthest = ends.filter(|v| v.is_finite()).map(f64::abs);
    let furthest = furthest.fold(least, f64::max) * 1.06;
    let x = |v: f64| {
        let part = (place(v) / furthest).clamp(-1.0, 1.0);
        (LEFT + RIGHT) / 2.0 + part * (RIGHT - LEFT) / 2.0
    };
    let none = if a.logarithm { 1.0 } else { 0.0 };
    let height = TOP + LINE * shown.len() as f64 + 8.0;
    let drawing = html! {
        @for (at, label) in axis(a.logarithm, furthest) {
            path.grid d={ "M" (px(x(at))) " " (px(TOP - 6.0)) "V" (px(height - 8.0)) } {}
            text.tick x=(px(x(at))) y="14" text-anchor="middle" { (label) }
        }
        path.axis d={ "M" (px(x(none))) " " (px(TOP - 6.0)) "V" (px(height - 8.0)) } {}
        @for (i, e) in shown.iter().enumerate() {
            @let y = TOP + LINE * (i as f64 + 0.5);
            @let class = if e.found { "neutral" } else { "nothing" };
            text.tick x="0" y=(px(y + 4.0)) { (short(&e.factors)) }
            @if let Some([low, high]) = e.interval {
                path class={ "forest " (class) } d={ "M" (px(x(low))) " " (px(y)) "H" (px(x(high))) } {}
            }
            circle class={ "forest " (class) } cx=(px(x(e.effect))) cy=(px(y)) r="4" {}
        }
    };
    let found = a.effects.iter().filter(|e| e.found).count();
    let words = format!("{} effects, {found} with evidence", a.effects.len());
    let title = match (a.logarithm, a.half_normal.is_some()) {
        (true, false) => "Effects: high level over low level, with the 95 % interval",
        (true, true) => "Effects: high level over low level",
        (false, _) => "Effects: half the difference between the levels",
    };
    figure(title, &words, height, drawing, html! {})
}

fn short(name: &str) -> String {
    match name.chars().count() > LETTERS {
        true => name.chars().take(LETTERS - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// Values at which the axis has labels.
fn axis(logarithm: bool, furthest: f64) -> Vec<(f64, String)> {
    if !logarithm {
        return [-1.0, -0.5, 0.0, 0.5, 1.0]
            .map(|part| (part * furthest, format!("{:.3}", part * furthest)))
            .into();
    }
    ticks::factors(furthest.exp())
}

/// All effects with their figures.
pub(super) fn table(a: &Analysed) -> Markup {
    let effect = if a.logarithm {
        "high over low"
    } else {
        "effect"
    };
    let aliased = a.effects.iter().any(|e| !e.aliases.is_empty());
    html! {
        table.rows {
            thead {
                tr {
                    th scope="col" { "effect of" }
                    th scope="col" { (effect) }
                    th scope="col" { "variation" }
                    th scope="col" { "p" }
                    @if aliased { th scope="col" { "aliases" } }
                    th scope="col" { "evidence" }
                }
            }
            tbody {
                @for e in &a.effects {
                    tr class=(if e.found { "more" } else { "none" }) {
                        th scope="row" { (if e.found { e.name() } else { e.factors.clone() }) " " small { (e.word) } }
                        td data-label=(effect) {
                            b { (value(a.logarithm, e.effect)) }
                            @if let Some([low, high]) = e.interval {
                                " " small { "95 % CI " (value(a.logarithm, low)) " .. " (value(a.logarithm, high)) }
                            }
                        }
                        td data-label="variation" { (percent(e.part)) }
                        td data-label="p" { (probability(e.p)) }
                        @if aliased { td data-label="aliases" { (if e.aliases.is_empty() { "-".to_owned() } else { e.aliases.join(", ") }) } }
                        td.verdict data-label="evidence" {
                            span.sign aria-hidden="true" { (if e.found { "✓" } else { "○" }) } " "
                            (if e.found { "found" } else { "no evidence" })
                        }
                    }
                }
            }
        }
    }
}

/// Table for factors with more than two levels: tests, and each level compared with the first.
pub(super) fn terms(a: &Analysed) -> Markup {
    let effect = if a.logarithm { "ratio" } else { "more" };
    let class = |found: bool| if found { "more" } else { "none" };
    let value = |v: f64| value(a.logarithm, v);
    html! {
        table.rows {
            thead { tr { @for name in ["effect of", "degrees of freedom", "F", "variation", "p"] { th scope="col" { (name) } } } }
            tbody {
                @for t in &a.terms {
                    tr class=(class(t.found)) {
                        th scope="row" { (t.factors) }
                        td data-label="degrees of freedom" { (t.dof) }
                        td data-label="F" { (t.f.map_or("-".to_owned(), |f| format!("{f:.2}"))) }
                        td data-label="variation" { (percent(t.part)) }
                        td data-label="p" { (probability(t.p)) }
                    }
                }
            }
        }
        table.rows {
            thead { tr { @for name in ["level", effect, "p"] { th scope="col" { (name) } } } }
            tbody {
                @for l in &a.levels {
                    tr class=(class(l.found)) {
                        th scope="row" { (l.factor) "=" (l.level) }
                        td data-label=(effect) {
                            b { (value(l.effect)) }
                            @if let Some([low, high]) = l.interval { " " small { "95 % CI " (value(low)) " .. " (value(high)) } }
                        }
                        td data-label="p" { (probability(l.p)) }
                    }
                }
            }
        }
    }
}

pub(super) fn value(logarithm: bool, v: f64) -> String {
    match v {
        _ if !logarithm => format!("{v:.4}"),
        _ if v >= 9.95 => format!("{v:.1}x"),
        _ if v >= 0.0995 => format!("{v:.2}x"),
        _ => format!("{v:.3}x"),
    }
}

fn probability(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(p) if p < 0.001 => "<0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}
