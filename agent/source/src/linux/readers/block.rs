//! Block devices, and the I/O of nfsd's threads.

use super::{Reader, took};
use crate::linux::host::device_names::DeviceNames;
use crate::linux::load::object::Loaded;
use crate::linux::probes::Probes;
use crate::linux::read::block::{self, Predecessors};
use crate::linux::read::thread_io::ThreadIo;
use crate::source::Options;
use nfscope_model::Snapshot;
use std::time::Instant;

#[derive(Default)]
pub struct Block {
    predecessors: Predecessors,
    thread_io: ThreadIo,
}

impl Block {
    pub fn read(&mut self, probes: &Probes, devices: &mut DeviceNames, s: &mut Snapshot) {
        let Some(l) = probes.get(self.probe()) else {
            return;
        };
        let start = Instant::now();
        block::read(l, s, devices, &mut self.predecessors);
        self.thread_io.read(l, s);
        l.unmap();
        took(start, self.probe(), s);
    }
}

impl Reader for Block {
    fn probe(&self) -> &'static str {
        "block"
    }

    fn comes(&mut self, _l: &Loaded, _options: &Options) {
        self.predecessors = Predecessors::default();
    }
}
