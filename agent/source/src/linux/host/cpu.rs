//! Number of CPUs and their idle time.

use crate::host_table;
use nfscope_model::{Snapshot, family as f};

/// Adds CPUs and their idle time. The kernel accounts it in ticks even for CPUs that sleep through them.
pub fn read(s: &mut Snapshot) {
    let text = host_table::read("/proc/stat").unwrap_or_default();
    let ticks = rustix::param::clock_ticks_per_second();
    if let (Some((online, idle)), true) = (parse(&text), ticks > 0) {
        s.gauge(&f::CPUS, [], online);
        s.counter(&f::CPU_IDLE, [], idle / ticks as f64);
    }
}

/// CPUs online, and ticks in which they were idle or waited for I/O with nothing else to do (proc_stat(5)).
pub(crate) fn parse(text: &str) -> Option<(f64, f64)> {
    let mut idle = 0.0;
    let mut online = 0.0;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        if !name.starts_with("cpu") {
            break;
        }
        // The first line is the sum over all CPUs, with those that are offline now.
        if name == "cpu" {
            idle = words
                .skip(3)
                .take(2)
                .filter_map(|w| w.parse::<f64>().ok())
                .sum();
        } else {
            online += 1.0;
        }
    }
    (online > 0.0).then_some((online, idle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_of_all_and_how_many_are_online() {
        let text = "cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 5 10 15 200 25 3 4 4 0 0\ncpu2 5 10 15 200 25 3 3 4 0 0\nintr 1\n";
        assert_eq!(parse(text), Some((2.0, 450.0)));
        assert_eq!(parse(""), None);
        assert_eq!(parse("intr 5\n"), None);
    }
}
