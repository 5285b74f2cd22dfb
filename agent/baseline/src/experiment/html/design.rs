//! The plan and its runs, and checks whether the runs can be compared.

use crate::experiment::result::Analysed;
use maud::{Markup, html};
use nfscope_stats::experiment::Word;
use nfscope_text::units::{percent, rate};

/// Most words of the defining relation that are listed.
const WORDS: usize = 15;

/// Factors with their levels, and effects that cannot be distinguished.
pub(super) fn factors(a: &Analysed) -> Markup {
    html! {
        table.sides {
            thead { tr { td {} th scope="col" { "factor" } th scope="col" { "low" } th scope="col" { "high" } } }
            tbody {
                @for (i, f) in a.factors.iter().enumerate() {
                    tr {
                        th scope="row" { (Word(1 << i)) } td { (f.name) } td { (f.levels[0]) } td { (f.levels[1..].join(", ")) }
                    }
                }
            }
        }
        p { (relation(a)) }
    }
}

fn relation(a: &Analysed) -> String {
    let Some(resolution) = a.resolution else {
        return "Full design: no effect is an alias of another.".to_owned();
    };
    let mut words: Vec<&str> = a.defining.iter().map(String::as_str).take(WORDS).collect();
    if a.defining.len() > WORDS {
        words.push("...");
    }
    format!(
        "Fraction of resolution {resolution}, defining relation I = {}. An effect cannot be told from its aliases.",
        words.join(" = ")
    )
}

/// Checks of properties that must be equal in all runs.
pub(super) fn checks(a: &Analysed) -> Markup {
    let ends = |of: &dyn Fn(usize) -> f64| {
        (0..a.runs.len())
            .map(of)
            .fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)))
    };
    let (slow, fast) = ends(&|i| a.runs[i].rate);
    let (_, failed) = ends(&|i| a.runs[i].failed);
    let line = |good: bool, text: String| {
        html! { li { span.sign aria-hidden="true" { (if good { "✓" } else { "!" }) } " " (text) } }
    };
    html! {
        ul.checks {
            (line(a.equal_load, format!("Load: {} to {} operations per second in the runs.", rate(slow), rate(fast))))
            (line(a.few_failures, format!("Failures: at most {} of the operations of a run.", percent(failed))))
            @if let Some(r) = a.trend {
                (line(!a.drifts, format!("Order: the correlation of residuals with the order of the runs is {r:.2}.")))
            }
        }
    }
}

/// All runs with their measurements.
pub(super) fn runs(a: &Analysed) -> Markup {
    html! {
        details {
            summary { (a.runs.len()) " runs" }
            table.runs {
                thead { tr { @for name in ["run", "block", "levels", "response", "load"] { th scope="col" { (name) } } } }
                tbody {
                    @for r in &a.runs {
                        tr {
                            td { (r.run) } td { (r.block) } td { (r.levels) }
                            td { (a.unit.shown(r.response)) } td { (rate(r.rate)) "/s" }
                        }
                    }
                }
            }
        }
    }
}
