//! What all repeats together say.

use crate::workload::fio_report::{Figures, RunReport};
use crate::workload::stopping_rule::Metric;
use crate::workload::work_dir::FileSystem;
use nfscope_stats::mean_interval::{CORRELATED, Interval, autocorrelation};
use serde::Serialize;

/// A workload's result; its JSON is this, field by field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Name of the workload.
    pub workload: &'static str,
    /// `small`, `medium` or `large`.
    pub size: &'static str,
    /// Where it ran.
    pub directory: String,
    /// On what.
    pub filesystem: Option<FileSystem>,
    /// Version of fio.
    pub fio: String,
    /// The figure that was watched.
    pub metric: Metric,
    /// Length that a repeat was given; `None` where its work ends it.
    pub runtime_seconds: Option<u64>,
    /// Repeats that count.
    pub repeats: usize,
    /// What the interval was to reach.
    pub until_ci: Option<f64>,
    /// Whether it did.
    pub reached: Option<bool>,
    /// Of the watched figure, at lag 1.
    pub autocorrelation: Option<f64>,
    /// What the reader must know.
    pub warnings: Vec<String>,
    /// All jobs together.
    pub total: Intervals,
    /// Each job and operation.
    pub jobs: Vec<JobResult>,
    /// Each repeat.
    pub runs: Vec<Figures>,
}

/// Figures with their intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Intervals {
    /// Operations per second.
    pub iops: Option<Interval>,
    /// Of data; unknown where calls move none.
    pub bytes_per_second: Option<Interval>,
    /// Mean latency.
    pub latency_seconds: Option<Interval>,
    /// 99th percentile of latency.
    pub p99_seconds: Option<Interval>,
}

/// Figures of one job and operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobResult {
    /// The job's name in the job file.
    pub job: String,
    /// `read`, `write`, `create`, `stat` or `unlink`.
    pub operation: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Intervals,
}

impl Intervals {
    /// The intervals of these runs.
    pub fn of(runs: &[Figures]) -> Intervals {
        let each = |figure: fn(&Figures) -> Option<f64>| {
            Interval::of(&runs.iter().filter_map(figure).collect::<Vec<_>>())
        };
        Intervals {
            iops: each(|f| Some(f.iops)),
            bytes_per_second: each(|f| f.bytes_per_second),
            latency_seconds: each(|f| f.latency_seconds),
            p99_seconds: each(|f| f.p99_seconds),
        }
    }
}

/// Each job and operation over all repeats, in the order in which they came up.
pub fn jobs(reports: &[RunReport]) -> Vec<JobResult> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (job, operation, _) in reports.iter().flat_map(|o| &o.jobs) {
        if !names.contains(&(job, operation)) {
            names.push((job, operation));
        }
    }
    let result = |(job, operation): (&str, &str)| {
        let find = |o: &RunReport| {
            let found = o.jobs.iter().find(|j| (&*j.0, &*j.1) == (job, operation));
            found.map_or(Figures::NONE, |j| j.2)
        };
        JobResult {
            job: job.to_owned(),
            operation: operation.to_owned(),
            figures: Intervals::of(&reports.iter().map(find).collect::<Vec<_>>()),
        }
    };
    names.into_iter().map(result).collect()
}

/// How much consecutive repeats resemble each other, and what to say of it.
pub fn correlation(metric: Metric, runs: &[Figures]) -> (Option<f64>, Option<String>) {
    let values: Vec<_> = runs.iter().map(|f| metric.of(f)).collect();
    let r = autocorrelation(&values);
    let warning = r.filter(|r| *r > CORRELATED).map(|r| {
        format!(
            "consecutive repeats are correlated (autocorrelation {r:.2}), so the true interval is wider; \
             fix: use a longer --runtime, or find out what drifts"
        )
    });
    (r, warning)
}
