//! Pauses of simulations, which leave the CPU to others.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time that a thread with rests computes at once.
const AT_ONCE: Duration = Duration::from_micros(200);
/// Factor of a rest to the time computed before it: a simulation takes a tenth of a CPU.
const REST: u32 = 9;
/// Elapsed time that counts as computed at most. Beyond it another thread had the CPU, or the whole machine stood still.
const AT_MOST: Duration = Duration::from_micros(400);

thread_local! {
    /// Start of the current compute burst. `None` unless this thread rests.
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Makes this thread's simulations rest: they compute for about 0.2 ms at once, and rest nine times as long after it.
///
/// A nice value is not enough where a server must answer. Since 6.6 Linux lets a thread of any nice value finish its slice before a
/// thread that wakes up has the CPU (RUN_TO_PARITY in kernel/sched/fair.c). The kernel checks the slice at a tick, every 4 ms with 250
/// ticks a second. In the lab, on a machine with one CPU, the completion of a log's disk request waited that long for a simulation.
///
/// SCHED_IDLE of sched(7) would be enough. But a hardened service, as the unit of the packages makes it, may make neither of the two
/// system calls. Both also count within a control group only.
pub fn rest() {
    SINCE.set(Some(Instant::now()));
}

/// Rests if the compute burst is over. It reads the clock, so it is called after some events and not after each.
pub(super) fn rest_if_due() {
    let Some(since) = SINCE.get() else { return };
    let computed = since.elapsed();
    if computed >= AT_ONCE {
        sleep(computed.min(AT_MOST) * REST);
        SINCE.set(Some(Instant::now()));
    }
}
