//! Which build this is.

/// Release of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Git commit it was built from; `unknown` outside a git checkout.
pub const REVISION: &str = env!("NFSCOPE_REVISION");
