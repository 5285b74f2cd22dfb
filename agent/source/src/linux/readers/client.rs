//! Mounts of this host itself: sums alone if the probe is not supported, and nothing while it waits or is detached.

use super::{Reader, took};
use crate::linux::load::maps::Shared;
use crate::linux::load::program_table::CLIENT_RPC_END;
use crate::linux::probes::Probes;
use crate::linux::read::client::ClientView;
use crate::source::Options;
use nfscope_model::{ProbeState, Snapshot};
use std::time::Instant;

#[derive(Default)]
pub struct Client(ClientView);

impl Client {
    pub fn read(&mut self, probes: &Probes, s: &mut Snapshot) {
        let start = Instant::now();
        let program = probes.states.iter().find(|p| p.program == CLIENT_RPC_END);
        match (program.map(|p| p.state), probes.get(self.probe())) {
            (Some(ProbeState::Attached), Some(l)) => {
                self.0.read(l, probes.get("recall"), s);
                l.unmap();
            }
            (Some(ProbeState::Unsupported), _) => self.0.read_mountstats(s),
            _ => return,
        }
        took(start, self.probe(), s);
    }
}

impl Reader for Client {
    fn probe(&self) -> &'static str {
        "client"
    }

    fn gone(&mut self, _shared: &Shared, _options: &Options) {
        self.0 = ClientView::default();
    }
}
