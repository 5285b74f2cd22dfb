//! Privileges of illumos: those that trace the kernel are left to the children. A process may use its permitted set, and the programs that
//! it executes get its inheritable set. The agent therefore gives up the former and keeps the latter.

/// Privileges that `dtrace` needs beside the basic ones.
#[cfg(target_os = "illumos")]
const NAMES: &std::ffi::CStr = c"dtrace_kernel,dtrace_proc,dtrace_user";

/// Sentence on the privileges that this process keeps.
pub fn kept(root: bool) -> &'static str {
    match root {
        true => "kept all privileges: root has them anyway",
        false => {
            "left dtrace_kernel, dtrace_proc and dtrace_user to the scripts: the agent itself cannot trace"
        }
    }
}

/// Gives up these privileges in this process, but not for its children. Root keeps them: programs that it executes would get them all the
/// same.
///
/// # Errors
/// Fails if the system refuses.
#[cfg(target_os = "illumos")]
pub fn leave_to_children() -> anyhow::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    system::turn_off(NAMES, c"Permitted").map_err(|e| {
        anyhow::anyhow!(
            "setppriv refuses to give up {}: {e}",
            NAMES.to_string_lossy()
        )
    })
}

/// Privileges that a process which only answers on open sockets does not need; the other basic privileges stay.
#[cfg(target_os = "illumos")]
const REST: &std::ffi::CStr =
    c"dtrace_kernel,dtrace_proc,dtrace_user,file_link_any,file_write,proc_exec,proc_fork,proc_info,proc_session";

/// Gives up the privileges to start processes, look at others and write files.
///
/// # Errors
/// Fails if the system refuses.
#[cfg(target_os = "illumos")]
pub fn give_up_the_rest() -> anyhow::Result<()> {
    for set in [c"Inheritable", c"Limit", c"Permitted"] {
        system::turn_off(REST, set).map_err(|e| {
            anyhow::anyhow!(
                "setppriv refuses to give up {}: {e}",
                REST.to_string_lossy()
            )
        })?;
    }
    Ok(())
}

#[cfg(target_os = "illumos")]
mod system {
    use std::ffi::{CStr, c_char, c_int};
    use std::io::Error;

    /// `priv_set_t`, of a size that the system knows.
    #[repr(C)]
    struct Set {
        _hidden: [u8; 0],
    }

    /// `PRIV_OFF` of sys/priv.h.
    const OFF: c_int = 1;

    unsafe extern "C" {
        fn priv_str_to_set(
            names: *const c_char,
            separators: *const c_char,
            end: *mut *const c_char,
        ) -> *mut Set;
        fn setppriv(op: c_int, which: *const c_char, set: *const Set) -> c_int;
        fn priv_freeset(set: *mut Set);
    }

    /// Turns these privileges off in one of the sets of this process.
    pub fn turn_off(names: &CStr, which: &CStr) -> std::io::Result<()> {
        // SAFETY: both strings end with a zero and outlive the call, which accepts a null pointer in place of `end`.
        let set = unsafe { priv_str_to_set(names.as_ptr(), c",".as_ptr(), std::ptr::null_mut()) };
        if set.is_null() {
            return Err(Error::last_os_error());
        }
        // SAFETY: the set is one that the library has just made, and the name ends with a zero.
        let result = match unsafe { setppriv(OFF, which.as_ptr(), set) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        };
        // SAFETY: no other code has the set any more.
        unsafe { priv_freeset(set) };
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_names_each_privilege_of_the_service() {
        let said = kept(false);
        for name in ["dtrace_kernel", "dtrace_proc", "dtrace_user"] {
            assert!(said.contains(name) && !kept(true).contains(name));
        }
    }
}
