//! Results of a workload that the client measured itself. These families are in recordings only; no agent exposes them.

use crate::series::SeriesSet;
use nfscope_model::Scheme;
use nfscope_model::family::{Family, Info, Kind, Label};
use std::collections::BTreeMap;

/// Label of a recording that has the results of a workload: the workload's name.
pub const NAME: &str = "workload";
/// Label with the options of the workload: its size, parameters and rate.
pub const PARAMETERS: &str = "parameters";

const JOB: Label = Label {
    name: "job",
    values: "jobs of the workload's job file",
};
const OPERATION: Label = Label {
    name: "operation",
    values: "read, write, create, stat, unlink, append, page",
};

macro_rules! family {
    ($name:literal, $kind:expr, $labels:expr, $help:literal) => {
        Family {
            info: Info {
                name: $name,
                help: $help,
                kind: $kind,
                labels: $labels,
                since: "0.1.0",
            },
        }
    };
}

/// Durations as the client saw them, without those of operations that failed.
pub static DURATION: Family<2> = family!(
    "nfscope_workload_duration_seconds",
    Kind::Histogram(Scheme::TIME),
    &[JOB, OPERATION],
    "Durations of a workload's operations, measured on the client."
);
/// Time in which a job was at work on an operation: the denominator of rates.
pub static SECONDS: Family<2> = family!(
    "nfscope_workload_active_seconds_total",
    Kind::Counter,
    &[JOB, OPERATION],
    "Time in which the job was at work."
);
/// Bytes of data that were moved.
pub static BYTES: Family<2> = family!(
    "nfscope_workload_bytes_total",
    Kind::Counter,
    &[JOB, OPERATION],
    "Bytes that a workload read or wrote."
);
/// Operations that failed.
pub static ERRORS: Family<1> = family!(
    "nfscope_workload_errors_total",
    Kind::Counter,
    &[JOB],
    "Operations of a workload that failed."
);

/// All families of workloads.
pub const FAMILIES: [&Info; 4] = [&DURATION.info, &SECONDS.info, &BYTES.info, &ERRORS.info];

/// Share of the workload's time below which a job is not compared.
const MIN_SHARE: f64 = 0.02;

/// An operation of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The job.
    pub job: String,
    /// `read`, `write` and so on.
    pub operation: String,
}

/// Text such as `deliver write`; `read` if job and operation have the same name.
pub(crate) fn label(job: &str, operation: &str) -> String {
    match job == operation {
        true => job.to_owned(),
        false => format!("{job} {operation}"),
    }
}

/// Per window: operations that were done, and the seconds in which the job was at work.
pub(crate) fn rate(c: &SeriesSet, job: &str, operation: &str) -> Option<(Vec<f64>, Vec<f64>)> {
    let done = c.histograms(&DURATION, |l| l == [job, operation])?.counts;
    let seconds = c.numbers(&SECONDS, |l| l == [job, operation])?;
    Some((done, seconds))
}

/// Per window: operations of a job that failed, and all of them.
pub(crate) fn failed(c: &SeriesSet, job: &str) -> Option<(Vec<f64>, Vec<f64>)> {
    let done = c.histograms(&DURATION, |[j, _]| j == job);
    let failed = c.numbers(&ERRORS, |[j]| j == job)?;
    let done = done.map_or_else(|| vec![0.0; failed.len()], |s| s.counts);
    let all = done.iter().zip(&failed).map(|(a, b)| a + b).collect();
    Some((failed, all))
}

/// Jobs and operations with a relevant share of the workload's time in any of these recordings, those with the most time first.
pub(crate) fn parts(all: &[&SeriesSet]) -> Vec<Part> {
    let mut shares: BTreeMap<[&str; 2], f64> = BTreeMap::new();
    for c in all {
        let times = c.totals(&DURATION);
        let sum: f64 = times.iter().map(|(_, h)| h.sum).sum();
        for (key, h) in times {
            let share = h.sum / sum.max(f64::MIN_POSITIVE);
            let most = shares.entry(key).or_default();
            *most = most.max(share);
        }
    }
    let mut shares: Vec<_> = shares
        .into_iter()
        .filter(|(_, s)| *s >= MIN_SHARE)
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let part = |[job, operation]: [&str; 2]| Part {
        job: job.to_owned(),
        operation: operation.to_owned(),
    };
    shares.into_iter().map(|(key, _)| part(key)).collect()
}

/// Jobs of which any operation failed in any of these recordings.
pub(crate) fn failing(all: &[&SeriesSet]) -> Vec<String> {
    let mut jobs = Vec::new();
    for c in all {
        for ([job], n) in c.sums(&ERRORS) {
            if n > 0.0 && !jobs.iter().any(|j| j == job) {
                jobs.push(job.to_owned());
            }
        }
    }
    jobs
}
