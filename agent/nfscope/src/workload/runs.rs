//! Runs of a workload, one after the other: by fio, or as an open loop.

use crate::workload::cli::WorkloadRunArgs;
use crate::workload::record::WorkloadRecorder;
use nfscope_load::workload::catalog::Workload;
use nfscope_load::workload::fio::{self, Stop};
use nfscope_load::workload::fio_report::RunReport;
use nfscope_load::workload::open_loop::{self, Laid, Load, Mix};
use nfscope_load::workload::pages::{self, PageLogs};
use nfscope_load::workload::parameters;
use nfscope_load::workload::work_dir::WorkDir;
use nfscope_text::units;
use std::time::{Duration, Instant};

/// Default number of requests in flight of an open loop.
const WORKERS: u32 = 64;

/// Time after the end of a repeat at which requests of an open loop that still wait are dropped.
const GRACE: Duration = Duration::from_secs(10);

/// Runner of a workload.
pub(super) struct Runs<'a> {
    workload: Workload,
    stop: &'a Stop,
    by: By,
    /// Duration of the first run, which is the warm-up.
    warm_up: Option<Duration>,
    /// Requests of open loops that were given up after [`GRACE`].
    given_up: u64,
    /// Repeats of open loops whose requests ended later than the repeat should.
    behind: u32,
}

enum By {
    Fio {
        variables: Vec<(&'static str, String)>,
        job_file: String,
        pages: Option<PageLogs>,
    },
    OpenLoop {
        mix: Mix,
        load: Load,
        laid: Laid,
        seed: u64,
    },
}

type Tell<'a> = &'a mut dyn FnMut(&RunReport) -> anyhow::Result<()>;

impl<'a> Runs<'a> {
    /// Creates the files of the workload.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn prepare(
        args: &WorkloadRunArgs,
        mix: Option<Mix>,
        parameters: &[(&'static str, String)],
        files: &WorkDir,
        stop: &'a Stop,
    ) -> anyhow::Result<Runs<'a>> {
        let workload = args.name;
        let by = match (mix, args.rate) {
            (Some(mix), Some(rate)) => {
                let load = Load {
                    rate,
                    workers: args.depth.unwrap_or(WORKERS) as usize,
                    length: args.runtime,
                    grace: GRACE,
                };
                let laid = open_loop::lay_out(files.path(), &mix, load.workers, stop)?;
                let seed = 1;
                By::OpenLoop {
                    mix,
                    load,
                    laid,
                    seed,
                }
            }
            _ => {
                let mut variables = vec![
                    ("DIR", files.for_fio()),
                    ("RUNTIME", format!("{}s", args.runtime.as_secs())),
                ];
                variables.extend(parameters.iter().cloned());
                let pages = workload.unit().map(|_| PageLogs::make()).transpose()?;
                if let Some(pages) = &pages {
                    variables.push(("PAGES", pages.prefix().display().to_string()));
                }
                let job_file = parameters::job_file(workload, parameters)?;
                fio::run(
                    &job_file,
                    &["--create_only=1"],
                    &variables,
                    stop,
                    |_| Ok(()),
                )?;
                By::Fio {
                    variables,
                    job_file,
                    pages,
                }
            }
        };
        Ok(Runs {
            workload,
            stop,
            by,
            warm_up: None,
            given_up: 0,
            behind: 0,
        })
    }

    /// Makes the next run. The first one is the warm-up, and is not recorded.
    ///
    /// # Errors
    /// When the run fails, or its results cannot be recorded.
    pub(super) fn next(
        &mut self,
        recorder: &mut Option<WorkloadRecorder>,
    ) -> anyhow::Result<RunReport> {
        let begun = Instant::now();
        let Some(warm_up) = self.warm_up else {
            let report = self.once(&[], None, &mut |_| Ok(()));
            (self.given_up, self.behind) = (0, 0);
            self.warm_up = Some(begun.elapsed());
            return report;
        };
        let Some(recorder) = recorder else {
            return self.once(&[], None, &mut |_| Ok(()));
        };
        let (options, window) = (recorder.options(), recorder.window());
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        recorder.begin(warm_up)?;
        let report = self.once(&options, window, &mut |report| recorder.report(report))?;
        recorder.end_repeat()?;
        Ok(report)
    }

    fn once(
        &mut self,
        options: &[&str],
        window: Option<Duration>,
        tell: Tell,
    ) -> anyhow::Result<RunReport> {
        match &mut self.by {
            By::OpenLoop {
                mix,
                load,
                laid,
                seed,
            } => {
                *seed += 1;
                let (report, given_up) =
                    open_loop::run(laid, mix, load, *seed, window, self.stop, tell)?;
                self.given_up += given_up;
                let took = report.totals.iter().map(|t| t.2.seconds());
                self.behind += u32::from(took.fold(0.0, f64::max) > load.length.as_secs_f64());
                Ok(report)
            }
            By::Fio {
                variables,
                job_file,
                pages,
            } => {
                let last = fio::run(job_file, options, variables, self.stop, |report| {
                    match RunReport::parse(report) {
                        Ok(report) => tell(&report),
                        // The report is empty so far. An error in the last report is returned below.
                        Err(_) => Ok(()),
                    }
                })?;
                let mut report = RunReport::parse(&last)?;
                if let Some((pages, unit)) = pages.as_ref().zip(self.workload.unit()) {
                    let mut all = pages.take(unit.count as usize)?;
                    report.unit = [0.5, 0.99].map(|q| pages::quantile(&mut all, q));
                }
                Ok(report)
            }
        }
    }

    /// Warning about the results of open loops, if any.
    pub(super) fn warning(&self) -> Option<String> {
        let given_up = match self.given_up {
            0 => String::new(),
            n => format!(
                ". {n} requests still waited 10 s after the end of their repeat: no latency has them"
            ),
        };
        (self.given_up > 0 || self.behind > 0).then(|| {
            format!(
                "requests of {} waited until more than a second after its end: the server does not keep up with this rate, and a longer --runtime \
                 has longer latencies{given_up}; fix: use a lower --rate, or a larger --depth",
                units::many(f64::from(self.behind.max(1)), "repeat")
            )
        })
    }
}
