//! Open loops for workloads that open a file for each request, which fio does not do while others wait.
//!
//! Requests become due at random (Poisson), whether earlier ones are answered or not. Latency counts from the moment at which a
//! request is due, so that one that had to wait for a free worker has that wait, too: no coordinated omission.

mod files;
mod histogram;
mod mix;
mod run;

pub use mix::Mix;
pub use run::{Laid, Load, lay_out, run};
