//! Statistics of quantities that were measured in consecutive windows.
//!
//! Windows of a server are not independent: a busy minute makes six busy windows. Standard errors therefore come from batch
//! means and never from single windows. Three kinds of estimates use them:
//!
//! - [`ratio()`], a ratio of sums (operations per second, mean latency): the delta method on its logarithm, with Student's t.
//! - [`quantile()`], a quantile of the merged histogram: an interval for the share of values above it, read back through the
//!   distribution (R. S. Woodruff, Confidence intervals for medians and other position measures, JASA 47, 1952). It is
//!   computed on the scale of log odds, which keeps that share between 0 and 1 (N. Dean and M. Pagano, Evaluating confidence
//!   interval methods for binomial proportions in clustered surveys, J. Survey Statistics and Methodology 3, 2015).
//! - [`change()`], after divided by before: the two intervals combined by MOVER on the logarithms (G. Y. Zou and A. Donner,
//!   Construction of confidence limits about effect measures: a general approach, Statistics in Medicine 27, 2008). Its
//!   p value is that of a minimum-effect test (K. R. Murphy and B. Myors, Testing the hypothesis that treatments have
//!   negligible effects, J. of Applied Psychology 84, 1999).
//! - [`replicated()`], the same for several recordings on each side, of which each is one observation.
//! - [`paired_rounds()`], the same for treatments that were measured in random order in each round: Student's paired t.

#![forbid(unsafe_code)]

mod autocorrelation;
mod batch_means;
mod change;
mod change_points;
mod estimate;
pub mod experiment;
mod interval;
mod looks;
pub mod mean_interval;
mod memory;
mod multiple_comparisons;
mod one_sided;
mod quantile;
mod quantile_interval;
mod queue;
mod ratio;
mod replicates;
mod scalability;
mod slow_wave;
mod tail;

pub use autocorrelation::are_alike;
pub use change::{Change, MIN_EFFECT, change};
pub use change_points::{ChangePoint, change_points};
pub use estimate::{Estimate, MIN_STRETCHES, MIN_WINDOWS};
pub use interval::{CONFIDENCE, Interval};
pub use looks::{Looks, MIN_RUNS_TO_STOP, MIN_STRETCHES_TO_STOP, MIN_WINDOWS_TO_STOP};
pub use memory::{MIN_RISES_TO_STOP, MIN_WINDOWS_OF_TEST, Memory};
pub use multiple_comparisons::{holm, holm_weighted};
pub use one_sided::one_sided;
pub use quantile::{quantile, quantile_memory, quantile_of};
pub use queue::waiting;
pub use ratio::ratio;
pub use replicates::{MIN_PAIRS, Replicated, paired, paired_rounds, replicated};
pub use scalability::{Load, MIN_LOADS, Scalability, scalability};
pub use tail::{MIN_SPELLS_TO_STOP, Tail};
