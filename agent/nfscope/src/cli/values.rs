//! Values of flags: their bounds, and what they may be called.

use crate::workload::{Metric, SizeName};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use nfscope_text::parse;
use nfscope_text::suggest::nearest;
use std::time::Duration;

const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// Length of a window.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    parse::duration(text, MIN_INTERVAL..=MAX_INTERVAL)
}

/// Time that a report is about.
pub(super) fn last(text: &str) -> Result<Duration, String> {
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

pub(super) fn probe(text: &str) -> Result<Probes, String> {
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

pub(super) fn names(text: &str) -> Result<Names, String> {
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
impl ValueEnum for SizeName {
    fn value_variants<'a>() -> &'a [Self] {
        &SizeName::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()).help(match self {
            SizeName::Small => "To try whether it runs",
            SizeName::Medium => "More than is in flight, less than caches hold",
            SizeName::Large => "More than the caches of many servers hold",
        }))
    }
}

impl ValueEnum for Metric {
    fn value_variants<'a>() -> &'a [Self] {
        &Metric::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Metric::Iops => PossibleValue::new("iops").help("Operations per second"),
            Metric::Latency => PossibleValue::new("latency").help("Mean latency"),
            Metric::P99 => PossibleValue::new("p99").help("99th percentile of latency"),
        })
    }
}
