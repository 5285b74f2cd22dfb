//! Baselines: recordings of a server, their store, comparison and capacity estimate.
//!
//! This crate returns data and text. It knows no command line, terminal or network; files and SQLite are its own.

#![forbid(unsafe_code)]

mod beside;
pub mod capacity;
pub mod changes;
pub mod codec;
pub mod compare;
pub mod durability;
pub mod estimate;
pub mod experiment;
pub mod histogram_series;
pub mod html;
pub mod list;
pub mod name;
pub mod progress;
pub mod recording;
pub mod series;
pub mod show;
pub mod slice;
pub mod store;
pub mod summary;
pub mod target_metric;
pub mod versions;
pub mod wall_clock;
pub mod window;
pub mod workload;
