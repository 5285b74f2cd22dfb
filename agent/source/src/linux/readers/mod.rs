//! Readers, which fill a snapshot. Each keeps the values that it compares the next reading with, and handles the attachment and detachment
//! of its probe.

mod block;
mod client;
mod lockd;
mod nfsd;
mod watched;

use super::host::cpu;
use super::host::device_names::DeviceNames;
use super::host::diskstats::Busy;
use super::host::export_devices::ExportDevices;
use super::host::facts::Facts;
use super::host::nfs4_state::Nfs4State;
use super::host::server_state::ServerState;
use super::load::maps::Shared;
use super::load::object::Loaded;
use super::probes::Probes;
use super::read::zfs::Zfs;
use super::read::{LOGS, logs, probe_runs};
use crate::host_table;
use crate::source::Options;
use block::Block;
use client::Client;
use lockd::Lockd;
use nfscope_model::{Snapshot, family};
use nfsd::Nfsd;
use std::time::Instant;

/// Input that all readers share: options of the agent, facts about the host, and the probes.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    pub options: &'a Options,
    pub facts: &'a Facts,
    pub probes: &'a Probes,
}

/// Hooks of a reader for the attachment and detachment of its probe.
trait Reader {
    /// Name of the probe.
    fn probe(&self) -> &'static str;

    /// Called when the probe was attached, with empty tables.
    fn comes(&mut self, _l: &Loaded, _options: &Options) {}

    /// Called before the probe is detached.
    fn goes(&mut self, _l: &Loaded) {}

    /// Called when the probe was detached. Tables in `shared` outlive it.
    fn gone(&mut self, _shared: &Shared, _options: &Options) {}
}

/// All readers.
pub struct Readers {
    /// NFS requests. The agent asks it for more than snapshots: requests in hand, single operations and break-downs.
    pub nfsd: Nfsd,
    block: Block,
    lockd: Lockd,
    client: Client,
    zfs: Zfs,
    devices: DeviceNames,
    export_devices: ExportDevices,
    nfs4_state: Nfs4State,
    server_state: ServerState,
    busy: Busy,
}

impl Readers {
    /// Readers that have read nothing yet.
    pub fn new(options: &Options) -> Readers {
        Readers {
            nfsd: Nfsd::new(options),
            block: Block::default(),
            lockd: Lockd::default(),
            client: Client::default(),
            zfs: Zfs::default(),
            devices: DeviceNames::default(),
            export_devices: ExportDevices::default(),
            nfs4_state: Nfs4State::default(),
            server_state: ServerState::default(),
            busy: Busy::default(),
        }
    }

    /// Readers with state of this probe.
    fn of(&mut self, probe: &str) -> impl Iterator<Item = &mut dyn Reader> {
        let all: [&mut dyn Reader; 4] = [
            &mut self.nfsd,
            &mut self.block,
            &mut self.lockd,
            &mut self.client,
        ];
        all.into_iter().filter(move |r| r.probe() == probe)
    }

    /// See [`Reader::comes`].
    pub fn comes(&mut self, probe: &str, l: &Loaded, options: &Options) {
        self.of(probe).for_each(|r| r.comes(l, options));
    }

    /// See [`Reader::goes`].
    pub fn goes(&mut self, probe: &str, l: &Loaded) {
        self.of(probe).for_each(|r| r.goes(l));
    }

    /// See [`Reader::gone`].
    pub fn gone(&mut self, probe: &str, shared: &Shared, options: &Options) {
        self.of(probe).for_each(|r| r.gone(shared, options));
    }

    /// Fills a snapshot.
    pub fn read(&mut self, here: Here, s: &mut Snapshot) {
        let probes = here.probes;
        self.devices.begin();
        self.nfsd.read(here, s);
        self.export_devices.read(&mut self.devices, s);
        let mounts = self.export_devices.mounts();
        let (loaded, states) = (&probes.loaded, &probes.states);
        logs::read(&LOGS, loaded, states, mounts, &mut self.devices, s);
        self.block.read(probes, &mut self.devices, s);
        self.lockd.read(probes, s);
        self.client.read(probes, s);
        self.nfs4_state.read(s);
        self.server_state.read(s);
        self.busy.read(&mut self.devices, s);
        let start = Instant::now();
        self.zfs.read(probes.get("zfs"), s);
        if probes.get("zfs").is_some() {
            took(start, "zfs", s);
        }
        // Exports without durable writes depend on properties of datasets, which the reader of ZFS has added.
        self.export_devices.not_durable(s);
        self.nfsd.read_durable(here, &self.export_devices, s);
        cpu::read(s);
        probe_runs::read(loaded, here.options.probe_stats, s);
        host_table::count(s);
    }
}

/// Adds the time that reading a probe's tables took.
fn took(start: Instant, probe: &str, s: &mut Snapshot) {
    let seconds = start.elapsed().as_secs_f64();
    s.gauge(&family::PROBE_READ_SECONDS, [probe], seconds);
}
