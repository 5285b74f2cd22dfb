//! Client side of a run: its mount, its command, and its workload of `nfscope versions`.

use crate::experiment::file::{Block, Measure, PlanFile};
use crate::experiment::numbers::numbers;
use crate::experiment::shell::Shell;
use anyhow::{Context, bail, ensure};
use nfscope_baseline::experiment::Run;
use nfscope_baseline::versions::{Block as Measured, Metric};
use nfscope_load::versions::client::Client;
use nfscope_load::versions::export::Export;
use nfscope_load::versions::kind::{self, Kind};
use nfscope_load::versions::site;
use nfscope_load::workload::SizeName;
use nfscope_load::workload::fio::Stop;
use nfscope_text::units::length;
use std::collections::BTreeMap;
use std::time::Duration;

/// Data set size of the fio workloads.
const SIZE: SizeName = SizeName::Small;

/// Mount that a run needs.
pub(super) struct Wanted {
    pub export: Export,
    pub version: String,
    /// Mount options without `vers=`.
    pub others: Option<String>,
}

/// Mount that a run needs, by its levels; `None` if the plan file has no `[mount]`.
///
/// # Errors
/// When the options have no `vers=`, or the source is not an export.
pub(super) fn wanted(file: &PlanFile, run: &Run) -> anyhow::Result<Option<Wanted>> {
    let Some(mount) = &file.mount else {
        return Ok(None);
    };
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
    Ok(Some(Wanted {
        export,
        version: version.to_owned(),
        others: (!others.is_empty()).then(|| others.join(",")),
    }))
}

/// Mounts the export of a run, if the plan file has a `[mount]`.
///
/// # Errors
/// When this process is not root, or the server or the client refuses the mount.
pub(super) fn mount(
    file: &PlanFile,
    run: &Run,
    agent: Option<&str>,
    stop: &Stop,
) -> anyhow::Result<Option<Client>> {
    let Some(wanted) = wanted(file, run)? else {
        return Ok(None);
    };
    ensure!(
        rustix::process::geteuid().is_root(),
        "only root can mount; fix: sudo nfscope experiment ..."
    );
    let told = format!(
        "cannot mount {} with vers={}{}",
        wanted.export.source(),
        wanted.version,
        wanted
            .others
            .as_ref()
            .map_or(String::new(), |o| format!(",{o}"))
    );
    let agent = agent.map(str::to_owned);
    let mut client = Client::new("experiment", wanted.others, agent, SIZE, stop.clone())?;
    client
        .mount(&wanted.version, &wanted.export)
        .with_context(|| told)?;
    Ok(Some(client))
}

/// Numbers of a workload on the mount of a run, by name.
fn figures(
    client: &mut Client,
    kind: Kind,
    threads: u32,
    runtime: Duration,
    set: Vec<(String, String)>,
    knob: &str,
) -> anyhow::Result<BTreeMap<String, f64>> {
    client.set(runtime, set);
    client.make_work()?;
    client.warm_up(0, kind, threads)?;
    let block = client.block(0, kind, threads)?;
    numbers_of(&block, kind, runtime, knob)
}

/// Numbers of a measured block, by name. `knob` is the option that makes the block longer, for the error.
///
/// # Errors
/// When the block has no operation: nothing was measured.
fn numbers_of(
    block: &Measured,
    kind: Kind,
    runtime: Duration,
    knob: &str,
) -> anyhow::Result<BTreeMap<String, f64>> {
    ensure!(
        block.host_ops > 0,
        "{} made no operation in {}; fix: a longer {knob}",
        kind.name(),
        length(runtime)
    );
    let each = Metric::ALL.into_iter();
    let own = each.filter_map(|m| Some((m.number().to_owned(), m.of(block)?)));
    Ok(own.chain(block.numbers.clone()).collect())
}

/// Numbers of a run that a command or a workload measures; none for a recording. `most` limits the time of a workload; a command runs to
/// its end.
///
/// # Errors
/// When the command or the workload fails, or a number is missing.
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
            // `nfscope experiment check` runs a workload for less time than the runs do.
            let (runtime, knob) = match most {
                Some(most) if most < block.runtime => (most, "--duration"),
                _ => (block.runtime, "runtime in [run]"),
            };
            let client = client.context("there is no mount")?;
            let set = parameters(file, block, run);
            figures(client, kind, threads, runtime, set, knob)
        }
    }
}

/// Workload of a run, and its threads.
///
/// # Errors
/// When there is no such workload, its name means several, or the threads are not 1 to 1024.
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

/// Parameters of the fio workload of a run, with its levels filled in.
pub(super) fn parameters(file: &PlanFile, block: &Block, run: &Run) -> Vec<(String, String)> {
    let set = block.set.iter();
    let set = set.map(|(name, value)| (name.clone(), file.filled(value, run, None)));
    set.collect()
}

/// Checks that the workload of a run exists, and that a fio workload has the parameters that are set.
///
/// # Errors
/// When there is no such workload, or it has no such parameter.
pub(super) fn check_workload(file: &PlanFile, block: &Block, run: &Run) -> anyhow::Result<()> {
    let (kind, threads) = kind_of(file, block, run)?;
    match kind {
        Kind::Workload(w) => {
            let set = parameters(file, block, run);
            let made = site::variables(w, threads, SIZE, set);
            made.map(drop).context("workload")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_without_an_operation_has_failed() {
        let of = |ops: u64, knob: &str| {
            let block = Measured {
                host_ops: ops,
                seconds: 2.0,
                ..Measured::default()
            };
            numbers_of(&block, Kind::Reads, Duration::from_secs(2), knob)
        };
        assert_eq!(of(6, "").unwrap()["operations_per_second"], 3.0);
        for knob in ["runtime in [run]", "--duration"] {
            let why = of(0, knob).unwrap_err().to_string();
            let expected = format!("reads made no operation in 2 s; fix: a longer {knob}");
            assert_eq!(why, expected);
        }
    }
}
