//! Plans and analyses for the terminal.

use crate::experiment::plan::{Plan, label_of};
use crate::experiment::result::{Analysed, HalfNormal, Response};
use crate::html::quoted;
use nfscope_stats::experiment::{Design, DesignError, Levels, Run, Word};
use nfscope_text::console::{one_line, plain};
use nfscope_text::table::columns;
use nfscope_text::units::{length, many, percent};
use nfscope_text::wrap::wrap;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Text of `nfscope experiment plan`.
///
/// # Errors
/// When there is no such design.
pub fn plan(plan: &Plan, each: Duration) -> Result<String, DesignError> {
    let (combinations, runs) = (plan.combinations()?, plan.runs()?);
    let mut out = String::new();
    for (i, f) in plan.factors.iter().enumerate() {
        let _ = writeln!(
            out,
            "{}  {}: {}",
            Word(1 << i),
            f.name,
            f.levels.join(" or ")
        );
    }
    let _ = writeln!(
        out,
        "\n{} runs: {} combinations, {}, in random order (seed {})",
        runs.len(),
        combinations.len(),
        of_each(&runs),
        plan.seed
    );
    if plan.centre > 0 {
        let _ = writeln!(
            out,
            "{} of each block at the centre of all factors",
            many(plan.centre as f64, "run")
        );
    }
    let all = each.saturating_mul(runs.len() as u32);
    let _ = writeln!(
        out,
        "{} of recording, {} each; what sets levels and warms up comes on top",
        length(all),
        length(each)
    );
    if !plan.is_mixed() {
        out += &aliases(&plan.design()?);
    }
    out.push('\n');
    let mut rows = vec![["RUN", "BLOCK", "LEVELS"].map(str::to_owned)];
    for (i, run) in runs.iter().enumerate() {
        rows.push([
            (i + 1).to_string(),
            (run.block + 1).to_string(),
            plan.levels(*run),
        ]);
    }
    out += &columns(&rows);
    Ok(plain(&out))
}

/// Text about effects that a design cannot distinguish.
fn aliases(design: &Design) -> String {
    let Some(resolution) = design.resolution() else {
        return "Full design: no effect is an alias of another.\n".to_owned();
    };
    let words: Vec<_> = design.defining.iter().map(ToString::to_string).collect();
    let more = match words.len() > MOST_WORDS {
        true => format!(" = ... ({} words)", words.len()),
        false => String::new(),
    };
    let mut out = format!(
        "Resolution {resolution}; defining relation I = {}{more}\n",
        words[..words.len().min(MOST_WORDS)].join(" = ")
    );
    for effect in design.effects().into_iter().filter(|w| w.order() <= 2) {
        let aliases = design.aliases(effect, 2);
        if !aliases.is_empty() {
            let names: Vec<_> = aliases.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "  {effect} = {}", names.join(" = "));
        }
    }
    out
}

/// `2 of each`, or `1 to 3 of each` where runs were added.
fn of_each(runs: &[Run]) -> String {
    let mut counts: BTreeMap<Levels, usize> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.levels).or_default() += 1;
    }
    let (low, high) = (counts.values().min(), counts.values().max());
    match (low, high) {
        (Some(low), Some(high)) if low < high => format!("{low} to {high} of each"),
        (Some(all), _) => format!("{all} of each"),
        _ => "0 of each".to_owned(),
    }
}

/// Text of `nfscope experiment next`: the levels to set, and the command that records.
pub fn next(plan: &Plan, number: usize, of: usize, run: Run) -> String {
    let labels: Vec<_> = label_of(plan, number)
        .into_iter()
        .map(|(k, v)| format!("--label {}", quoted(&format!("{k}={v}"))))
        .collect();
    plain(&format!(
        "run {number} of {of}: set {}\nthen: nfscope baseline record {} {}\n",
        plan.levels(run),
        quoted(&plan.run_name(number)),
        labels.join(" ")
    ))
}

/// Text of `nfscope experiment analyse`.
pub fn analysis(a: &Analysed) -> String {
    let mut out = String::new();
    for sentence in &a.durability {
        wrap(&mut out, WIDTH, "", &one_line(sentence));
        out.push('\n');
    }
    let _ = writeln!(out, "{}: {}\n", a.name, a.response);
    out += &match a.terms.is_empty() {
        true => effects(a),
        false => terms(a),
    };
    if let Some(c) = &a.curvature {
        let p =
            c.p.map_or(String::new(), |p| format!(", p {}", probability(p)));
        let interval = c
            .interval
            .map_or(String::new(), |i| format!(" ({})", ends(i)));
        let _ = writeln!(
            out,
            "\nthe centre is {:.3}{interval} {} of the combinations{p}",
            c.effect,
            if a.logarithm {
                "times the mean"
            } else {
                "more than the mean"
            }
        );
    }
    out.push('\n');
    if let Some(part) = a.block_part {
        let _ = writeln!(
            out,
            "between blocks of runs: {} of the variation, which is no effect",
            percent(part)
        );
    }
    let _ = writeln!(
        out,
        "not explained: {} of the variation",
        percent(a.error_part)
    );
    if let Some(finds) = a.finds {
        let _ = writeln!(
            out,
            "four of five such experiments find an effect by a factor of {finds:.2}"
        );
    }
    if let Some(h) = &a.half_normal {
        out += &half_normal(h);
    }
    if !a.ambiguous.is_empty() {
        out.push('\n');
    }
    for sentence in &a.ambiguous {
        wrap(&mut out, WIDTH, "", &one_line(sentence));
    }
    for caveat in &a.caveats {
        let _ = writeln!(out, "caveat: {}", one_line(caveat));
    }
    out += "\n* there is evidence of it: p at most 0.05 after Holm's correction, or beyond Lenth's margin without replicates\n";
    plain(&out)
}

/// Most words of a defining relation.
const MOST_WORDS: usize = 15;

/// Width of sentences.
const WIDTH: usize = 80;

/// Columns of the drawing.
const COLUMNS: usize = 48;

/// Half-normal drawing: effects of noise lie where noise puts effects of their rank.
fn half_normal(h: &HalfNormal) -> String {
    let sizes = h.sizes.iter().map(|s| s.size.max(s.of_noise));
    let most = sizes.fold(h.margin, f64::max).max(f64::MIN_POSITIVE);
    let at = |size: f64| ((size / most) * (COLUMNS - 1) as f64).round() as usize;
    let wide = h.sizes.iter().map(|s| s.factors.chars().count()).max();
    let wide = wide.unwrap_or(0);
    let mut out = String::from(
        "\nhalf-normal drawing: o an effect, + where noise puts the effect of its rank, | the margin beyond which one stands out\n",
    );
    for s in &h.sizes {
        let mut line = [' '; COLUMNS];
        line[at(h.margin)] = '|';
        line[at(s.of_noise)] = '+';
        line[at(s.size)] = 'o';
        let line: String = line.iter().collect();
        let _ = writeln!(out, "  {:<wide$}  0{}", s.factors, line.trim_end());
    }
    out
}

/// Table of the effects of factors with two levels.
fn effects(a: &Analysed) -> String {
    let scale = match a.logarithm {
        true => "HIGH/LOW",
        false => "EFFECT",
    };
    let heading = ["EFFECT OF", scale, "95 % CI", "VARIATION", "P", "ALIASES"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(a.effects.iter().map(row));
    columns(&rows)
}

fn row(r: &Response) -> [String; 6] {
    [
        match r.found {
            true => format!("{} *", r.name()),
            false => r.factors.clone(),
        },
        format!("{:.3}", r.effect),
        r.interval.map_or_else(none, ends),
        percent(r.part),
        r.p.map_or_else(none, probability),
        match r.aliases.is_empty() {
            true => String::new(),
            false => r.aliases.join(", "),
        },
    ]
}

/// Table of factors with more than two levels: a test of each and of each interaction, and their levels.
fn terms(a: &Analysed) -> String {
    let mut rows = vec![["EFFECT OF", "DF", "F", "VARIATION", "P"].map(str::to_owned)];
    rows.extend(a.terms.iter().map(|t| {
        [
            starred(t.found, &t.factors),
            format!("{}", t.dof),
            t.f.map_or_else(none, |f| format!("{f:.2}")),
            percent(t.part),
            t.p.map_or_else(none, probability),
        ]
    }));
    let mut out = columns(&rows);
    out.push('\n');
    let scale = match a.logarithm {
        true => "RATIO",
        false => "MORE",
    };
    let mut rows = vec![["LEVEL", "BESIDE", scale, "95 % CI", "P"].map(str::to_owned)];
    rows.extend(a.levels.iter().map(|l| {
        let first = a.factors.iter().find(|f| f.name == l.factor);
        [
            starred(l.found, &format!("{}={}", l.factor, l.level)),
            first.map_or(String::new(), |f| f.level(0)),
            format!("{:.3}", l.effect),
            l.interval.map_or_else(none, ends),
            l.p.map_or_else(none, probability),
        ]
    }));
    out + &columns(&rows)
}

fn starred(found: bool, name: &str) -> String {
    match found {
        true => format!("{name} *"),
        false => name.to_owned(),
    }
}

fn none() -> String {
    "-".to_owned()
}

fn ends([low, high]: [f64; 2]) -> String {
    format!("{low:.3} .. {high:.3}")
}

fn probability(p: f64) -> String {
    match p < 0.001 {
        true => "<0.001".to_owned(),
        false => format!("{p:.3}"),
    }
}
