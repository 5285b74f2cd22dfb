//! Rights of this process, and the few that it keeps: capabilities on Linux, privileges on illumos.

#[cfg(target_os = "linux")]
pub use crate::linux::host::capabilities::{drop_all, fact};
#[cfg(target_os = "linux")]
pub use crate::linux::host::sandbox::{confine_stranger, hide_memory, leave_user, sandbox_fact};
#[cfg(target_os = "linux")]
pub use crate::linux::load::maps::may_read_maps;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{
    confine_stranger, drop_all, fact, hide_memory, leave_user, may_read_maps, sandbox_fact,
};

/// Command that runs this same program again, even if its file has been replaced meanwhile. If credentials belong to a process, it gives up
/// root; if they belong to a thread, [`leave_user`] has done so.
///
/// # Errors
/// Fails if the system does not say which program this is.
pub fn own_program() -> std::io::Result<std::process::Command> {
    #[cfg(target_os = "linux")]
    return Ok(std::process::Command::new("/proc/self/exe"));
    #[cfg(not(target_os = "linux"))]
    {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new(std::env::current_exe()?);
        if rustix::process::geteuid().is_root() {
            let nobody = elsewhere::NOBODY;
            command.uid(nobody).gid(nobody);
        }
        Ok(command)
    }
}

/// Checks that this process may measure. Programs that measure for it report missing rights themselves.
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

/// Reduces this thread to the rights that running needs, and returns them as text. Programs that measure for it need its rights whenever
/// they are started again.
///
/// # Errors
/// Fails if the kernel refuses to take capabilities away, which no sane one does.
pub fn confine(late_attach: bool, still_reads: impl FnOnce() -> bool) -> anyhow::Result<String> {
    if crate::illumos::Tools::find().is_some() {
        // Another system that plays illumos has no such privileges to leave to its children.
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
    use crate::confinement::{Confinement, Layer};
    use nfscope_model::host_report::Fact;

    /// Confinement of the process that serves HTTP, for `nfscope check`.
    pub fn sandbox_fact() -> Fact {
        Fact {
            name: "sandbox of HTTP".to_owned(),
            value: "a user of its own, and no privilege that it does not need".to_owned(),
            ok: true,
            fix: String::new(),
        }
    }

    /// Rights of this process, for `nfscope check`.
    pub fn fact() -> Fact {
        Fact {
            name: "privileges".to_owned(),
            value: "not looked at on this operating system".to_owned(),
            ok: true,
            fix: String::new(),
        }
    }

    /// Leaves the privileges that trace the kernel to the children on illumos. Elsewhere it drops nothing.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn drop_all() -> anyhow::Result<()> {
        #[cfg(target_os = "illumos")]
        crate::illumos::privileges::leave_to_children()?;
        Ok(())
    }

    /// Number of the unprivileged user and group of illumos.
    pub const NOBODY: u32 = 60001;

    /// Text on the user of the process that answers HTTP requests, which [`own_program`](super::own_program) sets.
    ///
    /// # Errors
    /// Never.
    pub fn leave_user() -> anyhow::Result<String> {
        Ok(match rustix::process::geteuid().is_root() {
            true => "as user nobody",
            false => "as the agent's own user",
        }
        .to_owned())
    }

    /// Does nothing: no protection of memory against processes of the same user is used on this system.
    ///
    /// # Errors
    /// Never.
    pub fn hide_memory() -> anyhow::Result<()> {
        Ok(())
    }

    /// Confines this process for good, as far as the system can, and returns the parts of the confinement.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn confine_stranger() -> anyhow::Result<Confinement> {
        #[cfg(target_os = "illumos")]
        crate::illumos::privileges::give_up_the_rest()?;
        let absent = || Layer::Absent("this operating system has none".to_owned());
        Ok(Confinement {
            user: match rustix::process::geteuid().is_root() {
                true => Layer::Refused("it runs as root".to_owned()),
                false => Layer::Holds,
            },
            seccomp: absent(),
            landlock: absent(),
        })
    }

    /// True: no operating system but Linux has BPF maps to refuse.
    pub fn may_read_maps() -> bool {
        true
    }
}
