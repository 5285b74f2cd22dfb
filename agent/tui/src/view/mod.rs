//! Rows of a window, in the units that people and programs read. Pure: a window in, rows out.

mod phases;
mod rows;
mod sample;
mod types;

pub use phases::Phases;
pub use sample::{Sample, SampledOp};
pub use types::{Change, Client, Disk, Export, Found, Log, Lost, Op, Pool, Rpc, View};

use nfscope_model::probe::times_operations;
use nfscope_model::{Window, family};
use rows::Rows;

impl View {
    /// View of `window` on `host`.
    pub fn of(window: &Window, host: &str) -> View {
        let rows = Rows::new(window);
        let probes = &window.delta.probes;
        let sections = [
            ("pools", &family::THREADS.info),
            ("rpc", &family::RPC_DURATION.info),
            ("logs", &family::LOG_COMMIT.info),
            ("disks", &family::BLOCK_DEVICE.info),
            ("clients", &family::CLIENT_OPS.info),
            ("exports", &family::EXPORT_OPS.info),
        ];
        View {
            window_seconds: window.length.as_secs_f64(),
            host: host.to_owned(),
            coverage: rows.coverage(),
            ops: rows.ops(),
            pools: rows.pools(),
            rpc: rows.rpc(),
            logs: rows.logs(),
            disks: rows.disks(),
            clients: rows.clients(),
            exports: rows.exports(),
            held: window.delta.held.clone(),
            not_measured: sections
                .iter()
                .filter(|(_, info)| window.delta.series(info).is_empty())
                .map(|(name, _)| *name)
                .collect(),
            lost: rows.lost(),
            server_state: rows.server_state(),
            findings: rows.findings(),
            changes: rows.changes(),
            timed: times_operations(probes),
            not_attached: probes
                .iter()
                .filter(|p| !p.state.measures() && p.state != nfscope_model::ProbeState::Unused)
                .cloned()
                .collect(),
            probes: probes.clone(),
        }
    }

    /// This view with names of clients.
    pub fn naming(mut self, name: impl Fn(&str) -> Option<String>) -> View {
        for client in &mut self.clients {
            client.name = name(&client.client);
        }
        self
    }
}
