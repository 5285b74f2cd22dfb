//! Plain data that all views share, the same on Linux and illumos.
//!
//! A source fills a [`Snapshot`] (cumulative counters, gauges and histograms by the labels of the metric contract in
//! [`family`]); a [`Window`] is the difference of two. Views are pure functions of the two and never meet a kernel.

#![forbid(unsafe_code)]

pub mod breakdown;
pub mod comes_again;
pub mod family;
pub mod finding;
pub mod held_request;
pub mod histogram;
pub mod host_report;
pub mod op;
pub mod phase;
pub mod probe;
mod scheme;
mod slow_op;
mod snapshot;
pub mod status;
pub mod stuck_requests;
pub mod unacknowledged;
pub mod window_mounts;
pub mod window_parts;
pub mod xid;

pub use breakdown::{BreakdownBatch, BreakdownRow, BreakdownWant, Dimension};
pub use family::{Family, Info, Kind};
pub use held_request::HeldRequest;
pub use histogram::{Histogram, Sparse};
pub use probe::{ProbeState, ProbeStatus};
pub use scheme::Scheme;
pub use slow_op::{OpArguments, OpPhases, SlowBatch, SlowFilter, SlowOp};
pub use snapshot::{Sample, Series, Snapshot, Window};
pub use stuck_requests::{HeldRequests, Laundromat};
pub use unacknowledged::Unacknowledged;
