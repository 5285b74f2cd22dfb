//! The directory that a workload runs in: its file system, its free space, and a directory below it for the files.

use anyhow::{Context, bail};
use nfscope_source::lossless;
use nfscope_source::mounts::{Mount, Mounts};
use serde::Serialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// File system of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSystem {
    /// Type: `nfs`, `nfs4`, `ext4` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    /// Version of the NFS protocol; `None` where it is no NFS mount.
    pub version: Option<String>,
    /// Source of the mount.
    pub source: String,
}

impl FileSystem {
    fn of(mount: &Mount) -> FileSystem {
        let nfs = matches!(mount.fs.as_str(), "nfs" | "nfs4");
        FileSystem {
            kind: mount.fs.clone(),
            version: mount.option("vers").filter(|_| nfs),
            source: mount.source.clone(),
        }
    }

    /// Name as text: `NFS 4.2 of nfs1:/export`.
    pub fn name(&self) -> String {
        match &self.version {
            Some(version) => format!("NFS {version} of {}", self.source),
            None => format!("{} of {}", self.kind, self.source),
        }
    }
}

/// The directory's canonical path and its file system; `None` where the mount table does not have it.
///
/// # Errors
/// When there is no such directory.
pub fn locate(dir: &Path) -> anyhow::Result<(PathBuf, Option<FileSystem>)> {
    let real = fs::canonicalize(dir)
        .with_context(|| format!("cannot use {}; fix: mount an export there", dir.display()))?;
    if !real.is_dir() {
        bail!(
            "{} is not a directory; fix: name one with --dir",
            dir.display()
        );
    }
    let mounts = Mounts::read();
    let mount = mounts.on(&lossless::of_path(&real));
    let file_system = mount.map(FileSystem::of);
    Ok((real, file_system))
}

/// Checks the free space.
///
/// # Errors
/// When fewer bytes are free for this user than a data set needs.
pub fn check_space(dir: &Path, needs: u64) -> anyhow::Result<()> {
    let stat = rustix::fs::statvfs(dir)
        .with_context(|| format!("cannot read the free space of {}", dir.display()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free < needs {
        bail!(
            "{} has {} free and the files need {}; fix: free some space, or use a smaller --size",
            dir.display(),
            mebibytes(free),
            mebibytes(needs)
        );
    }
    Ok(())
}

/// Mebibytes as text, rounded down: `64 MiB`.
pub fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// A directory of a run's own; removed when it is dropped, unless it is to be kept.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    keep: bool,
}

impl WorkDir {
    /// Makes `nfscope-workload-<name>`, or reuses one that was kept.
    ///
    /// # Errors
    /// When it cannot be made, or is there and not to be used.
    pub fn make(dir: &Path, name: &str, keep: bool) -> anyhow::Result<WorkDir> {
        let path = dir.join(format!("nfscope-workload-{name}"));
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                // A symbolic link could lead anywhere, and everything in the directory will be removed later.
                let real = path.symlink_metadata().is_ok_and(|m| m.is_dir());
                if !keep || !real {
                    bail!(
                        "{0} exists, from a run in progress or one with --keep; fix: wait for it, reuse it with --keep, or rm -r {0}",
                        path.display()
                    );
                }
            }
            Err(e) => {
                return Err(e).with_context(|| {
                    format!(
                        "cannot create {}; fix: run as a user who may write there (NFS exports squash root unless no_root_squash)",
                        path.display()
                    )
                });
            }
        }
        Ok(WorkDir { path, keep })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path for fio's option `directory`, with colons escaped: fio takes a colon as the separator of a list.
    pub fn for_fio(&self) -> String {
        self.path.display().to_string().replace(':', "\\:")
    }

    /// Removes the directory and its files, unless they are to be kept.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn remove(mut self) -> anyhow::Result<()> {
        let keep = std::mem::replace(&mut self.keep, true);
        if keep {
            return Ok(());
        }
        fs::remove_dir_all(&self.path).with_context(|| {
            let path = self.path.display();
            format!("cannot remove the files; fix: rm -r {path}")
        })
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
        27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        50 27 0:50 / /mnt/four rw,relatime shared:1 - nfs4 nfs1:/ rw,vers=4.2,rsize=1048576\n\
        51 27 0:51 / /mnt/three rw,relatime - nfs nfs1:/srv/a\\040b rw,vers=3,rsize=1048576\n";

    #[test]
    fn a_directory_and_its_mount() {
        let mounts = Mounts::parse_mountinfo(TABLE);
        let name = |path| FileSystem::of(mounts.on(path).unwrap()).name();
        assert_eq!(name("/mnt/four/x"), "NFS 4.2 of nfs1:/");
        assert_eq!(name("/mnt/three"), "NFS 3 of nfs1:/srv/a b");
        assert_eq!(name("/mnt"), "ext4 of /dev/vda");
        assert_eq!(FileSystem::of(mounts.on("/mnt").unwrap()).version, None);
    }

    #[test]
    fn room_is_what_the_directory_has() {
        assert!(check_space(Path::new("/"), 0).is_ok());
        let why = check_space(Path::new("/"), u64::MAX)
            .unwrap_err()
            .to_string();
        assert!(why.contains("smaller --size"), "{why}");
    }
}
