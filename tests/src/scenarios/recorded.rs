//! Recorded windows: measurements of an agent in each scenario, kept in `tests/windows/<kernel>/<scenario>.json.gz`, so that a
//! diagnosis is judged without a machine.
//!
//! A file is gzip of the JSON of a window. Its header's comment is a digest of every input that could change the window. `make test`
//! plays a scenario again if its digest differs; `lab scenarios --write` writes its window anew.

use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use nfscope_model::{Snapshot, Window};
use serde::{Deserialize, Serialize};

use super::scenario::Scenario;
use crate::digest::{sha256, sources};
use crate::kernel::Kernel;

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
    fs::create_dir_all(folder(kernel))?;
    let out = fs::File::create(&path).with_context(|| format!("writing {}", path.display()))?;
    // The header has no time and no file name: the same window gives the same bytes.
    let mut gzip = GzBuilder::new()
        .comment(digest(kernel, scenario)?)
        .write(out, Compression::best());
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
    open(&path)?
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
    if !path.exists() {
        return Ok(false);
    }
    let gzip = open(&path)?;
    let header = gzip
        .header()
        .with_context(|| format!("{} is no gzip file", path.display()))?;
    Ok(header.comment() == Some(digest(kernel, scenario)?.as_bytes()))
}

fn open(path: &Path) -> Result<GzDecoder<BufReader<fs::File>>> {
    let file = fs::File::open(path).with_context(|| {
        format!(
            "{} is missing: lab scenarios --write makes it",
            path.display()
        )
    })?;
    Ok(GzDecoder::new(BufReader::new(file)))
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
