//! What this process itself uses, under the names that all exporters give it.

use nfscope_model::Snapshot;
use nfscope_model::family as f;
use rustix::process::{Resource, getrlimit};
use std::fs;

/// Adds the families `process_*`, as far as the system tells.
pub fn describe(s: &mut Snapshot) {
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them reads the directory.
        s.gauge(&f::PROCESS_FDS, [], open.count().saturating_sub(1) as f64);
    }
    let most = getrlimit(Resource::Nofile).current;
    s.gauge(
        &f::PROCESS_MAX_FDS,
        [],
        most.map_or(f64::INFINITY, |n| n as f64),
    );
    let stat = fs::read_to_string("/proc/self/stat");
    let (Some(own), Ok(host)) = (
        stat.ok().and_then(|text| Stat::of(&text)),
        fs::read_to_string("/proc/stat"),
    ) else {
        return;
    };
    let tick = rustix::param::clock_ticks_per_second() as f64;
    s.counter(&f::PROCESS_CPU, [], own.cpu_ticks / tick);
    s.gauge(&f::PROCESS_VIRTUAL, [], own.virtual_bytes);
    let page = rustix::param::page_size() as f64;
    s.gauge(&f::PROCESS_RESIDENT, [], own.resident_pages * page);
    let boot = host.lines().find_map(|l| l.strip_prefix("btime "));
    if let Some(boot) = boot.and_then(|n| n.trim().parse::<f64>().ok()) {
        s.gauge(&f::PROCESS_START, [], boot + own.start_ticks / tick);
    }
}

/// What is of interest of /proc/PID/stat (proc_pid_stat(5)).
#[derive(Debug, PartialEq)]
struct Stat {
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
            // In user mode, and in the kernel.
            cpu_ticks: field(14)? + field(15)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
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
                cpu_ticks: 11.0,
                start_ticks: 4321.0,
                virtual_bytes: 1_048_576.0,
                resident_pages: 256.0,
            })
        );
        assert_eq!(Stat::of("7 (a) S 1"), None);
    }

    /// The reference: what ps(1) would show, and an address space of known growth.
    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_told_as_the_kernel_has_it() {
        let mut s = Snapshot::default();
        describe(&mut s);
        let value = |family| s.value(family, []).unwrap();
        let status = fs::read_to_string("/proc/self/status").unwrap();
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
