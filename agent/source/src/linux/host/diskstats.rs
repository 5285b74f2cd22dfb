//! Busy times of disks.

use crate::host_table;
use crate::linux::host::device_names::DeviceNames;
use nfscope_model::{Snapshot, family as f};
use std::collections::HashMap;

/// Busy times since the source's first reading.
#[derive(Debug, Default)]
pub struct Busy {
    /// Milliseconds at the first reading, by device; a device that came later has none.
    begun: Option<HashMap<String, f64>>,
}

impl Busy {
    /// Adds the busy time of each device with requests in the snapshot.
    pub fn read(&mut self, devices: &mut DeviceNames, s: &mut Snapshot) {
        let text = host_table::read("/proc/diskstats").unwrap_or_default();
        self.fill(&parse(&text), devices, s);
    }

    fn fill(
        &mut self,
        busy: &HashMap<&str, (u32, f64)>,
        devices: &mut DeviceNames,
        s: &mut Snapshot,
    ) {
        let begun = self.begun.get_or_insert_with(|| {
            let all = busy
                .iter()
                .map(|(device, (_, ms))| ((*device).to_owned(), *ms));
            all.collect()
        });
        // A device that comes later is another one, even under the same name.
        begun.retain(|device, before| busy.get(&**device).is_some_and(|(_, ms)| ms >= before));
        let seen: Vec<_> = s
            .numbers(&f::BLOCK_INFLIGHT)
            .filter_map(|([device], _)| Some((device.to_owned(), *busy.get(device)?)))
            .collect();
        for (device, (dev, ms)) in seen {
            if devices.replaced(dev) {
                begun.remove(&device);
            }
            let before = begun.get(&device).copied().unwrap_or(0.0);
            s.counter(&f::BLOCK_BUSY, [&device], (ms - before) / 1e3);
        }
    }
}

/// Number of each device (`major << 20 | minor`), and the milliseconds in which it had requests (Documentation/admin-guide/iostats.rst,
/// field 10).
pub(crate) fn parse(text: &str) -> HashMap<&str, (u32, f64)> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let mut number = || words.next()?.parse::<u32>().ok();
            let dev = number()? << 20 | number()?;
            Some((words.next()?, (dev, words.nth(9)?.parse().ok()?)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::host::device_names::fake::Sys;

    #[test]
    fn the_tenth_field_of_each_device() {
        let text = " 254 0 vda 11 2 3 4 5 6 7 8 9 1234 11 0 0 0 0 0 0\n   7 0 loop0\n 259 0 nvme0n1 1 1 1 1 1 1 1 1 1 77 1\n";
        let busy = parse(text);
        assert_eq!(busy.get("vda"), Some(&(254 << 20, 1234.0)));
        assert_eq!(busy.get("nvme0n1"), Some(&(259 << 20, 77.0)));
        assert_eq!(busy.get("loop0"), None);
    }

    /// A series appears with a device's first request, and does not count the busy time before the source began.
    #[test]
    fn a_device_s_past_is_not_counted() {
        let (mut busy, mut devices) = (Busy::default(), DeviceNames::default());
        let mut at = |ms: f64, used: bool| {
            let mut s = Snapshot::default();
            if used {
                s.gauge(&f::BLOCK_INFLIGHT, ["sdb"], 0.0);
            }
            busy.fill(&HashMap::from([("sdb", (0, ms))]), &mut devices, &mut s);
            s.value(&f::BLOCK_BUSY, ["sdb"])
        };
        assert_eq!(at(9_000_000.0, false), None);
        assert_eq!(at(9_000_500.0, true), Some(0.5));
        assert_eq!(at(70.0, true), Some(0.07));
        assert_eq!(at(9_000_600.0, true), Some(9000.6));
    }

    /// The kernel's number has 32 bits (part_stat_show() in block/genhd.c): it overflows after 49.7 days of requests.
    #[test]
    fn a_time_of_32_bits_begins_anew_and_is_never_below_zero() {
        let (mut busy, mut devices) = (Busy::default(), DeviceNames::default());
        let mut at = |ms: f64| {
            let mut s = Snapshot::default();
            s.gauge(&f::BLOCK_INFLIGHT, ["sdb"], 0.0);
            busy.fill(&HashMap::from([("sdb", (0, ms))]), &mut devices, &mut s);
            s.value(&f::BLOCK_BUSY, ["sdb"])
        };
        let top = f64::from(u32::MAX);
        assert_eq!(at(top - 3000.0), Some(0.0));
        assert_eq!(at(top - 1000.0), Some(2.0));
        assert_eq!(at(500.0), Some(0.5));
    }

    #[test]
    fn another_device_of_the_same_name_begins_anew() {
        let sys = Sys::new("busy");
        let (mut busy, mut devices) = (Busy::default(), DeviceNames::below(&sys.0));
        let mut at = |devices: &mut DeviceNames, ms: f64| {
            devices.begin();
            let mut s = Snapshot::default();
            s.gauge(&f::BLOCK_INFLIGHT, ["dm-0"], 0.0);
            let stats = HashMap::from([("dm-0", (253 << 20, ms))]);
            busy.fill(&stats, devices, &mut s);
            s.value(&f::BLOCK_BUSY, ["dm-0"])
        };
        sys.add(253 << 20, "dm-0");
        assert_eq!(at(&mut devices, 5_000.0), Some(0.0));
        assert_eq!(at(&mut devices, 6_000.0), Some(1.0));
        sys.remove(253 << 20, "dm-0");
        sys.add(253 << 20, "dm-0");
        assert_eq!(at(&mut devices, 7_000.0), Some(7.0));
    }
}
