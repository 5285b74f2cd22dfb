//! The service against peers: a program of its own, because it measures its own memory.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../fixture/mod.rs"]
#[allow(dead_code)]
mod fixture;
mod names;
mod slow;
mod web;
mod windows;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by tests that measure the memory of this process, and by those that take much of it.
fn memory() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
