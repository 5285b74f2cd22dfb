//! Names of ZFS datasets by path, for single operations.

use crate::mounts::Mounts;
use std::time::{Duration, Instant};

/// Mounted datasets.
#[derive(Debug, Default)]
pub struct Datasets {
    read: Option<Instant>,
    mounts: Mounts,
}

/// Mounts change seldom, and a name that is a moment old does no harm.
const FRESH: Duration = Duration::from_secs(5);

impl Datasets {
    /// The dataset that a path is on; `None` where that is another file system.
    pub fn of(&mut self, path: &str) -> Option<&str> {
        if self.read.is_none_or(|at| at.elapsed() > FRESH) {
            // Without ZFS there is nothing to look through for each operation.
            let all = Mounts::read();
            let zfs = all.iter().any(|m| m.fs == "zfs");
            self.mounts = if zfs { all } else { Mounts::default() };
            self.read = Some(Instant::now());
        }
        on(&self.mounts, path)
    }
}

fn on<'a>(mounts: &'a Mounts, path: &str) -> Option<&'a str> {
    let mount = mounts.on(path).filter(|m| m.fs == "zfs")?;
    Some(&mount.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_on_a_dataset_only_where_zfs_is_mounted_nearest_above_it() {
        let m = Mounts::parse_mountinfo(
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             40 22 0:40 / /tank rw - zfs tank rw,xattr\n\
             42 40 8:2 / /tank/other rw - xfs /dev/sdb rw\n",
        );
        assert_eq!(on(&m, "/tank/x"), Some("tank"));
        assert_eq!(on(&m, "/tank/other/x"), None);
        assert_eq!(on(&m, "/srv"), None);
    }
}
