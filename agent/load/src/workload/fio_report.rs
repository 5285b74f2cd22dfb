//! Figures of fio's report of one run.

#[cfg(test)]
mod tests;

use anyhow::{Context, bail};
use nfscope_model::{Histogram, Scheme};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    groupid: u64,
    #[serde(default)]
    error: i64,
    /// I/Os that failed, if fio was told to go on after errors.
    #[serde(default)]
    total_err: u64,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    read: Direction,
    write: Direction,
    /// Percentage of submissions that found this number of requests under way, by number.
    #[serde(default)]
    iodepth_level: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Direction {
    total_ios: u64,
    io_bytes: u64,
    /// Run time in milliseconds.
    runtime: u64,
    clat_ns: Latency,
    /// Latency from before the submission on; with bins where the job file asks for them.
    #[serde(default)]
    lat_ns: Latency,
}

impl Direction {
    fn latency(&self) -> &Latency {
        match self.lat_ns.bins.is_empty() {
            true => &self.clat_ns,
            false => &self.lat_ns,
        }
    }
}

#[derive(Default, Deserialize)]
struct Latency {
    #[serde(default)]
    mean: f64,
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
}

/// Totals of the processes of a job, or of all jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobTotals {
    ops: u64,
    /// Bytes moved; unknown where calls move no data.
    bytes: Option<u64>,
    /// Run time of the longest process, or the sum of phases where there are several.
    milliseconds: u64,
    latency_sum_ns: f64,
    /// Bins of fio's histogram: nanoseconds and number of operations.
    bins: BTreeMap<u64, u64>,
}

/// Figures of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Operations per second.
    pub iops: f64,
    /// Bytes of data per second; `None` where calls move none.
    pub bytes_per_second: Option<f64>,
    /// Mean latency; `None` without operations.
    pub latency_seconds: Option<f64>,
    /// 99th percentile of the latency; `None` without operations.
    pub p99_seconds: Option<f64>,
}

impl Figures {
    /// Figures of a job that did nothing in a run.
    pub const NONE: Figures = Figures {
        iops: 0.0,
        bytes_per_second: None,
        latency_seconds: None,
        p99_seconds: None,
    };
}

/// Report of one run: each job and operation in the job file's order, and all together.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// Operations of all jobs.
    pub ops: u64,
    /// Job, operation and figures.
    pub jobs: Vec<(String, String, Figures)>,
    /// Figures of all jobs together.
    pub total: Figures,
    /// Largest part of a process's submissions that found a number of requests under way, by job name and by fio's name of the number
    /// (`>=64`).
    pub depths: BTreeMap<String, BTreeMap<String, f64>>,
    /// Totals behind the figures of each job and operation, in the same order.
    pub totals: Vec<(String, String, JobTotals)>,
    /// Failed operations of each job, and the first reason; only where a run went on.
    pub errors: BTreeMap<String, (u64, i64)>,
    /// p50 and p99 of the users' operations (pages), in seconds.
    pub unit: [Option<f64>; 2],
}

impl RunReport {
    /// Operations per second of a job, of all kinds together.
    pub fn rate_of(&self, job: &str) -> f64 {
        self.jobs
            .iter()
            .filter(|j| j.0 == job)
            .map(|j| j.2.iops)
            .sum()
    }

    /// Part of a job's submissions that found `depth` or more requests under way.
    pub fn full(&self, job: &str, depth: &str) -> f64 {
        let levels = self.depths.get(job);
        let level = |name: &str| levels.and_then(|l| l.get(name)).copied().unwrap_or(0.0);
        level(depth) + level(&format!(">={depth}"))
    }

    /// Parses fio's report.
    ///
    /// # Errors
    /// When the text is no report of fio, when a job failed, or when nothing was done.
    pub fn parse(report: &str) -> anyhow::Result<RunReport> {
        let report: Report = serde_json::Deserializer::from_str(report)
            .into_iter()
            .next()
            .context("fio's report is empty")?
            .context("cannot read fio's report; fix: install fio 3.33 or later")?;
        let mut by_job: Vec<(String, String, JobTotals)> = Vec::new();
        let mut phases: BTreeMap<u64, u64> = BTreeMap::new();
        let mut depths: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        let mut errors: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for job in &report.jobs {
            if job.total_err > 0 {
                let of = errors.entry(job.jobname.clone()).or_insert((0, job.error));
                of.0 += job.total_err;
            } else if job.error != 0 {
                let why = std::io::Error::from_raw_os_error(job.error as i32);
                bail!("fio's job {} failed: {why}", job.jobname);
            }
            let of = depths.entry(job.jobname.clone()).or_default();
            for (level, percent) in &job.iodepth_level {
                let most = of.entry(level.clone()).or_default();
                *most = most.max(percent / 100.0);
            }
            for (direction, done) in [("read", &job.read), ("write", &job.write)] {
                if done.total_ios == 0 {
                    continue;
                }
                let (operation, moves) = operation(job, direction);
                let same =
                    |t: &&mut (String, String, JobTotals)| t.0 == job.jobname && t.1 == operation;
                match by_job.iter_mut().find(same) {
                    Some((.., totals)) => totals.add(done, moves, job.total_err > 0),
                    None => {
                        let mut totals = JobTotals::default();
                        totals.add(done, moves, job.total_err > 0);
                        by_job.push((job.jobname.clone(), operation.to_owned(), totals));
                    }
                }
                let phase = phases.entry(job.groupid).or_default();
                *phase = done.runtime.max(*phase);
            }
        }
        if by_job.is_empty() {
            bail!("fio completed no operation; fix: use a longer --runtime");
        }
        let milliseconds = phases.values().sum();
        let mut of = RunReport::of(by_job, milliseconds);
        (of.depths, of.errors) = (depths, errors);
        Ok(of)
    }

    /// Report of these jobs and operations, which took this time together.
    pub fn of(totals: Vec<(String, String, JobTotals)>, milliseconds: u64) -> RunReport {
        let mut total = JobTotals::default();
        for (.., t) in &totals {
            total.merge(t);
        }
        total.milliseconds = milliseconds;
        let jobs = totals.iter();
        let jobs = jobs.map(|(j, o, t)| (j.clone(), o.clone(), t.figures()));
        RunReport {
            ops: total.ops,
            jobs: jobs.collect(),
            total: total.figures(),
            depths: BTreeMap::new(),
            totals,
            errors: BTreeMap::new(),
            unit: [None; 2],
        }
    }
}

/// Operation of a job's I/Os, and whether they move data: fio counts calls without data as reads or writes of its block size.
fn operation<'a>(job: &Job, direction: &'a str) -> (&'a str, bool) {
    match job.options.get("ioengine").map(String::as_str) {
        Some("filecreate") => ("create", false),
        Some("filestat") => ("stat", false),
        Some("filedelete") => ("unlink", false),
        _ => (direction, true),
    }
}

impl JobTotals {
    /// Adds the counts of one direction. fio counts failed I/Os with the others, but not their times.
    fn add(&mut self, done: &Direction, moves: bool, failed: bool) {
        let timed = || done.latency().bins.values().sum();
        self.merge(&JobTotals {
            ops: if failed { timed() } else { done.total_ios },
            bytes: moves.then_some(done.io_bytes),
            milliseconds: done.runtime,
            latency_sum_ns: done.latency().mean * done.total_ios as f64,
            bins: done.latency().bins.clone(),
        });
    }

    /// Totals of these durations in nanoseconds, each with its number.
    pub fn counted(
        bins: BTreeMap<u64, u64>,
        sum_ns: f64,
        bytes: Option<u64>,
        elapsed: Duration,
    ) -> JobTotals {
        JobTotals {
            ops: bins.values().sum(),
            bytes,
            milliseconds: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            latency_sum_ns: sum_ns,
            bins,
        }
    }

    /// Difference from an earlier report of the same run.
    pub fn since(&self, earlier: &JobTotals) -> JobTotals {
        let bins = self.bins.iter().map(|(ns, n)| {
            let before = earlier.bins.get(ns).copied().unwrap_or(0);
            (*ns, n.saturating_sub(before))
        });
        JobTotals {
            ops: self.ops.saturating_sub(earlier.ops),
            bytes: (self.bytes).map(|b| b.saturating_sub(earlier.bytes.unwrap_or(0))),
            milliseconds: self.milliseconds.saturating_sub(earlier.milliseconds),
            latency_sum_ns: (self.latency_sum_ns - earlier.latency_sum_ns).max(0.0),
            bins: bins.filter(|(_, n)| *n > 0).collect(),
        }
    }

    /// Bytes that were moved; 0 where calls move none.
    pub fn bytes(&self) -> u64 {
        self.bytes.unwrap_or(0)
    }

    /// Run time in seconds.
    pub fn seconds(&self) -> f64 {
        self.milliseconds as f64 / 1e3
    }

    /// Durations in the buckets of recordings.
    pub fn histogram(&self) -> Histogram {
        let mut all = Histogram::new(Scheme::TIME);
        for (ns, n) in &self.bins {
            all.counts[Scheme::TIME.bucket(*ns as f64 / 1e9)] += n;
        }
        all.sum = self.latency_sum_ns / 1e9;
        all
    }

    fn merge(&mut self, other: &JobTotals) {
        self.ops += other.ops;
        self.bytes = match (self.bytes, other.bytes) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        self.milliseconds = self.milliseconds.max(other.milliseconds);
        self.latency_sum_ns += other.latency_sum_ns;
        for (ns, n) in &other.bins {
            *self.bins.entry(*ns).or_default() += n;
        }
    }

    fn figures(&self) -> Figures {
        // fio's clock counts milliseconds. A run of zero milliseconds took at most one.
        let seconds = self.milliseconds.max(1) as f64 / 1e3;
        Figures {
            iops: self.ops as f64 / seconds,
            bytes_per_second: self.bytes.map(|b| b as f64 / seconds),
            latency_seconds: (self.ops > 0).then(|| self.latency_sum_ns / self.ops as f64 / 1e9),
            p99_seconds: self.quantile(0.99),
        }
    }

    /// Seconds that this part of the operations did not exceed.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = q * self.bins.values().sum::<u64>() as f64;
        let mut below = 0;
        self.bins.iter().find_map(|(ns, n)| {
            below += n;
            (below as f64 >= wanted).then_some(*ns as f64 / 1e9)
        })
    }
}
