//! Explains slow requests: a window's time is broken down and attributed to causes, with the evidence.
//!
//! 1. [`breakdown`]: where the time of a window's requests went.
//! 2. [`attribution`]: which cause each part of that time is attributed to.
//! 3. `rules`: one file for each kind of finding, named by the kind, decides about that kind.
//! 4. [`evaluate()`]: applies all rules to a window.
//!
//! All four steps are pure functions. [`observed`] is evidence that a window lacks: operations by file, and kernel stacks. [`course()`] is
//! the trend of a finding's waiting over its window. [`tracker`] follows findings from window to window. [`counted`] names the clients,
//! exports, operations and files behind a finding, as the kernel counted them. Where it does not, [`client_sample`] names the client, from
//! a sample of single operations. [`render()`] writes a diagnosis as text.

#![forbid(unsafe_code)]

pub mod attribution;
pub mod breakdown;
pub mod by_client;
mod causes;
mod changes;
pub mod client_sample;
pub mod connections;
pub mod counted;
pub mod course;
pub mod distance;
mod evaluate;
pub mod export_io;
mod group;
mod impact;
pub mod log_bytes;
pub mod long_waits;
pub mod normal;
pub mod observed;
pub mod page_cache;
pub mod put_off;
mod ratio;
pub mod recalls;
pub mod refused;
mod render;
mod rules;
pub mod thresholds;
pub mod tracker;
pub mod unacknowledged;

pub use counted::{Counted, Place};
pub use course::{Slice, course};
pub use evaluate::{evaluate, evaluate_observed};
pub use observed::Observed;
pub use render::{render, render_not_known};
pub use rules::IN_GRACE;
pub use rules::stuck_requests::{causes_first, stack_evidence};
