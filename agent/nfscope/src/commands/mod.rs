//! One file a command: what it does, from flags to output.

pub mod agent;
pub mod baseline;
pub mod check;
mod compare;
pub mod config;
pub mod diagnose;
pub mod experiment;
mod experiment_file;
mod experiment_plans;
mod experiment_run;
mod experiment_shell;
pub mod metrics;
pub mod record;
pub mod record_session;
pub mod slow;
mod slow_stream;
pub mod slow_table;
pub mod top;
pub mod what_if;
pub mod workload;
