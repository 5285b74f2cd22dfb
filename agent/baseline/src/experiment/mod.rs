//! Experiments: factors with their levels, runs in random order, each run a baseline.

mod aliases;
mod analysis;
mod caveats;
mod durability;
pub mod html;
mod pilot;
mod plan;
mod result;
mod table;
mod table_text;
mod text;
#[cfg(test)]
mod until_tests;

pub use analysis::analyse;
pub use nfscope_stats::experiment::Run;
pub use pilot::{Pilot, pilot};
pub use plan::{Factor, Fraction, More, Plan, factor, label_of, parse_factor, parse_generator};
pub use result::{
    Analysed, CurvatureResult, HalfNormal, LevelResult, Measured, Response, RunData, RunResult,
    Size, TermResult, Unit,
};
pub use table::{Cell, ResponseTable, Table, TableRow, table, widest};
pub use table_text::{csv as table_csv, markdown as table_markdown, text as table_text};
pub use text::{analysis, next, plan};
