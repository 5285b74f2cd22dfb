//! The running agent: the thread that owns the probes, and the listeners of its streams.

pub mod answers;
pub mod archive;
mod archive_columns;
mod black_box;
pub mod breakdown_listeners;
pub mod control;
pub mod endpoint;
pub mod history;
pub mod http_process;
mod http_state;
pub mod late_windows;
pub mod limits;
pub mod local_lines;
pub mod notify;
pub mod recordings;
pub mod slow_subscribers;
mod source_loop;
pub mod source_thread;
mod timeline;
mod window_cutter;
pub mod worth;
