//! The client's side of a run: its mount, a command that runs to its end, and a load of `nfscope versions`.

use super::experiment_file::{Block, Measure, PlanFile};
use super::experiment_numbers::numbers;
use super::experiment_shell::Shell;
use crate::versions::client::Client;
use crate::versions::kind::{self, Kind};
use crate::workload::SizeName;
use crate::workload::fio::Stop;
use anyhow::{Context, bail, ensure};
use nfscope_baseline::experiment::Run;
use nfscope_baseline::versions::Metric;
use nfscope_text::units::length;
use std::collections::BTreeMap;
use std::time::Duration;

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
    ensure!(
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
    let others = (!others.is_empty()).then(|| others.join(","));
    let (agent, size) = (agent.map(str::to_owned), SizeName::Small);
    let mut client = Client::new("experiment", others, agent, size, stop.clone())?;
    client
        .mount(version, &export)
        .with_context(|| format!("cannot mount {source} with {options}"))?;
    Ok(Some(client))
}

/// The figures of a load on the mount of a run, by name.
fn figures(
    client: &mut Client,
    kind: Kind,
    threads: u32,
    runtime: Duration,
    set: Vec<(String, String)>,
) -> anyhow::Result<BTreeMap<String, f64>> {
    client.set(runtime, set);
    client.make_work()?;
    client.warm_up(0, kind, threads)?;
    let block = client.block(0, kind, threads)?;
    ensure!(
        block.host_ops > 0,
        "{} made no operation in {}; fix: a longer runtime",
        kind.name(),
        length(runtime)
    );
    let each = Metric::ALL.into_iter();
    let own = each.filter_map(|m| Some((m.number().to_owned(), m.of(&block)?)));
    Ok(own.chain(block.numbers.clone()).collect())
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
            figures(client, kind, threads, runtime, set.collect())
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
