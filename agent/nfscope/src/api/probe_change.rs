//! `nfscope detach` and `nfscope attach`: what the command and the running agent say to each other, and where.
//!
//! A Unix socket, named by the port that the agent serves on. On Linux it has no place in the file system (an abstract one,
//! unix(7)): nothing to clean up. Elsewhere it is a file in a directory of the agent's own. Nobody on another host can reach it,
//! and the kernel tells each side who the other is. A request is a line `detach zfs btrfs`, the answer a line `ok` or `error`
//! and then text.

use std::io;
use std::os::unix::net::SocketAddr;

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

/// What the socket is called in messages.
pub fn socket_name(port: u16) -> String {
    match cfg!(target_os = "linux") {
        true => format!("@nfscope-{port}"),
        false => format!("{DIRECTORY}/{port}"),
    }
}

/// Where sockets lie that need a place in the file system.
pub const DIRECTORY: &str = "/var/run/nfscope";

/// The address of the socket of the agent that serves on this port.
///
/// # Errors
/// When the system takes no such address.
#[cfg(target_os = "linux")]
pub fn address(port: u16) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(format!("nfscope-{port}"))
}

/// The address of the socket of the agent that serves on this port.
///
/// # Errors
/// When the system takes no such address.
#[cfg(not(target_os = "linux"))]
pub fn address(port: u16) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(socket_name(port))
}
