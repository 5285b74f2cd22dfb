//! The client's side of a run: its mount, a command that runs to its end, and a load of `nfscope versions`.

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

/// Amount of data of a workload of fio.
const SIZE: SizeName = SizeName::Small;

/// The mount of a run.
pub(super) struct Wanted {
    pub export: Export,
    pub version: String,
    /// Options beside the version.
    pub others: Option<String>,
}

/// The mount that a run has by its levels, if its file has one.
///
/// # Errors
/// When the options have no version, or the source is none.
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

/// The figures of a load on the mount of a run, by name.
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

/// The numbers of a block by name. `knob` makes it longer.
///
/// # Errors
/// When it has no operation: nothing was measured.
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
            // A check is shorter than the runs that it tries.
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

/// The parameters of a workload of fio, by the levels of a run.
pub(super) fn parameters(file: &PlanFile, block: &Block, run: &Run) -> Vec<(String, String)> {
    let set = block.set.iter();
    let set = set.map(|(name, value)| (name.clone(), file.filled(value, run, None)));
    set.collect()
}

/// Checks that the load of a run is one that there is, and that a workload of fio has the parameters that are set.
///
/// # Errors
/// When it is none, or has no such parameter.
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
