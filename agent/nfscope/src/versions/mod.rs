//! `nfscope versions`: mounts an export over several versions of NFS and compares them.

pub(crate) mod bench;
pub mod cli;

use crate::cli::UNREACHED;
use crate::versions::bench::Bench;
use crate::versions::cli::VersionsArgs;
use anyhow::Context;
use nfscope_baseline::versions::{self, Report, Setting};
use nfscope_load::versions::export::PORT;
use nfscope_load::workload::fio::Stopped;
use nfscope_text::console::{self, say};
use std::fs;
use std::time::Duration;

/// Runs the comparison; returns the output and the exit code.
///
/// # Errors
/// When no version can be measured; the error says what to do.
pub fn run(args: &VersionsArgs) -> anyhow::Result<(String, u8)> {
    anyhow::ensure!(
        cfg!(target_os = "linux"),
        "nfscope versions measures Linux's NFS client; fix: run it on a Linux client of this server"
    );
    anyhow::ensure!(
        rustix::process::geteuid().is_root(),
        "only root can mount; fix: sudo nfscope versions ..."
    );
    let report = match measure(args) {
        Ok(report) => report,
        Err(e) => {
            return match e.downcast_ref::<Stopped>() {
                Some(Stopped(signal)) => Ok((String::new(), 128 + signal)),
                None => Err(e),
            };
        }
    };
    if let Some(path) = &args.html {
        fs::write(path, versions::page(&report))
            .with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("wrote {}", path.display()));
    }
    let code = match report.setting.reached {
        Some(false) => UNREACHED,
        _ => 0,
    };
    let page = match args.json {
        true => console::json(&report)?,
        false => console::plain(&versions::text(&report)),
    };
    Ok((page, code))
}

fn measure(args: &VersionsArgs) -> anyhow::Result<Report> {
    let mut bench = Bench::open(args)?;
    let mut setting = Setting {
        source: args.export.source(),
        runtime_seconds: args.runtime.as_secs_f64(),
        threads: args.threads,
        seed: args.seed,
        mount_options: args.mount_options.clone(),
        agent: args.url.clone(),
        round_trip_seconds: round_trip(args).map(|d| d.as_secs_f64()),
        until_ci: args.until_ci,
        ..Setting::default()
    };
    let report = if args.scale.is_empty() {
        let (loads, reached) = bench.compare(args)?;
        setting.rounds = loads.iter().map(|l| l.rounds.len()).max().unwrap_or(0);
        setting.reached = reached;
        let (loads, comparisons) =
            versions::compare(&bench.versions(), &loads, setting.round_trip_seconds);
        Report {
            setting,
            loads,
            comparisons,
            scale: None,
        }
    } else {
        let (load, rounds, blocks) = bench.scale(args)?;
        setting.rounds = rounds;
        setting.threads = args.scale.iter().copied().max().unwrap_or(0);
        Report {
            setting,
            loads: Vec::new(),
            comparisons: 0,
            scale: Some(versions::scale(&load, &bench.versions(), &blocks)),
        }
    };
    Ok(bench.told(report))
}

/// Time of a TCP handshake with the port that the mounts use.
fn round_trip(args: &VersionsArgs) -> Option<Duration> {
    let options = args.mount_options.as_deref().unwrap_or_default();
    let port = options.split(',').find_map(|o| o.strip_prefix("port="));
    let port = port.and_then(|p| p.parse().ok()).unwrap_or(PORT);
    args.export.round_trip(port)
}
