//! Values of flags: their bounds, and what they may be called.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use nfscope_load::workload::{Metric, SizeName};
use nfscope_text::parse;
use nfscope_text::suggest::nearest;
use std::time::Duration;

const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// Length of a window.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    parse::duration(text, MIN_INTERVAL..=MAX_INTERVAL)
}

/// Time that a report is about.
pub(crate) fn last(text: &str) -> Result<Duration, String> {
    parse::duration(
        text,
        Duration::from_secs(60)..=Duration::from_secs(7 * 86_400),
    )
}

/// For how long the history on a disk is kept: not at all, or for an hour to a week.
pub fn history(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        text => parse::duration(
            text,
            Duration::from_secs(3600)..=Duration::from_secs(7 * 86_400),
        ),
    }
}

/// A word for probes, and those that it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probes(pub Vec<&'static str>);

pub(crate) fn probe(text: &str) -> Result<Probes, String> {
    let all: Vec<_> = nfscope_source::words().collect();
    if text == "all" {
        return Ok(Probes(all));
    }
    match all.iter().find(|w| **w == text) {
        Some(word) => Ok(Probes(vec![word])),
        None => Err(format!(
            "no probe has that name{}",
            nearest(text, all.into_iter().chain(["all"]), |w| format!("`{w}`"))
        )),
    }
}

/// Names of baselines, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

pub(crate) fn names(text: &str) -> Result<Names, String> {
    let all: Vec<_> = text.split(',').map(str::to_owned).collect();
    match all.iter().any(String::is_empty) {
        true => Err("give a name, or several as in hdd-1,hdd-2,hdd-3".to_owned()),
        false => Ok(Names(all)),
    }
}

/// What `compare --match` pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MatchUnit {
    /// Each hour of the day
    Hour,
    /// Each hour of the week
    Weekday,
    /// Nothing: each recording as it is
    None,
}

/// What `compare --fail-on` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Longer durations or more failures, with evidence
    Worse,
}

// The workloads themselves know no command line.

/// Size of a workload's files.
pub(crate) fn size() -> impl TypedValueParser<Value = SizeName> {
    one_of(&[
        (SizeName::Small, "small", "To try whether it runs"),
        (
            SizeName::Medium,
            "medium",
            "More than is in flight, less than caches hold",
        ),
        (
            SizeName::Large,
            "large",
            "More than the caches of many servers hold",
        ),
    ])
}

/// Figure of a run.
pub(crate) fn run_metric() -> impl TypedValueParser<Value = Metric> {
    one_of(&[
        (Metric::Iops, "iops", "Operations per second"),
        (Metric::Latency, "latency", "Mean latency"),
        (Metric::P99, "p99", "99th percentile of latency"),
    ])
}

/// One of some values, by word, each with its help.
fn one_of<T: Clone + Send + Sync>(
    all: &'static [(T, &'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let words = all.iter();
    let words = words.map(|(_, word, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words).try_map(|given| {
        let found = all.iter().find(|(_, word, _)| *word == given);
        found
            .map(|(value, ..)| value.clone())
            .ok_or("no such value")
    })
}
