//! A process without transparent huge pages, on hosts that give them to everybody
//! (`/sys/kernel/mm/transparent_hugepage/enabled` is `always`).
//!
//! The agent touches a few pages of many areas. A huge page makes 2 MiB resident for one of them: at the first touch, or later,
//! when the kernel's khugepaged finds an area with room for one. The allocator refuses them for what it hands out, and not for
//! its own books, so that the process refuses them for everything.

/// Every program that this crate is linked into calls [`refuse`] before its first allocation: functions with a number come
/// before all others (GNU ld, "Initialization Functions"), the allocator's included. Children inherit it (prctl(2),
/// `PR_SET_THP_DISABLE`), so that the process that serves HTTP has no huge pages either.
#[used]
// SAFETY: the section holds addresses of functions that take nothing they would need, and `refuse` is one.
#[unsafe(link_section = ".init_array.00100")]
static BEFORE_MAIN: extern "C" fn() = refuse;

extern "C" fn refuse() {
    set(true);
}

/// Takes them again, for a process that starts others: what it measures is to be as it would be without it.
pub fn accept() {
    set(false);
}

fn set(refused: bool) {
    // A kernel without huge pages answers with an error, and gives none.
    // SAFETY: takes numbers alone, and allocates nothing.
    let _ = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, u64::from(refused), 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel says; `None` before Linux 5.0, and where it was built without huge pages.
    fn enabled() -> Option<bool> {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
        let line = status.lines().find(|l| l.starts_with("THP_enabled"))?;
        Some(line.ends_with('1'))
    }

    #[test]
    fn they_are_refused_before_main_and_can_be_taken_again() {
        assert_ne!(enabled(), Some(true));
        accept();
        assert_ne!(enabled(), Some(false));
        refuse();
        assert_ne!(enabled(), Some(true));
    }
}
