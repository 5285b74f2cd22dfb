//! Synthetic workload like a trace: a job file for fio that describes itself as the workloads of nfscope do.
//!
//! Its jobs have READs and WRITEs with the trace's rates, sizes, sequence, durability and working set, stat calls and creations. The same jobs can be
//! drawn as operations ([`Fit::operations`]), so that the distance from the source is known before anything runs.

use crate::describe::sketch::{Distribution, mix};
use crate::describe::{Load, Places};
use crate::operation::{Op, Operation, Stability, Version};
use std::fmt::Write as _;

/// Sizes of a job at most.
const SIZES: usize = 8;
/// Smallest size, and what sizes are multiples of: that of O_DIRECT.
const SECTOR: u64 = 512;
/// Most files of a job.
const MOST_FILES: u64 = 10_000;
const MIB: u64 = 1 << 20;

/// Kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Reads.
    Read,
    /// Writes that a later sync makes durable, after this number of writes; 0 for none.
    Write {
        /// Writes before each sync.
        sync_after: u64,
    },
    /// Writes that are durable before they return.
    DurableWrite,
    /// Looks at the attributes of files.
    Stat,
    /// Makes files of one write each.
    Create,
}

/// Job: operations of one kind at a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Name.
    pub name: &'static str,
    /// Kind.
    pub task: Task,
    /// In sequence, or at random places.
    pub sequential: bool,
    /// Operations per second.
    pub rate: u64,
    /// Sizes in bytes, with percentages that sum up to 100.
    pub sizes: Vec<(u64, u64)>,
}

/// Synthetic workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Jobs, which run at once.
    pub jobs: Vec<Job>,
    /// Files of each job.
    pub files: u64,
    /// Bytes of each file.
    pub file_size: u64,
    /// Files of a job with random places: fewer and larger ones, so that places are far from each other.
    pub large_files: u64,
    /// Bytes of each of these.
    pub large_file_size: u64,
    /// Differences from the source that a job file cannot avoid.
    pub differences: Vec<String>,
    version: Version,
}

/// Fits a workload to a load; `None` if the load has neither reads, writes, stat calls nor creations, or no duration.
pub fn fit(load: &Load) -> Option<Fit> {
    let count = |names: &[&str]| -> u64 {
        let kinds = load.mix.iter().filter(|k| names.contains(&k.op.as_str()));
        kinds.map(|k| k.operations - k.failed).sum()
    };
    let rate = |n: f64| (n / load.seconds).round() as u64;
    if load.seconds <= 0.0 {
        return None;
    }
    let reads = count(&["read", "read_plus"]) as f64;
    let creates = count(&["create", "mkdir"]) as f64;
    let writes = (count(&["write"]) as f64 - creates).max(0.0);
    let s = &load.stabilities;
    let known = s.unstable + s.data_sync + s.file_sync;
    let durable = match known {
        0 => 0.0,
        known => 1.0 - s.unstable as f64 / known as f64,
    };
    let sync_after = load.files.commits.writes.mean();
    let sync_after = sync_after.map_or(0, |n| n.round().max(1.0) as u64);
    let in_sequence = |places: &Places| places.sequential_part().unwrap_or(0.0);
    let (reads_on, writes_on) = (
        in_sequence(&load.files.reads),
        in_sequence(&load.files.writes),
    );
    let (read_sizes, write_sizes) = (split(&load.read_sizes), split(&load.write_sizes));
    let typical = write_sizes.iter().max_by_key(|s| s.1).map_or(4096, |s| s.0);
    let unstable = Task::Write { sync_after };
    let (later, at_once) = (writes * (1.0 - durable), writes * durable);
    let stats = count(&["getattr", "lookup", "access"]) as f64;
    let job = |name, task, sequential, n: f64, sizes: &Vec<(u64, u64)>| Job {
        name,
        task,
        sequential,
        rate: rate(n),
        sizes: sizes.clone(),
    };
    let one = vec![(typical, 100)];
    let mut jobs = vec![
        job(
            "read-sequential",
            Task::Read,
            true,
            reads * reads_on,
            &read_sizes,
        ),
        job(
            "read-random",
            Task::Read,
            false,
            reads * (1.0 - reads_on),
            &read_sizes,
        ),
        job(
            "write-sequential",
            unstable,
            true,
            later * writes_on,
            &write_sizes,
        ),
        job(
            "write-random",
            unstable,
            false,
            later * (1.0 - writes_on),
            &write_sizes,
        ),
        job(
            "durable-sequential",
            Task::DurableWrite,
            true,
            at_once * writes_on,
            &write_sizes,
        ),
        job(
            "durable-random",
            Task::DurableWrite,
            false,
            at_once * (1.0 - writes_on),
            &write_sizes,
        ),
        job("stat", Task::Stat, false, stats, &one),
        job("create", Task::Create, true, creates, &one),
    ];
    jobs.retain(|job| job.rate > 0 && !job.sizes.is_empty());
    let with_files = jobs.iter().filter(|j| j.task != Task::Create).count() as u64;
    if jobs.is_empty() {
        return None;
    }
    let files = (load.course.files.round() as u64 / with_files.max(1)).clamp(1, MOST_FILES);
    let largest = jobs.iter().flat_map(|j| &j.sizes).map(|s| s.0).max();
    let largest = largest.unwrap_or(SECTOR);
    let each = load.course.bytes / (files * with_files.max(1)) as f64;
    let file_size = (each as u64).max(largest).next_multiple_of(4096);
    let bytes = files * file_size;
    let large_file_size = (bytes / 16).max(64 * largest).next_multiple_of(4096);
    let carried: f64 = reads + writes + 2.0 * creates + stats;
    Some(Fit {
        differences: differences(load, carried),
        version: load
            .mix
            .first()
            .and_then(|k| Version::named(&k.version))
            .unwrap_or(Version::V3),
        jobs,
        files,
        file_size,
        large_files: (bytes / large_file_size).max(1),
        large_file_size,
    })
}

fn differences(load: &Load, carried: f64) -> Vec<String> {
    let mut all = vec![
        "arrivals are random (Poisson), with a dispersion of 1".to_owned(),
        "no file is used by two jobs or clients".to_owned(),
        "all files have one size, and are equally popular".to_owned(),
        "the client merges buffered writes, and sends its own COMMITs".to_owned(),
        "the client answers most stat calls from its cache".to_owned(),
    ];
    if let Some(b) = load.bursts.iter().find(|b| b.seconds == 1.0)
        && let Some(d) = b.dispersion
    {
        all[0] += &format!("; the trace has {d:.1} in 1 s");
    }
    let left = load.operations as f64 - carried;
    if left > 0.0 {
        all.push(format!(
            "{:.0} % of the operations have no job: names, locks, opens, COMMITs and what clients add",
            100.0 * left / load.operations as f64
        ));
    }
    all
}

/// Most frequent sizes, in sectors, with whole percentages that sum up to 100.
fn split(sizes: &Distribution) -> Vec<(u64, u64)> {
    let mut all: Vec<_> = (sizes.buckets())
        .map(|b| (b.from.next_multiple_of(SECTOR).max(SECTOR), b.count))
        .collect();
    all.sort_by_key(|s| std::cmp::Reverse(s.1));
    // Rare sizes go to the next frequent one below or above.
    let (frequent, rare) = all.split_at(all.len().min(SIZES));
    let mut frequent = frequent.to_vec();
    for (size, count) in rare {
        let nearest = frequent.iter_mut().min_by_key(|f| f.0.abs_diff(*size));
        if let Some(nearest) = nearest {
            nearest.1 += count;
        }
    }
    let total: u64 = frequent.iter().map(|f| f.1).sum();
    if total == 0 {
        return Vec::new();
    }
    let mut out: Vec<_> = (frequent.iter())
        .map(|(size, count)| (*size, (100 * count + total / 2) / total))
        .filter(|(_, percent)| *percent > 0)
        .collect();
    let sum: u64 = out.iter().map(|o| o.1).sum();
    if let Some(first) = out.first_mut() {
        first.1 = (first.1 + 100).saturating_sub(sum);
    }
    out.sort_unstable();
    out
}

impl Fit {
    /// Number of a job's files, and the bytes of each.
    fn shape(&self, job: &Job) -> (u64, u64) {
        match job.sequential || job.task == Task::Stat {
            true => (self.files, self.file_size),
            false => (self.large_files, self.large_file_size),
        }
    }

    /// Job file. Its opening comments are those of nfscope's workloads.
    pub fn job_file(&self, name: &str) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "# Purpose:  a load like that of a trace");
        let mix: Vec<_> = (self.jobs.iter())
            .map(|j| format!("{} {}/s", j.name, j.rate))
            .collect();
        let _ = writeln!(out, "# Mix:      {}", mix.join(", "));
        // Jobs that create files remove them again.
        let with_files: Vec<_> = (self.jobs.iter())
            .filter(|j| j.task != Task::Create)
            .map(|j| self.shape(j))
            .collect();
        for (size, times, over) in [("small ", 1, 10), ("medium", 1, 1), ("large ", 4, 1)] {
            let scaled = |n: u64| (n * times / over).max(1);
            let bytes: u64 = (with_files.iter())
                .map(|(files, size)| scaled(*files).saturating_mul(*size))
                .sum();
            let _ = writeln!(
                out,
                "# Size:     {size}  FILES={} LARGE={} needs {} MiB",
                scaled(self.files),
                scaled(self.large_files),
                bytes.div_ceil(MIB) + 64
            );
        }
        let _ = writeln!(out, "# Closed:   its jobs have rates of their own");
        let _ = writeln!(
            out,
            "# Run:      DIR=/mnt/nfs RUNTIME=30s FILES={} LARGE={} fio {name}.fio\n#\n# Differs from its source:",
            self.files, self.large_files
        );
        for difference in &self.differences {
            let _ = writeln!(out, "#   {difference}");
        }
        let _ = writeln!(
            out,
            "[global]\ndirectory=${{DIR}}\nthread\ntime_based\nruntime=${{RUNTIME}}\nrate_process=poisson"
        );
        self.jobs.iter().for_each(|job| self.job(job, &mut out));
        out
    }

    fn job(&self, job: &Job, out: &mut String) {
        let _ = writeln!(out, "\n[{}]\nrate_iops={}", job.name, job.rate);
        let sizes: Vec<_> = (job.sizes.iter())
            .map(|(size, percent)| format!("{size}/{percent}"))
            .collect();
        let direction = match (job.task, job.sequential) {
            (Task::Stat, _) => "",
            (Task::Read, true) => "rw=read",
            (Task::Read, false) => "rw=randread",
            (_, true) => "rw=write",
            (_, false) => "rw=randwrite",
        };
        let own = match job.task {
            Task::Stat => format!(
                "ioengine=filestat\nnrfiles=${{FILES}}\nfilesize={}",
                self.file_size
            ),
            Task::Create => format!(
                "{direction}\nioengine=psync\nbs={0}\nfilesize={0}\nnrfiles=50\nopenfiles=1\ncreate_on_open=1\nunlink_each_loop=1",
                job.sizes[0].0
            ),
            Task::Write { sync_after } => {
                let sync = match sync_after {
                    0 => String::new(),
                    n => format!("\nfdatasync={n}"),
                };
                format!("{direction}\nioengine=psync{sync}")
            }
            Task::DurableWrite => {
                format!("{direction}\nioengine=libaio\ndirect=1\niodepth=64\nsync=dsync")
            }
            Task::Read => format!("{direction}\nioengine=libaio\ndirect=1\niodepth=64"),
        };
        let _ = writeln!(out, "{own}");
        if !matches!(job.task, Task::Stat | Task::Create) {
            let _ = writeln!(
                out,
                "bssplit={}\nnrfiles=${{{}}}\nfilesize={}\nfile_service_type=random",
                sizes.join(":"),
                if job.sequential { "FILES" } else { "LARGE" },
                self.shape(job).1
            );
        }
    }

    /// Operations as the jobs would make them, in the order of their arrival, for this number of seconds. The same `seed` makes the same.
    pub fn operations(&self, seconds: f64, seed: u64) -> Drawn<'_> {
        let states = self.jobs.iter().enumerate().map(|(i, job)| {
            let mut state = State {
                due: 0.0,
                random: mix(seed ^ mix(i as u64)),
                ends: vec![0; self.shape(job).0 as usize],
                written: 0,
            };
            state.schedule(job.rate);
            state
        });
        Drawn {
            fit: self,
            seconds,
            states: states.collect(),
            commit: None,
        }
    }
}

/// Operations of [`Fit::operations`].
pub struct Drawn<'a> {
    fit: &'a Fit,
    seconds: f64,
    states: Vec<State>,
    /// Operation that follows the last one at once.
    commit: Option<Operation>,
}

struct State {
    due: f64,
    random: u64,
    /// Next offset of each file.
    ends: Vec<u64>,
    written: u64,
}

impl State {
    fn next(&mut self) -> u64 {
        self.random = mix(self.random);
        self.random
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Sets the next arrival at random (Poisson).
    fn schedule(&mut self, rate: u64) {
        self.due += -(1.0 - self.unit()).ln() / rate as f64;
    }
}

impl Iterator for Drawn<'_> {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if let Some(commit) = self.commit.take() {
            return Some(commit);
        }
        let order = |a: &(usize, &State), b: &(usize, &State)| a.1.due.total_cmp(&b.1.due);
        let (number, _) = self.states.iter().enumerate().min_by(order)?;
        let (fit, state) = (self.fit, &mut self.states[number]);
        let job = &fit.jobs[number];
        if state.due > self.seconds {
            return None;
        }
        let at = (state.due * 1e9) as u64;
        state.schedule(job.rate);
        let op = match job.task {
            Task::Read => Op::READ,
            Task::Stat => Op::named("getattr").unwrap_or(Op::READ),
            Task::Create => Op::named("create").unwrap_or(Op::WRITE),
            _ => Op::WRITE,
        };
        let mut o = Operation::new(at, 0, fit.version, op);
        o.status = Some(0);
        let (files, file_size) = fit.shape(job);
        let file = (state.next() % files) as usize;
        // Files of a job are its own.
        o.file = Some(((number as u64) << 32) | file as u64);
        if job.task == Task::Stat {
            return Some(o);
        }
        let mut percent = state.next() % 100;
        let size = job.sizes.iter().find(|(_, part)| {
            let is_here = percent < *part;
            percent = percent.saturating_sub(*part);
            is_here
        });
        let size = size.or(job.sizes.last()).map_or(SECTOR, |s| s.0);
        if job.task == Task::Create {
            let new = o.file.map(|file| mix(file ^ mix(at)));
            let mut write = Operation::new(at, 0, fit.version, Op::WRITE);
            (write.file, write.offset, write.length) = (new, Some(0), Some(size as u32));
            (write.status, write.stability) = (Some(0), Some(Stability::Unstable));
            o.other = new;
            self.commit = Some(write);
            return Some(o);
        }
        let end = match job.sequential {
            true => state.ends[file],
            false => state.next() % (file_size / SECTOR) * SECTOR,
        };
        let offset = if end + size > file_size { 0 } else { end };
        state.ends[file] = offset + size;
        (o.offset, o.length) = (Some(offset), Some(size as u32));
        match job.task {
            Task::Write { sync_after } => {
                o.stability = Some(Stability::Unstable);
                state.written += 1;
                if sync_after > 0 && state.written % sync_after == 0 {
                    let commit = Op::COMMIT;
                    let mut commit = Operation::new(at, 0, fit.version, commit);
                    (commit.file, commit.status) = (o.file, Some(0));
                    self.commit = Some(commit);
                }
            }
            Task::DurableWrite => o.stability = Some(Stability::FileSync),
            _ => {}
        }
        Some(o)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::describe::describe;
    use crate::example;
    use crate::header::{Header, Host};

    fn source() -> Load {
        let mut header = Header::new(Host::Server, "test");
        header.clients = (0..example::CLIENTS).map(|i| format!("c{i}")).collect();
        describe(&header, example::mixed(9).take(100_000).map(Ok)).unwrap()
    }

    #[test]
    fn a_fitted_workload_has_the_rates_sizes_sequence_and_durability_of_its_source() {
        let source = source();
        let fit = fit(&source).unwrap();
        let mut header = Header::new(Host::Server, "test");
        header.clients.push("c0".to_owned());
        let drawn = fit.operations(source.seconds, 1).map(Ok);
        let drawn = describe(&header, drawn).unwrap();
        let c = compare(&source, &drawn);
        let distance = |name: &str| {
            let found = c.quantities.iter().find(|q| q.name == name);
            found.unwrap().distance.unwrap()
        };
        assert!(distance("read_sizes") < 0.05, "{c:?}");
        assert!(distance("write_sizes") < 0.2, "{c:?}");
        assert!(distance("reads_in_sequence").abs() < 0.1, "{c:?}");
        assert!(distance("writes_in_sequence").abs() < 0.15, "{c:?}");
        assert!(distance("durable_writes").abs() < 0.05, "{c:?}");
        let count = |load: &Load, op: &str| -> f64 {
            let kinds = load.mix.iter().filter(|k| k.op == op);
            kinds.map(|k| k.operations as f64).sum()
        };
        for op in ["read", "write"] {
            let ratio = count(&drawn, op) / count(&source, op);
            assert!((ratio - 1.0).abs() < 0.05, "{op}: {ratio}");
        }
        let dispersion = drawn.bursts[1].dispersion.unwrap();
        assert!(dispersion < 2.0, "{dispersion}");
        // Bursts are a difference, and the file says so.
        assert!(
            fit.differences[0].contains("the trace has"),
            "{:?}",
            fit.differences
        );
    }

    #[test]
    fn a_job_file_describes_itself_and_its_percentages_sum_up() {
        let fit = fit(&source()).unwrap();
        for job in &fit.jobs {
            assert_eq!(job.sizes.iter().map(|s| s.1).sum::<u64>(), 100, "{job:?}");
        }
        let text = fit.job_file("mine");
        for part in [
            "# Purpose:",
            "# Mix:",
            "# Size:     medium  FILES=",
            "# Run:",
            "[global]",
            "rate_iops=",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.len() <= 200), "{text}");
    }

    #[test]
    fn a_load_without_anything_to_fit_has_no_workload() {
        let header = Header::new(Host::Server, "test");
        assert_eq!(fit(&describe(&header, std::iter::empty()).unwrap()), None);
    }
}
