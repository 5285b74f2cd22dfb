//! The mounts of `nfscope versions`, and the order of its blocks.

use crate::cli::versions::VersionsArgs;
use crate::versions::Kind;
use crate::versions::counters;
use crate::versions::kind::DEPTHS;
use crate::versions::mount::VERSIONS;
use crate::versions::site::{Common, Site};
use crate::workload::fio::{Stop, Stopped};
use anyhow::{Context, bail};
use nfscope_baseline::versions::{Block, LeftOut, LoadBlocks, Report, ScaleBlock};
use nfscope_stats::Looks;
use nfscope_stats::experiment::Blocks;
use nfscope_text::progress_line::ProgressLine;
use nfscope_text::units::percent;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Rounds where nobody says how many.
const ROUNDS: usize = 8;
/// Rounds of a ramp, where nobody says: each has many blocks.
const SCALE_ROUNDS: usize = 4;
/// How long the client is watched without the load, before each block.
const QUIET: Duration = Duration::from_secs(1);
/// More requests of others than this part are told.
const OTHERS: f64 = 0.01;

/// Mounts, files and what was found on the way. Dropping it removes all of them.
pub(super) struct Bench {
    sites: Vec<Site>,
    common: Common,
    left_out: Vec<LeftOut>,
    warnings: Vec<String>,
    /// CPU time of this client without the load, and for how long it was watched.
    quiet: (f64, f64),
    /// RPCs of the loads by version, and requests of others at the server.
    sent: Vec<(u64, u64)>,
    retransmissions: u64,
    progress: ProgressLine,
}

impl Bench {
    /// Mounts the export over each version that the server and the client have.
    pub(super) fn open(args: &VersionsArgs) -> anyhow::Result<Bench> {
        let stop = Stop::watch()?;
        let directory = tempfile::Builder::new()
            .prefix("nfscope-versions-")
            .tempdir();
        let directory = directory.context("cannot create a temporary directory")?;
        let work = format!("nfscope-versions-{}", std::process::id());
        let mut bench = Bench {
            sites: Vec::new(),
            common: Common {
                // Bench removes it, and only while it is empty: exports are mounted below it.
                directory: directory.keep(),
                work: PathBuf::from(work),
                options: args.mount_options.clone(),
                agent: args.url.clone(),
                runtime: args.runtime,
                size: args.size,
                set: Vec::new(),
                stop,
            },
            left_out: Vec::new(),
            warnings: Vec::new(),
            quiet: (0.0, 0.0),
            sent: Vec::new(),
            retransmissions: 0,
            progress: ProgressLine::new(Duration::from_secs(10)),
        };
        let wanted = match (&args.versions[..], args.scale.is_empty()) {
            ([], true) => VERSIONS.map(str::to_owned).to_vec(),
            ([], false) => ["4.0", "4.1"].map(str::to_owned).to_vec(),
            (some, _) => some.to_vec(),
        };
        bench.mount(&wanted, args)?;
        if args.export.is_here() {
            bench.warnings.push(
                "The server is this host: the CPU time of the client has that of the server in it."
                    .to_owned(),
            );
        }
        Ok(bench)
    }

    fn mount(&mut self, wanted: &[String], args: &VersionsArgs) -> anyhow::Result<()> {
        for version in wanted {
            if self.sites.iter().any(|s| s.version == *version) {
                continue;
            }
            let export = match (&args.v3_export, version.as_str()) {
                (Some(export), "3") => export,
                _ => &args.export,
            };
            self.progress
                .show(&format!("mounting {} over NFS {version}", export.source()));
            match Site::mount(version, export, &self.common) {
                Ok(site) => self.sites.push(site),
                Err(e) => self.leave_out(version.clone(), e)?,
            }
        }
        let Some(first) = self.sites.first() else {
            let why: Vec<_> = self
                .left_out
                .iter()
                .map(|l| format!("NFS {}: {}", l.what, l.why))
                .collect();
            bail!("cannot mount {}; {}", args.export.source(), why.join("; "));
        };
        first.make_work(&self.common)?;
        self.sent = vec![(0, 0); self.sites.len()];
        Ok(())
    }

    /// Notes what is not measured, unless a signal was the reason.
    fn leave_out(&mut self, what: String, e: anyhow::Error) -> anyhow::Result<()> {
        if e.downcast_ref::<Stopped>().is_some() {
            return Err(e);
        }
        let why = format!("{e:#}");
        self.progress.say(&format!("not measured: {what}: {why}"));
        self.left_out.push(LeftOut { what, why });
        Ok(())
    }

    /// Those that are measured.
    pub(super) fn versions(&self) -> Vec<String> {
        self.sites.iter().map(|s| s.version.clone()).collect()
    }

    /// Makes the files of a load, and runs it once without counting: which versions can be measured with it.
    fn prepare(&mut self, kind: Kind, threads: u32) -> anyhow::Result<Vec<bool>> {
        let mut able = Vec::new();
        for v in 0..self.sites.len() {
            let version = self.sites[v].version.clone();
            self.progress
                .show(&format!("{} over NFS {version}: warm-up", kind.name()));
            let site = &mut self.sites[v];
            let ready = site.warm_up(kind, threads, &self.common);
            able.push(ready.is_ok());
            if let Err(e) = ready {
                self.leave_out(format!("{} over {version}", kind.name()), e)?;
            }
        }
        Ok(able)
    }

    fn block(&mut self, v: usize, kind: Kind, threads: u32) -> anyhow::Result<Block> {
        let background = match kind {
            // One call is too short for CPU time.
            Kind::Open(_) => None,
            _ => self.watch_quiet(),
        };
        let length = self.common.runtime;
        let block = self.sites[v].block(kind, threads, length, background, &self.common)?;
        let (rpcs, others) = &mut self.sent[v];
        *rpcs += block.rpcs.values().sum::<u64>();
        *others += block.others;
        self.retransmissions += block.retransmissions;
        Ok(block)
    }

    /// CPU time for each second that this client uses without the load, by all that was seen of it.
    fn watch_quiet(&mut self) -> Option<f64> {
        let (busy, seconds) = counters::watch(QUIET.min(self.common.runtime))?;
        self.quiet.0 += busy;
        self.quiet.1 += seconds;
        Some(self.quiet.0 / self.quiet.1)
    }

    /// All blocks of a comparison, and whether the intervals are as narrow as was asked for.
    pub(super) fn compare(
        &mut self,
        args: &VersionsArgs,
    ) -> anyhow::Result<(Vec<LoadBlocks>, Option<bool>)> {
        let kinds = kinds(args);
        let began = Instant::now();
        let mut loads = Vec::new();
        for kind in kinds {
            loads.push((kind, self.prepare(kind, args.threads)?));
        }
        if args.until_ci.is_some() && !loads.iter().any(|(_, able)| is_comparison(able)) {
            bail!("--until-ci: no two versions can be compared; fix: name others with --versions");
        }
        let mut blocks: Vec<LoadBlocks> = loads
            .iter()
            .map(|(kind, _)| LoadBlocks {
                load: kind.name(),
                operation: kind.operation(),
                rounds: Vec::new(),
            })
            .collect();
        // Each load has its own order of versions, balanced by place over the rounds of that load.
        let seed = |i: usize| args.seed.wrapping_add(i as u64);
        let mut orders: Vec<Blocks> = (0..loads.len())
            .map(|i| Blocks::new(self.sites.len(), seed(i)))
            .collect();
        let mut looks = Looks::at_runs();
        let rounds = args.rounds.map_or(ROUNDS, |n| n as usize);
        for round in 1.. {
            let started = Instant::now();
            for (((kind, able), of), orders) in loads.iter().zip(&mut blocks).zip(&mut orders) {
                let mut measured = vec![None; self.sites.len()];
                for v in orders.next().unwrap_or_default() {
                    if able[v] {
                        let version = self.sites[v].version.clone();
                        let name = kind.name();
                        self.progress
                            .show(&format!("round {round}: {name} over NFS {version}"));
                        measured[v] = Some(self.block(v, *kind, args.threads)?);
                    }
                }
                of.rounds.push(measured);
            }
            let Some(wanted) = args.until_ci else {
                if round >= rounds {
                    return Ok((blocks, None));
                }
                continue;
            };
            let compared = loads.iter().zip(&blocks);
            let compared = compared.filter(|((_, able), _)| is_comparison(able));
            let widths = compared.map(|(_, b)| b.widest(self.sites.len()));
            let widest = widths.collect::<Option<Vec<_>>>();
            let (width, pairs) = widest.map_or((f64::INFINITY, 0.0), |all| {
                let start = (0.0f64, f64::INFINITY);
                all.into_iter()
                    .fold(start, |(w, n), of| (w.max(of.0), n.min(of.1)))
            });
            if width.is_finite() {
                self.progress.show(&format!(
                    "round {round}: widest interval ± {}",
                    percent(width)
                ));
            }
            if looks.enough(round, pairs, width <= wanted) {
                return Ok((blocks, Some(true)));
            }
            if began.elapsed() + started.elapsed() > args.max_duration {
                return Ok((blocks, Some(false)));
            }
        }
        Ok((blocks, None))
    }

    /// Throughput of one load with several numbers of threads: its name, the rounds, and the blocks.
    pub(super) fn scale(
        &mut self,
        args: &VersionsArgs,
    ) -> anyhow::Result<(String, usize, Vec<ScaleBlock>)> {
        let [kind] = kinds(args)[..] else {
            bail!("--scale measures one load; fix: name one with --loads");
        };
        let varies = match kind {
            Kind::Open(_) => false,
            Kind::Workload(w) => w.parameters().contains(&"THREADS"),
            _ => true,
        };
        if !varies {
            bail!(
                "--scale: {} has no number of threads; fix: name another load",
                kind.name()
            );
        }
        let most = args.scale.iter().copied().max().unwrap_or(1);
        let able = self.prepare(kind, most)?;
        let cells: Vec<(usize, u32)> = (0..self.sites.len())
            .filter(|v| able[*v])
            .flat_map(|v| args.scale.iter().map(move |n| (v, *n)))
            .collect();
        let rounds = args.rounds.map_or(SCALE_ROUNDS, |n| n as usize);
        let mut blocks = Vec::new();
        for (round, order) in Blocks::new(cells.len(), args.seed).take(rounds).enumerate() {
            for (v, threads) in order.into_iter().map(|i| cells[i]) {
                let version = self.sites[v].version.clone();
                self.progress.show(&format!(
                    "round {}: {} over NFS {version}, {threads} threads",
                    round + 1,
                    kind.name()
                ));
                let block = self.block(v, kind, threads)?;
                blocks.push(ScaleBlock {
                    round,
                    version,
                    threads,
                    throughput: block.host_ops as f64 / block.seconds,
                });
            }
        }
        Ok((kind.name(), rounds, blocks))
    }

    /// The report with what was found on the way.
    pub(super) fn told(mut self, mut report: Report) -> Report {
        self.progress.clear();
        report.setting.versions = self.versions();
        report.setting.left_out = std::mem::take(&mut self.left_out);
        for (site, (rpcs, others)) in self.sites.iter().zip(&self.sent) {
            if *others as f64 > OTHERS * *rpcs as f64 {
                self.warnings.push(format!(
                    "The agent counted {others} requests over NFS {} beside the {rpcs} of the loads: server time and component operations have them in them.",
                    site.version
                ));
            }
        }
        self.warnings
            .extend(self.sites.iter().filter_map(Site::pnfs_told));
        if self.retransmissions > 0 {
            self.warnings.push(format!(
                "{} RPCs were sent once more: the network loses them, or the server is slow to answer.",
                self.retransmissions
            ));
        }
        report.setting.warnings = std::mem::take(&mut self.warnings);
        report
    }
}

/// Whether there are ratios: the first version, and another one.
fn is_comparison(able: &[bool]) -> bool {
    matches!(able, [true, others @ ..] if others.contains(&true))
}

/// The loads, each once.
fn kinds(args: &VersionsArgs) -> Vec<Kind> {
    let mut all: Vec<Kind> = args.loads.iter().flat_map(|l| l.0.clone()).collect();
    if all.is_empty() {
        all = vec![Kind::Reads];
        if args.scale.is_empty() {
            all.extend([Kind::Writes, Kind::Metadata]);
            all.extend(DEPTHS.map(Kind::Open));
        }
    }
    let mut seen = Vec::new();
    for kind in all {
        if !seen.contains(&kind) {
            seen.push(kind);
        }
    }
    seen
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.progress.clear();
        // The others first: clients that hold delegations would be asked for them.
        self.sites.truncate(1);
        if let Some(site) = self.sites.first() {
            site.remove_work(&self.common);
        }
        self.sites.clear();
        // It is empty unless an unmount has failed, which has been told.
        let _ = fs::remove_dir(&self.common.directory);
    }
}
