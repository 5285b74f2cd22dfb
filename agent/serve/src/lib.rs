//! The agent: it reads the source, keeps windows and their history, and answers over HTTP by a process without privileges.

#![forbid(unsafe_code)]

pub mod endpoints;
pub mod exposition;
pub mod http;
pub mod names;
pub mod service;
