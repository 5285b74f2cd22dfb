//! Open loops for workloads that open a file for each request. fio cannot open files while other requests wait.
//!
//! Requests become due at random (Poisson), whether earlier ones are answered or not. Latency counts from the moment at which a request is
//! due, so it includes the wait for a free worker: there is no coordinated omission.

mod files;
mod histogram;
mod mix;
mod run;

pub use mix::Mix;
pub use run::{Laid, Load, lay_out, run};
