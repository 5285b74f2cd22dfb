//! A change of the server or of its load.

use nfscope_text::units::seconds;
use serde::Serialize;

/// The changes of a prediction; a field that is `None` stays as it was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Change {
    /// nfsd threads of all pools together.
    pub threads: Option<u32>,
    /// Seconds that the log's device takes for one request.
    pub log_seconds: Option<f64>,
    /// Seconds that the disks take for one request outside the log.
    pub disk_seconds: Option<f64>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Times as many clients.
    pub clients_factor: Option<f64>,
    /// Bytes of each WRITE.
    pub write_bytes: Option<u64>,
}

/// A part of a server that can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The number of nfsd threads.
    Threads,
    /// The log's device.
    Log,
    /// The disks outside of the log.
    Disk,
    /// The number of CPUs.
    Cpus,
}

/// Size in bytes as text, for example "64 KiB".
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n >= 1 << 10 => format!("{:.0} KiB", n as f64 / 1024.0),
        n => format!("{n} bytes"),
    }
}

impl Change {
    /// The only part of the server that changes; `None` for more than one part and for changes of the load.
    pub fn part(&self) -> Option<Part> {
        let load = self.clients_factor.is_some() || self.write_bytes.is_some();
        let parts = [
            (Part::Threads, self.threads.is_some()),
            (Part::Log, self.log_seconds.is_some()),
            (Part::Disk, self.disk_seconds.is_some()),
            (Part::Cpus, self.cpus.is_some()),
        ];
        let mut changed = parts.into_iter().filter(|(_, changed)| *changed);
        let only = changed.next().map(|(part, _)| part);
        only.filter(|_| !load && changed.next().is_none())
    }

    /// Text of the change, for example "32 threads and a log of 0.1 ms".
    pub fn words(&self) -> String {
        let mut all = Vec::new();
        if let Some(n) = self.threads {
            all.push(format!("{n} thread{}", if n == 1 { "" } else { "s" }));
        }
        if let Some(s) = self.log_seconds {
            all.push(format!("a log device of {}", seconds(s)));
        }
        if let Some(s) = self.disk_seconds {
            all.push(format!("disks of {}", seconds(s)));
        }
        if let Some(n) = self.cpus {
            all.push(format!("{n} CPU{}", if n == 1 { "" } else { "s" }));
        }
        if let Some(times) = self.clients_factor {
            all.push(format!("{times} times as many clients"));
        }
        if let Some(n) = self.write_bytes {
            all.push(format!("WRITEs of {}", size(n)));
        }
        all.join(" and ")
    }
}
