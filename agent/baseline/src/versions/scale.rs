//! Throughput against the number of threads, and its slope.

use crate::beside::over_rounds;
use nfscope_stats::mean_interval::Interval;
use serde::Serialize;

/// Least number of rounds for an interval of slopes: that of three rounds would be more than twice as wide as their variation requires.
pub(super) const MIN_ROUNDS: usize = 4;

/// A block of one version with one number of threads, in a round.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleBlock {
    /// Number of the round.
    pub round: usize,
    /// The version.
    pub version: String,
    /// Number of threads.
    pub threads: u32,
    /// Operations per second of all threads.
    pub throughput: f64,
}

/// Growth of throughput with threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scale {
    /// Name of the load.
    pub load: String,
    /// Throughput of each version and number of threads.
    pub points: Vec<Point>,
    /// Slope of each version.
    pub slopes: Vec<Slope>,
}

/// Throughput with one number of threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The version.
    pub version: String,
    /// Number of threads.
    pub threads: u32,
    /// Operations per second, with the 95 % interval over rounds.
    pub throughput: Interval,
}

/// Throughput that another thread adds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slope {
    /// The version.
    pub version: String,
    /// Operations per second per additional thread: least squares in each round, with the 95 % interval over rounds.
    pub per_thread: Interval,
    /// Difference from the slope of the first version, by pairs within rounds; `None` for the first one itself.
    pub difference: Option<Interval>,
}

impl Slope {
    /// Returns true if the interval of the difference excludes 0; `None` without an interval.
    pub fn differs(&self) -> Option<bool> {
        let d = self.difference?;
        Some(d.mean.abs() > d.half_width?)
    }
}

/// Slopes of the versions, in their order.
pub fn scale(load: &str, versions: &[String], blocks: &[ScaleBlock]) -> Scale {
    let mut numbers: Vec<u32> = blocks.iter().map(|b| b.threads).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut points = Vec::new();
    for version in versions {
        for n in &numbers {
            let of = |b: &&ScaleBlock| b.version == *version && b.threads == *n;
            let values: Vec<f64> = blocks.iter().filter(of).map(|b| b.throughput).collect();
            points.extend(over_rounds(&values, MIN_ROUNDS).map(|throughput| Point {
                version: version.clone(),
                threads: *n,
                throughput,
            }));
        }
    }
    let rounds = blocks.iter().map(|b| b.round + 1).max().unwrap_or(0);
    let slopes_of = |version: &str| -> Vec<Option<f64>> {
        let of = |round| {
            let mine = blocks
                .iter()
                .filter(|b| b.round == round && b.version == version);
            slope(
                &mine
                    .map(|b| (f64::from(b.threads), b.throughput))
                    .collect::<Vec<_>>(),
            )
        };
        (0..rounds).map(of).collect()
    };
    let first = versions.first().map(|v| slopes_of(v)).unwrap_or_default();
    let slopes = versions.iter().enumerate().filter_map(|(i, version)| {
        let own = slopes_of(version);
        let pairs = own.iter().zip(&first);
        let differences: Vec<f64> = pairs.filter_map(|(o, f)| Some((*o)? - (*f)?)).collect();
        Some(Slope {
            version: version.clone(),
            per_thread: over_rounds(
                &own.iter().flatten().copied().collect::<Vec<_>>(),
                MIN_ROUNDS,
            )?,
            difference: over_rounds(&differences, MIN_ROUNDS).filter(|_| i > 0),
        })
    });
    Scale {
        load: load.to_owned(),
        slopes: slopes.collect(),
        points,
    }
}

/// Slope by least squares; `None` with fewer than two numbers of threads.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let square: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let product: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    (square > 0.0).then(|| product / square)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks with 100 operations per additional thread, and 60 for the second version; rounds differ by a constant.
    fn blocks() -> Vec<ScaleBlock> {
        let mut all = Vec::new();
        for round in 0..5 {
            for (version, slope) in [("4.0", 100.0), ("4.1", 60.0)] {
                for threads in [10, 20, 50] {
                    let noise = 3.0 * f64::from(threads * (round + 2) % 7);
                    all.push(ScaleBlock {
                        round: round as usize,
                        version: version.into(),
                        threads,
                        throughput: 500.0 * f64::from(round) + slope * f64::from(threads) + noise,
                    });
                }
            }
        }
        all
    }

    #[test]
    fn slopes_and_their_difference() {
        let versions = ["4.0".to_owned(), "4.1".to_owned()];
        let s = scale("reads", &versions, &blocks());
        assert_eq!(s.points.len(), 6);
        let [first, second] = &s.slopes[..] else {
            panic!("{s:?}")
        };
        assert!((first.per_thread.mean - 100.0).abs() < 1.0, "{s:?}");
        assert_eq!(first.differs(), None);
        assert!((second.difference.unwrap().mean + 40.0).abs() < 1e-6);
        assert_eq!(second.differs(), Some(true));
        let same: Vec<_> = blocks()
            .into_iter()
            .map(|b| ScaleBlock {
                throughput: b.throughput
                    + f64::from(u8::from(b.version == "4.1")) * 40.0 * f64::from(b.threads)
                    + (f64::from(b.threads) * (b.round as f64 - 2.0))
                        * f64::from(u8::from(b.version == "4.1")),
                ..b
            })
            .collect();
        assert_eq!(
            scale("reads", &versions, &same).slopes[1].differs(),
            Some(false)
        );
        let three: Vec<_> = blocks().into_iter().filter(|b| b.round < 3).collect();
        let few = scale("reads", &versions, &three);
        assert_eq!(few.slopes[1].differs(), None);
        assert!(few.points.iter().all(|p| p.throughput.half_width.is_none()));
        let one: Vec<_> = blocks().into_iter().filter(|b| b.threads == 10).collect();
        assert!(scale("reads", &versions, &one).slopes.is_empty());
    }
}
