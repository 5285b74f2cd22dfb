//! Paths of the two programs that this source runs.

use std::env;
use std::ffi::OsString;

/// Names another `dtrace`. If it is set, this source is used on any operating system: a program with that name then plays the `dtrace` of
/// illumos.
pub const DTRACE: &str = "NFSCOPE_DTRACE";
/// Names another `kstat`, as [`DTRACE`] does.
pub const KSTAT: &str = "NFSCOPE_KSTAT";

/// Paths of the programs.
#[derive(Debug, Clone)]
pub struct Tools {
    /// `dtrace`
    pub dtrace: OsString,
    /// `kstat`
    pub kstat: OsString,
}

impl Tools {
    /// Programs that the environment names, or those of illumos; `None` on another operating system if the environment names none.
    pub fn find() -> Option<Tools> {
        let named = env::var_os(DTRACE).filter(|p| !p.is_empty());
        if named.is_none() && !cfg!(target_os = "illumos") {
            return None;
        }
        Some(Tools {
            dtrace: named.unwrap_or_else(|| "/usr/sbin/dtrace".into()),
            kstat: env::var_os(KSTAT).unwrap_or_else(|| "/usr/bin/kstat".into()),
        })
    }
}
