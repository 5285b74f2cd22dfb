//! Designed experiments: full 2^k and fractional 2^(k-p) designs of factors at two levels, all combinations of factors with any number of
//! levels, and their analysis.
//!
//! R. Jain, The Art of Computer Systems Performance Analysis, Wiley 1991, chapters 17 to 19; fractions and generators as in G. E. P.
//! Box, J. S. Hunter and W. G. Hunter, Statistics for Experimenters, Wiley 2005, table 6.22.

mod analysis;
mod blocks;
mod design;
mod factorial;
mod least_squares;
mod lenth;

pub use analysis::{
    Analysis, Curvature, Effect, Observation, Scale, analyse, analyse_runs, smallest_found,
};
pub use blocks::Blocks;
pub use design::{
    CENTRE, Design, DesignError, Levels, MAX_COMBINATIONS, MAX_FACTORS, Run, Word, blocks_of,
    factorial,
};
pub use factorial::{Factorial, LevelEffect, Term, analyse_factorial};
pub use lenth::{Lenth, half_normal, lenth};
