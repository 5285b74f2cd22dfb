//! The HTTP service against its clients: a program of its own, because tests measure the memory of their process.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../fixture/mod.rs"]
#[allow(dead_code)]
mod fixture;
mod names;
mod slow;
mod web;
mod windows;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock for tests that measure the memory of this process, or take much of it.
fn memory() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
