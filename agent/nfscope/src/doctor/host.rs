//! Files of a host, read on demand by the rules.

use crate::doctor::answer::Answer;
use nfscope_model::host_report::Exported;
use nfscope_source::bounded::{self, PATIENCE};
use nfscope_source::{etab, lossless, mounts};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most bytes of a file. Mounts, exports and connections of the largest servers take a few megabytes.
const MOST: u64 = 64 << 20;

/// Reason why a file was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The file does not exist; its path.
    Absent(String),
    /// The file needs privileges; the error.
    Denied(String),
    /// The file cannot be read for another reason; the error.
    Failed(String),
}

impl Missing {
    /// Answer of a rule that needs this file: unknown, with the way to make the file readable.
    pub fn answer(&self) -> Answer {
        match self {
            Missing::Absent(path) => Answer::unknown(
                format!("{path} is not there"),
                "start the NFS server, which brings these files; else this kernel does not have them",
            ),
            Missing::Denied(why) => Answer::unknown(why.clone(), "run `nfscope doctor` as root"),
            Missing::Failed(why) => Answer::unknown(
                why.clone(),
                "read it again; the kernel's log (`dmesg`) may have the reason",
            ),
        }
    }
}

/// Host under examination.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
    /// Exports of the host, and their logs.
    pub exported: Vec<Exported>,
    /// Output of `ss` about TCP connections to port 2049, or the reason why there is none.
    pub sockets: Result<String, NoSockets>,
}

impl Host {
    /// This host.
    pub fn this() -> Host {
        Host {
            root: PathBuf::from("/"),
            exported: nfscope_source::exports(),
            sockets: sockets(),
        }
    }

    /// Host whose files are below a directory.
    #[cfg(test)]
    pub fn below(root: &Path) -> Host {
        Host {
            root: root.to_owned(),
            exported: Vec::new(),
            sockets: Err(NoSockets {
                why: "`ss` was not run".to_owned(),
                how: AGAIN,
            }),
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Text of a file.
    pub fn text(&self, path: &str) -> Result<String, Missing> {
        let place = self.place(path);
        // Reads in /proc and /sys cannot block on a disk or a network. Others run with a time limit.
        let read = match path.starts_with("/proc") || path.starts_with("/sys") {
            true => bounded::read_here(&place, MOST),
            false => bounded::read(&place, MOST),
        };
        read.map(|bytes| lossless::text(&bytes))
            .map_err(|e| missing(path, &e))
    }

    /// Number that is the whole content of a file.
    pub fn number(&self, path: &str) -> Result<u64, Missing> {
        let text = self.text(path)?;
        let not = |_| Missing::Failed(format!("{path} has no number: {:?}", text.trim()));
        text.trim().parse().map_err(not)
    }

    /// Sorted names in a directory.
    pub fn names(&self, path: &str) -> Result<Vec<String>, Missing> {
        let entries = std::fs::read_dir(self.place(path)).map_err(|e| missing(path, &e))?;
        let mut names: Vec<_> = entries
            .flatten()
            .map(|e| lossless::of_path(Path::new(&e.file_name())))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Last component of a path after its symbolic links are resolved: `dm-0` for `/dev/mapper/data`.
    pub fn end_of(&self, path: &str) -> Option<String> {
        let end = std::fs::canonicalize(self.place(path)).ok()?;
        Some(lossless::of_path(Path::new(end.file_name()?)))
    }

    /// Text of the export table, /var/lib/nfs/etab.
    pub fn etab(&self) -> Result<String, Missing> {
        self.text(etab::ETAB)
    }

    /// Mounts of the host.
    pub fn mounts(&self) -> Result<mounts::Mounts, Missing> {
        Ok(mounts::Mounts::parse_mountinfo(
            &self.text(mounts::MOUNTINFO)?,
        ))
    }
}

fn missing(path: &str, e: &io::Error) -> Missing {
    // The info file of a client that has just left returns ENXIO (fs/nfsd/nfs4state.c, client_info_show()).
    if rustix::io::Errno::from_io_error(e) == Some(rustix::io::Errno::NXIO) {
        return Missing::Absent(path.to_owned());
    }
    let why = format!("cannot read {path}: {e}");
    match e.kind() {
        // Drivers return EINVAL for a value that does not exist, such as the speed of a link that is down.
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => Missing::Absent(path.to_owned()),
        io::ErrorKind::PermissionDenied => Missing::Denied(why),
        _ => Missing::Failed(why),
    }
}

/// Reason why round trips are not known, and the way to know them.
#[derive(Debug)]
pub struct NoSockets {
    pub why: String,
    pub how: &'static str,
}

const AGAIN: &str = "run it again while clients are connected";

/// Runs `ss` with a time limit. Round-trip times are available by netlink only, which `ss` of iproute2 queries.
fn sockets() -> Result<String, NoSockets> {
    let ask = || {
        let args = ["-Htni", "state", "established", "sport", "=", ":2049"];
        Command::new("ss").args(args).output()
    };
    match bounded::within(Path::new("ss"), PATIENCE, ask) {
        Ok(out) if out.status.success() => Ok(lossless::text(&out.stdout)),
        Ok(out) => Err(NoSockets {
            why: format!("`ss` failed ({})", out.status),
            how: AGAIN,
        }),
        Err(e) => Err(no_sockets(&e)),
    }
}

/// Reason why `ss` has no output. The default text of a timeout speaks of a file system, and `ss` reads none.
fn no_sockets(e: &io::Error) -> NoSockets {
    match e.kind() {
        io::ErrorKind::TimedOut => NoSockets {
            why: format!("`ss` did not answer within {} s", PATIENCE.as_secs()),
            how: AGAIN,
        },
        _ => NoSockets {
            why: format!("`ss` cannot be run: {e}"),
            how: "install iproute2, and run it again while clients are connected",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_advised_where_a_permission_is_missing_alone() {
        let of = |errno: rustix::io::Errno| missing("/f", &io::Error::from(errno));
        for errno in [rustix::io::Errno::ACCESS, rustix::io::Errno::PERM] {
            assert!(of(errno).answer().how.contains("as root"), "{errno}");
        }
        for errno in [rustix::io::Errno::IO, rustix::io::Errno::NOMEM] {
            assert!(matches!(of(errno), Missing::Failed(_)), "{errno}");
            assert!(!of(errno).answer().how.contains("as root"), "{errno}");
        }
    }

    #[test]
    fn a_client_that_left_is_absent() {
        for errno in [rustix::io::Errno::NOENT, rustix::io::Errno::NXIO] {
            let e = io::Error::from(errno);
            assert_eq!(missing("/f", &e), Missing::Absent("/f".into()));
        }
    }

    #[test]
    fn a_slow_ss_is_no_file_system_that_hangs() {
        let slow = io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer");
        let slow = no_sockets(&slow);
        assert_eq!(slow.why, "`ss` did not answer within 3 s");
        assert_eq!(slow.how, AGAIN, "a program that is there is not installed");
        let gone = no_sockets(&io::Error::from(io::ErrorKind::NotFound));
        assert!(gone.why.contains("cannot be run"), "{gone:?}");
        assert!(gone.how.contains("iproute2"), "{gone:?}");
    }
}
