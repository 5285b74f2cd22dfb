//! NFS versions measured beside each other on a client: mounts, counters, loads and blocks. `nfscope-baseline` compares them.

pub mod client;
pub mod counters;
pub mod export;
pub mod fresh_open;
pub mod kind;
pub mod local_load;
pub mod mount;
pub mod mountstats;
pub mod server_counts;
pub mod site;

pub use kind::Kind;
