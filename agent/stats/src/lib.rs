//! What may be said of quantities that were measured in windows, one after the other.
//!
//! Windows of a server are no independent draws: a busy minute makes six busy windows. Standard errors therefore come from
//! batch means ([`batch_means`]), never from single windows. Three kinds of estimates use them:
//!
//! - a ratio of sums (operations per second, mean latency): the delta method on its logarithm, with Student's t;
//! - a quantile of the merged histogram: an interval for the share of values beyond it, read back through the distribution
//!   (R. S. Woodruff, Confidence intervals for medians and other position measures, JASA 47, 1952), on the scale of log odds,
//!   which keeps that share between 0 and 1 (N. Dean and M. Pagano, Evaluating confidence interval methods for binomial
//!   proportions in clustered surveys, J. Survey Statistics and Methodology 3, 2015);
//! - after over before: the two intervals combined by MOVER on the logarithms (G. Y. Zou and A. Donner, Construction of
//!   confidence limits about effect measures: a general approach, Statistics in Medicine 27, 2008). Its p value is that of the
//!   widest interval that has no change in it which is too small to matter (a minimum-effect test: K. R. Murphy and B. Myors,
//!   Testing the hypothesis that treatments have negligible effects, J. of Applied Psychology 84, 1999).

mod batch_means;
pub mod mean_interval;
mod multiple_comparisons;
mod quantile;

pub use batch_means::lag_one;
pub use multiple_comparisons::holm;
pub use quantile::quantile;

use batch_means::error_of_sum;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewer windows say nothing of their own spread.
pub const LEAST_WINDOWS: usize = 10;

/// An estimate that knows how wrong it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Degrees of freedom of its standard error.
    pub dof: f64,
    spread: Spread,
}

#[derive(Debug, Clone, PartialEq)]
enum Spread {
    /// Standard error of the logarithm.
    Log(f64),
    Quantile(quantile::Beyond),
}

/// The ends of an interval: by chance, and with what a bucket hides, which is no chance.
struct Ends {
    middle: f64,
    low: f64,
    high: f64,
    at_least: f64,
    at_most: f64,
}

/// A value and the ends of its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Changes up to this part do not matter unless told otherwise: a long recording finds differences that nobody cares for, and
/// buckets alone shift quantiles by up to 0.5 %.
pub const LEAST: f64 = 0.02;

/// The confidence that is told.
pub const CONFIDENCE: f64 = 0.95;

impl Measured {
    /// The interval that covers the truth with this probability.
    pub fn interval(&self, confidence: f64) -> Interval {
        let ends = self.ends(confidence);
        Interval {
            value: self.value,
            low: ends.at_least,
            high: ends.at_most,
        }
    }

    fn ends(&self, confidence: f64) -> Ends {
        let t = students_t(confidence, self.dof);
        match &self.spread {
            Spread::Log(se) => {
                let (low, high) = (self.value * (-t * se).exp(), self.value * (t * se).exp());
                Ends {
                    middle: self.value,
                    low,
                    high,
                    at_least: low,
                    at_most: high,
                }
            }
            Spread::Quantile(beyond) => beyond.ends(t),
        }
    }

    /// Standard error of its logarithm; for a quantile as its 95 % interval has it.
    pub fn log_error(&self) -> f64 {
        match self.spread {
            Spread::Log(se) => se,
            Spread::Quantile(_) => {
                let i = self.interval(CONFIDENCE);
                (i.high / i.low).ln() / 2.0 / students_t(CONFIDENCE, self.dof)
            }
        }
    }

    /// About how many windows on each side it takes to find a change by this factor with this power, where both are like the
    /// `windows` of this one (two-sided, 95 %, beyond `least`). The error of a short recording is itself known to a third only, and this
    /// number to two thirds; and it is for this comparison alone, of many it takes more.
    pub fn windows_to_find(&self, factor: f64, least: f64, power: f64, windows: usize) -> f64 {
        let wanted = students_t(CONFIDENCE, self.dof) + students_t(2.0 * power - 1.0, self.dof);
        let variance = self.log_error().powi(2) * windows as f64;
        let n = 2.0 * variance * (wanted / (factor / (1.0 + least)).ln()).powi(2);
        n.max(LEAST_WINDOWS as f64)
    }
}

/// The sum of `y` over the sum of `x`, one of each per window. `None` with fewer than [`LEAST_WINDOWS`], or where a sum is
/// not positive.
pub fn ratio(y: &[f64], x: &[f64]) -> Option<Measured> {
    let (all_y, all_x) = (y.iter().sum::<f64>(), x.iter().sum::<f64>());
    if y.len() < LEAST_WINDOWS || all_y <= 0.0 || all_x <= 0.0 {
        return None;
    }
    let value = all_y / all_x;
    let rest: Vec<f64> = y.iter().zip(x).map(|(y, x)| y - value * x).collect();
    let (se, dof) = error_of_sum(&rest);
    Some(Measured {
        value,
        dof,
        spread: Spread::Log(se / all_y),
    })
}

/// After over before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The ratio with its 95 % interval.
    pub ratio: Interval,
    /// Probability of a difference as large where there is none that matters.
    pub p: f64,
}

/// Compares two estimates of one quantity. Changes by up to the part `least` do not matter: the p value is that of the widest
/// interval that has none of them.
pub fn change(before: &Measured, after: &Measured, least: f64) -> Change {
    let ratio = |confidence| {
        let (b, a) = (before.ends(confidence), after.ends(confidence));
        let (up, down) = (
            (a.high / a.middle).ln().hypot((b.middle / b.low).ln()),
            (a.middle / a.low).ln().hypot((b.high / b.middle).ln()),
        );
        let middle = a.middle / b.middle;
        Interval {
            value: after.value / before.value,
            // What buckets hide on both sides may well add up.
            low: middle * (-down).exp() * (a.at_least / a.low) * (b.high / b.at_most),
            high: middle * up.exp() * (a.at_most / a.high) * (b.low / b.at_least),
        }
    };
    let matters = |p: f64| {
        let i = ratio(1.0 - p);
        i.low > 1.0 + least || i.high < 1.0 / (1.0 + least)
    };
    // By bisection on the logarithm: the interval grows as p falls.
    let (mut no, mut yes) = (LEAST_P.ln(), 0.0f64);
    if matters(LEAST_P) {
        yes = no;
    }
    for _ in 0..40 {
        let middle = (no + yes) / 2.0;
        match matters(middle.exp()) {
            true => yes = middle,
            false => no = middle,
        }
    }
    Change {
        ratio: ratio(CONFIDENCE),
        p: yes.exp(),
    }
}

/// Smaller ones are not told apart.
const LEAST_P: f64 = 1e-9;

/// How many standard errors an interval of this confidence reaches to each side; infinite without degrees of freedom.
pub fn students_t(confidence: f64, dof: f64) -> f64 {
    StudentsT::new(0.0, 1.0, dof).map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + confidence / 2.0))
}
