//! `nfscope detach` and `nfscope attach`: what the command and the running agent say to each other, and where.
//!
//! A Unix socket in a directory that only root and the agent may write to, named by the port that the agent serves on. An agent
//! that serves on several ports has a name for each. Nobody on another host can reach it, and the kernel tells each side who the
//! other is. A request is a line `detach zfs btrfs`, the answer a line `ok` or `error` and then text.

use std::path::{Path, PathBuf};

/// To detach probes, or to attach them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// See [`nfscope_source::Source::detach`].
    Detach,
    /// See [`nfscope_source::Source::attach`].
    Attach,
}

impl Change {
    /// The word that asks for it.
    pub fn word(self) -> &'static str {
        match self {
            Change::Detach => "detach",
            Change::Attach => "attach",
        }
    }

    /// What a word asks for.
    pub fn of(word: &str) -> Option<Change> {
        [Change::Detach, Change::Attach]
            .into_iter()
            .find(|c| c.word() == word)
    }
}

/// Where systemd has made a directory for a service (`RuntimeDirectory=`), for both sides.
const VARIABLE: &str = "RUNTIME_DIRECTORY";

/// Where sockets lie.
pub const DIRECTORY: &str = match cfg!(target_os = "linux") {
    true => "/run/nfscope",
    false => "/var/run/nfscope",
};

/// Where the sockets of this host's agents lie.
pub fn directory() -> PathBuf {
    let given = std::env::var(VARIABLE).ok();
    // Of several the first one is ours.
    let first = given.as_deref().and_then(|all| all.split(':').next());
    let first = first.filter(|path| path.starts_with('/'));
    first.unwrap_or(DIRECTORY).into()
}

/// The socket of the agent that serves on this port.
pub fn socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!("control-{port}.sock"))
}

/// The port that the agent with a socket of this name serves on.
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
