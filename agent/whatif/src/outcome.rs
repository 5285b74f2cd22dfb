//! Counts of a run while it goes on, and its result.

use crate::server::Server;
use nfscope_stats::mean_interval::Interval;

/// Batches of a run, for the error of its rate.
pub(crate) const BATCHES: usize = 10;

/// Times of one class.
#[derive(Debug, Clone, Default)]
pub struct ClassResult {
    /// Requests counted.
    pub count: usize,
    /// Mean execution time.
    pub mean: f64,
    /// 99th percentile of the execution time.
    pub p99: f64,
}

/// Result of a run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Requests per second.
    pub rate: f64,
    /// Half the width of the rate's 95 % interval, relative to the rate.
    pub rate_error: f64,
    /// Mean residence.
    pub residence: f64,
    /// Mean wait for a thread.
    pub queue: f64,
    /// 99th percentile of the wait for a thread.
    pub queue_p99: f64,
    /// Results by class, in the server's order.
    pub classes: Vec<ClassResult>,
    /// Mean wait for the log.
    pub log_wait: f64,
    /// Mean time of a commit.
    pub commit: f64,
    /// Waits that one commit served, on average.
    pub waits_per_commit: f64,
    /// Part of the threads' time in which they have a request.
    pub threads_used: f64,
    /// Part of the CPUs' time in which they are busy.
    pub cpu_used: f64,
    /// Part of the time in which a commit is under way.
    pub log_used: f64,
    /// Disk requests under way, on average.
    pub disk_in_flight: f64,
}

/// Counts of a run.
#[derive(Default)]
pub(crate) struct Tally {
    pub since: f64,
    pub done: usize,
    pub batch_ends: Vec<f64>,
    pub residence: f64,
    pub queue: Vec<f64>,
    pub classes: Vec<Vec<f64>>,
    pub log: (usize, f64),
    pub commits: usize,
    pub commit_time: f64,
    pub thread_time: f64,
    pub cpu_time: f64,
    pub disk_time: f64,
    pub log_time: f64,
    pub log_since: f64,
}

impl Tally {
    /// The result of a run that ends now.
    pub(crate) fn outcome(mut self, now: f64, server: &Server) -> Outcome {
        let t = &mut self;
        let length = (now - t.since).max(f64::MIN_POSITIVE);
        let done = t.done.max(1) as f64;
        let classes = t.classes.iter_mut().map(|all| ClassResult {
            count: all.len(),
            mean: mean(all),
            p99: quantile(all, 0.99),
        });
        let threads: usize = server.pools.iter().map(|p| p.threads).sum();
        Outcome {
            rate: t.done as f64 / length,
            rate_error: batch_error(t.since, &t.batch_ends),
            residence: t.residence / done,
            queue: mean(&t.queue),
            queue_p99: quantile(&mut t.queue, 0.99),
            classes: classes.collect(),
            log_wait: t.log.1 / t.log.0.max(1) as f64,
            commit: t.commit_time / t.commits.max(1) as f64,
            waits_per_commit: t.log.0 as f64 / t.commits.max(1) as f64,
            threads_used: (t.thread_time / length / threads.max(1) as f64).min(1.0),
            cpu_used: (t.cpu_time / length / server.cpus.max(1) as f64).min(1.0),
            log_used: (t.log_time / length).min(1.0),
            disk_in_flight: t.disk_time / length,
        }
    }
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

fn quantile(all: &mut [f64], q: f64) -> f64 {
    if all.is_empty() {
        return 0.0;
    }
    let at = ((all.len() as f64 * q).ceil() as usize).clamp(1, all.len()) - 1;
    *all.select_nth_unstable_by(at, f64::total_cmp).1
}

/// Relative half width of the 95 % interval of a rate: batch means of equal numbers of requests.
fn batch_error(since: f64, ends: &[f64]) -> f64 {
    let begins = std::iter::once(&since).chain(ends);
    let lengths: Vec<f64> = begins.zip(ends).map(|(a, b)| b - a).collect();
    if lengths.len() < BATCHES {
        return 1.0;
    }
    let interval = Interval::of(&lengths);
    interval.and_then(|i| i.relative()).unwrap_or(0.0)
}
