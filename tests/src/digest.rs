//! Digests of sources: what was measured in a machine is measured again once one of the sources changes that it depends on.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result};

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

/// SHA-256 of these texts, in hexadecimal digits.
pub(crate) fn sha256(parts: &[&str]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(part.as_bytes());
        context.update(&[0]);
    }
    let digest = context.finish();
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// A digest of all [`INPUTS`], which are read once.
pub(crate) fn sources() -> Result<&'static str> {
    static DIGEST: OnceLock<String> = OnceLock::new();
    if let Some(digest) = DIGEST.get() {
        return Ok(digest);
    }
    let digest = of_files(&INPUTS)?;
    Ok(DIGEST.get_or_init(|| digest))
}

/// A digest of these files and folders, from the root of the sources.
pub(crate) fn of_files(inputs: &[&str]) -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the root of the sources")?;
    let mut parts = Vec::new();
    for input in inputs {
        add(root, Path::new(input), &mut parts)?;
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(sha256(&parts))
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
