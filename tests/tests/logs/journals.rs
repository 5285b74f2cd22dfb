//! ext4, with and without fast commits, XFS and btrfs, their logs inside them and on a disk of their own: sync writes over NFS,
//! compared with the file systems' own statistics and with kprobes of the tracing system.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lab::{Agent, Checks, Server};
use nfscope_model::{Histogram, ProbeState, Snapshot, family};

/// The exported disk; its log's disk lies on vdb.
const DATA: &str = "dm-0";
const CALLERS: u64 = 4;

/// File system to be exported.
#[derive(Clone, Copy, Debug)]
struct Case {
    fs: &'static str,
    /// Name of the file system in the lab.
    kind: &'static str,
    separate: bool,
    /// Divisor of the number of writes: 1 once for each file system.
    part: u64,
}

const fn case(fs: &'static str, kind: &'static str, separate: bool, part: u64) -> Case {
    Case {
        fs,
        kind,
        separate,
        part,
    }
}

const CASES: [Case; 6] = [
    case("ext4", "ext4", true, 1),
    case("xfs", "xfs", true, 1),
    case("xfs", "xfs", false, 5),
    case("btrfs", "btrfs", false, 1),
    case("ext4", "ext4", false, 5),
    case("ext4", "ext4-fast", false, 5),
];

impl Case {
    fn name(&self) -> String {
        let log = if self.separate {
            " with a log disk"
        } else {
            ""
        };
        format!("{}{log}", self.kind)
    }
}

/// Sync writes over v3, and as many COMMITs over v4.2, on each file system. One after the other replaces the ext4 with a log disk
/// that the machine exports. `beside` is called while each is exported, with its name.
pub fn are_counted(
    server: &Server,
    agent: &Agent,
    writes: u64,
    checks: &mut Checks,
    mut beside: impl FnMut(&mut Checks, &str),
) -> Result<()> {
    server.sh(&format!("set -e\nmodprobe -a xfs btrfs\n{REFERENCE}"))?;
    checks.run("every log's probes attach", || all_attach(agent));
    for (i, case) in CASES.into_iter().enumerate() {
        match (i, case.separate) {
            (0, _) => {}
            (_, true) => server.export_anew(case.kind)?,
            (_, false) => server.export_inside(case.kind)?,
        }
        let what = case.name();
        let log = Watched {
            server,
            agent,
            case,
            what: what.clone(),
        };
        checks.run(&format!("log of {what}"), || log.is_counted(writes));
        beside(checks, &what);
        if i + 1 == CASES.len() {
            checks.run("series end with the mount", || log.ends_with_the_mount());
        }
    }
    Ok(())
}

/// Waits for every probe but that of ZFS, which has a test of its own: they attach within a second or two of their module.
fn all_attach(agent: &Agent) -> Result<()> {
    let started = Instant::now();
    loop {
        let probes = agent.snapshot()?.probes;
        // These probes have no pool, and no mount yet.
        let waits = |probe: &str| ["zfs", "client", "recall"].contains(&probe);
        let mut others = probes.iter().filter(|p| !waits(&p.probe));
        let Some(missing) = others.find(|p| p.state != ProbeState::Attached) else {
            return Ok(());
        };
        ensure!(
            missing.state.may_come() && started.elapsed() < Duration::from_secs(60),
            "{missing:?}"
        );
        lab::pass(Duration::from_millis(500));
    }
}

/// Functions and tracepoints, counted by the tracing system: by caller, by flags, by thread.
const REFERENCE: &str = "cd /sys/kernel/tracing
count() { echo \"hist:keys=$2:size=512\" >events/$1/trigger; }
echo 'p:lab/jbd2_wait jbd2_log_wait_commit' >>kprobe_events
echo 'p:lab/xfs_force xfs_log_force flags=$arg2:u32' >>kprobe_events
echo 'p:lab/xfs_force_seq xfs_log_force_seq flags=$arg3:u32' >>kprobe_events
echo 'p:lab/btrfs_sync btrfs_sync_log' >>kprobe_events
echo 'p:lab/btrfs_whole btrfs_commit_transaction' >>kprobe_events
echo 'p:lab/btrfs_supers write_all_supers' >>kprobe_events
count lab/jbd2_wait stacktrace
count lab/xfs_force flags
count lab/xfs_force_seq flags
count lab/btrfs_sync common_pid
count lab/btrfs_whole common_pid.execname
count lab/btrfs_supers common_pid.execname
count jbd2/jbd2_write_superblock common_pid
count ext4/ext4_fc_commit_start common_pid
";

/// Script that prints all references, and the file systems' statistics.
const SAYS: &str = "cd /sys/kernel/tracing
for e in lab/jbd2_wait lab/xfs_force lab/xfs_force_seq lab/btrfs_sync lab/btrfs_whole lab/btrfs_supers \
  jbd2/jbd2_write_superblock ext4/ext4_fc_commit_start; do
  echo \"= ${e#*/}\"
  cat events/$e/hist
done
echo '= sectors'
awk '{ print $7 }' /sys/block/vdb/stat
echo '= jbd2'
cat /proc/fs/jbd2/*/info 2>/dev/null
echo '= fast'
cat /proc/fs/ext4/dm-0/fc_info 2>/dev/null
echo '= xfs'
grep '^log' /sys/fs/xfs/dm-0/stats/stats 2>/dev/null
true
";

/// Histograms among the sections of the script's output.
const HISTOGRAMS: [&str; 8] = [
    "jbd2_wait",
    "xfs_force",
    "xfs_force_seq",
    "btrfs_sync",
    "btrfs_whole",
    "btrfs_supers",
    "jbd2_write_superblock",
    "ext4_fc_commit_start",
];
/// Events that the references themselves did not count.
const LOST: &str = "lost by the references";

/// Counts of an independent reference, or the difference of two readings.
#[derive(Clone, Debug, Default, PartialEq)]
struct Says(BTreeMap<&'static str, u64>);

impl Says {
    fn parse(text: &str) -> Result<Says> {
        let sections: BTreeMap<&str, &str> = text
            .split("= ")
            .filter_map(|s| s.split_once('\n'))
            .collect();
        let section = |name: &str| sections.get(name).copied().unwrap_or_default();
        let counted = |name: &str, of: &dyn Fn(&str) -> bool| hits(section(name), of);
        let all = |_: &str| true;
        let inside = |function: &'static str| move |key: &str| key.contains(function);
        let flags = |key: &str| {
            let n = key.split(':').nth(1).unwrap_or_default();
            n.trim_matches([' ', '}']).parse::<u64>().unwrap_or(0)
        };
        // Number in the first line that contains `word`.
        let near = |name: &str, word: &str| {
            let line = section(name).lines().find(|l| l.contains(word))?;
            line.split(' ').find_map(|w| w.parse::<u64>().ok())
        };
        let xfs: Vec<u64> = section("xfs")
            .split_whitespace()
            .filter_map(|w| w.parse().ok())
            .collect();
        let xfs = |i: usize| xfs.get(i).copied().unwrap_or(0);
        let sync = |key: &str| flags(key) & 1 == 1;
        let mut lost = 0;
        for name in HISTOGRAMS {
            lost += dropped(section(name))?;
        }
        Ok(Says(BTreeMap::from([
            ("jbd2 waits", counted("jbd2_wait", &all)?),
            (
                "jbd2 waits in fast commits",
                counted("jbd2_wait", &inside("ext4_fc_commit"))?,
            ),
            ("jbd2 superblocks", counted("jbd2_write_superblock", &all)?),
            ("transactions", near("jbd2", "transactions").unwrap_or(0)),
            ("fast waits", counted("ext4_fc_commit_start", &all)?),
            ("fast commits", near("fast", "commits").unwrap_or(0)),
            ("fast blocks", near("fast", "numblks").unwrap_or(0)),
            // A failed fast commit becomes a commit of the whole journal, for which its caller waits (ext4_fc_commit).
            ("fast fallbacks", near("fast", "ineligible").unwrap_or(0)),
            (
                "xfs sync forces",
                counted("xfs_force", &sync)? + counted("xfs_force_seq", &sync)?,
            ),
            (
                "xfs forces by kprobe",
                counted("xfs_force", &all)? + counted("xfs_force_seq", &all)?,
            ),
            ("xfs writes", xfs(0)),
            ("xfs blocks", xfs(1)),
            ("xfs forces", xfs(3)),
            ("btrfs syncs", counted("btrfs_sync", &all)?),
            (
                "btrfs transactions",
                counted("btrfs_whole", &|key| !key.contains("btrfs-transacti"))?,
            ),
            // The superblock is written once for each write of the log, and for each transaction. nfsd alone waits for these.
            (
                "btrfs superblocks",
                counted("btrfs_supers", &|key| key.contains("nfsd"))?,
            ),
            (
                "log disk's sectors",
                section("sectors").trim().parse().unwrap_or(0),
            ),
            (LOST, lost),
        ])))
    }

    fn of(&self, what: &str) -> u64 {
        *self.0.get(what).unwrap_or_else(|| panic!("no {what}"))
    }

    fn since(&self, before: &Says) -> Says {
        let minus = |(k, v): (&&'static str, &u64)| (*k, v - before.of(k));
        Says(self.0.iter().map(minus).collect())
    }
}

/// Events that a histogram did not count: if two CPUs meet a new key at once, one gives up (kernel/trace/tracing_map.c).
fn dropped(histogram: &str) -> Result<u64> {
    let dropped = histogram
        .lines()
        .find_map(|l| l.trim().strip_prefix("Dropped:"));
    let dropped = dropped.with_context(|| format!("a reference is no histogram: {histogram}"))?;
    Ok(dropped.trim().parse()?)
}

/// Number of events of a histogram (Documentation/trace/histogram.rst) with a wanted key.
fn hits(histogram: &str, wanted: &dyn Fn(&str) -> bool) -> Result<u64> {
    let (mut key, mut sum) = (String::new(), 0);
    for line in histogram.lines().filter(|l| !l.starts_with('#')) {
        match line.split_once("} hitcount:") {
            None => key += line,
            Some((rest, n)) => {
                key += rest;
                if wanted(&key) {
                    sum += n.trim().parse::<u64>()?;
                }
                key.clear();
            }
        }
    }
    Ok(sum)
}

struct Watched<'a> {
    server: &'a Server,
    agent: &'a Agent,
    case: Case,
    what: String,
}

impl Watched<'_> {
    fn is_counted(&self, writes: u64) -> Result<()> {
        let mut before = self.moment()?;
        self.has_series_alone(&before.1)?;
        let times = writes / self.case.part / CALLERS;
        for (version, op) in [("3", "write"), ("4.2", "commit")] {
            let mut attempts = 3;
            loop {
                self.server.run_clients(&format!(
                    "write --nfs {version} --clients {CALLERS} --times {times}"
                ))?;
                let after = self.moment()?;
                let seen = after.1.since(&before.1).delta;
                let says = after.0.since(&before.0);
                before = after;
                let op = seen.hist(&family::OP_DURATION, [version, op]);
                ensure!(op.map_or(0, Histogram::count) == times * CALLERS, "{op:?}");
                // A reference that lost events is not valid. The histograms know the keys of the lost events from now on.
                attempts -= 1;
                if says.of(LOST) > 0 && attempts > 0 {
                    println!("{} v{version}: once more, {says:?}", self.what);
                    continue;
                }
                ensure!(says.of(LOST) == 0, "{says:?}");
                self.agrees(version, &seen, &says)?;
                break;
            }
        }
        self.reads_wait_for_nothing(before.1)
    }

    /// Counts of the references and of the agent at one moment without a load.
    fn moment(&self) -> Result<(Says, Snapshot)> {
        let says = || Says::parse(&self.server.sh(SAYS)?.stdout);
        let mut last = says()?;
        for _ in 0..60 {
            // The pause is longer than an agent repeats its last reading.
            lab::pass(Duration::from_millis(500));
            let seen = self.agent.snapshot()?;
            let now = says()?;
            if now == last {
                return Ok((now, seen));
            }
            last = now;
        }
        bail!("the log does not come to rest: {last:?}")
    }

    fn agrees(&self, version: &str, seen: &Snapshot, says: &Says) -> Result<()> {
        let Case {
            fs, kind, separate, ..
        } = self.case;
        let labels = [fs, DATA];
        let wait = seen.hist(&family::LOG_WAIT, labels).context("no waits")?;
        let commit = seen
            .hist(&family::LOG_COMMIT, labels)
            .context("no commits")?;
        let bytes = seen.value(&family::LOG_BYTES, [fs, DATA, target(separate)]);
        println!(
            "{} v{version}: {} waits of {:.3} s, {} writes of {:.3} s, {bytes:?} bytes; {:?}; lost {:?}",
            self.what,
            wait.count(),
            wait.sum,
            commit.count(),
            commit.sum,
            says.0.iter().filter(|(_, n)| **n > 0).collect::<Vec<_>>(),
            lab::reconcile::lost(seen)
        );
        let (waits, commits) = match kind {
            "ext4" => (says.of("jbd2 waits"), says.of("transactions")),
            "ext4-fast" => (
                says.of("fast waits") + says.of("jbd2 waits")
                    - says.of("jbd2 waits in fast commits"),
                says.of("fast commits") + says.of("transactions"),
            ),
            "xfs" => {
                // Both counts have forces that wait for nothing: the kernel's own, and that of the kprobes.
                ensure!(
                    says.of("xfs forces by kprobe") == says.of("xfs forces"),
                    "{says:?}"
                );
                (says.of("xfs sync forces"), says.of("xfs writes"))
            }
            _ => (
                says.of("btrfs syncs") + says.of("btrfs transactions"),
                says.of("btrfs superblocks") - says.of("btrfs transactions"),
            ),
        };
        // A function that ends with a call of another one is missing in the stack: for these waits it is unknown whether they are
        // inside fast commits.
        let unknown = match kind {
            "ext4-fast" => (says.of("fast fallbacks"))
                .saturating_sub(says.of("jbd2 waits in fast commits"))
                .min(says.of("jbd2 waits")),
            _ => 0,
        };
        self.same("waits", wait.count(), waits, unknown, seen)?;
        self.same("commits", commit.count(), commits, 0, seen)?;
        // The log's disk has nothing but the log and, for ext4, the journal's superblock.
        let disk = says.of("log disk's sectors") * 512;
        let written = match (fs, separate) {
            ("ext4", true) => Some(disk - says.of("jbd2 superblocks") * 4096),
            ("xfs", true) => {
                ensure!(disk == says.of("xfs blocks") * 512, "{says:?}");
                Some(disk)
            }
            ("xfs", false) => Some(says.of("xfs blocks") * 512),
            // A transaction that wrote anything has three blocks or more: descriptor, changed block, commit.
            ("ext4", false) => {
                let least = 4096 * (3 * says.of("transactions") + says.of("fast blocks"));
                // From 7.x on the kernel skips programs at times.
                let least = least - least / 10;
                ensure!(
                    bytes.is_some_and(|b| b >= least as f64),
                    "{bytes:?} bytes, but {least} at least"
                );
                None
            }
            _ => {
                ensure!(bytes.is_none(), "{bytes:?} bytes of {fs}");
                None
            }
        };
        if let Some(written) = written {
            self.same("bytes", bytes.unwrap_or(0.0) as u64, written, 0, seen)?;
        }
        self.is_in_the_operations(wait, seen)
    }

    /// Checks that only NFS operations waited. They slept for the log no longer than they were in the functions that wait for it, and
    /// most of that time: the rest goes to the CPU, and to waits for one.
    fn is_in_the_operations(&self, wait: &Histogram, seen: &Snapshot) -> Result<()> {
        let ops = lab::reconcile::merged(seen, &family::OP_DURATION.info, |_| true);
        let ops = ops.map_or(0.0, |h| h.sum);
        let phases = lab::reconcile::by_last_label(seen, &family::OP_PHASE.info, |_| true);
        println!("operations {ops:.3} s: {phases:.3?}");
        ensure!(
            wait.sum <= ops,
            "waits of {} s in operations of {ops} s",
            wait.sum
        );
        if let Some(log) = phases.get("log") {
            ensure!(
                (0.3 * wait.sum..=wait.sum).contains(log),
                "waits of {} s, but {phases:?}",
                wait.sum
            );
        }
        Ok(())
    }

    /// Checks that `measured` equals `truth`, but for events that the kernel skipped, and for `unknown` events of the truth that may
    /// be none.
    fn same(
        &self,
        what: &str,
        measured: u64,
        truth: u64,
        unknown: u64,
        seen: &Snapshot,
    ) -> Result<()> {
        let lost = lab::reconcile::lost(seen);
        let probe = match self.case.fs {
            "ext4" => "jbd2",
            fs => fs,
        };
        let lost = lost.iter().filter(|(what, _)| what.starts_with(probe));
        let (skipped, explained): (Vec<_>, Vec<_>) =
            lost.partition(|(what, _)| what.ends_with(" recursion"));
        let [skipped, explained] =
            [skipped, explained].map(|all| all.iter().map(|(_, n)| **n as u64).sum::<u64>());
        let lost = skipped + explained;
        ensure!(
            explained <= skipped && lost <= 8 + truth / 10,
            "{what}: {skipped} programs skipped, {explained} events lost"
        );
        let apart = match what {
            // A skipped write may have had any number of bytes.
            "bytes" if lost > 0 => truth / 10,
            _ => lost + unknown,
        };
        ensure!(
            (truth.saturating_sub(apart)..=truth).contains(&measured) && truth > 0,
            "{what}: {measured}, but {truth} by the kernel's account; {lost} lost"
        );
        Ok(())
    }

    /// Checks that file systems mounted before have no series left.
    fn has_series_alone(&self, seen: &Snapshot) -> Result<()> {
        let Case { fs, separate, .. } = self.case;
        let own = [fs, DATA];
        for info in [
            &family::LOG_WAIT.info,
            &family::LOG_COMMIT.info,
            &family::LOG_SEPARATE.info,
        ] {
            let series = seen.series(info).iter().map(|s| &*s.labels);
            let labels: Vec<_> = series.collect();
            ensure!(labels == [own], "{}: {labels:?}", info.name);
        }
        let series = seen.series(&family::LOG_BYTES.info).iter();
        let labels: Vec<_> = series.map(|s| s.labels.join(" ")).collect();
        let bytes = format!("{fs} {DATA} {}", target(separate));
        let bytes = if fs == "btrfs" { vec![] } else { vec![bytes] };
        ensure!(labels == bytes, "bytes: {labels:?}");
        let reported = seen.value(&family::LOG_SEPARATE, [fs, DATA]);
        ensure!(
            reported == Some(f64::from(u8::from(separate))),
            "{reported:?}"
        );
        Ok(())
    }

    /// Checks that reads do not wait for a log. Workers of a file system wait for its log, too: XFS's every half a minute while it
    /// has unwritten changes. One of three readings must therefore be without waits.
    fn reads_wait_for_nothing(&self, mut before: Snapshot) -> Result<()> {
        let mut waits = Vec::new();
        while waits.len() < 3 && !waits.contains(&0) {
            self.server.run_clients("getattr --times 100")?;
            let after = self.moment()?.1;
            let seen = after.since(&before).delta;
            let log =
                lab::reconcile::by_last_label(&seen, &family::OP_PHASE.info, |l| l[2] == "log");
            ensure!(log.values().all(|s| *s == 0.0), "{log:?}");
            let reported = seen.hist(&family::LOG_WAIT, [self.case.fs, DATA]);
            waits.push(reported.context("no waits")?.count());
            before = after;
        }
        ensure!(waits.contains(&0), "waits beside reads: {waits:?}");
        Ok(())
    }

    /// Checks that series end with the mount, and that the next mount of the device begins at zero.
    fn ends_with_the_mount(&self) -> Result<()> {
        let labels = [self.case.fs, DATA];
        let count = |s: &Snapshot| s.hist(&family::LOG_WAIT, labels).map(Histogram::count);
        let before = count(&self.moment()?.1).unwrap_or(0);
        self.server.sh(
            "set -e\nexport_down\ndisk=$(exported_disk)\numount /run/exp\necho $disk >/run/was",
        )?;
        let seen = self.moment()?.1;
        for info in [
            &family::LOG_WAIT.info,
            &family::LOG_COMMIT.info,
            &family::LOG_BYTES.info,
            &family::LOG_SEPARATE.info,
        ] {
            let left = seen.series(info);
            ensure!(left.is_empty(), "{}: {left:?}", info.name);
        }
        self.server.sh("mount $(cat /run/was) /run/exp")?;
        let after = count(&self.moment()?.1);
        ensure!(
            after.is_some_and(|n| n < before),
            "{after:?} waits, {before} before"
        );
        Ok(())
    }
}

fn target(separate: bool) -> &'static str {
    if separate { "separate" } else { "main" }
}
