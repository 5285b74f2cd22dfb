//! An experiment as a self-contained HTML file.

use crate::experiment::html::{cube, design, effects, half_normal, interactions, residuals};
use crate::experiment::result::Analysed;
use crate::html::{document, quoted};
use maud::{Markup, html};
use nfscope_text::units::percent;

/// The page that `nfscope experiment analyse --html` writes: each response of one experiment.
pub fn page(all: &[Analysed]) -> String {
    let name = all.first().map_or("", |a| a.name.as_str());
    let content = html! {
        header {
            h1 { "Experiment on an NFS server: " (name) }
            @if let Some(a) = all.first() {
                @for sentence in &a.durability { p.headline { strong { (sentence) } } }
            }
            @for a in all { p.headline { (headline(a)) } }
        }
        @if let Some(a) = all.first() {
            h2 { "Factors" }
            (design::factors(a))
        }
        @for a in all { (response(a, all.len() > 1)) }
        (method(all))
    };
    document(&format!("{name}: nfscope experiment"), &content)
}

fn response(a: &Analysed, several: bool) -> Markup {
    let lines = interactions::draw(a);
    let left = residuals::draw(a);
    html! {
        @if several { h2 { (a.response) } }
        @if !a.caveats.is_empty() {
            section.caveats aria-label="Caveats" {
                @for caveat in &a.caveats { p { strong { "Caveat: " } (caveat) } }
            }
        }
        h2 { "Effects on " (a.response) }
        @if a.terms.is_empty() {
            div.forest-plot { (effects::forest(a)) }
            (effects::table(a))
        } @else {
            (effects::terms(a))
        }
        @for sentence in &a.ambiguous { p { (sentence) "." } }
        p { (explained(a)) }
        @if let Some(drawing) = half_normal::draw(a) { div.plots { (drawing) } }
        @if !lines.is_empty() {
            h2 { "Interactions" }
            p { "Lines that are parallel show no interaction. All drawings have one scale." }
            div.plots { @for drawing in lines { (drawing) } }
        }
        @if let Some(drawing) = cube::draw(a) {
            h2 { "Three factors" }
            div.plots { (drawing) }
        }
        h2 { "Checks" }
        (design::checks(a))
        div.plots { @for drawing in left { (drawing) } }
        (design::runs(a))
    }
}

fn headline(a: &Analysed) -> String {
    let found = a.effects.iter().filter(|e| e.found);
    let found = found.map(|e| format!("{} ({})", e.name(), effects::value(a.logarithm, e.effect)));
    let terms = a.terms.iter().filter(|t| t.found);
    let found: Vec<String> = found.chain(terms.map(|t| t.factors.clone())).collect();
    let (response, many) = (&a.response, found.len());
    match &found[..] {
        [] => format!("{response}: no evidence of any effect."),
        [one] => format!("{response}: evidence of one effect, {one}."),
        [first @ .., last] => format!(
            "{response}: evidence of {many} effects: {} and {last}.",
            first.join(", ")
        ),
    }
}

fn explained(a: &Analysed) -> String {
    let mut text = match a.block_part {
        Some(part) => format!(
            "Between blocks of runs: {} of the variation. ",
            percent(part)
        ),
        None => String::new(),
    };
    text += &format!("Not explained: {} of the variation.", percent(a.error_part));
    if let Some(finds) = a.finds {
        text +=
            &format!(" Four of five such experiments find an effect by a factor of {finds:.2}.");
    }
    text
}

fn method(all: &[Analysed]) -> Markup {
    let logarithm = all.iter().any(|a| a.logarithm);
    let once = all.iter().any(|a| a.half_normal.is_some());
    let effects: usize = all.iter().map(|a| a.effects.len() + a.terms.len()).sum();
    html! {
        h2 { "Method" }
        ul {
            @if logarithm {
                li { "Effects are on the logarithm of the response, so that they are factors: the response at the high level over that at the low level. Means are geometric." }
            } @else {
                li { "Effects are half the difference between the levels." }
            }
            @if all.iter().any(|a| !a.terms.is_empty()) {
                li { "Factors and interactions have F tests of what each adds to all others (type III). Levels of a factor are beside its first one, with Student's t intervals, and are judged where the factor is found, by Holm's correction for its levels." }
            }
            @if once {
                li { "Each combination was run once. The noise is the pseudo standard error of the effects themselves (Lenth, Technometrics 31, 1989), and an effect is found beyond its simultaneous margin." }
            } @else {
                li { "Intervals are Student's t intervals from the variance of the runs of one combination (Jain, The Art of Computer Systems Performance Analysis, chapter 18)." }
                li { "An effect is found where p is at most 0.05 after Holm's correction for " (effects) " effects." }
            }
        }
        @if let Some(a) = all.first() {
            p {
                "All figures as JSON: "
                code {
                    "nfscope experiment analyse " (quoted(&a.name))
                    @for a in all { " --metric " (a.response.replacen(' ', ":", 1)) }
                    @if !logarithm { " --linear" }
                    " --json"
                }
            }
        }
    }
}
