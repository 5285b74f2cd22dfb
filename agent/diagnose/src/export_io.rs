//! Bytes of the exports' devices beside those of nfsd threads, which show whose requests they are.

use crate::ratio::{part, sum};
use nfscope_model::window_parts::numbers;
use nfscope_model::{Window, family as f};
use std::collections::HashMap;

/// Bytes of the devices that exports lie on, and nfsd's part of them.
#[derive(Debug, Clone, Copy)]
pub struct ExportIo {
    /// Bytes read from the devices.
    pub read: f64,
    /// Bytes that nfsd threads read from the devices.
    pub nfsd_read: f64,
    /// Bytes written to the devices.
    pub written: f64,
    /// Bytes changed in memory by nfsd threads, to be written.
    pub nfsd_changed: f64,
}

impl ExportIo {
    /// Bytes of a window, for the devices that exports lie on; `None` if the kernel does not account I/O to threads.
    pub fn of(w: &Window, devices: &HashMap<String, String>) -> Option<ExportIo> {
        // Bytes of devices that are not measured are no zero.
        numbers(w, &f::BLOCK_BYTES).next()?;
        // A mapped device with requests (multipath) passes each of them on to a path, whose bytes count.
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

    /// Part of the bytes read that other programs read.
    pub fn foreign_read(&self) -> f64 {
        part((self.read - self.nfsd_read).max(0.0), self.read)
    }
}
