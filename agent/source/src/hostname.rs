//! Name of this host.

/// This host's name.
pub fn own_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
