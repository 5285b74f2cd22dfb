//! Version and revision of this build.

/// Release of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Git commit that it was built from; `unknown` outside a git checkout.
pub const REVISION: &str = env!("NFSCOPE_REVISION");
/// Version and revision, as `--version` prints them.
pub const VERSION_AND_REVISION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("NFSCOPE_REVISION"),
    ")"
);
