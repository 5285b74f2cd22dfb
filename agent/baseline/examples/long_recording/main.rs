//! Writes recordings of a busy server's whole day into a new store: `long_recording STORE NAME...`.
//!
//! The bench compares two of them. Each name has a seed of its own, so that the recordings differ and every run makes the
//! same ones.

#[allow(missing_docs)]
mod day;

use std::path::Path;

use anyhow::{Result, bail};
use nfscope_baseline::store::Store;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((store, names)) = arguments
        .split_first()
        .filter(|(_, names)| !names.is_empty())
    else {
        bail!("usage: long_recording STORE NAME...");
    };
    let mut store = Store::create(Path::new(store))?;
    for (name, seed) in names.iter().zip(1..) {
        store.put(&day::recording(name, seed, day::DAY))?;
    }
    Ok(())
}
