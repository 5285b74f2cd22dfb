//! The result as text.

use crate::versions::analysis::PRIMARY;
use crate::versions::block::Metric;
use crate::versions::distance::{ADVICE, Distance};
use crate::versions::result::{LoadResult, Report, Row};
use crate::versions::scale::{MIN_ROUNDS, Scale, Slope};
use nfscope_stats::MIN_PAIRS;
use nfscope_stats::mean_interval::Interval;
use nfscope_text::table::columns;
use nfscope_text::units::{many, percent, rate};
use nfscope_text::wrap::wrap;
use std::fmt::Write;

const WIDTH: usize = 100;

/// A page with a table for each load.
pub fn text(r: &Report) -> String {
    let mut out = String::new();
    for sentence in conditions(r) {
        wrap(&mut out, WIDTH, "", &sentence);
    }
    for load in &r.loads {
        let _ = writeln!(out, "\n{}: {}", load.load, load.operation);
        out += &table(load);
        out += &procedures(load);
        for sentence in distances(&load.distance) {
            wrap(&mut out, WIDTH, "  ", &sentence);
        }
    }
    if let Some(s) = &r.scale {
        out += &scale(s);
    }
    for left in &r.setting.left_out {
        out.push('\n');
        wrap(
            &mut out,
            WIDTH,
            "not measured: ",
            &format!("{}: {}", left.what, left.why),
        );
    }
    for warning in &r.setting.warnings {
        out.push('\n');
        wrap(&mut out, WIDTH, "warning: ", warning);
    }
    out
}

/// Reason why no version can be judged; `None` if there are verdicts, or only throughput against threads. Shared with the page.
pub(super) fn too_few(r: &Report) -> Option<String> {
    let s = &r.setting;
    if r.loads.is_empty() || r.comparisons > 0 {
        return None;
    }
    if let [only] = &s.versions[..] {
        return Some(format!(
            "Only NFS {only} was measured: there is nothing to compare it with."
        ));
    }
    let fix = match s.until_ci {
        Some(_) => "raise --max-duration".to_owned(),
        None => format!("leave out --rounds, or give at least {MIN_PAIRS}"),
    };
    Some(match s.rounds < MIN_PAIRS {
        true => format!(
            "No version can be judged by {}: {MIN_PAIRS} are the fewest that have intervals. Fix: {fix}.",
            many(s.rounds as f64, "round")
        ),
        false => "No load has figures of two versions in enough rounds: no version can be judged."
            .to_owned(),
    })
}

/// Sentences about the conditions of the measurement; shared with the page.
pub(super) fn conditions(r: &Report) -> Vec<String> {
    let (s, comparisons) = (&r.setting, r.comparisons);
    let mut all = vec![format!(
        "{} over NFS {}: {} with a block of each version in random order (seed {}), {} s each, {}.",
        s.source,
        s.versions.join(", "),
        many(s.rounds as f64, "round"),
        s.seed,
        s.runtime_seconds,
        many(f64::from(s.threads), "thread"),
    )];
    if let Some(base) = s.versions.first()
        && comparisons > 0
    {
        all.push(format!(
            "Ratios are to NFS {base}, by pairs within rounds, with 95 % intervals. P values are of a difference beyond 2 %, by \
             Holm's correction for {comparisons} comparisons: throughput (of opens: latency) has {} of the level.",
            percent(PRIMARY)
        ));
        all.push(
            "FINDS is the smallest difference that this many rounds find in four of five measurements: smaller ones may be there."
                .to_owned(),
        );
    }
    if comparisons > 0 || r.scale.is_some() {
        all.push(
            "Means have intervals by Student's t over rounds. They are by batch means, and wider, where neighbouring rounds resemble each \
             other more than those of 99 in 100 independent series."
                .to_owned(),
        );
    }
    all.extend(too_few(r));
    all.push(match &s.agent {
        Some(url) => format!(
            "Server time and component operations are from the agent at {url}: the residence of requests on the server, without the \
             network. Round trips are from this client's mountstats: network and server together."
        ),
        None => "Server time is known as round trips only, from this client's mountstats: network and server together. With --url \
                 the server's agent tells its part, and component operations."
            .to_owned(),
    });
    if let Some(options) = &s.mount_options {
        all.push(format!("All mounts have the options {options}."));
    }
    if let (Some(wanted), Some(reached)) = (s.until_ci, s.reached) {
        let said = if reached { "reached" } else { "not reached" };
        all.push(format!("The target of ± {} was {said}.", percent(wanted)));
    }
    all
}

fn table(load: &LoadResult) -> String {
    let head = [
        "QUANTITY", "NFS", "VALUE", "RATIO", "95 % CI", "P", "VERDICT", "FINDS",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    let mut last = None;
    for row in &load.rows {
        let name = if last == Some(row.metric) {
            ""
        } else {
            row.metric.name()
        };
        last = Some(row.metric);
        rows.push([
            name.to_owned(),
            row.version.clone(),
            mean(row.mean, |v| row.metric.shown(v)),
            row.ratio.map_or(String::new(), factor),
            row.interval.map_or(String::new(), interval),
            row.p.map_or(String::new(), probability),
            row.verdict.word().to_owned(),
            row.finds.map_or(String::new(), factor),
        ]);
    }
    columns(&rows)
}

/// Sentences about the cost of the distance for each version's calls, and advice; shared with the page.
pub(super) fn distances(all: &[Distance]) -> Vec<String> {
    let mut sentences: Vec<String> = all.iter().map(Distance::sentence).collect();
    if all.iter().any(Distance::is_distance) {
        sentences.push(ADVICE.to_owned());
    }
    sentences
}

/// Line with the procedures that make up the RPCs of an operation.
fn procedures(load: &LoadResult) -> String {
    let mut out = String::new();
    for (version, by) in &load.rpcs {
        let mut all: Vec<_> = by.iter().filter(|(_, n)| **n >= 0.005).collect();
        all.sort_by(|a, b| b.1.total_cmp(a.1));
        let words: Vec<_> = all.iter().map(|(p, n)| format!("{p} {n:.2}")).collect();
        let lead = format!("  RPCs/op over {version}: ");
        wrap(&mut out, WIDTH, &lead, &words.join(", "));
    }
    out
}

fn scale(s: &Scale) -> String {
    let mut out = format!("\n{}: throughput against threads\n", s.load);
    let head = ["NFS", "THREADS", "THROUGHPUT", "EACH"];
    let mut rows = vec![head.map(str::to_owned)];
    for p in &s.points {
        rows.push([
            p.version.clone(),
            p.threads.to_string(),
            mean(p.throughput, |v| format!("{}/s", rate(v))),
            format!("{}/s", rate(p.throughput.mean / f64::from(p.threads))),
        ]);
    }
    out += &columns(&rows);
    for slope in &s.slopes {
        wrap(&mut out, WIDTH, "", &slope_sentence(slope, &s.slopes));
    }
    out
}

/// Sentence about the throughput that another thread adds; shared with the page.
pub(super) fn slope_sentence(slope: &Slope, all: &[Slope]) -> String {
    let with = |i: Interval| {
        let half = i.half_width.map_or(String::new(), |h| format!(" ± {h:.1}"));
        format!("{:.1}{half}", i.mean)
    };
    let mut text = format!(
        "NFS {}: each thread more adds {} operations per second.",
        slope.version,
        with(slope.per_thread)
    );
    if let (Some(difference), Some(first)) = (slope.difference, all.first()) {
        let said = match slope.differs() {
            Some(true) => "the interval leaves 0 out".to_owned(),
            Some(false) => "no evidence of a difference".to_owned(),
            None => format!("nothing can be judged by fewer than {MIN_ROUNDS} rounds"),
        };
        let _ = write!(
            text,
            " That less the one of NFS {}: {} ({said}).",
            first.version,
            with(difference)
        );
    }
    text
}

pub(super) fn mean(i: Interval, unit: impl Fn(f64) -> String) -> String {
    match i.relative() {
        Some(part) if part >= 0.0005 => format!("{} ± {}", unit(i.mean), percent(part)),
        _ => unit(i.mean),
    }
}

pub(crate) fn factor(v: f64) -> String {
    match v {
        _ if v >= 9.95 => format!("{v:.1}x"),
        _ if v >= 0.0995 => format!("{v:.2}x"),
        _ => format!("{v:.3}x"),
    }
}

fn interval([low, high]: [f64; 2]) -> String {
    format!("{} .. {}", factor(low), factor(high))
}

pub(crate) fn probability(p: f64) -> String {
    match p {
        _ if p < 0.001 => "<0.001".to_owned(),
        _ => format!("{p:.3}"),
    }
}

/// Label of a row where rows of several loads stand together.
pub(super) fn label(load: &str, row: &Row) -> String {
    let metric = match row.metric {
        Metric::ComponentOps => "ops/op",
        other => other.name(),
    };
    format!("{load} {metric} {}", row.version)
}
