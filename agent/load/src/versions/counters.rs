//! CPU time of this client.

use nfscope_source::host_table;
use std::thread;
use std::time::{Duration, Instant};

/// Ticks of `/proc/stat` in a second: USER_HZ, which Linux has at 100 on every architecture that nfscope runs on.
const TICKS: f64 = 100.0;

/// Least CPU time that is reported: a shorter one has too few ticks.
pub const MIN_CPU_SECONDS: f64 = 10.0 / TICKS;

/// Time that all CPUs together have been busy, in seconds; `None` where the kernel does not report it.
pub fn busy_seconds() -> Option<f64> {
    parse(&host_table::read("/proc/stat")?)
}

/// CPU time that is used while the client is watched for this long, and the seconds that passed; `None` where the kernel does not report
/// it.
pub fn watch(time: Duration) -> Option<(f64, f64)> {
    let (before, began) = (busy_seconds()?, Instant::now());
    thread::sleep(time);
    Some((busy_seconds()? - before, began.elapsed().as_secs_f64()))
}

/// Sum of user, nice, system, irq and softirq (proc_stat(5)). Idle time, waits for I/O and stolen time are left out.
fn parse(text: &str) -> Option<f64> {
    let mut words = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace();
    let mut next = || words.next()?.parse::<f64>().ok();
    let (user, nice, system) = (next()?, next()?, next()?);
    let (_idle, _wait) = (next()?, next()?);
    let (irq, softirq) = (next()?, next()?);
    Some((user + nice + system + irq + softirq) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_not_idle_and_no_wait_and_not_stolen() {
        let text = "cpu  100 20 30 400 50 6 7 8 0 0\ncpu0 5 10 15 200 25 3 4 4 0 0\n";
        assert_eq!(parse(text), Some(1.63));
        assert_eq!(parse("intr 1\n"), None);
    }
}
