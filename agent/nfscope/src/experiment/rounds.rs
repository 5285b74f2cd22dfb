//! Rounds of a campaign: a given number, or as many as make every confidence interval narrow enough.

use nfscope_stats::Looks;
use std::time::{Duration, Instant};

/// Condition that ends a campaign.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Until {
    /// Half width of each confidence interval, as a fraction of its value.
    pub ci: f64,
    /// Most rounds.
    pub rounds: usize,
    /// Time limit, which includes the preparation.
    pub time: Duration,
}

/// Campaign that is measured in rounds.
pub(crate) trait Rounds {
    /// Makes rounds until there are `rounds` in all; returns their number, which may be higher.
    ///
    /// # Errors
    /// When a round fails.
    fn make(&mut self, rounds: usize) -> anyhow::Result<usize>;

    /// Half width of the widest confidence interval in the first `rounds` rounds, as a fraction of its value, and the fewest independent
    /// rounds. `None` with too few rounds.
    fn widest(&self, rounds: usize) -> Option<(f64, f64)>;

    /// Reports the width of the widest interval.
    fn tell(&mut self, rounds: usize, width: f64);
}

/// Makes rounds; returns whether the intervals became narrow enough, and `None` without `until`.
///
/// Interim looks are at the same rounds with and without an interruption: a campaign that has ended makes no more rounds.
/// `began` is the start of the campaign's time, which may be before the first round.
///
/// # Errors
/// When a round fails.
pub(crate) fn make(
    campaign: &mut impl Rounds,
    least: usize,
    until: Option<&Until>,
    began: Instant,
) -> anyhow::Result<Option<bool>> {
    let started = Instant::now();
    let mut made = campaign.make(least)?;
    let Some(until) = until else { return Ok(None) };
    let mut looks = Looks::at_runs();
    let mut seen = 0;
    let mut last = started.elapsed();
    loop {
        while seen < made {
            seen += 1;
            if !looks.is_due(seen) && seen < made {
                continue;
            }
            let found = campaign.widest(seen);
            let (width, independent) = found.unwrap_or((f64::INFINITY, 0.0));
            if width.is_finite() && seen == made {
                campaign.tell(seen, width);
            }
            if looks.enough(seen, independent, width <= until.ci) {
                return Ok(Some(true));
            }
        }
        if made >= until.rounds || began.elapsed().saturating_add(last) > until.time {
            return Ok(Some(false));
        }
        let started = Instant::now();
        made = campaign.make(made + 1)?;
        last = started.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Campaign whose intervals narrow by the square root of the rounds.
    struct Simulated {
        made: usize,
        told: Vec<usize>,
        /// Rounds that an earlier call made.
        found: usize,
    }

    impl Rounds for Simulated {
        fn make(&mut self, rounds: usize) -> anyhow::Result<usize> {
            self.made = rounds.max(self.found);
            Ok(self.made)
        }

        fn widest(&self, rounds: usize) -> Option<(f64, f64)> {
            assert!(rounds <= self.made);
            (rounds >= 6).then(|| (1.0 / (rounds as f64).sqrt(), rounds as f64))
        }

        fn tell(&mut self, rounds: usize, _: f64) {
            self.told.push(rounds);
        }
    }

    fn of(least: usize, found: usize, until: Option<(f64, usize)>) -> (usize, Option<bool>) {
        let mut campaign = Simulated {
            made: 0,
            told: Vec::new(),
            found,
        };
        let until = until.map(|(ci, rounds)| Until {
            ci,
            rounds,
            time: Duration::MAX,
        });
        let reached = make(&mut campaign, least, until.as_ref(), Instant::now()).unwrap();
        (campaign.made, reached)
    }

    #[test]
    fn rounds_go_on_until_two_looks_agree() {
        assert_eq!(of(8, 0, None), (8, None));
        // Looks are at 10, 13, 17, 22 and 29 rounds, and 1/4 is reached at 16.
        assert_eq!(of(1, 0, Some((0.25, 100))), (22, Some(true)));
        assert_eq!(of(6, 0, Some((0.01, 40))), (40, Some(false)));
        // After an interruption, a campaign ends at the same look as without one, and makes no more rounds if it had ended.
        assert_eq!(of(6, 22, Some((0.25, 100))), (22, Some(true)));
        assert_eq!(of(6, 19, Some((0.25, 100))), (22, Some(true)));
        assert_eq!(of(6, 30, Some((0.25, 100))), (30, Some(true)));
    }

    #[test]
    fn no_round_begins_that_would_end_too_late() {
        let mut campaign = Simulated {
            made: 0,
            told: Vec::new(),
            found: 0,
        };
        let until = Until {
            ci: 0.25,
            rounds: usize::MAX,
            time: Duration::ZERO,
        };
        let reached = make(&mut campaign, 7, Some(&until), Instant::now());
        assert_eq!(reached.unwrap(), Some(false));
        assert_eq!((campaign.made, campaign.told), (7, vec![7]));
    }

    /// Time limit: preparation before the first round counts.
    #[test]
    fn preparation_is_in_the_longest_time() {
        let until = Until {
            ci: 0.01,
            rounds: 40,
            time: Duration::from_secs(3600),
        };
        let of = |prepared: Duration| {
            let mut campaign = Simulated {
                made: 0,
                told: Vec::new(),
                found: 0,
            };
            let began = Instant::now().checked_sub(prepared).unwrap();
            let reached = make(&mut campaign, 7, Some(&until), began).unwrap();
            (campaign.made, reached)
        };
        assert_eq!(of(Duration::ZERO), (40, Some(false)));
        assert_eq!(of(Duration::from_secs(3600)), (7, Some(false)));
    }
}
