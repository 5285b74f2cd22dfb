//! Whether the recording process still runs.

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
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Start time of a process, in clock ticks since boot; `None` if it does not exist or is a zombie.
fn begun(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, including parentheses and blanks.
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

    #[test]
    fn this_one_is_and_others_are_not() {
        assert_eq!(alive(&this()), Some(std::process::id()));
        let other = this().replace(&boot().unwrap(), "another-boot");
        for gone in [other, this() + "0", String::new(), "x".to_owned()] {
            assert_eq!(alive(&gone), None, "{gone}");
        }
    }
}
