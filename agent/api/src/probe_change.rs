//! `nfscope detach` and `nfscope attach`: the protocol between the command and the running agent, and its sockets.
//!
//! The socket is a Unix socket in a directory that only root and the agent may write to. It is named by the port that the agent serves on.
//! An agent that serves on several ports has a name for each. No other host can reach the socket, and the kernel tells each side which
//! process and user the other one is.
//!
//! A request is a line such as `detach zfs btrfs`. The answer is a line `ok` or `error`, and then text.

use std::path::{Path, PathBuf};

/// A change of the attached probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// See [`nfscope_source::Source::detach`].
    Detach,
    /// See [`nfscope_source::Source::attach`].
    Attach,
}

impl Change {
    /// Word of the protocol.
    pub fn word(self) -> &'static str {
        match self {
            Change::Detach => "detach",
            Change::Attach => "attach",
        }
    }

    /// Change that a word names.
    pub fn of(word: &str) -> Option<Change> {
        [Change::Detach, Change::Attach]
            .into_iter()
            .find(|c| c.word() == word)
    }
}

/// Variable in which systemd names a service's directory (`RuntimeDirectory=`), for both sides.
const VARIABLE: &str = "RUNTIME_DIRECTORY";

/// Default directory of the sockets.
pub const DIRECTORY: &str = match cfg!(target_os = "linux") {
    true => "/run/nfscope",
    false => "/var/run/nfscope",
};

/// Directory of the sockets of this host's agents.
pub fn directory() -> PathBuf {
    let given = std::env::var(VARIABLE).ok();
    // The first of several directories is nfscope's own.
    let first = given.as_deref().and_then(|all| all.split(':').next());
    let first = first.filter(|path| path.starts_with('/'));
    first.unwrap_or(DIRECTORY).into()
}

/// Socket of the agent that serves on this port.
pub fn socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!("control-{port}.sock"))
}

/// Port of the agent that has a socket of this name.
pub fn port(name: &str) -> Option<u16> {
    let number = name.strip_prefix("control-")?.strip_suffix(".sock")?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_named_by_ports() {
        let path = socket(Path::new("/run/x"), 9943);
        assert_eq!(path, Path::new("/run/x/control-9943.sock"));
        assert_eq!(port("control-9943.sock"), Some(9943));
        for odd in ["control-.sock", "control-99999.sock", "9943", "control-1"] {
            assert_eq!(port(odd), None, "{odd}");
        }
    }
}
