//! Page cache of this host, from /proc.

use nfscope_diagnose::page_cache::PageCache;
use nfscope_source::host_table;

/// Reading of the page cache at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    total: f64,
    free: f64,
    /// Bytes read again since the host started.
    read_again: f64,
}

impl Reading {
    /// Reads this host's page cache; `None` where the kernel does not tell.
    pub fn of_this_host() -> Option<Reading> {
        let page = rustix::param::page_size() as f64;
        let (meminfo, vmstat) = ("/proc/meminfo", "/proc/vmstat");
        Reading::of(
            &host_table::read(meminfo)?,
            &host_table::read(vmstat)?,
            page,
        )
    }

    fn of(meminfo: &str, vmstat: &str, page: f64) -> Option<Reading> {
        let number = |text: &str, name: &str| -> Option<f64> {
            let mut lines = text.lines().filter_map(|line| line.split_once([':', ' ']));
            let (_, value) = lines.find(|(key, _)| *key == name)?;
            value.split_whitespace().next()?.parse().ok()
        };
        let kibibytes = |name: &str| number(meminfo, name).map(|n| n * 1024.0);
        Some(Reading {
            total: kibibytes("MemTotal")?,
            free: kibibytes("MemFree")?,
            // Linux before 5.9 counts files alone, under the older name.
            read_again: page
                * number(vmstat, "workingset_refault_file")
                    .or_else(|| number(vmstat, "workingset_refault"))?,
        })
    }

    /// The page cache over the time since an earlier reading.
    pub fn since(self, earlier: Reading) -> PageCache {
        PageCache {
            total: self.total,
            free: self.free,
            read_again: (self.read_again - earlier.read_again).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str =
        "MemTotal:        4000000 kB\nMemFree:          100000 kB\nMemAvailable: 3000000 kB\n";

    #[test]
    fn pages_read_again_are_those_of_files() {
        let read = |vmstat: &str| Reading::of(MEMINFO, vmstat, 4096.0);
        let before =
            read("nr_free_pages 25000\nworkingset_refault_anon 7\nworkingset_refault_file 100\n")
                .unwrap();
        let after = read("workingset_refault_anon 9000\nworkingset_refault_file 356\n").unwrap();
        let cache = after.since(before);
        assert_eq!(cache.read_again, 1024.0 * 1024.0);
        assert_eq!((cache.total, cache.free), (4_096_000_000.0, 102_400_000.0));
        assert_eq!(read("workingset_refault 3\n").unwrap().read_again, 12_288.0);
        assert_eq!(read("nr_free_pages 25000\n"), None);
        assert_eq!(Reading::of("", "workingset_refault_file 1\n", 4096.0), None);
    }
}
