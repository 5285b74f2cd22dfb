//! A directory of a test's own.

use std::path::{Path, PathBuf};

/// Removed when it is dropped.
pub struct WorkDir(PathBuf);

impl WorkDir {
    pub fn new(name: &str) -> WorkDir {
        // Not /tmp, which may be a tmpfs without direct I/O. The colon is one that fio must not take for a list.
        let name = format!("workload: {name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        WorkDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn entries(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
