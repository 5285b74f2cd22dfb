//! Experiments: factors at two levels, runs in random order, each run a baseline.

mod analysis;
mod plan;
mod text;

pub use analysis::{Analysed, HalfNormal, Response, RunData, Size, analyse};
pub use plan::{Factor, Fraction, Plan, label_of, parse_factor, parse_generator};
pub use text::{analysis, next, plan};
