//! `nfscope workload`: lists, shows and runs loads.

use crate::cli::UNREACHED;
use crate::cli::workload::{WorkloadCommand, WorkloadRunArgs};
use crate::workload::fio::{self, Stop, Stopped};
use crate::workload::fio_report::RunReport;
use crate::workload::stopping_rule::{self, StoppingRule};
use crate::workload::summary::{self, Intervals, Summary};
use crate::workload::work_dir::{self, WorkDir};
use crate::workload::{catalog, text};
use anyhow::Context;
use nfscope_text::progress_line::ProgressLine;
use std::time::{Duration, Instant};

/// Repeats where nobody says how many.
const DEFAULT_REPEATS: u32 = 5;
/// How long to go on for a narrow interval, where nobody says.
const MAX_DURATION: Duration = Duration::from_secs(3600);
/// What to print, and the exit code.
///
/// # Errors
/// When a workload cannot be run, with what to do.
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
                    true => serde_json::to_string(&summary)? + "\n",
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
    let fio = fio::version()?;
    let (dir, filesystem) = work_dir::locate(&args.dir)?;
    work_dir::check_space(&dir, size.needs)?;
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

    let stop = Stop::watch()?;
    let files = WorkDir::make(&dir, workload.name, args.keep)?;
    let mut variables = vec![
        ("DIR", files.for_fio()),
        ("RUNTIME", format!("{}s", args.runtime.as_secs())),
    ];
    variables.extend(size.variables.iter().map(|(k, v)| (*k, (*v).to_owned())));
    let fio_run = |options: &[&str]| fio::run(workload.job_file, options, &variables, &stop);

    let needs = work_dir::mebibytes(size.needs);
    progress.show(&format!("creating files of at most {needs}"));
    let measured = fio_run(&["--create_only=1"]).and_then(|_| {
        let one = || RunReport::parse(&fio_run(&[])?);
        stopping_rule::run_until(stopping_rule(args), args.metric, started, one, |t| {
            progress.show(t)
        })
    });
    progress.clear();
    let removed = files.remove();
    let (reports, time_up) = both(measured, removed)?;

    let runs: Vec<_> = reports.iter().map(|o| o.total).collect();
    let (autocorrelation, correlated) = summary::correlation(args.metric, &runs);
    warnings.extend(correlated);
    Ok(Summary {
        workload: workload.name,
        size: args.size.word(),
        directory: dir.display().to_string(),
        filesystem,
        fio,
        metric: args.metric,
        runtime_seconds: workload.is_timed().then_some(args.runtime.as_secs()),
        repeats: runs.len(),
        until_ci: args.until_ci,
        reached: args.until_ci.map(|_| !time_up),
        autocorrelation,
        warnings,
        total: Intervals::of(&runs),
        jobs: summary::jobs(&reports),
        runs,
    })
}

/// What went wrong first is the reason for the rest: a server that is gone fails fio, and keeps its files.
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
