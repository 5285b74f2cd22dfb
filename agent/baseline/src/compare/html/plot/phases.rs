//! Bars of the phases of an operation.

use crate::compare::result::Bars;
use crate::html::frame::{SIDES, WIDTH, figure, px};
use maud::{Markup, html};
use nfscope_model::phase;
use nfscope_text::units::seconds;

const HEIGHT: f64 = 70.0;
/// Left end of bars, and the room for the longer one.
const BEGIN: f64 = 52.0;
const ROOM: f64 = WIDTH - BEGIN - 72.0;

/// Draws two bars for each operation, all on one scale, with a table of the phases below.
pub(in crate::compare::html) fn draw(all: &[Bars]) -> Vec<Markup> {
    let each: Vec<_> = all.iter().map(|b| (b, sound(b))).collect();
    let totals = each.iter().flat_map(|(_, sides)| sides.map(total));
    let scale = ROOM / totals.fold(f64::MIN_POSITIVE, f64::max);
    each.iter().map(|(b, sides)| one(b, sides, scale)).collect()
}

type Parts = [Option<f64>; phase::OPS];

fn sound(b: &Bars) -> [Parts; 2] {
    [&b.before, &b.after].map(|side| side.map(|v| v.filter(|v| v.is_finite() && *v >= 0.0)))
}

fn total(side: Parts) -> f64 {
    side.iter().flatten().sum()
}

fn one(b: &Bars, sides: &[Parts; 2], scale: f64) -> Markup {
    let totals = sides.map(total);
    let words = [0, 1].map(|side| match sides[side].iter().all(Option::is_none) {
        true => format!("{}: phases not measured", SIDES[side]),
        false => format!("{}: {} in total", SIDES[side], seconds(totals[side])),
    });
    let drawing = html! {
        @for side in [0, 1] { (bar(side, &sides[side], scale)) }
    };
    figure(&b.title, &words.join("; "), HEIGHT, drawing, parts(sides))
}

fn bar(side: usize, parts: &[Option<f64>; phase::OPS], scale: f64) -> Markup {
    let y = 6.0 + 32.0 * side as f64;
    let text_y = px(y + 18.0);
    let total: f64 = parts.iter().flatten().sum();
    // Left end of each part: the parts before it.
    let begins = parts.iter().scan(BEGIN, |end, part| {
        let begin = *end;
        *end += part.unwrap_or(0.0) * scale;
        Some(begin)
    });
    html! {
        text x="0" y=(text_y) { (SIDES[side]) }
        @for (i, (begin, part)) in begins.zip(parts).enumerate() {
            @let width = part.unwrap_or(0.0) * scale;
            @if width >= 0.05 {
                rect class={ "part p" (i) } x=(px(begin)) y=(px(y)) width=(px(width)) height="26" {}
                @if let Some(label) = label(phase::OF_OP[i], width) {
                    text.on x=(px(begin + width / 2.0)) y=(text_y) text-anchor="middle" { (label) }
                }
            }
        }
        @if parts.iter().all(Option::is_none) {
            text.tick x=(px(BEGIN)) y=(text_y) { "phases not measured" }
        } @else {
            text x=(px(BEGIN + total * scale + 6.0)) y=(text_y) { (seconds(total)) }
        }
    }
}

/// Name of the phase, if its part has room for it: one letter could be that of log or of lock.
fn label(phase: &str, width: f64) -> Option<&str> {
    (phase.len() as f64 * 7.5 + 4.0 <= width).then_some(phase)
}

/// Returns true if a phase is shown. A rare phase is shown only if it occurred.
fn shown(sides: &[[Option<f64>; phase::OPS]; 2], i: usize) -> bool {
    !phase::RARE.contains(&phase::OF_OP[i]) || sides.iter().any(|s| s[i].is_some_and(|v| v > 0.0))
}

/// Legend with the figures.
fn parts(sides: &[[Option<f64>; phase::OPS]; 2]) -> Markup {
    html! {
        table.parts {
            thead {
                tr {
                    td {}
                    @for (i, phase) in phase::OF_OP.iter().enumerate().filter(|(i, _)| shown(sides, *i)) {
                        th scope="col" {
                            svg.key viewBox="0 0 12 12" aria-hidden="true" {
                                rect class={ "part p" (i) } x="1" y="1" width="10" height="10" {}
                            }
                            " " (phase)
                        }
                    }
                }
            }
            tbody {
                @for side in [0, 1] {
                    tr {
                        th scope="row" { (SIDES[side]) }
                        @for (_, part) in sides[side].iter().enumerate().filter(|(i, _)| shown(sides, *i)) {
                            td { @match part { Some(s) => (seconds(*s)), None => "-" } }
                        }
                    }
                }
            }
        }
    }
}
