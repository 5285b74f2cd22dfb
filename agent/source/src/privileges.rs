//! What this process may do, and how little of it is kept: capabilities on Linux, nothing yet elsewhere.

#[cfg(target_os = "linux")]
pub use crate::linux::host::capabilities::{confine, drop_all, fact};
#[cfg(target_os = "linux")]
pub use crate::linux::load::maps::may_read_maps;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{confine, drop_all, fact, may_read_maps};

/// Checks that this process may measure. Programs that measure for it say so themselves.
///
/// # Errors
/// Names what is missing, and the ways to give it.
pub fn require() -> anyhow::Result<()> {
    if crate::illumos::Tools::find().is_some() {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    return crate::linux::host::capabilities::require();
    #[cfg(not(target_os = "linux"))]
    Ok(())
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use nfscope_model::host_report::Fact;

    /// What this process may do, for `nfscope check`.
    pub fn fact() -> Fact {
        Fact {
            name: "privileges".to_owned(),
            value: "not looked at on this operating system".to_owned(),
            ok: true,
            fix: String::new(),
        }
    }

    /// Keeps every privilege that the process was started with, and says so.
    ///
    /// # Errors
    /// Never.
    pub fn confine(
        _late_attach: bool,
        _still_reads: impl FnOnce() -> bool,
    ) -> anyhow::Result<String> {
        Ok("kept all privileges: nfscope drops none on this operating system".to_owned())
    }

    /// Drops nothing.
    ///
    /// # Errors
    /// Never.
    pub fn drop_all() -> anyhow::Result<()> {
        Ok(())
    }

    /// True: no operating system but Linux has BPF maps to refuse.
    pub fn may_read_maps() -> bool {
        true
    }
}
