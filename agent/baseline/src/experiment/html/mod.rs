//! The analysis of an experiment as an HTML page.

mod cube;
mod design;
mod effects;
mod half_normal;
mod interactions;
mod page;
mod residuals;
mod scale;

pub use page::page;
