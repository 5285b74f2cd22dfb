//! A small NFS client that sends wrong calls on purpose: replays, garbage, illegal operations, broken sessions. No kernel client
//! sends them, and every server gets them. It counts its calls, so that a test can check the counts of others.

pub mod at_once;
mod callback;
mod client;
mod client_load;
pub mod clients;
pub mod delegation;
pub mod hold;
mod lab_server;
pub mod layouts;
mod operation;
pub mod pipeline;
pub mod repeat;
pub mod rpc;
mod scenarios;
mod sent;
mod v3;
mod v4;
mod wire;

pub use scenarios::{SCENARIOS, run};
pub use sent::Sent;
