//! One version on this client: its mount, its files, and blocks on them.

use crate::versions::counters::{self, MIN_CPU_SECONDS};
use crate::versions::export::Export;
use crate::versions::fresh_open;
use crate::versions::kind::Kind;
use crate::versions::local_load::Files;
use crate::versions::mount::Mounted;
use crate::versions::mountstats::MountStats;
use crate::versions::server_counts::ServerCounts;
use crate::workload::fio::{self, Stop};
use crate::workload::fio_report::{Figures, RunReport};
use crate::workload::parameters::{self, Set};
use crate::workload::{SizeName, Workload};
use anyhow::{Context, ensure};
use nfscope_baseline::versions::Block;
use nfscope_text::console::say;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Time after which the server has answered what a client sends when it closes a file.
const SETTLING: Duration = Duration::from_millis(500);

/// Length of a block that is not counted.
const WARM_UP: Duration = Duration::from_secs(1);

/// Names of the figures of a job of fio.
pub const FIGURES: [&str; 4] = [
    "operations_per_second",
    "mib_per_second",
    "latency_seconds",
    "p99_seconds",
];

/// Settings that all versions have in common.
#[derive(Debug)]
pub struct Common {
    /// Directory of this client for the mounts.
    pub directory: PathBuf,
    /// Directory of this run on the export.
    pub work: PathBuf,
    /// More options for mount.
    pub options: Option<String>,
    /// URL of the server's agent.
    pub agent: Option<String>,
    /// Length of a block.
    pub runtime: Duration,
    /// Amount of data of a workload of fio.
    pub size: SizeName,
    /// Other parameters of the workload.
    pub set: Vec<(String, String)>,
    /// Signals that end the run.
    pub stop: Stop,
}

/// A version with its mount.
#[derive(Debug)]
pub struct Site {
    /// NFS version, for example `4.1`.
    pub version: String,
    export: Export,
    mount: Mounted,
    files: Vec<(Kind, Files)>,
}

/// Counters at one moment.
struct Counters {
    mount: MountStats,
    server: Option<ServerCounts>,
    busy: Option<f64>,
    at: Instant,
}

impl Site {
    /// Mounts the export over a version.
    ///
    /// # Errors
    /// When the server or the client refuses, with what it says.
    pub fn mount(version: &str, export: &Export, common: &Common) -> anyhow::Result<Site> {
        let at = common.directory.join(version);
        let options = common.options.as_deref();
        Ok(Site {
            version: version.to_owned(),
            mount: Mounted::make(&export.source(), version, options, at, &common.stop)?,
            export: export.clone(),
            files: Vec::new(),
        })
    }

    /// Sentence about the mount's use of pNFS, if it may use it.
    pub fn pnfs_told(&self) -> Option<String> {
        MountStats::read(self.root()).ok()?.pnfs_told(&self.version)
    }

    /// The mount's root.
    pub fn root(&self) -> &Path {
        self.mount.path()
    }

    /// Directory of this run on the export, below this mount.
    fn work(&self, common: &Common) -> PathBuf {
        self.root().join(&common.work)
    }

    fn directory(&self, common: &Common) -> PathBuf {
        self.work(common).join(&self.version)
    }

    /// Makes the directory of this run on the export.
    ///
    /// # Errors
    /// When the server refuses it, with the fix.
    pub fn make_work(&self, common: &Common) -> anyhow::Result<()> {
        fs::create_dir(self.work(common)).with_context(|| {
            format!(
                "cannot create {} on the export; fix: export it with no_root_squash and rw, or make a directory that everybody may write to and name that",
                common.work.display()
            )
        })
    }

    /// Removes the directory of this run from the export, and says so where that fails.
    pub fn remove_work(&self, common: &Common) {
        let work = self.work(common);
        if work.exists()
            && let Err(e) = fs::remove_dir_all(&work)
        {
            say(&format!(
                "cannot remove {} from the export: {e}; fix: remove it there",
                common.work.display()
            ));
        }
    }

    /// Makes the files of a load, and runs it once without counting.
    ///
    /// # Errors
    /// When the files cannot be made, or a call fails.
    pub fn warm_up(&mut self, kind: Kind, threads: u32, common: &Common) -> anyhow::Result<()> {
        self.prepare(kind, threads, common)?;
        let length = common.runtime.min(WARM_UP);
        self.block(kind, threads, length, None, common).map(drop)
    }

    /// Makes the files of a load.
    fn prepare(&mut self, kind: Kind, threads: u32, common: &Common) -> anyhow::Result<()> {
        let directory = self.directory(common).join(kind.name());
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        match kind {
            Kind::Open(depth) => fresh_open::make_file(&directory, depth),
            Kind::Workload(w) => self.fio(w, threads, &["--create_only=1"], common).map(drop),
            _ => {
                let files = Files::make(kind, &directory, threads)?;
                self.files.push((kind, files));
                Ok(())
            }
        }
    }

    /// Runs one block, for this long at most. `background` is the CPU time per second that this client uses without the load.
    ///
    /// # Errors
    /// When a call fails, or [`Stopped`](crate::workload::fio::Stopped).
    pub fn block(
        &mut self,
        kind: Kind,
        threads: u32,
        length: Duration,
        background: Option<f64>,
        common: &Common,
    ) -> anyhow::Result<Block> {
        common.stop.check()?;
        match kind {
            Kind::Open(depth) => self.fresh_open(depth, common),
            Kind::Workload(w) => {
                let before = Counters::read(self.root(), &self.version, common)?;
                let report = RunReport::parse(&self.fio(w, threads, &[], common)?)?;
                let mut block = before.ended(self.root(), &self.version, background, common)?;
                block.host_ops = report.ops;
                block.seconds = report.ops as f64 / report.total.iops;
                block.latency_seconds = report.total.latency_seconds;
                block.p99_seconds = report.total.p99_seconds;
                block.numbers = numbers(&report);
                Ok(block)
            }
            _ => {
                let root = self.mount.path().to_owned();
                let files = self.files.iter_mut().find(|(k, _)| *k == kind);
                let (_, files) = files.context("a load without files")?;
                let mut opened = files.open(threads)?;
                let settle = || {
                    // Calls end before the CLOSE that they cause. Reads and writes leave nothing behind.
                    if kind == Kind::Metadata {
                        thread::sleep(SETTLING);
                    }
                };
                settle();
                let before = Counters::read(&root, &self.version, common)?;
                let mut calls = opened.run(length, &common.stop)?;
                settle();
                let mut block = before.ended(&root, &self.version, background, common)?;
                files.close(opened);
                block.host_ops = calls.count;
                block.seconds = calls.seconds;
                block.latency_seconds = calls.mean();
                block.p99_seconds = calls.quantile(0.99);
                Ok(block)
            }
        }
    }

    /// Opens a file once on a new mount of its directory, of which the client knows nothing yet.
    fn fresh_open(&self, depth: u32, common: &Common) -> anyhow::Result<Block> {
        let path = common.work.join(&self.version);
        let source = self.export.below(&path.join(Kind::Open(depth).name()));
        let at = common.directory.join("open");
        let options = common.options.as_deref();
        let mount = Mounted::make(&source, &self.version, options, at, &common.stop)
            .with_context(|| format!("cannot mount {source} itself"))?;
        fresh_open::list(mount.path())?;
        let before = Counters::read(mount.path(), &self.version, common)?;
        let (took, file) = fresh_open::open(mount.path(), depth)?;
        let waited = MountStats::read(mount.path())?.since(&before.mount);
        drop(file);
        // A client does not wait for the requests that it sends when it closes a file.
        thread::sleep(SETTLING);
        let mut block = before.ended(mount.path(), &self.version, None, common)?;
        block.waited_rpcs = Some(waited.rpcs.values().sum());
        block.host_ops = 1;
        // A single call has no throughput.
        block.latency_seconds = Some(took.as_secs_f64());
        Ok(block)
    }

    fn fio(
        &self,
        workload: Workload,
        threads: u32,
        options: &[&str],
        common: &Common,
    ) -> anyhow::Result<String> {
        let parameters = variables(workload, threads, common.size, common.set.clone())?;
        let directory = self.directory(common).join(workload.name);
        let mut variables = vec![
            ("DIR", directory.display().to_string().replace(':', "\\:")),
            ("RUNTIME", format!("{}s", common.runtime.as_secs().max(1))),
        ];
        variables.extend(parameters);
        fio::run(workload.job_file, options, &variables, &common.stop, |_| {
            Ok(())
        })
    }
}

/// Variables of a workload of fio.
///
/// # Errors
/// When it has no such parameter, or a value cannot be; the error says which there are.
pub fn variables(
    workload: Workload,
    threads: u32,
    size: SizeName,
    values: Vec<(String, String)>,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let size = workload.size(size);
    let size = size.context("the job file does not define its sizes")?;
    let has_threads = workload.parameters().contains(&"THREADS");
    let set = Set {
        values,
        threads: has_threads.then_some(threads),
        ..Set::default()
    };
    parameters::variables(workload, &size, &set).map(|(all, _)| all)
}

/// Data per second of a workload, and the figures of each of its jobs.
fn numbers(report: &RunReport) -> BTreeMap<String, f64> {
    let each = report.jobs.iter().flat_map(|(job, op, f)| {
        let name = match job == op {
            true => job.clone(),
            false => format!("{job}.{op}"),
        };
        figures(&format!("{name}."), f)
    });
    let total = figures("", &report.total);
    let total = total
        .into_iter()
        .filter(|(name, _)| name.starts_with("mib"));
    each.chain(total).collect()
}

fn figures(prefix: &str, f: &Figures) -> Vec<(String, f64)> {
    let mib = f.bytes_per_second.map(|b| b / f64::from(1 << 20));
    let all = [Some(f.iops), mib, f.latency_seconds, f.p99_seconds];
    let named = |(name, v): (&str, Option<f64>)| Some((format!("{prefix}{name}"), v?));
    FIGURES.into_iter().zip(all).filter_map(named).collect()
}

impl Counters {
    fn read(mount: &Path, version: &str, common: &Common) -> anyhow::Result<Counters> {
        // The agent is read first: it waits until everything sent before has arrived.
        let server = common.agent.as_ref();
        Ok(Counters {
            server: server
                .map(|url| ServerCounts::read(url, version))
                .transpose()?,
            mount: MountStats::read(mount)?,
            busy: counters::busy_seconds(),
            at: Instant::now(),
        })
    }

    /// Block since these counters.
    fn ended(
        &self,
        mount: &Path,
        version: &str,
        background: Option<f64>,
        common: &Common,
    ) -> anyhow::Result<Block> {
        let length = self.at.elapsed().as_secs_f64();
        let busy = counters::busy_seconds();
        let stats = MountStats::read(mount)?.since(&self.mount);
        let url = common.agent.as_ref();
        let server = url
            .map(|url| ServerCounts::read(url, version))
            .transpose()?;
        let server = server.zip(self.server.as_ref());
        let server = server.map(|(now, then)| now.since(then));
        let used = busy.zip(self.busy).map(|(now, then)| now - then);
        let own = used.zip(background).map(|(used, b)| used - b * length);
        let mut rpcs = stats.rpcs;
        if let Some(server) = &server {
            let sent: u64 = rpcs.values().sum();
            // The server counts at least the requests that the client sent. Each retransmission after a lost reply counts as one more.
            ensure!(
                server.requests + stats.retransmissions >= sent,
                "the agent counts {} requests over NFS {version} where this client has sent {sent}: is it the agent of this server?",
                server.requests
            );
            rpcs.extend(server.acl.clone());
        }
        let known: u64 = rpcs.values().sum();
        Ok(Block {
            cpu_seconds: own.filter(|s| *s >= MIN_CPU_SECONDS),
            round_trip_seconds: stats.round_trip_seconds,
            server_seconds: server.as_ref().map(|s| s.seconds),
            component_ops: server.as_ref().map(|s| s.component_ops),
            others: server.map_or(0, |s| s.requests.saturating_sub(known)),
            retransmissions: stats.retransmissions,
            rpcs,
            ..Block::default()
        })
    }
}
