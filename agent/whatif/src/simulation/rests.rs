//! Simulations that leave the CPU to others.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A thread that rests computes for about this long at once.
const AT_ONCE: Duration = Duration::from_micros(200);
/// A rest is so many times as long as what came before it: a simulation takes a tenth of a CPU.
const REST: u32 = 9;
/// What takes longer than this was not computed all the while: another thread had the CPU, or the whole machine stood still.
const AT_MOST: Duration = Duration::from_micros(400);

thread_local! {
    /// The end of the last rest, where this thread rests.
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// From here on this thread's simulations compute for about 0.2 ms at once, and rest nine times as long after it.
///
/// A nice value is not enough where a server must answer. Since 6.6 Linux lets a thread of any nice value finish its slice before a
/// thread that wakes up has the CPU (RUN_TO_PARITY in kernel/sched/fair.c). It looks at the slice at a tick, every 4 ms with 250 a
/// second. In the lab, on a machine with one CPU, the end of a log's disk request waited that long for a simulation. SCHED_IDLE of
/// sched(7) would do. But a hardened service may make neither of the two system calls, as the unit of the packages has it, and both
/// count within a control group only.
pub fn rest() {
    SINCE.set(Some(Instant::now()));
}

/// Rests if it is time. It takes a look at the clock, so that it is called after some events and not after each.
pub(super) fn rest_if_due() {
    let Some(since) = SINCE.get() else { return };
    let computed = since.elapsed();
    if computed >= AT_ONCE {
        sleep(computed.min(AT_MOST) * REST);
        SINCE.set(Some(Instant::now()));
    }
}
