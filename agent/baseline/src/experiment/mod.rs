//! Experiments: factors at two levels, runs in random order, each run a baseline.

mod aliases;
mod analysis;
mod caveats;
mod durability;
pub mod html;
mod pilot;
mod plan;
mod result;
mod text;

pub use analysis::analyse;
pub use pilot::{Pilot, pilot};
pub use plan::{Factor, Fraction, More, Plan, label_of, parse_factor, parse_generator};
pub use result::{Analysed, HalfNormal, Measured, Response, RunData, RunResult, Size, Unit};
pub use text::{analysis, next, plan};
