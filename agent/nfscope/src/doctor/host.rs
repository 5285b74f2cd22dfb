//! Files of a host, each read when a rule asks for it.

use crate::doctor::answer::Answer;
use nfscope_model::host_report::Exported;
use nfscope_source::bounded::{self, PATIENCE};
use nfscope_source::{etab, lossless, mounts};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a file: the mounts, exports and connections of the largest servers have a few megabytes.
const MOST: u64 = 64 << 20;

/// Why something was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Path of a file that is not there.
    Absent(String),
    /// Reason why a file cannot be read.
    Denied(String),
}

impl Missing {
    /// The answer of a rule that needs it.
    pub fn answer(&self) -> Answer {
        match self {
            Missing::Absent(path) => Answer::unknown(
                format!("{path} is not there"),
                "start the NFS server, which brings these files; else this kernel does not have them",
            ),
            Missing::Denied(why) => Answer::unknown(why.clone(), "run `nfscope doctor` as root"),
        }
    }
}

/// The host that is examined.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
    /// Its exports and their logs.
    pub exported: Vec<Exported>,
    /// Output of `ss` about TCP connections to the port of NFS, or the reason why there is none.
    pub sockets: Result<String, String>,
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

    /// The host whose files lie below a folder.
    #[cfg(test)]
    pub fn below(root: &Path) -> Host {
        Host {
            root: root.to_owned(),
            exported: Vec::new(),
            sockets: Err("`ss` was not run".to_owned()),
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Result<String, Missing> {
        let place = self.place(path);
        // Only the kernel's own files answer at once, whatever disks and networks do.
        let read = match path.starts_with("/proc") || path.starts_with("/sys") {
            true => bounded::read_here(&place, MOST),
            false => bounded::read(&place, MOST),
        };
        read.map(|bytes| lossless::text(&bytes))
            .map_err(|e| missing(path, &e))
    }

    /// The number that a file has and nothing else.
    pub fn number(&self, path: &str) -> Result<u64, Missing> {
        let text = self.text(path)?;
        let not = |_| Missing::Denied(format!("{path} has no number: {:?}", text.trim()));
        text.trim().parse().map_err(not)
    }

    /// Names in a folder, in order.
    pub fn names(&self, path: &str) -> Result<Vec<String>, Missing> {
        let entries = std::fs::read_dir(self.place(path)).map_err(|e| missing(path, &e))?;
        let mut names: Vec<_> = entries
            .flatten()
            .map(|e| lossless::of_path(Path::new(&e.file_name())))
            .collect();
        names.sort();
        Ok(names)
    }

    /// The table of exports.
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
    // A driver without a value refuses the reading: the speed of a link that is down.
    match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => Missing::Absent(path.to_owned()),
        _ => Missing::Denied(format!("cannot read {path}: {e}")),
    }
}

/// Round trips are told by netlink alone, and `ss` of iproute2 asks it. It may take as long as a file of a slow disk.
fn sockets() -> Result<String, String> {
    let ask = || {
        let args = ["-Htni", "state", "established", "sport", "=", ":2049"];
        Command::new("ss").args(args).output()
    };
    match bounded::within(Path::new("ss"), PATIENCE, ask) {
        Ok(out) if out.status.success() => Ok(lossless::text(&out.stdout)),
        Ok(out) => Err(format!("`ss` failed ({})", out.status)),
        Err(e) => Err(format!("`ss` cannot be run: {e}")),
    }
}
