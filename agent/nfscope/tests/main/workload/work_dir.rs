//! Working directory of one test.

use std::path::{Path, PathBuf};

/// Directory that is removed when it is dropped.
pub struct WorkDir(PathBuf);

impl WorkDir {
    pub fn new(name: &str) -> WorkDir {
        // Directory outside of /tmp, which may be a tmpfs without direct I/O. The colon in its name must not make fio take it for a list.
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
