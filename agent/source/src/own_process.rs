//! Resources of this process itself, under the names that all exporters give them. CPU time and memory include those of the process that
//! serves HTTP: an administrator pays for both.

use crate::host_table;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use rustix::process::{Resource, getrlimit};
use std::sync::{Mutex, PoisonError};

/// The process that serves HTTP for this one.
static COMPANION: Mutex<Companion> = Mutex::new(Companion {
    number: 0,
    seen_ticks: 0.0,
    gone_ticks: 0.0,
});

struct Companion {
    /// Number of the process; 0 for none.
    number: u32,
    /// CPU time at the last reading.
    seen_ticks: f64,
    /// CPU time of earlier companions.
    gone_ticks: f64,
}

impl Companion {
    /// CPU time of all companions so far, and the memory of the present one in bytes and pages.
    fn look(&mut self) -> [f64; 3] {
        let stat = host_table::read_at("/proc/PID/stat", format!("/proc/{}/stat", self.number));
        let stat = stat.and_then(|text| Stat::of(&text));
        // The number may belong to another process by now.
        let stat = stat.filter(|s| self.number != 0 && s.parent == std::process::id());
        if let Some(stat) = &stat {
            self.seen_ticks = self.seen_ticks.max(stat.cpu_ticks);
        }
        let memory = stat.map_or([0.0; 2], |s| [s.virtual_bytes, s.resident_pages]);
        [self.gone_ticks + self.seen_ticks, memory[0], memory[1]]
    }
}

/// Counts the child of this number from now on, in place of the earlier one.
pub fn accompany(number: u32) {
    let mut companion = COMPANION.lock().unwrap_or_else(PoisonError::into_inner);
    companion.gone_ticks += companion.seen_ticks;
    companion.seen_ticks = 0.0;
    companion.number = number;
}

/// Adds the families `process_*`, as far as the system has the data.
pub fn describe(s: &mut Snapshot) {
    if let Ok(open) = host_table::entries("/proc/self/fd", "/proc/self/fd") {
        // A descriptor among them reads the directory itself.
        s.gauge(&f::PROCESS_FDS, [], open.count().saturating_sub(1) as f64);
    }
    let most = getrlimit(Resource::Nofile).current;
    s.gauge(
        &f::PROCESS_MAX_FDS,
        [],
        most.map_or(f64::INFINITY, |n| n as f64),
    );
    let stat = host_table::read("/proc/self/stat");
    let (Some(own), Some(host)) = (
        stat.and_then(|text| Stat::of(&text)),
        host_table::read("/proc/stat"),
    ) else {
        return;
    };
    let tick = rustix::param::clock_ticks_per_second() as f64;
    let companion = (COMPANION.lock().unwrap_or_else(PoisonError::into_inner)).look();
    let [ticks, virtual_bytes, resident_pages] = companion;
    s.counter(&f::PROCESS_CPU, [], (own.cpu_ticks + ticks) / tick);
    s.gauge(&f::PROCESS_VIRTUAL, [], own.virtual_bytes + virtual_bytes);
    let page = rustix::param::page_size() as f64;
    let resident = own.resident_pages + resident_pages;
    s.gauge(&f::PROCESS_RESIDENT, [], resident * page);
    let boot = host.lines().find_map(|l| l.strip_prefix("btime "));
    if let Some(boot) = boot.and_then(|n| n.trim().parse::<f64>().ok()) {
        s.gauge(&f::PROCESS_START, [], boot + own.start_ticks / tick);
    }
}

/// Fields of /proc/PID/stat that are used (proc_pid_stat(5)).
#[derive(Debug, PartialEq)]
struct Stat {
    parent: u32,
    cpu_ticks: f64,
    start_ticks: f64,
    virtual_bytes: f64,
    resident_pages: f64,
}

impl Stat {
    fn of(text: &str) -> Option<Stat> {
        // The name stands in parentheses and may contain some itself; field 3 follows the last of them.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<_> = rest.split(' ').collect();
        let field = |n: usize| fields.get(n - 3)?.parse::<f64>().ok();
        Some(Stat {
            parent: fields.get(1)?.parse().ok()?,
            // Time in user mode plus time in the kernel.
            cpu_ticks: field(14)? + field(15)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// Any content of the file is parsed or refused.
#[cfg(test)]
pub(crate) fn fuzzed(text: &str) {
    let _ = Stat::of(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_from_the_end_of_the_name() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 2 0 4321 1048576 256 18446744073709551615";
        assert_eq!(
            Stat::of(text),
            Some(Stat {
                parent: 1,
                cpu_ticks: 11.0,
                start_ticks: 4321.0,
                virtual_bytes: 1_048_576.0,
                resident_pages: 256.0,
            })
        );
        assert_eq!(Stat::of("7 (a) S 1"), None);
    }

    /// A companion whose number is that of the test's own child, which uses no CPU time.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_is_counted_and_a_stranger_is_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut companion = Companion {
            number: child.id(),
            seen_ticks: 0.0,
            gone_ticks: 5.0,
        };
        let [ticks, bytes, _] = companion.look();
        assert!(
            (5.0..50.0).contains(&ticks) && bytes > 0.0,
            "{ticks} {bytes}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        companion.number = 1;
        assert_eq!(companion.look()[1..], [0.0, 0.0]);
    }

    /// Compares with the values that ps(1) would show, and with an address space of known growth.
    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_told_as_the_kernel_has_it() {
        let mut s = Snapshot::default();
        describe(&mut s);
        let value = |family| s.value(family, []).unwrap();
        let status = host_table::read("/proc/self/status").unwrap();
        let kb = |name: &str| {
            let line = status.lines().find(|l| l.starts_with(name)).unwrap();
            line.split_whitespace()
                .nth(1)
                .unwrap()
                .parse::<f64>()
                .unwrap()
                * 1024.0
        };
        // Other tests run in this process meanwhile.
        let near = |a: f64, b: f64| (0.5..2.0).contains(&(a / b));
        assert!(near(value(&f::PROCESS_VIRTUAL), kb("VmSize:")));
        assert!(near(value(&f::PROCESS_RESIDENT), kb("VmRSS:")));
        assert!(value(&f::PROCESS_CPU) >= 0.0);
        assert!(value(&f::PROCESS_FDS) >= 3.0);
        assert!(value(&f::PROCESS_MAX_FDS) >= value(&f::PROCESS_FDS));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        assert!((1.0..=now.unwrap().as_secs_f64() + 1.0).contains(&value(&f::PROCESS_START)));
    }
}
