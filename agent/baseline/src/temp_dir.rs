//! A directory for files that nobody is to find afterwards.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Removed with all in it when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// In the system's directory for such files.
    #[cfg(test)]
    pub fn new(word: &str) -> io::Result<Scratch> {
        Scratch::within(&std::env::temp_dir(), word)
    }

    /// In this directory.
    pub fn within(parent: &Path, word: &str) -> io::Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(".nfscope-{word}-{}-{n}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind takes room and nothing else.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
