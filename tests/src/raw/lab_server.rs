//! The called server: the one on this machine.

/// The port of every NFS server.
pub(super) const NFS_PORT: u16 = 2049;
/// Export of the lab's server.
pub(super) const EXPORT: &str = "/run/exp";
