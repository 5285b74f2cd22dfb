//! Times an open() on a mount that knows nothing of the file yet.

use anyhow::Context;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Path of the file `depth` levels below a directory: `a/b/c/d/t`.
pub fn path(depth: u32) -> PathBuf {
    let names = ('a'..='z').take(depth as usize).map(String::from);
    names.chain(["t".to_owned()]).collect()
}

/// Makes the file at this depth.
///
/// # Errors
/// When it cannot be made.
pub fn make_file(dir: &Path, depth: u32) -> anyhow::Result<()> {
    let file = dir.join(path(depth));
    let made = file
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&file, "x\n"));
    made.with_context(|| format!("cannot create {}", file.display()))
}

/// Lists the mount's root, which is the first step of most users of a mount.
///
/// # Errors
/// When it cannot be read.
pub fn list(root: &Path) -> anyhow::Result<usize> {
    let names = fs::read_dir(root).with_context(|| format!("cannot list {}", root.display()))?;
    Ok(names.count())
}

/// Opens the file: returns the time of the open() alone, and the open file.
///
/// # Errors
/// When it cannot be opened.
pub fn open(root: &Path, depth: u32) -> anyhow::Result<(Duration, File)> {
    let file = root.join(path(depth));
    let began = Instant::now();
    let opened = File::open(&file);
    let took = began.elapsed();
    Ok((
        took,
        opened.with_context(|| format!("cannot open {}", file.display()))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_at_each_depth() {
        assert_eq!(path(0), Path::new("t"));
        assert_eq!(path(4), Path::new("a/b/c/d/t"));
        for depth in 0..=8 {
            let dir = tempfile::tempdir().unwrap();
            make_file(dir.path(), depth).unwrap();
            assert_eq!(list(dir.path()).unwrap(), 1);
            assert!(open(dir.path(), depth).is_ok());
        }
    }
}
