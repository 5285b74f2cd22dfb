//! Operations that hold the lock of a directory or file while they change it.

use crate::breakdown::Breakdown;

/// Operations that hold the lock of a directory while they change it (fs/namei.c, `inode_lock` of the parent).
pub const DIRECTORY_CHANGES: [&str; 8] = [
    "create", "mkdir", "symlink", "mknod", "remove", "rmdir", "rename", "link",
];
/// Operations that hold the lock of a file while they change it (fs/open.c, `notify_change`; the `write_iter` of file systems).
pub const FILE_CHANGES: [&str; 6] = [
    "write",
    "setattr",
    "allocate",
    "deallocate",
    "copy",
    "clone",
];

/// Operations that change a directory: an OPEN of NFSv4 makes files.
pub const CHANGES_OF_DIRECTORIES: [&str; 9] = {
    let mut all = ["open"; 9];
    let mut i = 0;
    while i < DIRECTORY_CHANGES.len() {
        all[i] = DIRECTORY_CHANGES[i];
        i += 1;
    }
    all
};

/// True for operations that change a directory or file.
pub fn is_change(op: &str) -> bool {
    DIRECTORY_CHANGES.contains(&op) || FILE_CHANGES.contains(&op)
}

/// Returns true if operations that held a lock for `held` seconds explain that others waited `waited` seconds for it. One thread holds the
/// lock at a time, so at most all other threads wait. Longer waits mean that a task outside of nfsd held the lock.
pub fn holders_explain(b: &Breakdown, waited: f64, held: f64) -> bool {
    held * (b.threads - 1.0).max(1.0) >= waited
}
