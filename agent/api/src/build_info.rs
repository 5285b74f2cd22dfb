//! Which build this is.

/// Release of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Git commit it was built from; `unknown` outside a git checkout.
pub const REVISION: &str = env!("NFSCOPE_REVISION");
/// Both, as `--version` prints them.
pub const VERSION_AND_REVISION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("NFSCOPE_REVISION"),
    ")"
);
