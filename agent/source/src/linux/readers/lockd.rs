//! Locks of NFSv3.

use super::{Reader, took};
use crate::linux::probes::Probes;
use crate::linux::read::lockd::Waiting;
use nfscope_model::Snapshot;
use std::time::Instant;

#[derive(Default)]
pub struct Lockd(Waiting);

impl Lockd {
    pub fn read(&mut self, probes: &Probes, s: &mut Snapshot) {
        let Some(l) = probes.get(self.probe()) else {
            return;
        };
        let start = Instant::now();
        self.0.read(l, s);
        l.unmap();
        took(start, self.probe(), s);
    }
}

impl Reader for Lockd {
    fn probe(&self) -> &'static str {
        "lockd"
    }
}
