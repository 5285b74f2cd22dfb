//! Whose the requests to the exports' devices are: bytes of the devices beside those of nfsd threads.

use crate::ratio::{part, sum};
use nfscope_model::window_parts::numbers;
use nfscope_model::{Window, family as f};
use std::collections::HashMap;

/// Bytes of the devices that exports lie on, and how many of them are nfsd's.
#[derive(Debug, Clone, Copy)]
pub struct ExportIo {
    /// Read from the devices.
    pub read: f64,
    /// Those of them that nfsd threads had read.
    pub nfsd_read: f64,
    /// Written to the devices.
    pub written: f64,
    /// Changed in memory by nfsd threads, to be written.
    pub nfsd_changed: f64,
}

impl ExportIo {
    /// Of a window, with the devices that exports lie on; `None` where the kernel does not account I/O to threads.
    pub fn of(w: &Window, devices: &HashMap<String, String>) -> Option<ExportIo> {
        // A mapped device that has requests (multipath) passes each of them on to a path, where it counts.
        let counts = |device: &str| devices.contains_key(device) && !device.starts_with("dm-");
        let of_devices = |wanted: &str| {
            let of = numbers(w, &f::BLOCK_BYTES);
            sum(of
                .filter(|([device, op], _)| *op == wanted && counts(device))
                .map(|(_, bytes)| bytes))
        };
        Some(ExportIo {
            read: of_devices("read"),
            nfsd_read: w.delta.value(&f::THREAD_IO, ["read"])?,
            written: of_devices("write"),
            nfsd_changed: w.delta.value(&f::THREAD_IO, ["write"])?,
        })
    }

    /// The part of what was read that others had read.
    pub fn foreign_read(&self) -> f64 {
        part((self.read - self.nfsd_read).max(0.0), self.read)
    }
}
