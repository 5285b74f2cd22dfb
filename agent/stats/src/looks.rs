//! Looks: interim analyses that decide whether a measurement may end.

use crate::memory::MIN_WINDOWS_OF_TEST;

/// Ends a measurement when an interval is narrow enough, at looks that lie ever further apart.
///
/// A measurement with a look after every window stops at the first interval that is narrow by luck. Such intervals hold less often than
/// they promise, because the error is known too badly by then (Y. S. Chow and H. Robbins, On the asymptotic theory of fixed-width
/// sequential confidence intervals, Annals of Mathematical Statistics 36, 1965). Therefore looks are few, two in a row must agree, and
/// there is a least number of independent stretches.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    next: usize,
    agreed: u32,
    stretches: f64,
}

/// Windows before the first look.
const FIRST: usize = 30;

/// Least number of windows of a measurement that may end: those of the third look, which is the first with a test of the memory.
pub const MIN_WINDOWS_TO_STOP: usize = after(after(FIRST));
const _: () = assert!(MIN_WINDOWS_TO_STOP >= MIN_WINDOWS_OF_TEST);

/// Least number of independent stretches of a measurement that may end.
pub const MIN_STRETCHES_TO_STOP: f64 = 20.0;

/// Windows at the look after this one: a third more.
const fn after(look: usize) -> usize {
    look * 4 / 3
}

/// Runs before the first look at a load. Each run takes as long as many windows and begins anew.
const FIRST_RUNS: usize = 10;

/// Least number of independent runs of a measurement that may end.
const MIN_RUN_STRETCHES_TO_STOP: f64 = 10.0;

/// Least number of runs of a measurement that may end.
pub const MIN_RUNS_TO_STOP: usize = after(FIRST_RUNS);

impl Looks {
    /// Looks at the windows of a recording.
    pub fn at_windows() -> Looks {
        Looks {
            next: FIRST,
            agreed: 0,
            stretches: MIN_STRETCHES_TO_STOP,
        }
    }

    /// Looks at separate runs.
    pub fn at_runs() -> Looks {
        Looks {
            next: FIRST_RUNS,
            agreed: 0,
            stretches: MIN_RUN_STRETCHES_TO_STOP,
        }
    }

    /// Returns true if a look is due after this number of windows.
    pub fn is_due(&self, windows: usize) -> bool {
        windows >= self.next
    }

    /// Returns true if the last look found the interval narrow, so that the next one may end the measurement.
    pub fn has_agreed(&self) -> bool {
        self.agreed > 0
    }

    /// Looks if a look is due. Returns true if the interval is `narrow`, from enough independent stretches, for the second time in a row.
    pub fn enough(&mut self, windows: usize, stretches: f64, narrow: bool) -> bool {
        if !self.is_due(windows) {
            return false;
        }
        self.next = after(self.next);
        let narrow = narrow && stretches >= self.stretches;
        self.agreed = if narrow { self.agreed + 1 } else { 0 };
        self.agreed >= 2
    }
}
