//! Recorded windows: measurements of an agent in each scenario, kept in `tests/windows/<kernel>/<scenario>.json.gz`, so that a
//! diagnosis is judged without a machine.
//!
//! A file is gzip of the JSON of a window. Its header's comment is a digest of every input that could change the window. `make test`
//! plays a scenario again if its digest differs; `lab scenarios --write` writes its window anew.

use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};
use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use nfscope_model::{Snapshot, Window};
use serde::{Deserialize, Serialize};

use super::scenario::Scenario;
use crate::kernel::Kernel;

/// Files and folders, from the root of the sources, that can change a window: the probes, their reader, the model of a snapshot, and
/// the code of the machine and its load.
const INPUTS: [&str; 12] = [
    "probes/bpf",
    "probes/src",
    "agent/model/src",
    "agent/source/src",
    "tests/guest/in_memory.sh",
    "tests/guest/server.sh",
    "tests/src/cpu_hog.rs",
    "tests/src/load",
    "tests/src/qemu.rs",
    "tests/src/raw",
    "tests/src/scenarios/runner.rs",
    "tests/src/scenarios/window.rs",
];

/// Parts of [`INPUTS`] for illumos alone: they change no window of a machine of the lab.
const ELSEWHERE: [&str; 1] = ["agent/source/src/illumos"];

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

fn sha256(parts: &[&str]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(part.as_bytes());
        context.update(&[0]);
    }
    let digest = context.finish();
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// A digest of all [`INPUTS`], which are read once.
fn sources() -> Result<&'static str> {
    static DIGEST: OnceLock<String> = OnceLock::new();
    if let Some(digest) = DIGEST.get() {
        return Ok(digest);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the root of the sources")?;
    let mut parts = Vec::new();
    for input in INPUTS {
        add(root, Path::new(input), &mut parts)?;
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(DIGEST.get_or_init(|| sha256(&parts)))
}

/// Adds the name and the contents of a file, or of all files in a folder.
fn add(root: &Path, path: &Path, parts: &mut Vec<String>) -> Result<()> {
    let full = root.join(path);
    if ELSEWHERE.iter().any(|folder| path == Path::new(folder)) {
        return Ok(());
    }
    if full.is_dir() {
        let mut names = fs::read_dir(&full)
            .and_then(|entries| {
                entries
                    .map(|e| Ok(e?.file_name()))
                    .collect::<Result<Vec<_>, _>>()
            })
            .with_context(|| format!("reading {}", full.display()))?;
        names.sort();
        return names
            .iter()
            .try_for_each(|name| add(root, &path.join(name), parts));
    }
    let text = fs::read_to_string(&full).with_context(|| format!("reading {}", full.display()))?;
    let name = path.display().to_string();
    if !name.ends_with("_tests.rs") {
        parts.extend([name, compiled(&text)]);
    }
    Ok(())
}

/// Source without comments that fill a line, empty lines, and the tests at its end: none of these reaches a machine.
fn compiled(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next();
    let lines = text.unwrap_or_default().lines().map(str::trim);
    // Comments of Rust, of shell, and of C, where each line of a longer comment begins with a star.
    let is_comment = |line: &str| {
        let begins = ["//", "# ", "/*", "* ", "*/"];
        line == "*" || begins.iter().any(|b| line.starts_with(b))
    };
    let kept: Vec<_> = lines
        .filter(|line| !line.is_empty() && !is_comment(line))
        .collect();
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_or_a_test_makes_no_window_stale() {
        let source = "//! Docs.\n\n/// More.\nfn a() {}\n";
        let changed = "//! Other docs.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(compiled(source), compiled(changed));
        assert_ne!(compiled(source), compiled("fn a() { b() }\n"));
        let c = "/*\n * One.\n *\n * Two.\n */\nint a;\n";
        assert_eq!(compiled(c), compiled("/* Other. */\nint a;\n"));
    }

    #[test]
    fn every_input_of_the_digest_exists() {
        assert_eq!(sources().unwrap().len(), 64);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for path in ELSEWHERE {
            assert!(root.join(path).exists(), "{path}");
        }
    }
}
