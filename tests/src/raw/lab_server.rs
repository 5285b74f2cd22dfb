//! The server that is called: the one on this machine.

/// The port of every NFS server.
pub(super) const NFS_PORT: u16 = 2049;
/// What the lab's server exports.
pub(super) const EXPORT: &str = "/run/exp";
