//! Checks whether the recording process still runs.

use std::fs;

/// An identifier of this process that no later process shares.
pub(super) fn this() -> String {
    let pid = std::process::id();
    let begun = begun(pid).unwrap_or_default();
    format!("{} {pid} {begun}", boot().unwrap_or_default())
}

/// The PID of the process with an identifier from [`this`], if it still runs.
pub(super) fn alive(identifier: &str) -> Option<u32> {
    let mut parts = identifier.split(' ');
    let (there, pid, when) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    (boot()? == there && begun(pid)? == when).then_some(pid)
}

fn boot() -> Option<String> {
    let id = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    Some(String::from_utf8(id).ok()?.trim().to_owned())
}

/// Start time of a process, in clock ticks since boot; `None` if it does not exist or is a zombie.
fn begun(pid: u32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name in parentheses may contain anything, including parentheses and bytes that are not UTF-8.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_name_that_is_not_utf8_hides_no_process() {
        let directory = std::env::temp_dir().join(format!("nfscope-begun-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let program = directory.join(std::ffi::OsStr::from_bytes(b"caf\xe9)"));
        // A copy that is still open for writing, in a process that another test has forked, cannot be executed.
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program)
            .arg("60")
            .spawn()
            .unwrap();
        let started = begun(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert!(started.is_some());
    }

    #[test]
    fn this_one_is_and_others_are_not() {
        assert_eq!(alive(&this()), Some(std::process::id()));
        let other = this().replace(&boot().unwrap(), "another-boot");
        for gone in [other, this() + "0", String::new(), "x".to_owned()] {
            assert_eq!(alive(&gone), None, "{gone}");
        }
    }
}
