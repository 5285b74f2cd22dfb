//! What agent and clients say to each other: addresses, queries, lines.

pub mod build_info;
pub mod endpoint;
#[cfg(test)]
pub mod example;
pub mod probe_change;
pub mod slow_filter;
pub mod slow_line;
pub mod worth;
