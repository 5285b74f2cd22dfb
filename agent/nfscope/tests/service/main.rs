//! The service against peers: a program of its own, because it measures its own memory.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../fixture/mod.rs"]
#[allow(dead_code)]
mod fixture;
mod slow;
mod web;
