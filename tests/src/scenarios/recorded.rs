//! Recorded windows: measurements of an agent in each scenario, kept in `tests/windows/<kernel>/<scenario>.json.gz`, so that a
//! diagnosis is judged without a machine.
//!
//! A file is gzip of the JSON of a window. Its header's comment is a digest of every input that could change the window. `make test`
//! plays a scenario again if its digest differs; `lab scenarios --write` writes its window anew.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nfscope_model::{Snapshot, Window};
use serde::{Deserialize, Serialize};

use super::scenario::Scenario;
use crate::digest::{sha256, sources};
use crate::kernel::Kernel;
use crate::stamped;

/// Command that makes a missing window.
const MADE_BY: &str = "lab scenarios --write";

/// Contents of a file.
#[derive(Serialize, Deserialize)]
struct Recorded {
    length: Duration,
    delta: Snapshot,
}

/// The file of a scenario's window.
pub fn file(kernel: Kernel, scenario: &str) -> PathBuf {
    folder(kernel).join(format!("{scenario}.json.gz"))
}

/// The folder of a kernel's windows.
pub fn folder(kernel: Kernel) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.join("windows").join(kernel.name())
}

/// Writes the measured window of a scenario.
///
/// # Errors
/// Fails if the kernel is not unpacked, or if a source or the file cannot be read or written.
pub fn write(kernel: Kernel, scenario: &Scenario, window: &Window) -> Result<()> {
    let path = file(kernel, &scenario.name);
    let mut gzip = stamped::create(&path, digest(kernel, scenario)?)?;
    let recorded = Recorded {
        length: window.length,
        delta: window.delta.clone(),
    };
    serde_json::to_writer(&mut gzip, &recorded)?;
    gzip.finish()?;
    Ok(())
}

/// Reads the window of a scenario.
///
/// # Errors
/// Fails if there is no file, or if it holds no window.
pub fn read(kernel: Kernel, scenario: &str) -> Result<Window> {
    let path = file(kernel, scenario);
    let mut text = String::new();
    stamped::open(&path, MADE_BY)?
        .read_to_string(&mut text)
        .with_context(|| format!("reading {}", path.display()))?;
    let recorded: Recorded =
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    Ok(Window {
        length: recorded.length,
        delta: recorded.delta,
    })
}

/// True if a machine would measure the recorded window of a scenario again: none of its inputs has changed since.
///
/// # Errors
/// Fails if the kernel is not unpacked, or if a source cannot be read.
pub fn is_fresh(kernel: Kernel, scenario: &Scenario) -> Result<bool> {
    let path = file(kernel, &scenario.name);
    stamped::has(&path, &digest(kernel, scenario)?, MADE_BY)
}

/// SHA-256 of the sources, the kernel's release, and the scenario's server, load and fault. Its `[diagnosis]` is left out: a window
/// does not depend on the expected findings.
fn digest(kernel: Kernel, scenario: &Scenario) -> Result<String> {
    let Scenario {
        server,
        load,
        clients_first,
        fault,
        seconds,
        ..
    } = scenario;
    let played = format!("{server:?} {load:?} {clients_first} {fault:?} {seconds}");
    Ok(sha256(&[sources()?, &kernel.release()?, &played]))
}
