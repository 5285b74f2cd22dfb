//! The HTTP side: admission of connections, their time limits and their memory.
//!
//! Whatever a peer does, the agent goes on, scrapes are answered, and memory stays bounded. Every connection is accepted at once, and may
//! be evicted ([`places`]). A header is small, each connection has a time limit and one request, and connections share bodies. The few
//! answers that go on are cut off when their peer stops reading.

mod admission;
mod agent_link;
mod basic_auth;
mod configuration;
mod hosts;
mod large_answers;
mod listeners;
mod ndjson_stream;
mod page_assets;
pub mod page_file;
mod place;
mod places;
pub mod process;
mod refusals;
mod response;
mod routes;
mod server;
mod web_config;

pub use agent_link::AgentLink;
pub use configuration::{Configuration, Sandbox};
pub use hosts::of_this_host;
pub use listeners::{from_systemd, listen};
pub use places::PEER_STREAMS;
pub use server::Server;
pub use web_config::WebConfig;
