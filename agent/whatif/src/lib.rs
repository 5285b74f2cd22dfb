//! What a change of an NFS server would do.
//!
//! A window says what requests need: CPU time, visits of disks, waits for the log. A discrete-event simulation replays these
//! needs on the server as it is and as it would be. [`predict`] judges one change, [`plausible`] ranks the likely ones. A window
//! that the simulation does not reproduce gets no prediction but a [`Refusal`] with the reason.

#![forbid(unsafe_code)]

mod assemble;
mod assumptions;
mod calibrate;
mod change;
mod check;
pub mod durations;
mod measured;
pub mod outcome;
mod predict;
mod rank;
mod refusal;
pub mod server;
pub mod simulation;
mod storage;
mod text;
mod write_size;

pub use change::{Change, Part};
pub use predict::{Prediction, predict};
pub use rank::{MIN_GAIN, Plausible, fullest, plausible};
pub use refusal::Refusal;
pub use text::{render, render_fullest, render_list, render_worth};

use nfscope_model::family as f;
use nfscope_model::family::Info;

/// Families of a window that the model reads.
pub const FAMILIES: &[&Info] = &[
    &f::RPC_DURATION.info,
    &f::RPC_PHASE.info,
    &f::RPC_QUEUE.info,
    &f::RPC_NO_CLOCK.info,
    &f::OP_DURATION.info,
    &f::OP_PHASE.info,
    &f::OP_ERRORS.info,
    &f::THREADS.info,
    &f::THREADS_LIMIT.info,
    &f::CPUS.info,
    &f::CPU_IDLE.info,
    &f::LOG_WAIT.info,
    &f::LOG_COMMIT.info,
    &f::LOG_BYTES.info,
    &f::LOG_SEPARATE.info,
    &f::BLOCK_DEVICE.info,
    &f::BLOCK_QUEUE.info,
    &f::BLOCK_BUSY.info,
    &f::BLOCK_BYTES.info,
    &f::THREAD_IO.info,
    &f::EXPORT_DEVICE.info,
    &f::ZFS_ZIL_COMMITS.info,
    &f::IO_SIZE.info,
    &f::CLIENT_OPS.info,
    &f::CLIENT_OP_SECONDS.info,
];
