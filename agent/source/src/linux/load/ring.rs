//! The ring through which the probes report single events.

use super::maps::map_options;
use super::pod;
use libbpf_rs::{MapHandle, MapType, RingBuffer, RingBufferBuilder};
use nfscope_probes::Pod;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex};

/// A ring that exists as long as this value, and the events that came through it.
pub struct Ring {
    buffer: RingBuffer<'static>,
    /// The map keeps the ring while no other code does.
    map: MapHandle,
    came: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Ring {
    /// Makes a ring of `bytes` bytes (a power of two).
    pub(super) fn create(bytes: u32) -> libbpf_rs::Result<Self> {
        let options = map_options();
        let map = MapHandle::create(MapType::RingBuf, Some("nfsd_ring"), 0, 0, bytes, &options)?;
        let came = Arc::new(Mutex::new(Vec::new()));
        let keep = came.clone();
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, move |event: &[u8]| {
            if let Ok(mut v) = keep.lock() {
                v.push(event.to_vec());
            }
            0
        })?;
        let buffer = builder.build()?;
        Ok(Ring { buffer, map, came })
    }

    /// Descriptor by which a map of rings takes the ring.
    pub(super) fn descriptor(&self) -> i32 {
        self.map.as_fd().as_raw_fd()
    }

    /// Every event since the last call; never waits.
    pub fn take<T: Pod>(&self) -> Vec<T> {
        // An error only means that the callback asked to stop, which it never does.
        let _ = self.buffer.consume();
        let came = self
            .came
            .lock()
            .map(|mut v| std::mem::take(&mut *v))
            .unwrap_or_default();
        came.iter().filter_map(|b| pod::from_bytes(b)).collect()
    }
}
