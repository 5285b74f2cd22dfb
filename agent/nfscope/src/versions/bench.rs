//! Rounds of `nfscope versions`: a campaign that compares versions under loads, or versions by number of threads.

use crate::experiment::rounds::{self, Rounds, Until};
use crate::versions::cli::VersionsArgs;
use anyhow::bail;
use nfscope_baseline::versions::{Block, LeftOut, LoadBlocks, Report, ScaleBlock};
use nfscope_load::versions::Kind;
use nfscope_load::versions::client::Client;
use nfscope_load::versions::kind::DEPTHS;
use nfscope_load::versions::mount::VERSIONS;
use nfscope_load::versions::site::Site;
use nfscope_load::workload::fio::{Stop, Stopped};
use nfscope_stats::experiment::Blocks;
use nfscope_text::progress_line::ProgressLine;
use nfscope_text::units::percent;
use std::time::{Duration, Instant};

/// Default number of rounds.
const ROUNDS: usize = 8;
/// Default number of rounds with `--scale`, whose rounds have many blocks.
const SCALE_ROUNDS: usize = 4;
/// Share of requests from other clients above which the report has a warning.
const OTHERS: f64 = 0.01;

/// Mounts, loads and results. Dropping it removes mounts and files.
pub(super) struct Bench {
    client: Client,
    loads: Vec<Load>,
    left_out: Vec<LeftOut>,
    warnings: Vec<String>,
    /// For each version, RPCs of the loads, and requests of other clients at the server.
    sent: Vec<(u64, u64)>,
    retransmissions: u64,
    progress: ProgressLine,
}

/// Load and its blocks.
struct Load {
    kind: Kind,
    /// Version and number of threads of each block in a round; `None` if the version cannot be measured.
    cells: Vec<Option<(usize, u32)>>,
    /// Random order of the blocks, balanced by position over the rounds. Each load has its own.
    orders: Blocks,
    /// Results by round and cell.
    rounds: Vec<Vec<Option<Block>>>,
}

impl Load {
    fn new(kind: Kind, cells: Vec<Option<(usize, u32)>>, seed: u64) -> Load {
        Load {
            orders: Blocks::new(cells.len(), seed),
            rounds: Vec::new(),
            kind,
            cells,
        }
    }

    /// Returns true if there are ratios: the first version was measured, and another one.
    fn is_comparison(&self) -> bool {
        matches!(&self.cells[..], [Some(_), others @ ..] if others.iter().any(Option::is_some))
    }

    fn blocks(&self) -> LoadBlocks {
        LoadBlocks {
            load: self.kind.name(),
            operation: self.kind.operation(),
            rounds: self.rounds.clone(),
        }
    }
}

impl Bench {
    /// Mounts the export over each version that the server and the client have.
    pub(super) fn open(args: &VersionsArgs) -> anyhow::Result<Bench> {
        let stop = Stop::watch()?;
        let (options, agent) = (args.mount_options.clone(), args.url.clone());
        let mut client = Client::new("versions", options, agent, args.size, stop)?;
        client.set(args.runtime, Vec::new());
        let mut bench = Bench {
            client,
            loads: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
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
            if self.versions().contains(version) {
                continue;
            }
            let export = match (&args.v3_export, version.as_str()) {
                (Some(export), "3") => export,
                _ => &args.export,
            };
            self.progress
                .show(&format!("mounting {} over NFS {version}", export.source()));
            if let Err(e) = self.client.mount(version, export) {
                self.leave_out(version.clone(), e)?;
            }
        }
        if self.client.sites().is_empty() {
            let why: Vec<_> = self
                .left_out
                .iter()
                .map(|l| format!("NFS {}: {}", l.what, l.why))
                .collect();
            bail!("cannot mount {}; {}", args.export.source(), why.join("; "));
        }
        self.client.make_work()?;
        self.sent = vec![(0, 0); self.client.sites().len()];
        Ok(())
    }

    /// Records a version or load that cannot be measured. A signal is returned as an error.
    fn leave_out(&mut self, what: String, e: anyhow::Error) -> anyhow::Result<()> {
        if e.downcast_ref::<Stopped>().is_some() {
            return Err(e);
        }
        let why = format!("{e:#}");
        self.progress.say(&format!("not measured: {what}: {why}"));
        self.left_out.push(LeftOut { what, why });
        Ok(())
    }

    /// Versions that are mounted.
    pub(super) fn versions(&self) -> Vec<String> {
        let sites = self.client.sites().iter();
        sites.map(|s| s.version.clone()).collect()
    }

    /// Creates the files of a load and runs it once as a warm-up. Returns for each version whether it can be measured.
    fn prepare(&mut self, kind: Kind, threads: u32) -> anyhow::Result<Vec<bool>> {
        let mut able = Vec::new();
        for (v, version) in self.versions().into_iter().enumerate() {
            self.progress
                .show(&format!("{} over NFS {version}: warm-up", kind.name()));
            let ready = self.client.warm_up(v, kind, threads);
            able.push(ready.is_ok());
            if let Err(e) = ready {
                self.leave_out(format!("{} over {version}", kind.name()), e)?;
            }
        }
        Ok(able)
    }

    fn block(&mut self, v: usize, kind: Kind, threads: u32) -> anyhow::Result<Block> {
        let block = self.client.block(v, kind, threads)?;
        let (rpcs, others) = &mut self.sent[v];
        *rpcs += block.rpcs.values().sum::<u64>();
        *others += block.others;
        self.retransmissions += block.retransmissions;
        Ok(block)
    }

    /// Blocks of a comparison, and whether the intervals became narrow enough; `None` without `--until-ci`.
    pub(super) fn compare(
        &mut self,
        args: &VersionsArgs,
    ) -> anyhow::Result<(Vec<LoadBlocks>, Option<bool>)> {
        let began = Instant::now();
        for (i, kind) in kinds(args).into_iter().enumerate() {
            let able = self.prepare(kind, args.threads)?.into_iter().enumerate();
            let cells = able.map(|(v, able)| able.then_some((v, args.threads)));
            let seed = args.seed.wrapping_add(i as u64);
            self.loads.push(Load::new(kind, cells.collect(), seed));
        }
        let until = args.until_ci.map(|ci| Until {
            ci,
            rounds: usize::MAX,
            time: args.max_duration,
        });
        if until.is_some() && !self.loads.iter().any(Load::is_comparison) {
            bail!("--until-ci: no two versions can be compared; fix: name others with --versions");
        }
        let least = match until {
            Some(_) => 1,
            None => args.rounds.map_or(ROUNDS, |n| n as usize),
        };
        let reached = rounds::make(self, least, until.as_ref(), began)?;
        Ok((self.loads.iter().map(Load::blocks).collect(), reached))
    }

    /// Throughput of one load by number of threads: its name, the number of rounds, and the blocks.
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
        let able = (0..able.len()).filter(|v| able[*v]);
        let cells = able.flat_map(|v| args.scale.iter().map(move |n| Some((v, *n))));
        self.loads = vec![Load::new(kind, cells.collect(), args.seed)];
        let rounds = args.rounds.map_or(SCALE_ROUNDS, |n| n as usize);
        rounds::make(self, rounds, None, Instant::now())?;
        let versions = self.versions();
        let mut blocks = Vec::new();
        for load in &self.loads {
            for (round, made) in load.rounds.iter().enumerate() {
                let made = load.cells.iter().flatten().zip(made.iter().flatten());
                blocks.extend(made.map(|((v, threads), block)| ScaleBlock {
                    round,
                    version: versions[*v].clone(),
                    threads: *threads,
                    throughput: block.host_ops as f64 / block.seconds,
                }));
            }
        }
        Ok((kind.name(), rounds, blocks))
    }

    /// Adds versions, omissions and warnings to the report.
    pub(super) fn told(mut self, mut report: Report) -> Report {
        self.progress.clear();
        report.setting.versions = self.versions();
        report.setting.left_out = std::mem::take(&mut self.left_out);
        for (site, (rpcs, others)) in self.client.sites().iter().zip(&self.sent) {
            if *others as f64 > OTHERS * *rpcs as f64 {
                self.warnings.push(format!(
                    "The agent counted {others} requests over NFS {} beside the {rpcs} of the loads: server time and component operations have them in them.",
                    site.version
                ));
            }
        }
        let mounts = self.client.sites().iter();
        self.warnings.extend(mounts.filter_map(Site::pnfs_told));
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

impl Rounds for Bench {
    fn make(&mut self, rounds: usize) -> anyhow::Result<usize> {
        let versions = self.versions();
        let mut made = self.loads.first().map_or(0, |l| l.rounds.len());
        while made < rounds {
            made += 1;
            for i in 0..self.loads.len() {
                let load = &mut self.loads[i];
                let (kind, order) = (load.kind, load.orders.next().unwrap_or_default());
                let mut measured = vec![None; load.cells.len()];
                for at in order {
                    let Some((v, threads)) = self.loads[i].cells[at] else {
                        continue;
                    };
                    let (name, version) = (kind.name(), &versions[v]);
                    let text = format!("round {made}: {name} over NFS {version}");
                    self.progress.show(&match kind {
                        Kind::Open(_) => text,
                        _ => format!("{text}, {threads} threads"),
                    });
                    measured[at] = Some(self.block(v, kind, threads)?);
                }
                self.loads[i].rounds.push(measured);
            }
        }
        Ok(made)
    }

    fn widest(&self, rounds: usize) -> Option<(f64, f64)> {
        let compared = self.loads.iter().filter(|l| l.is_comparison());
        let mut widest = (0.0f64, f64::INFINITY);
        for load in compared {
            let mut blocks = load.blocks();
            blocks.rounds.truncate(rounds);
            let (width, pairs) = blocks.widest(load.cells.len())?;
            widest = (widest.0.max(width), widest.1.min(pairs));
        }
        Some(widest)
    }

    fn tell(&mut self, rounds: usize, width: f64) {
        self.progress.show(&format!(
            "round {rounds}: widest interval ± {}",
            percent(width)
        ));
    }
}

/// Loads of the command line without duplicates, or the default loads.
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
    }
}
