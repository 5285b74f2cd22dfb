//! How long disks were busy.

use nfscope_model::{Snapshot, family as f};
use std::collections::HashMap;
use std::fs;

/// Busy times, from when the source first looked.
#[derive(Debug, Default)]
pub struct Busy {
    /// Milliseconds then, by device; a device that came later had none.
    begun: Option<HashMap<String, f64>>,
}

impl Busy {
    /// Adds the busy time of each device that the snapshot has requests of.
    pub fn read(&mut self, s: &mut Snapshot) {
        let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        self.fill(&parse(&text), s);
    }

    fn fill(&mut self, busy: &HashMap<&str, f64>, s: &mut Snapshot) {
        let begun = self.begun.get_or_insert_with(|| {
            let all = busy.iter().map(|(device, ms)| ((*device).to_owned(), *ms));
            all.collect()
        });
        let seen: Vec<_> = s
            .numbers(&f::BLOCK_INFLIGHT)
            .filter_map(|([device], _)| Some((device.to_owned(), *busy.get(device)?)))
            .collect();
        for (device, ms) in seen {
            let before = begun.get(&device).copied().unwrap_or(0.0);
            // One that was taken away and is another now.
            let since = if ms >= before { ms - before } else { ms };
            s.counter(&f::BLOCK_BUSY, [&device], since / 1e3);
        }
    }
}

/// Milliseconds with requests in hand, by device (Documentation/admin-guide/iostats.rst, field 10).
pub(crate) fn parse(text: &str) -> HashMap<&str, f64> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(2);
            Some((words.next()?, words.nth(9)?.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenth_field_of_each_device() {
        let text = " 254 0 vda 11 2 3 4 5 6 7 8 9 1234 11 0 0 0 0 0 0\n   7 0 loop0\n 259 0 nvme0n1 1 1 1 1 1 1 1 1 1 77 1\n";
        let busy = parse(text);
        assert_eq!(busy.get("vda"), Some(&1234.0));
        assert_eq!(busy.get("nvme0n1"), Some(&77.0));
        assert_eq!(busy.get("loop0"), None);
    }

    /// A series appears with a device's first request: what it did before the source began is not what it did since.
    #[test]
    fn a_device_s_past_is_not_counted() {
        let mut busy = Busy::default();
        let mut at = |ms: f64, used: bool| {
            let mut s = Snapshot::default();
            if used {
                s.gauge(&f::BLOCK_INFLIGHT, ["sdb"], 0.0);
            }
            busy.fill(&HashMap::from([("sdb", ms)]), &mut s);
            s.value(&f::BLOCK_BUSY, ["sdb"])
        };
        assert_eq!(at(9_000_000.0, false), None);
        assert_eq!(at(9_000_500.0, true), Some(0.5));
        assert_eq!(at(70.0, true), Some(0.07));
    }
}
