//! What fio reports of one run, as figures.

#[cfg(test)]
mod tests;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    read: Direction,
    write: Direction,
}

#[derive(Deserialize)]
struct Direction {
    total_ios: u64,
    io_bytes: u64,
    /// In milliseconds.
    runtime: u64,
    clat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    mean: f64,
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
}

/// What the processes of a job did, or all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobTotals {
    ops: u64,
    /// Unknown where calls move no data.
    bytes: Option<u64>,
    /// Of the longest process; of all phases where there are several.
    milliseconds: u64,
    latency_sum_ns: f64,
    /// fio's histogram: nanoseconds and how many.
    bins: BTreeMap<u64, u64>,
}

/// Figures of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Operations per second.
    pub iops: f64,
    /// Of data; `None` where calls move none.
    pub bytes_per_second: Option<f64>,
    /// Mean; `None` without operations.
    pub latency_seconds: Option<f64>,
    /// 99th percentile; `None` without operations.
    pub p99_seconds: Option<f64>,
}

impl Figures {
    /// Of a job that did nothing in a run.
    pub const NONE: Figures = Figures {
        iops: 0.0,
        bytes_per_second: None,
        latency_seconds: None,
        p99_seconds: None,
    };
}

/// One run: each job and operation in the job file's order, and all together.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// Job, operation, figures.
    pub jobs: Vec<(String, String, Figures)>,
    /// All of it.
    pub total: Figures,
}

impl RunReport {
    /// # Errors
    /// When this is no report of fio, when a job failed, or when nothing was done.
    pub fn parse(report: &str) -> anyhow::Result<RunReport> {
        let report: Report = serde_json::Deserializer::from_str(report)
            .into_iter()
            .next()
            .context("fio's report is empty")?
            .context("cannot read fio's report; fix: install fio 3.33 or later")?;
        let mut by_job: Vec<(String, String, JobTotals)> = Vec::new();
        let mut phases: BTreeMap<u64, u64> = BTreeMap::new();
        for job in &report.jobs {
            if job.error != 0 {
                let why = std::io::Error::from_raw_os_error(job.error as i32);
                bail!("fio's job {} failed: {why}", job.jobname);
            }
            for (direction, done) in [("read", &job.read), ("write", &job.write)] {
                if done.total_ios == 0 {
                    continue;
                }
                let (operation, moves) = operation(job, direction);
                let same =
                    |t: &&mut (String, String, JobTotals)| t.0 == job.jobname && t.1 == operation;
                match by_job.iter_mut().find(same) {
                    Some((.., totals)) => totals.add(done, moves),
                    None => {
                        let mut totals = JobTotals::default();
                        totals.add(done, moves);
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
        let mut total = JobTotals::default();
        for (.., totals) in &by_job {
            total.merge(totals);
        }
        total.milliseconds = phases.values().sum();
        let jobs = by_job
            .iter()
            .map(|(j, o, t)| (j.clone(), o.clone(), t.figures()));
        Ok(RunReport {
            jobs: jobs.collect(),
            total: total.figures(),
        })
    }
}

/// What a job's I/Os are, and whether they move data: fio counts calls without any as reads or writes of its block size.
fn operation<'a>(job: &Job, direction: &'a str) -> (&'a str, bool) {
    match job.options.get("ioengine").map(String::as_str) {
        Some("filecreate") => ("create", false),
        Some("filestat") => ("stat", false),
        Some("filedelete") => ("unlink", false),
        _ => (direction, true),
    }
}

impl JobTotals {
    fn add(&mut self, done: &Direction, moves: bool) {
        self.merge(&JobTotals {
            ops: done.total_ios,
            bytes: moves.then_some(done.io_bytes),
            milliseconds: done.runtime,
            latency_sum_ns: done.clat_ns.mean * done.total_ios as f64,
            bins: done.clat_ns.bins.clone(),
        });
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
        // What took less than fio's clock tells took at most its tick.
        let seconds = self.milliseconds.max(1) as f64 / 1e3;
        Figures {
            iops: self.ops as f64 / seconds,
            bytes_per_second: self.bytes.map(|b| b as f64 / seconds),
            latency_seconds: (self.ops > 0).then(|| self.latency_sum_ns / self.ops as f64 / 1e9),
            p99_seconds: self.quantile(0.99),
        }
    }

    fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = q * self.bins.values().sum::<u64>() as f64;
        let mut below = 0;
        self.bins.iter().find_map(|(ns, n)| {
            below += n;
            (below as f64 >= wanted).then_some(*ns as f64 / 1e9)
        })
    }
}
