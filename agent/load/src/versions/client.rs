//! Mounts of a measurement on this client, and blocks on them. `nfscope versions` uses several mounts, a run of an experiment one.

use crate::versions::counters;
use crate::versions::export::Export;
use crate::versions::kind::Kind;
use crate::versions::site::{Common, Site};
use crate::workload::SizeName;
use crate::workload::fio::Stop;
use anyhow::Context;
use nfscope_baseline::versions::Block;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time before each block in which the client is watched without the load.
const QUIET: Duration = Duration::from_secs(1);

/// Mounts, and the files of their loads. Dropping the client removes all of them.
#[derive(Debug)]
pub struct Client {
    sites: Vec<Site>,
    common: Common,
    /// CPU time of this client without the load, and the seconds for which it was watched.
    quiet: (f64, f64),
}

impl Client {
    /// A client without a mount. `command` names its directories, here and on the export.
    ///
    /// # Errors
    /// When a directory cannot be made.
    pub fn new(
        command: &str,
        options: Option<String>,
        agent: Option<String>,
        size: SizeName,
        stop: Stop,
    ) -> anyhow::Result<Client> {
        let name = format!("nfscope-{command}-");
        let directory = tempfile::Builder::new().prefix(&name).tempdir();
        let directory = directory.context("cannot create a temporary directory")?;
        Ok(Client {
            sites: Vec::new(),
            common: Common {
                // Drop of `Client` removes the directory, and only while it is empty: exports are mounted below it.
                directory: directory.keep(),
                work: PathBuf::from(format!("{name}{}", std::process::id())),
                options,
                agent,
                runtime: QUIET,
                size,
                set: Vec::new(),
                stop,
            },
            quiet: (0.0, 0.0),
        })
    }

    /// Mounts an export over a version.
    ///
    /// # Errors
    /// When the server or the client refuses it.
    pub fn mount(&mut self, version: &str, export: &Export) -> anyhow::Result<()> {
        let site = Site::mount(version, export, &self.common)?;
        self.sites.push(site);
        Ok(())
    }

    /// The mounts, in the order in which they were made.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Path of the first mount.
    pub fn path(&self) -> Option<&Path> {
        self.sites.first().map(Site::root)
    }

    /// Sets the length of blocks, and parameters of a workload of fio.
    pub fn set(&mut self, runtime: Duration, parameters: Vec<(String, String)>) {
        self.common.runtime = runtime;
        self.common.set = parameters;
    }

    /// Makes the directory of this measurement on the export.
    ///
    /// # Errors
    /// When there is no mount, or the server refuses it.
    pub fn make_work(&self) -> anyhow::Result<()> {
        let first = self.sites.first().context("there is no mount")?;
        first.make_work(&self.common)
    }

    /// Makes the files of a load on a mount, and runs it once without counting.
    ///
    /// # Errors
    /// When the files cannot be made, or a call fails.
    pub fn warm_up(&mut self, site: usize, kind: Kind, threads: u32) -> anyhow::Result<()> {
        self.sites[site].warm_up(kind, threads, &self.common)
    }

    /// Runs a block of a load on a mount.
    ///
    /// # Errors
    /// When a call fails, or a signal arrives.
    pub fn block(&mut self, site: usize, kind: Kind, threads: u32) -> anyhow::Result<Block> {
        let background = match kind {
            // CPU time is too coarse for a single call.
            Kind::Open(_) => None,
            _ => self.watch_quiet(),
        };
        let length = self.common.runtime;
        self.sites[site].block(kind, threads, length, background, &self.common)
    }

    /// CPU time per second that this client uses without the load, from all quiet times so far.
    fn watch_quiet(&mut self) -> Option<f64> {
        let (busy, seconds) = counters::watch(QUIET.min(self.common.runtime))?;
        self.quiet.0 += busy;
        self.quiet.1 += seconds;
        Some(self.quiet.0 / self.quiet.1)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The other mounts end first: their clients may hold delegations, which the removal would recall.
        self.sites.truncate(1);
        if let Some(site) = self.sites.first() {
            site.remove_work(&self.common);
        }
        self.sites.clear();
        // The directory is empty unless an unmount has failed, which has been reported.
        let _ = fs::remove_dir(&self.common.directory);
    }
}
