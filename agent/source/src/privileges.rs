//! What this process may do, and how little of it is kept: capabilities on Linux, nothing yet elsewhere.

#[cfg(target_os = "linux")]
pub use crate::linux::host::capabilities::{confine, drop_all, fact, require};
#[cfg(target_os = "linux")]
pub use crate::linux::load::maps::may_read_maps;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{confine, drop_all, fact, may_read_maps, require};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use nfscope_model::host_report::Fact;

    /// Nothing is needed to measure nothing; [`start`](crate::start) says why.
    ///
    /// # Errors
    /// Never.
    pub fn require() -> anyhow::Result<()> {
        Ok(())
    }

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
