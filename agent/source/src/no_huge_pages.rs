//! A process without transparent huge pages, on hosts that give them to all processes (`/sys/kernel/mm/transparent_hugepage/enabled` is
//! `always`).
//!
//! The agent touches a few pages of many areas. A huge page makes 2 MiB resident for one of them: at the first touch, or later, when the
//! kernel's khugepaged finds an area with room for one. The allocator refuses huge pages for the memory that it hands out, but not for its
//! own bookkeeping, so that the process refuses them for everything.

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};
use std::sync::atomic::{AtomicBool, Ordering};

/// True if the parent of this process had refused them already.
static INHERITED: AtomicBool = AtomicBool::new(false);

/// Initializer of every program that this crate is linked into. It calls [`refuse`] before the first allocation: functions with a number
/// come before all others (GNU ld, "Initialization Functions"), the allocator's included. Children inherit the setting (prctl(2),
/// `PR_SET_THP_DISABLE`), so that the process that serves HTTP has no huge pages either.
#[used]
// SAFETY: the section holds addresses of functions that may be called without arguments before `main`. `refuse` reads none,
// and allocates nothing.
#[unsafe(link_section = ".init_array.00100")]
static BEFORE_MAIN: extern "C" fn() = refuse;

extern "C" fn refuse() {
    INHERITED.store(
        transparent_huge_pages_are_disabled().unwrap_or(false),
        Ordering::Relaxed,
    );
    set(true);
}

/// Accepts huge pages again, unless the parent of this process had refused them: for a process that starts others, which inherit the
/// setting.
pub fn accept() {
    if !INHERITED.load(Ordering::Relaxed) {
        set(false);
    }
}

fn set(refused: bool) {
    // If that is not allowed, the process runs as well, and takes more memory.
    let _ = disable_transparent_huge_pages(refused);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_refused_before_main_and_can_be_taken_again() {
        let refused = || transparent_huge_pages_are_disabled().expect("Linux tells");
        assert!(refused());
        accept();
        assert_eq!(refused(), INHERITED.load(Ordering::Relaxed));
        refuse();
        assert!(refused());
        // A process that inherits the setting from this one keeps refusing.
        refuse();
        accept();
        assert!(refused());
    }
}
