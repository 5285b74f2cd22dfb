//! Finds a file of an export by its inode number.
//!
//! The search reads the names of a tree, directory by directory, those near the top first. That takes time on a large tree or a slow disk,
//! so that the search has a time limit.

use crate::lossless;
use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The file or directory with this inode number in an export ([`lossless`] text), and whether it is a directory; `None` where it was not found in that
/// time, or by a user who may not read its directory. A thread that the file system keeps longer than that is left behind.
pub fn find(export: &str, inode: u64, patience: Duration) -> Option<(PathBuf, bool)> {
    let root = lossless::path(export);
    let (sender, found) = channel();
    std::thread::Builder::new()
        .name("file-path".to_owned())
        .spawn(move || {
            // The caller may be gone.
            let _ = sender.send(walk(&root, inode, Instant::now() + patience));
        })
        .ok()?;
    found.recv_timeout(patience).ok()?
}

fn walk(root: &Path, inode: u64, until: Instant) -> Option<(PathBuf, bool)> {
    let device = fs::symlink_metadata(root).ok()?.dev();
    let mut directories = VecDeque::from([root.to_owned()]);
    while let Some(directory) = directories.pop_front() {
        // A directory that is gone or must not be read hides its own entries, and no others.
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if Instant::now() > until {
                return None;
            }
            let is_directory = entry.file_type().is_ok_and(|t| t.is_dir());
            if !is_directory && entry.ino() != inode {
                continue;
            }
            // Other file systems may have a file of the same number. A mount point has another inode number than its directory entry.
            let Some(found) = entry.metadata().ok().filter(|m| m.dev() == device) else {
                continue;
            };
            if found.ino() == inode {
                return Some((entry.path(), is_directory));
            }
            if is_directory {
                directories.push_back(entry.path());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_directories_are_found_by_their_numbers() {
        let root = std::env::temp_dir().join(format!("nfscope-find-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        let number = |path: &str| fs::symlink_metadata(root.join(path)).unwrap().ino();
        let long = Duration::from_secs(60);
        let find = |inode, patience| find(root.to_str().unwrap(), inode, patience);
        assert_eq!(
            find(number("a/b/file"), long),
            Some((root.join("a/b/file"), false))
        );
        assert_eq!(find(number("a/b"), long), Some((root.join("a/b"), true)));
        let gone = number("a/b/file");
        fs::remove_file(root.join("a/b/file")).unwrap();
        assert_eq!(find(gone, long), None);
        assert_eq!(find(number("a/b"), Duration::ZERO), None);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(find(1, long), None);
    }
}
