//! Summary of all repeats.

use crate::workload::catalog::Unit;
use crate::workload::fio_report::{Figures, RunReport};
use crate::workload::stopping_rule::Metric;
use crate::workload::work_dir::FileSystem;
use nfscope_stats::mean_interval::{CORRELATED, Interval, autocorrelation};
use nfscope_text::units::percent;
use serde::Serialize;
use std::collections::BTreeMap;

/// A workload's result; its JSON has these fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Name of the workload.
    pub workload: &'static str,
    /// `small`, `medium` or `large`.
    pub size: &'static str,
    /// Variables of the job file.
    pub parameters: BTreeMap<&'static str, String>,
    /// Directory in which it ran.
    pub directory: String,
    /// File system of the directory.
    pub filesystem: Option<FileSystem>,
    /// Version of fio.
    pub fio: String,
    /// Metric that the stopping rule watched.
    pub metric: Metric,
    /// Set length of a repeat; `None` where its work ends it.
    pub runtime_seconds: Option<u64>,
    /// Repeats that count.
    pub repeats: usize,
    /// Relative half width that the interval was to reach.
    pub until_ci: Option<f64>,
    /// True if the interval reached it.
    pub reached: Option<bool>,
    /// Autocorrelation of the watched metric at lag 1.
    pub autocorrelation: Option<f64>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Intervals of all jobs together.
    pub total: Intervals,
    /// Results of each job and operation.
    pub jobs: Vec<JobResult>,
    /// Result of the users' operations that consist of many I/Os: pages, for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitResult>,
    /// Figures of each repeat.
    pub runs: Vec<Figures>,
}

/// Result of the operations of users. Each consists of many operations of a job, one after the other in each process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnitResult {
    /// Name, for example `page`.
    pub name: &'static str,
    /// Operations of fio in one unit.
    pub operations: u32,
    /// Units per second.
    pub per_second: Option<Interval>,
    /// Mean time of a unit: processes over the rate (Little's law), because each process makes one after the other.
    pub seconds: Option<Interval>,
    /// Median time of a unit, from fio's log of single operations: to the millisecond.
    pub p50_seconds: Option<Interval>,
    /// Time that 99 of 100 units do not exceed; unknown where a repeat has fewer than 1000.
    pub p99_seconds: Option<Interval>,
}

impl UnitResult {
    /// Result of the unit in these runs, with this number of processes.
    pub fn of(unit: Unit, processes: f64, reports: &[RunReport]) -> UnitResult {
        let rates: Vec<f64> = reports
            .iter()
            .map(|r| r.rate_of(unit.job) / f64::from(unit.count))
            .filter(|r| *r > 0.0)
            .collect();
        let times: Vec<f64> = rates.iter().map(|r| processes / r).collect();
        UnitResult {
            name: unit.name,
            operations: unit.count,
            per_second: Interval::of(&rates),
            seconds: Interval::of(&times),
            p50_seconds: unit_quantile(reports, 0),
            p99_seconds: unit_quantile(reports, 1),
        }
    }

    /// Result where one request of an open loop is one unit: its time counts from the moment it is due.
    pub fn of_requests(unit: Unit, reports: &[RunReport]) -> UnitResult {
        let of = |figure: &dyn Fn(&RunReport) -> Option<f64>| {
            Interval::of(&reports.iter().filter_map(figure).collect::<Vec<_>>())
        };
        let figures = |r: &RunReport| r.jobs.iter().find(|j| j.0 == unit.job).map(|j| j.2);
        let quantile = |r: &RunReport, q| r.totals.iter().find(|t| t.0 == unit.job)?.2.quantile(q);
        UnitResult {
            name: unit.name,
            operations: unit.count,
            per_second: of(&|r| Some(figures(r)?.iops)),
            seconds: of(&|r| figures(r)?.latency_seconds),
            p50_seconds: of(&|r| quantile(r, 0.5)),
            p99_seconds: of(&|r| quantile(r, 0.99)),
        }
    }
}

/// Interval of one quantile of the unit over the runs; `None` if a run lacks it.
fn unit_quantile(reports: &[RunReport], which: usize) -> Option<Interval> {
    let known: Vec<f64> = reports.iter().filter_map(|r| r.unit[which]).collect();
    Interval::of(&known).filter(|_| known.len() == reports.len())
}

/// Part of submissions with all requests under way, from which on a warning is given: waits would be missing from the latencies.
const FULL: f64 = 0.001;
/// Part of the wanted rate below which a warning is given.
const REACHED: f64 = 0.98;

/// Warning about an open loop with this rate and depth, if the server delayed the sending of requests.
pub fn open_loop(job: &str, rate: f64, depth: &str, reports: &[RunReport]) -> Option<String> {
    let done = reports
        .iter()
        .map(|r| r.rate_of(job))
        .fold(f64::INFINITY, f64::min);
    let full = reports
        .iter()
        .map(|r| r.full(job, depth))
        .fold(0.0, f64::max);
    (done < REACHED * rate || full > FULL).then(|| {
        format!(
            "{job}: {done:.0} of {rate:.0} requests per second were sent, and {} of them found {depth} under way in their process: \
             they were sent late, and latencies do not have that wait; fix: use a lower --rate, or a larger --depth",
            percent(full)
        )
    })
}

/// Warnings about operations that failed while a recording went on.
pub fn failures(reports: &[RunReport]) -> Vec<String> {
    let mut by_job: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
    for (job, (n, error)) in reports.iter().flat_map(|r| &r.errors) {
        by_job.entry(job).or_insert((0, *error)).0 += n;
    }
    let told = |(job, (n, error)): (&str, (u64, i64))| {
        let why = std::io::Error::from_raw_os_error(error as i32);
        format!("{job}: {n} operations failed ({why}), and no latency has them")
    };
    by_job.into_iter().map(told).collect()
}

/// Part of a job's time that one tick of fio's clock may have before a warning is given.
const TICK: f64 = 0.01;

/// Warning about jobs too short for fio's clock: their rate is imprecise even if their repeats agree.
pub fn short(reports: &[RunReport]) -> Option<String> {
    let mut jobs: Vec<(&str, f64)> = Vec::new();
    for (job, _, totals) in reports.iter().flat_map(|r| &r.totals) {
        match jobs.iter_mut().find(|(name, _)| name == job) {
            Some((_, least)) => *least = least.min(totals.seconds()),
            None => jobs.push((job, totals.seconds())),
        }
    }
    jobs.retain(|(_, seconds)| 0.001 > TICK * seconds);
    let shortest = jobs.iter().map(|(_, s)| *s).fold(f64::INFINITY, f64::min);
    let names: Vec<_> = jobs.iter().map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: over in as little as {:.0} ms, and fio counts whole milliseconds: rates are less exact than their intervals; \
             fix: use a larger --size or a longer --runtime",
            names.join(", "),
            shortest * 1e3
        )
    })
}

/// Figures with their intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Intervals {
    /// Operations per second.
    pub iops: Option<Interval>,
    /// Bytes of data per second; unknown where calls move none.
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
    /// Figures of the job and operation.
    #[serde(flatten)]
    pub figures: Intervals,
}

impl Intervals {
    /// Intervals of the figures of these runs.
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

/// Results of each job and operation over all repeats, in the order in which they came up.
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

/// Autocorrelation of consecutive repeats, and a warning if it is high.
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
