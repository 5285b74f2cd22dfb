//! What makes requests slow: a breakdown of where their time went, attributed to causes, with the evidence.
//!
//! [`breakdown`] says where a window's time went, [`attribution`] which cause each part of it is attributed to, `rules`
//! decide about one kind of finding each, [`evaluate`] puts them together; all are pure functions. [`tracker`] follows findings
//! from window to window. [`client_sample`] says which client is behind a finding, from single operations.

pub mod attribution;
pub mod breakdown;
pub mod client_sample;
mod evaluate;
mod render;
mod rules;
pub mod tracker;

pub use evaluate::{BEGINS, ENDS, judge};
pub use render::render;
