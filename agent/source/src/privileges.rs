//! What this process may do, and how little of it is kept: capabilities on Linux, privileges on illumos.

#[cfg(target_os = "linux")]
pub use crate::linux::host::capabilities::{drop_all, fact};
#[cfg(target_os = "linux")]
pub use crate::linux::load::maps::may_read_maps;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{drop_all, fact, may_read_maps};

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

/// Reduces this thread to what running needs, and says what that is. Programs that measure for it need what it has, whenever they
/// are started again.
///
/// # Errors
/// When the kernel refuses to take capabilities away, which no sane one does.
pub fn confine(late_attach: bool, still_reads: impl FnOnce() -> bool) -> anyhow::Result<String> {
    if crate::illumos::Tools::find().is_some() {
        // Another system that plays illumos has no such privileges to leave to anybody.
        let root = rustix::process::geteuid().is_root() || !cfg!(target_os = "illumos");
        return Ok(crate::illumos::privileges::kept(root).to_owned());
    }
    #[cfg(target_os = "linux")]
    return crate::linux::host::capabilities::confine(late_attach, still_reads);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (late_attach, still_reads);
        Ok("kept all privileges: nfscope drops none on this operating system".to_owned())
    }
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

    /// On illumos leaves what traces the kernel to the children. Elsewhere drops nothing.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn drop_all() -> anyhow::Result<()> {
        #[cfg(target_os = "illumos")]
        crate::illumos::privileges::leave_to_children()?;
        Ok(())
    }

    /// True: no operating system but Linux has BPF maps to refuse.
    pub fn may_read_maps() -> bool {
        true
    }
}
