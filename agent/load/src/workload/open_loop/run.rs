//! Runs an open loop: when requests are due, and the workers that make them.

use crate::workload::fio::Stop;
use crate::workload::fio_report::RunReport;
use crate::workload::open_loop::files::Files;
use crate::workload::open_loop::histogram::Durations;
use crate::workload::open_loop::mix::Mix;
use anyhow::{Context, bail};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time after the last due moment, from which on the elapsed time counts: the rate is then the one that the run reached.
const BEHIND: Duration = Duration::from_secs(1);
/// Interval at which workers check for a stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Load of an open loop.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Requests per second; each kind has its part of them.
    pub rate: f64,
    /// Most requests under way. Others wait for a worker, and their latencies include that wait.
    pub workers: usize,
    /// Time in which requests become due.
    pub length: Duration,
    /// Time after the end at which requests that still wait are given up: the server does not keep up.
    pub grace: Duration,
}

/// Schedule of the requests: due moment and kind of each.
struct Schedule {
    rng: SmallRng,
    /// Due moment of the last request that was taken, since the beginning.
    due: Duration,
    /// Rate of all kinds together; `ends` has the accumulated part of each kind.
    rate: f64,
    ends: Vec<f64>,
    length: Duration,
}

impl Schedule {
    fn new(mix: &Mix, load: &Load, seed: u64) -> Schedule {
        let all: f64 = mix.kinds.iter().map(|k| k.part).sum();
        let mut end = 0.0;
        let ends = mix.kinds.iter().map(|k| {
            end += k.part / all;
            end
        });
        Schedule {
            rng: SmallRng::seed_from_u64(seed),
            due: Duration::ZERO,
            rate: load.rate * all,
            ends: ends.collect(),
            length: load.length,
        }
    }

    /// Due moment and kind of the next request; `None` after the last.
    fn next(&mut self) -> Option<(Duration, usize)> {
        // The time between two arrivals is exponential; 1 - u is never zero.
        let gap = -(1.0 - self.rng.random::<f64>()).ln() / self.rate;
        self.due = self
            .due
            .checked_add(Duration::try_from_secs_f64(gap).ok()?)?;
        if self.due >= self.length {
            // The end is kept, so that all later calls return `None`, too.
            self.due = self.length;
            return None;
        }
        let at: f64 = self.rng.random();
        let kind = self.ends.iter().position(|end| at < *end);
        Some((self.due, kind.unwrap_or(self.ends.len() - 1)))
    }
}

/// Lays the files out in this directory.
///
/// # Errors
/// When a file cannot be written, or a signal has come.
pub fn lay_out(dir: &Path, mix: &Mix, workers: usize, stop: &Stop) -> anyhow::Result<Laid> {
    let files =
        Files::make(dir, mix).with_context(|| format!("cannot write to {}", dir.display()))?;
    let left = Mutex::new(mix.files);
    let worker = |seed: u64| -> anyhow::Result<()> {
        let mut rng = SmallRng::seed_from_u64(seed);
        loop {
            stop.check()?;
            {
                let mut left = lock(&left);
                if *left == 0 {
                    return Ok(());
                }
                *left -= 1;
            }
            let laid = files.lay_out(mix.size, &mut rng);
            laid.with_context(|| format!("cannot write a file below {}", dir.display()))?;
        }
    };
    thread::scope(|all| {
        let worker = &worker;
        let threads: Vec<_> = (0..workers.min(16) as u64)
            .map(|seed| all.spawn(move || worker(seed)))
            .collect();
        threads.into_iter().try_for_each(joined)
    })?;
    Ok(Laid { files })
}

/// Files that requests can use.
pub struct Laid {
    files: Files,
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes requests as they become due. `tell` gets the report so far, at each `interval` and at the end. Returns the last report, and the
/// number of requests that were given up.
///
/// # Errors
/// When a signal has come, when nothing was done, or when `tell` has an error.
pub fn run(
    laid: &Laid,
    mix: &Mix,
    load: &Load,
    seed: u64,
    interval: Option<Duration>,
    stop: &Stop,
    mut tell: impl FnMut(&RunReport) -> anyhow::Result<()>,
) -> anyhow::Result<(RunReport, u64)> {
    let schedule = Mutex::new(Schedule::new(mix, load, seed));
    let given_up = Mutex::new(0u64);
    let counted: Vec<_> = (0..load.workers)
        .map(|_| Mutex::new(vec![Durations::default(); mix.kinds.len()]))
        .collect();
    let begun = Instant::now();
    let ended = Mutex::new(false);
    let report = || {
        let elapsed = match begun.elapsed() {
            // Requests that are due within the length end then or a little later. On a server that does not keep up they take longer.
            e if e < load.length + BEHIND => e.min(load.length),
            e => e,
        };
        let mut all = vec![Durations::default(); mix.kinds.len()];
        for worker in &counted {
            let worker = lock(worker);
            all.iter_mut()
                .zip(worker.iter())
                .for_each(|(a, b)| a.merge(b));
        }
        let kinds = mix.kinds.iter().zip(&all);
        let totals = kinds.map(|(k, d)| {
            let totals = d.totals(k.moves_data(), elapsed);
            (k.job.to_owned(), k.operation().to_owned(), totals)
        });
        let mut report = RunReport::of(totals.collect(), elapsed.as_millis() as u64);
        for (kind, d) in mix.kinds.iter().zip(&all).filter(|(_, d)| d.failed > 0) {
            report
                .errors
                .insert(kind.job.to_owned(), (d.failed, d.error));
        }
        (report, all)
    };
    let work = |i: usize| {
        let mut rng = SmallRng::seed_from_u64(seed ^ (i as u64 + 1).rotate_left(32));
        while stop.check().is_ok() && !*lock(&ended) {
            let next = lock(&schedule).next();
            let Some((due, kind)) = next else { return };
            if begun.elapsed() > load.length + load.grace {
                *lock(&given_up) += 1;
                continue;
            }
            thread::sleep((begun + due).saturating_duration_since(Instant::now()));
            let done = laid.files.request(&mix.kinds[kind], &mut rng);
            let took = begun.elapsed().saturating_sub(due);
            let mut mine = lock(&counted[i]);
            match done {
                Ok(bytes) => mine[kind].add(took, bytes),
                Err(e) => {
                    let d = &mut mine[kind];
                    if d.failed == 0 {
                        d.error = i64::from(e.raw_os_error().unwrap_or(0));
                    }
                    d.failed += 1;
                }
            }
        }
    };
    let told = thread::scope(|all| {
        let work = &work;
        let threads: Vec<_> = (0..load.workers)
            .map(|i| all.spawn(move || work(i)))
            .collect();
        let mut next = interval.map(|i| begun + i);
        while threads.iter().any(|t| !t.is_finished()) {
            thread::sleep(POLL_INTERVAL);
            if let (Some(at), Some(interval)) = (next, interval)
                && Instant::now() >= at
            {
                next = Some(at + interval);
                if let Err(e) = tell(&report().0) {
                    *lock(&ended) = true;
                    return Err(e);
                }
            }
        }
        Ok(())
    });
    told?;
    stop.check()?;
    let (last, all) = report();
    if all.iter().all(|d| d.done() == 0) {
        let error = all.iter().find(|d| d.failed > 0).map(|d| d.error);
        match error {
            Some(e) => bail!(
                "every request failed: {}",
                std::io::Error::from_raw_os_error(e as i32)
            ),
            None => bail!("no request was due; fix: use a longer --runtime, or a higher --rate"),
        }
    }
    tell(&last)?;
    let given_up = *lock(&given_up);
    Ok((last, given_up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::open_loop::mix::{Action, Kind};

    fn mix(action: Action) -> Mix {
        Mix {
            kinds: vec![Kind {
                job: "job",
                action,
                size: (4096, 4096),
                part: 1.0,
                durable: false,
            }],
            files: 8,
            size: (4096, 4096),
            directories: 2,
        }
    }

    #[test]
    fn arrivals_are_poisson_with_the_rate_of_each_kind() {
        let mut mix = mix(Action::Stat);
        mix.kinds.push(Kind {
            part: 3.0,
            ..mix.kinds[0].clone()
        });
        let load = Load {
            rate: 1000.0,
            workers: 1,
            length: Duration::from_secs(50),
            grace: Duration::ZERO,
        };
        let mut schedule = Schedule::new(&mix, &load, 7);
        let (mut gaps, mut second, mut last) = (Vec::new(), 0.0, 0.0);
        while let Some((due, kind)) = schedule.next() {
            gaps.push(due.as_secs_f64() - last);
            last = due.as_secs_f64();
            second += kind as f64;
        }
        // All kinds together have 4000 requests per second. The mean of an exponential distribution is its standard deviation.
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!((n / 200_000.0 - 1.0).abs() < 0.01, "{n}");
        assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation} {mean}");
        assert!((second / n - 0.75).abs() < 0.01, "{second}");
    }

    /// Latency includes the wait for a worker. Thirty requests are due at once, and one worker serves them one after the other: the middle
    /// one waits for fourteen others.
    #[test]
    fn the_wait_for_a_worker_is_in_the_latency() {
        let dir = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let mix = mix(Action::Page(200));
        let laid = lay_out(dir.path(), &mix, 1, &stop).unwrap();
        let crowd = Load {
            rate: 3000.0,
            workers: 1,
            length: Duration::from_millis(10),
            grace: Duration::from_secs(60),
        };
        let began = Instant::now();
        let (report, _) = run(&laid, &mix, &crowd, 2, None, &stop, |_| Ok(())).unwrap();
        // Upper bound of a request's time, because the run has a beginning and an end, too.
        let each = began.elapsed().as_secs_f64() / report.ops as f64;
        let middle = report.totals[0].2.quantile(0.5).unwrap();
        assert!(report.ops > 10 && middle > 3.0 * each, "{middle} {each}");
        assert_eq!((&*report.jobs[0].0, &*report.jobs[0].1), ("job", "page"));
        // A run gives up requests of a rate that is far too high.
        let flood = Load {
            rate: 1e6,
            length: Duration::from_millis(100),
            grace: Duration::from_millis(100),
            ..crowd
        };
        let (_, given_up) = run(&laid, &mix, &flood, 3, None, &stop, |_| Ok(())).unwrap();
        assert!(given_up > 10_000, "{given_up}");
    }

    #[test]
    fn files_come_and_go_and_failures_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let mut mix = mix(Action::Create);
        for action in [
            Action::Remove,
            Action::Append,
            Action::Read,
            Action::Stat,
            Action::Log,
        ] {
            mix.kinds.push(Kind {
                action,
                ..mix.kinds[0].clone()
            });
        }
        let laid = lay_out(dir.path(), &mix, 4, &stop).unwrap();
        let load = Load {
            rate: 200.0,
            workers: 4,
            length: Duration::from_millis(500),
            grace: Duration::from_secs(10),
        };
        let mut told = 0;
        let interval = Some(Duration::from_millis(100));
        let (report, given_up) = run(&laid, &mix, &load, 3, interval, &stop, |_| {
            told += 1;
            Ok(())
        })
        .unwrap();
        assert!(report.errors.is_empty() && given_up == 0 && told > 1);
        std::fs::remove_dir_all(dir.path()).unwrap();
        let gone = run(&laid, &mix, &load, 4, None, &stop, |_| Ok(()));
        assert!(
            gone.unwrap_err()
                .to_string()
                .contains("every request failed")
        );
    }
}
