//! Parsers of flag values, with their bounds.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use nfscope_load::workload::{Metric, SizeName};
use nfscope_text::parse;
use nfscope_text::suggest::nearest;
use std::time::Duration;

const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// Parses the length of a window.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    parse::duration(text, MIN_INTERVAL..=MAX_INTERVAL)
}

/// Parses the time that a report covers: 1 min to 7 days.
pub(crate) fn last(text: &str) -> Result<Duration, String> {
    parse::duration(
        text,
        Duration::from_secs(60)..=Duration::from_secs(7 * 86_400),
    )
}

/// Parses the time for which the history stays on the disk: zero, or 1 hour to 7 days.
pub fn history(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        text => parse::duration(
            text,
            Duration::from_secs(3600)..=Duration::from_secs(7 * 86_400),
        ),
    }
}

/// Probes that a word of the command line selects.
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

/// Strata that `compare --match` pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MatchUnit {
    /// Each hour of the day
    Hour,
    /// Each hour of the week
    Weekday,
    /// No pairs: each recording as a whole
    None,
}

/// Verdicts that `compare --fail-on` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Longer durations or more failures, with evidence
    Worse,
}

// Parsers of workload values are here because the crate of workloads has no command line.

/// Parser of a workload's data size.
pub(crate) fn size() -> impl TypedValueParser<Value = SizeName> {
    one_of(&[
        (SizeName::Small, "small", "For a quick trial"),
        (
            SizeName::Medium,
            "medium",
            "More data than is in flight, less than caches hold",
        ),
        (
            SizeName::Large,
            "large",
            "More data than the caches of many servers hold",
        ),
    ])
}

/// Parser of a workload's metric.
pub(crate) fn run_metric() -> impl TypedValueParser<Value = Metric> {
    one_of(&[
        (Metric::Iops, "iops", "Operations per second"),
        (Metric::Latency, "latency", "Mean latency"),
        (Metric::P99, "p99", "99th percentile of latency"),
    ])
}

/// Parser of one of these values, by its word. Each has a help text.
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
