//! When to look whether enough is known, and when to believe it.

/// Ends a measurement when an interval is narrow enough, at looks that lie ever further apart.
///
/// Whoever looks after every window stops at the first interval that is narrow by luck, and such intervals hold less often than
/// they say: the error is known too badly by then (Y. S. Chow and H. Robbins, On the asymptotic theory of fixed-width sequential
/// confidence intervals, Annals of Mathematical Statistics 36, 1965). Therefore looks are few, two in a row must agree, and there is
/// a least number of independent stretches.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    next: usize,
    agreed: u32,
    stretches: f64,
}

/// The first look.
const FIRST: usize = 30;

/// Windows without which a measurement never ends: those of the first two looks.
pub const MIN_WINDOWS_TO_STOP: usize = after(FIRST);

/// Independent stretches below which a look never ends a measurement.
pub const MIN_STRETCHES_TO_STOP: f64 = 20.0;

/// Each look comes after a third more windows.
const fn after(look: usize) -> usize {
    look * 4 / 3
}

/// The first look at runs of a load, each of which takes as long as many windows and begins anew.
const FIRST_RUNS: usize = 10;

/// Independent runs below which a look never ends a measurement.
const MIN_RUN_STRETCHES_TO_STOP: f64 = 10.0;

/// Runs without which a measurement never ends.
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

    /// True if it is time to look, after so many windows.
    pub fn is_due(&self, windows: usize) -> bool {
        windows >= self.next
    }

    /// Looks, if it is time to: true when the interval is `narrow`, from this many independent stretches, for the second time in a row.
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
