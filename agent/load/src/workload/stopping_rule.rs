//! Repeats runs until the result is precise enough.

use crate::workload::fio_report::{Figures, RunReport};
use nfscope_stats::mean_interval::Interval;
use nfscope_stats::{CONFIDENCE, Looks, ratio};
use nfscope_text::units::{percent, rate, seconds};
use serde::Serialize;
use std::time::{Duration, Instant};

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    /// All metrics.
    pub const ALL: [Metric; 3] = [Metric::Iops, Metric::Latency, Metric::P99];

    /// Value of the metric in a run; NaN where the run does not have it.
    pub fn of(self, figures: &Figures) -> f64 {
        match self {
            Metric::Iops => figures.iops,
            Metric::Latency => figures.latency_seconds.unwrap_or(f64::NAN),
            Metric::P99 => figures.p99_seconds.unwrap_or(f64::NAN),
        }
    }

    /// Value as text with its unit.
    pub fn text(self, value: f64) -> String {
        match self {
            Metric::Iops => format!("{} ops/s", rate(value)),
            Metric::Latency => format!("{} mean", seconds(value)),
            Metric::P99 => format!("{} p99", seconds(value)),
        }
    }
}

/// Rule that ends the repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StoppingRule {
    /// After this number of repeats.
    Repeats(usize),
    /// When the interval is narrow, or time is up.
    Narrow {
        /// Largest half width of the interval, as a part of the mean.
        relative: f64,
        /// Time at which the last repeat must have ended.
        at_most: Duration,
    },
}

/// Step after a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Run another repeat.
    Continue,
    /// The result is precise enough.
    Done,
    /// Time is up.
    TimeUp,
}

impl StoppingRule {
    /// Decides after these values, `elapsed` after the start, when one repeat takes `one`.
    pub fn next(self, values: &[f64], elapsed: Duration, one: Duration) -> Decision {
        match self {
            StoppingRule::Repeats(n) if values.len() >= n => Decision::Done,
            StoppingRule::Repeats(_) => Decision::Continue,
            StoppingRule::Narrow { relative, at_most } => {
                if is_known(values, relative) {
                    Decision::Done
                } else if !values.is_empty() && elapsed + one > at_most {
                    Decision::TimeUp
                } else {
                    Decision::Continue
                }
            }
        }
    }
}

/// Returns true if the mean is precise enough, at two looks in a row. Correlated repeats count as fewer, so that a load that drifts goes
/// on.
fn is_known(values: &[f64], relative: f64) -> bool {
    let mut looks = Looks::at_runs();
    (1..=values.len()).any(|n| {
        if !looks.is_due(n) {
            return false;
        }
        let estimate = ratio(&values[..n], &vec![1.0; n]);
        let narrow = estimate.as_ref().is_some_and(|e| {
            let i = e.interval(CONFIDENCE);
            (i.high - i.low) / 2.0 / i.value <= relative
        });
        looks.enough(n, estimate.map_or(0.0, |e| e.stretches), narrow)
    })
}

/// Runs once to warm up, and then until the rule ends it; `tell` gets a line about each run. Returns the reports, and true if time was up.
///
/// # Errors
/// When a run fails.
pub fn run_until(
    until: StoppingRule,
    metric: Metric,
    started: Instant,
    mut run: impl FnMut() -> anyhow::Result<RunReport>,
    mut tell: impl FnMut(&str),
) -> anyhow::Result<(Vec<RunReport>, bool)> {
    let warm = run()?;
    let value = metric.text(metric.of(&warm.total));
    tell(&format!("warm-up: {value}, not counted"));
    let (mut reports, mut values) = (Vec::new(), Vec::new());
    loop {
        let begun = Instant::now();
        let report = run()?;
        let value = metric.of(&report.total);
        values.push(value);
        reports.push(report);
        let width = Interval::of(&values).and_then(|i| i.relative());
        let width = width.map_or("-".to_owned(), percent);
        let value = metric.text(value);
        tell(&format!("repeat {}: {value}, mean ± {width}", values.len()));
        match until.next(&values, started.elapsed(), begun.elapsed()) {
            Decision::Continue => {}
            next => return Ok((reports, next == Decision::TimeUp)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_it_is_narrow_or_time_is_up() {
        let (s, hour) = (Duration::from_secs, Duration::from_secs(3600));
        let until = StoppingRule::Narrow {
            relative: 0.05,
            at_most: hour,
        };
        let same: Vec<f64> = (0..40)
            .map(|i| 10.0 + 0.1 * (f64::from(i) * 2.4).sin())
            .collect();
        assert_eq!(until.next(&same, s(5), s(1)), Decision::Done);
        // The interval is narrow after five values, which is too few to trust it.
        assert!(Interval::of(&same[..5]).unwrap().relative().unwrap() < 0.05);
        assert_eq!(until.next(&same[..12], s(5), s(1)), Decision::Continue);
        let wide: Vec<f64> = same.iter().map(|v| (v - 9.0).powi(12)).collect();
        assert_eq!(until.next(&wide, s(5), s(1)), Decision::Continue);
        // A load that drifts: its repeats are correlated, and count as fewer than they are.
        let drifts: Vec<f64> = (0..40).map(|i| 10.0 + 0.02 * f64::from(i)).collect();
        assert!(Interval::of(&drifts).unwrap().relative().unwrap() < 0.05);
        assert_eq!(until.next(&drifts, s(5), s(1)), Decision::Continue);
        assert_eq!(until.next(&same[..2], s(3590), s(11)), Decision::TimeUp);
        assert_eq!(until.next(&[f64::NAN; 6], s(5), s(1)), Decision::Continue);
        assert_eq!(
            StoppingRule::Repeats(2).next(&same[..1], hour, hour),
            Decision::Continue
        );
        assert_eq!(
            StoppingRule::Repeats(2).next(&same[..2], s(0), s(0)),
            Decision::Done
        );
    }
}
