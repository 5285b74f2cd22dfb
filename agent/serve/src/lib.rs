//! The agent: it reads the source, and keeps windows and their history. A process without privileges answers over HTTP.

#![forbid(unsafe_code)]

pub mod endpoints;
pub mod exposition;
pub mod http;
pub mod names;
pub mod service;
