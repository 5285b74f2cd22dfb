//! The protocol between agent and clients: addresses, queries, lines.

#![forbid(unsafe_code)]

pub mod access;
pub mod address;
pub mod breakdown_line;
pub mod breakdown_query;
pub mod build_info;
pub mod findings_query;
pub mod fingerprint;
pub mod handover;
pub mod link;
pub mod live_window;
pub mod named_text;
pub mod probe_change;
pub mod query;
pub mod slow_filter;
pub mod slow_line;
pub mod stuck_query;
pub mod windows_query;
pub mod worth;
