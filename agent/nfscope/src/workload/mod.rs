//! `nfscope workload`: lists, shows and runs workloads.

pub mod cli;
pub(crate) mod record;
pub(crate) mod runs;

use crate::cli::UNREACHED;
use crate::workload::cli::{WorkloadCommand, WorkloadRunArgs};
use crate::workload::record::WorkloadRecorder;
use crate::workload::runs::Runs;
use anyhow::Context;
use nfscope_api::build_info::VERSION;
use nfscope_baseline::store::State;
use nfscope_load::workload::fio::{self, Stop, Stopped};
use nfscope_load::workload::open_loop::Mix;
use nfscope_load::workload::parameters::{self, Set};
use nfscope_load::workload::stopping_rule::{self, StoppingRule};
use nfscope_load::workload::summary::{self, Intervals, Summary, UnitResult};
use nfscope_load::workload::work_dir::{self, WorkDir};
use nfscope_load::workload::{catalog, text};
use nfscope_stats::MIN_WINDOWS;
use nfscope_text::console;
use nfscope_text::progress_line::ProgressLine;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Default number of repeats.
const DEFAULT_REPEATS: u32 = 5;
/// Default time limit of `--until-ci`.
const MAX_DURATION: Duration = Duration::from_secs(3600);
/// Runs a command of `nfscope workload`; returns its output and the exit code.
///
/// # Errors
/// When a workload cannot be run; the error says what to do.
pub fn run(command: &WorkloadCommand) -> anyhow::Result<(String, u8)> {
    match command {
        WorkloadCommand::List => Ok((catalog::list(), 0)),
        WorkloadCommand::Show { name } => Ok((name.job_file.to_owned(), 0)),
        WorkloadCommand::Run(args) => match measure(args) {
            Ok(summary) => {
                let code = if summary.reached == Some(false) {
                    UNREACHED
                } else {
                    0
                };
                let page = match args.json {
                    true => console::json(&summary)?,
                    false => text::text(&summary),
                };
                Ok((page, code))
            }
            Err(e) => match e.downcast_ref::<Stopped>() {
                Some(Stopped(signal)) => Ok((String::new(), 128 + signal)),
                None => Err(e),
            },
        },
    }
}

fn measure(args: &WorkloadRunArgs) -> anyhow::Result<Summary> {
    let started = Instant::now();
    let workload = args.name;
    let size = workload
        .size(args.size)
        .context("the job file does not define its sizes")?;
    let (dir, filesystem) = work_dir::locate(&args.dir)?;
    let set = Set {
        values: args.set.clone(),
        threads: args.threads,
        depth: args.depth,
        rate: args.rate,
    };
    let (parameters, needs) = parameters::variables(workload, &size, &set)?;
    let mix = match args.rate {
        Some(_) => Mix::of(workload, &parameters)?,
        None => None,
    };
    let (is_open, phases) = (mix.is_some(), mix.is_none() && workload.has_phases());
    let fio = match is_open {
        true => format!("open loop of nfscope {VERSION}"),
        false => fio::version()?,
    };
    work_dir::check_space(&dir, needs)?;
    let mut warnings = Vec::new();
    if filesystem.as_ref().is_none_or(|f| f.version.is_none()) {
        let kind = filesystem
            .as_ref()
            .map_or("of an unknown type", |f| &f.kind);
        warnings.push(format!(
            "{} is {kind}, not an NFS mount: these figures describe this host only",
            dir.display()
        ));
    }
    let mut progress = ProgressLine::new(Duration::ZERO);
    match &filesystem {
        Some(f) if f.version.is_some() => {
            progress.say(&format!("{} is {}", dir.display(), f.name()))
        }
        _ => progress.say(&format!("warning: {}", warnings[0])),
    }

    let of_run: BTreeMap<_, _> = parameters.iter().cloned().collect();
    let open =
        |name: &String| WorkloadRecorder::open(args, name, phases, filesystem.as_ref(), &of_run);
    let mut recorder = args.record.as_ref().map(open).transpose()?;
    if let Some(recorder) = &recorder {
        progress.say(&recorder.source());
        let repeats = args.repeats.unwrap_or(DEFAULT_REPEATS) as usize;
        if phases && args.until_ci.is_none() && repeats < MIN_WINDOWS {
            warnings.push(format!(
                "a repeat of {} is one window of its recording, and a comparison needs {MIN_WINDOWS} on each side; fix: use --repeats {MIN_WINDOWS}",
                workload.name
            ));
        }
    }
    let stop = Stop::watch()?;
    let files = WorkDir::make(&dir, workload.name, args.keep)?;
    progress.show(&format!(
        "creating files of at most {}",
        work_dir::mebibytes(needs)
    ));
    let mut given_up = None;
    let runs = Runs::prepare(args, mix, &parameters, &files, &stop);
    let measured = runs.and_then(|mut runs| {
        let one = || runs.next(&mut recorder);
        let measured =
            stopping_rule::run_until(stopping_rule(args), args.metric, started, one, |t| {
                progress.show(t)
            });
        given_up = runs.warning();
        measured
    });
    progress.clear();
    let removed = files.remove();
    let state = match &measured {
        Ok((_, false)) => State::Complete,
        Ok((_, true)) => State::Unreached,
        Err(_) => State::Stopped,
    };
    let kept = recorder.map_or(Ok(None), |r| r.end(state));
    if let Ok(Some(kept)) = &kept {
        progress.say(kept);
    }
    let (reports, time_up) = both(measured, removed.and(kept.map(|_| ())))?;

    let runs: Vec<_> = reports.iter().map(|o| o.total).collect();
    let (autocorrelation, correlated) = summary::correlation(args.metric, &runs);
    warnings.extend(correlated);
    warnings.extend(summary::failures(&reports));
    warnings.extend(summary::short(&reports));
    warnings.extend(given_up);
    let parameters = of_run;
    let value = |name: &str| parameters.get(name).map_or("", String::as_str);
    if let Some((rate, open)) = args.rate.zip(workload.open_loop()) {
        warnings.extend(summary::open_loop(open.job, rate, value("DEPTH"), &reports));
    }
    let unit = workload.unit().map(|unit| {
        let processes = value(unit.by).parse().unwrap_or(1.0);
        match is_open {
            true => UnitResult::of_requests(unit, &reports),
            false => UnitResult::of(unit, processes, &reports),
        }
    });
    Ok(Summary {
        workload: workload.name,
        size: args.size.word(),
        directory: dir.display().to_string(),
        filesystem,
        fio,
        metric: args.metric,
        runtime_seconds: (is_open || workload.is_timed()).then_some(args.runtime.as_secs()),
        repeats: runs.len(),
        until_ci: args.until_ci,
        reached: args.until_ci.map(|_| !time_up),
        autocorrelation,
        warnings,
        total: Intervals::of(&runs),
        jobs: summary::jobs(&reports),
        unit,
        parameters,
        runs,
    })
}

/// Reports the error of the measurement first, which causes the other: if the server is gone, fio fails, and its files stay.
fn both<T>(measured: anyhow::Result<T>, removed: anyhow::Result<()>) -> anyhow::Result<T> {
    match (measured, removed) {
        (Ok(measured), removed) => removed.map(|()| measured),
        (Err(e), Ok(())) => Err(e),
        (Err(e), Err(more)) => Err(anyhow::anyhow!("{e:#}; and {more:#}")),
    }
}

fn stopping_rule(args: &WorkloadRunArgs) -> StoppingRule {
    match args.until_ci {
        Some(relative) => StoppingRule::Narrow {
            relative,
            at_most: args.at_most.unwrap_or(MAX_DURATION),
        },
        None => StoppingRule::Repeats(args.repeats.unwrap_or(DEFAULT_REPEATS) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_stay_hide_no_error_of_fio() {
        let bad = |why: &'static str| anyhow::anyhow!(why);
        assert_eq!(both(Ok(1), Ok(())).unwrap(), 1);
        let e = both::<()>(Err(bad("fio failed")), Ok(())).unwrap_err();
        assert_eq!(e.to_string(), "fio failed");
        assert!(both(Ok(1), Err(bad("rm -r it"))).is_err());
        let e = both::<()>(Err(bad("fio failed")), Err(bad("rm -r it"))).unwrap_err();
        assert_eq!(e.to_string(), "fio failed; and rm -r it");
    }
}
