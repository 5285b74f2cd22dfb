//! Logs and disks of a window, and the part of their I/O that is not nfsd's.

use crate::durations::Durations;
use nfscope_model::window_parts::{histograms, logs, numbers};
use nfscope_model::{Histogram, Window, family as f};
use std::collections::{HashMap, HashSet};

#[derive(Debug, Clone)]
pub(crate) struct MeasuredLog {
    pub fs: String,
    pub name: String,
    pub waits: f64,
    pub commits: f64,
    /// Bytes written to the log; `None` where they are not known.
    pub bytes: Option<f64>,
    pub wait: Durations,
    pub commit: Option<Durations>,
    /// Device, mean time of a write by it, and number of writes that one commit makes one after the other.
    pub device: Option<(String, f64, f64)>,
    /// True if the log lies on the file system's own device: a change of that device changes the log, too.
    pub inside: bool,
    /// Time of waits for other logs, as a part of all log waits.
    pub others: f64,
}

impl MeasuredLog {
    /// Commits per request, for this number of requests.
    pub fn commits_by_request(&self, requests: f64) -> f64 {
        self.commits / requests.max(1e-12)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct MeasuredDisk {
    pub name: String,
    pub service: Durations,
    /// Mean number of requests under way while there was one.
    pub in_flight: f64,
    /// Mean wait before the device, as a part of the device's time.
    pub queued: f64,
}

/// Largest logarithm of the ratio of a device's time and of a log's, for the device to be the log's.
const SAME_DEVICE: f64 = 0.7;

pub(crate) fn log(w: &Window) -> Option<MeasuredLog> {
    let all = logs(w);
    let time = |l: &nfscope_model::window_parts::WindowLog| l.waits.map_or(0.0, |h| h.sum);
    let first = all.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
    let wait = Durations::of(first.waits?)?;
    let sum: f64 = all.iter().map(time).sum();
    let inside = first.separate == Some(false);
    let exported = exported(w);
    let device = first.writes.filter(|h| h.count() > 0).and_then(|commits| {
        let mut devices: HashMap<&str, (f64, f64)> = HashMap::new();
        for ([device, op], h) in histograms(w, &f::BLOCK_DEVICE) {
            if op == "write" || op == "flush" {
                let all = devices.entry(device).or_default();
                all.0 += h.count() as f64;
                all.1 += h.sum;
            }
        }
        // The log's device is busy while the log is written. A separate one is busy with little else.
        let busy = commits.sum;
        let near = |sum: f64| (sum / busy).ln().abs();
        devices.retain(|_, (n, sum)| *n > 0.0 && *sum > 0.0);
        // The only device below exports has the log, if that is not on a device of its own. Data that are written beside it keep the
        // device busier than the log does.
        let only = || {
            let mut below = devices.iter().filter(|(name, _)| match &exported {
                Some(all) => all.contains(**name),
                None => true,
            });
            let one = below.next().filter(|_| below.next().is_none());
            one.map(|(name, all)| (*name, *all))
        };
        let nearest = || {
            let all = devices.iter().map(|(name, all)| (*name, *all));
            all.min_by(|a, b| near(a.1.1).total_cmp(&near(b.1.1)))
                .filter(|(_, (_, sum))| near(*sum) < SAME_DEVICE)
        };
        let (name, (n, sum)) = (inside.then(only).flatten()).or_else(nearest)?;
        let mean = sum / n;
        let path = (busy / commits.count() as f64 / mean + 0.15)
            .floor()
            .max(1.0);
        Some((name.to_owned(), mean, path))
    });
    Some(MeasuredLog {
        fs: first.fs.into(),
        name: format!("{} on {}", first.fs, first.volume),
        waits: first.waits?.count() as f64,
        commits: first.writes.map_or(0.0, |h| h.count() as f64),
        bytes: first.bytes,
        wait,
        commit: first.writes.and_then(Durations::of),
        device,
        inside,
        others: 1.0 - time(first) / sum.max(1e-12),
    })
}

pub(crate) fn disk(w: &Window, but: Option<&str>, read: bool) -> Option<MeasuredDisk> {
    let busy: HashMap<_, _> = numbers(w, &f::BLOCK_BUSY).map(|(l, v)| (l[0], v)).collect();
    let mut service = Vec::new();
    let (mut name, mut largest, mut time, mut busy_time) = (String::new(), 0.0, 0.0, 0.0);
    let mut queued = 0.0;
    let exported = exported(w);
    for ([device, op], h) in histograms(w, &f::BLOCK_DEVICE) {
        let is_elsewhere = exported.as_ref().is_some_and(|e| !e.contains(device));
        if but == Some(device) || is_elsewhere || (op == "read") != read {
            continue;
        }
        time += h.sum;
        if h.sum > largest {
            largest = h.sum;
            name = device.into();
            busy_time = busy.get(device).copied().unwrap_or(0.0);
        }
        queued += w
            .delta
            .hist(&f::BLOCK_QUEUE, [device, op])
            .map_or(0.0, |q| q.sum);
        service.push(h);
    }
    Some(MeasuredDisk {
        name,
        service: Durations::of(&Histogram::merged(service)?)?,
        in_flight: if busy_time > 0.0 {
            (largest / busy_time).max(1.0)
        } else {
            1.0
        },
        queued: queued / time.max(1e-12),
    })
}

/// Disks that exports lie on; `None` if the disk of an export is not known.
fn exported(w: &Window) -> Option<HashSet<&str>> {
    let all: HashSet<_> = numbers(w, &f::EXPORT_DEVICE).map(|(l, _)| l[1]).collect();
    (!all.is_empty() && !all.contains(f::UNKNOWN_DEVICE)).then_some(all)
}

/// Bytes that a file system may write for one byte of data, because it writes metadata, too.
const WRITE_AMPLIFICATION: f64 = 2.0;

/// Part of the bytes of the exports' disks that other programs read and wrote.
///
/// For OpenZFS the part is not known: it reads whole records, and accounts reads that its cache serves. For btrfs it is not known either:
/// btrfs writes many times the size of a change. For writes only the bytes that nfsd changed are known, so bytes are foreign only beyond
/// [twice that](WRITE_AMPLIFICATION).
pub(crate) fn foreign(w: &Window) -> Option<f64> {
    let fs: HashSet<_> = histograms(w, &f::LOG_WAIT)
        .chain(histograms(w, &f::LOG_COMMIT))
        .map(|(l, _)| l[0])
        .collect();
    let pools = numbers(w, &f::ZFS_ZIL_COMMITS).next().is_some();
    if fs.contains("zfs") || pools {
        return None;
    }
    let own: HashMap<_, _> = numbers(w, &f::THREAD_IO).map(|(l, v)| (l[0], v)).collect();
    let logged: f64 = numbers(w, &f::LOG_BYTES).map(|(_, v)| v).sum();
    let (own_read, own_written) = (own.get("read")?, own.get("write")? + logged);
    let exported = exported(w);
    let (mut read, mut written) = (0.0, 0.0);
    for ([device, op], bytes) in numbers(w, &f::BLOCK_BYTES) {
        let is_elsewhere = exported.as_ref().is_some_and(|e| !e.contains(device));
        match op {
            _ if is_elsewhere => {}
            "read" => read += bytes,
            "write" => written += bytes,
            _ => {}
        }
    }
    let all = read + written;
    let others_read = (read - own_read).max(0.0);
    let others_wrote = match fs.contains("btrfs") {
        true => 0.0,
        false => (written - WRITE_AMPLIFICATION * own_written).max(0.0),
    };
    (all > 0.0).then(|| (others_read + others_wrote) / all)
}
