//! Reproducible loads for a client, run through fio.

pub mod catalog;
pub mod fio;
pub mod fio_report;
pub mod open_loop;
pub mod pages;
pub mod parameters;
pub mod stopping_rule;
pub mod summary;
pub mod text;
pub mod work_dir;

pub use catalog::{Size, SizeName, Workload, all, named};
pub use stopping_rule::Metric;
