//! Runs again and again, until enough is known.

use crate::workload::fio_report::{Figures, Outcome};
use clap::ValueEnum;
use nfscope_stats::mean_interval::Interval;
use nfscope_text::units::{percent, rate, seconds};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Repeats before an interval is believed.
const FEWEST: usize = 5;

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Operations per second
    Iops,
    /// Mean latency
    Latency,
    /// 99th percentile of latency
    P99,
}

impl Metric {
    /// Its value in a run; not a number where the run does not tell.
    pub fn of(self, figures: &Figures) -> f64 {
        match self {
            Metric::Iops => figures.iops,
            Metric::Latency => figures.latency_seconds.unwrap_or(f64::NAN),
            Metric::P99 => figures.p99_seconds.unwrap_or(f64::NAN),
        }
    }

    /// For people.
    pub fn text(self, value: f64) -> String {
        match self {
            Metric::Iops => format!("{} ops/s", rate(value)),
            Metric::Latency => format!("{} mean", seconds(value)),
            Metric::P99 => format!("{} p99", seconds(value)),
        }
    }
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Until {
    /// After so many.
    Repeats(usize),
    /// When the interval is narrow, or time is up.
    Narrow {
        /// At most this part of the mean to each side.
        relative: f64,
        /// No repeat may end later.
        at_most: Duration,
    },
}

/// What to do after a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another one.
    Again,
    /// Enough is known.
    Enough,
    /// Time is up.
    TimeUp,
}

impl Until {
    /// After these values, this long after the start, when one repeat takes so long.
    pub fn next(self, values: &[f64], elapsed: Duration, one: Duration) -> Next {
        match self {
            Until::Repeats(n) if values.len() >= n => Next::Enough,
            Until::Repeats(_) => Next::Again,
            Until::Narrow { relative, at_most } => {
                let width = Interval::of(values).and_then(|i| i.relative());
                let narrow = width.is_some_and(|w| w <= relative);
                if values.len() >= FEWEST && narrow {
                    Next::Enough
                } else if !values.is_empty() && elapsed + one > at_most {
                    Next::TimeUp
                } else {
                    Next::Again
                }
            }
        }
    }
}

/// Runs once to warm up, and then until enough is known; `tell` hears of each run. Says whether time was up before.
///
/// # Errors
/// When a run fails.
pub fn repeat(
    until: Until,
    metric: Metric,
    started: Instant,
    mut run: impl FnMut() -> anyhow::Result<Outcome>,
    mut tell: impl FnMut(&str),
) -> anyhow::Result<(Vec<Outcome>, bool)> {
    let warm = run()?;
    let value = metric.text(metric.of(&warm.total));
    tell(&format!("warm-up: {value}, not counted"));
    let (mut outcomes, mut values) = (Vec::new(), Vec::new());
    loop {
        let begun = Instant::now();
        let outcome = run()?;
        let value = metric.of(&outcome.total);
        values.push(value);
        outcomes.push(outcome);
        let width = Interval::of(&values).and_then(|i| i.relative());
        let width = width.map_or("-".to_owned(), percent);
        let value = metric.text(value);
        tell(&format!("repeat {}: {value}, mean ± {width}", values.len()));
        match until.next(&values, started.elapsed(), begun.elapsed()) {
            Next::Again => {}
            next => return Ok((outcomes, next == Next::TimeUp)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_it_is_narrow_or_time_is_up() {
        let (s, hour) = (Duration::from_secs, Duration::from_secs(3600));
        let until = Until::Narrow {
            relative: 0.05,
            at_most: hour,
        };
        let same = [10.0, 10.1, 9.9, 10.0, 10.0];
        assert_eq!(until.next(&same, s(5), s(1)), Next::Enough);
        assert_eq!(until.next(&same[..4], s(5), s(1)), Next::Again);
        assert_eq!(
            until.next(&[1.0, 9.0, 1.0, 9.0, 1.0], s(5), s(1)),
            Next::Again
        );
        assert_eq!(until.next(&same[..2], s(3590), s(11)), Next::TimeUp);
        assert_eq!(until.next(&[f64::NAN; 6], s(5), s(1)), Next::Again);
        assert_eq!(Until::Repeats(2).next(&same[..1], hour, hour), Next::Again);
        assert_eq!(Until::Repeats(2).next(&same[..2], s(0), s(0)), Next::Enough);
    }
}
