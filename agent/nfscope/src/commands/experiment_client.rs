//! The client's side of a run: its mount, a command that runs to its end, and a load of `nfscope versions`.

use super::experiment_file::{Block, Measure, PlanFile};
use super::experiment_numbers::numbers;
use super::experiment_shell::Shell;
use crate::versions::counters;
use crate::versions::kind::{self, Kind};
use crate::versions::site::{Common, Site};
use crate::workload::SizeName;
use crate::workload::fio::Stop;
use anyhow::{Context, bail};
use nfscope_baseline::experiment::Run;
use nfscope_baseline::versions::Metric;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for which the client is watched without the load.
const QUIET: Duration = Duration::from_secs(1);

/// The mount of a run. Dropping it removes the mount and the files of its load.
pub(super) struct Client {
    site: Option<Site>,
    common: Common,
}

impl Client {
    /// Makes the mount of a run, if its file has one.
    ///
    /// # Errors
    /// When the server or the client refuses it.
    pub(super) fn mount(
        file: &PlanFile,
        run: &Run,
        agent: Option<&str>,
        stop: &Stop,
    ) -> anyhow::Result<Option<Client>> {
        let Some(mount) = &file.mount else {
            return Ok(None);
        };
        anyhow::ensure!(
            rustix::process::geteuid().is_root(),
            "only root can mount; fix: sudo nfscope experiment ..."
        );
        let options = file.filled(&mount.options, run, None);
        let (versions, others): (Vec<&str>, Vec<&str>) =
            options.split(',').partition(|o| o.starts_with("vers="));
        let version = versions.first().and_then(|o| o.strip_prefix("vers="));
        let version = version.context("the mount has no vers=")?;
        let source = match (&mount.v3_source, version) {
            (Some(source), "3") => source,
            _ => &mount.source,
        };
        let source = file.filled(source, run, None);
        let export = source
            .parse()
            .map_err(|e| anyhow::anyhow!("mount: {source}: {e}"))?;
        let directory = tempfile::Builder::new()
            .prefix("nfscope-experiment-")
            .tempdir();
        let directory = directory.context("cannot create a temporary directory")?;
        let mut client = Client {
            site: None,
            common: Common {
                // Client removes it, and only while it is empty: the export is mounted below it.
                directory: directory.keep(),
                work: PathBuf::from(format!("nfscope-experiment-{}", std::process::id())),
                options: (!others.is_empty()).then(|| others.join(",")),
                agent: agent.map(str::to_owned),
                runtime: QUIET,
                size: SizeName::Small,
                set: Vec::new(),
                stop: stop.clone(),
            },
        };
        let site = Site::mount(version, &export, &client.common);
        client.site = Some(site.with_context(|| format!("cannot mount {source} with {options}"))?);
        Ok(Some(client))
    }

    /// Path of the mount.
    pub(super) fn path(&self) -> Option<&Path> {
        self.site.as_ref().map(Site::root)
    }

    /// The figures of a load, by name.
    fn block(
        &mut self,
        kind: Kind,
        threads: u32,
        runtime: Duration,
        set: Vec<(String, String)>,
    ) -> anyhow::Result<BTreeMap<String, f64>> {
        self.common.runtime = runtime;
        self.common.set = set;
        let common = &self.common;
        let site = self.site.as_mut().context("there is no mount")?;
        site.make_work(common)?;
        site.warm_up(kind, threads, common)?;
        // One call is too short for CPU time.
        let quiet = match kind {
            Kind::Open(_) => None,
            _ => counters::watch(QUIET.min(runtime)).map(|(busy, seconds)| busy / seconds),
        };
        let block = site.block(kind, threads, runtime, quiet, common)?;
        let each = Metric::ALL.into_iter();
        let own = each.filter_map(|m| Some((m.number().to_owned(), m.of(&block)?)));
        Ok(own.chain(block.numbers.clone()).collect())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(site) = &self.site {
            site.remove_work(&self.common);
        }
        self.site = None;
        // The directory is empty unless the unmount has failed, which has been told.
        let _ = fs::remove_dir(&self.common.directory);
    }
}

/// The numbers of a run that no recording measures. `most` limits the time of a load; a command runs to its end.
///
/// # Errors
/// When it fails, or a number is missing.
pub(super) fn measured(
    file: &PlanFile,
    run: &Run,
    shell: &Shell,
    client: Option<&mut Client>,
    most: Option<Duration>,
) -> anyhow::Result<BTreeMap<String, f64>> {
    match &file.run.measure {
        Measure::Record(_) => Ok(BTreeMap::new()),
        Measure::Command(text) => {
            let at = client.as_ref().and_then(|c| c.path());
            let said = shell.run(&file.filled(text, run, at))?;
            numbers(&file.run.numbers, Some(&said), 0)
        }
        Measure::Workload(block) => {
            let (kind, threads) = kind_of(file, block, run)?;
            let runtime = most.map_or(block.runtime, |most| most.min(block.runtime));
            let client = client.context("there is no mount")?;
            let set = block.set.iter();
            let set = set.map(|(name, value)| (name.clone(), file.filled(value, run, None)));
            client.block(kind, threads, runtime, set.collect())
        }
    }
}

/// The load and the threads of a run.
///
/// # Errors
/// When there is no such load.
pub(super) fn kind_of(file: &PlanFile, block: &Block, run: &Run) -> anyhow::Result<(Kind, u32)> {
    let name = file.filled(&block.workload, run, None);
    let kinds = kind::named(&name).map_err(|e| anyhow::anyhow!("workload: {e}"))?;
    let [kind] = kinds[..] else {
        bail!("workload: `{name}` are several; fix: name one, such as open-4");
    };
    let text = file.filled(&block.threads, run, None);
    let threads = text.parse().ok().filter(|n| (1..=1024).contains(n));
    let threads =
        threads.with_context(|| format!("threads: `{text}` is no number from 1 to 1024"))?;
    Ok((kind, threads))
}
