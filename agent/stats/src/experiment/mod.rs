//! Designed experiments with factors at two levels: full 2^k and fractional 2^(k-p) designs, and their analysis.
//!
//! R. Jain, The Art of Computer Systems Performance Analysis, Wiley 1991, chapters 17 to 19; fractions and generators as in G. E. P.
//! Box, J. S. Hunter and W. G. Hunter, Statistics for Experimenters, Wiley 2005, table 6.22.

mod analysis;
mod blocks;
mod design;
mod least_squares;
mod lenth;

pub use analysis::{Analysis, Effect, Observation, Scale, analyse, analyse_runs, smallest_found};
pub use blocks::Blocks;
pub use design::{Design, DesignError, MAX_FACTORS, Run, Word, blocks_of};
pub use lenth::{Lenth, half_normal, lenth};
