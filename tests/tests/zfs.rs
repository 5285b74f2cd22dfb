//! OpenZFS: the agent's metrics of the intent log equal OpenZFS's own (kstats), with BTF of the module (6.12) and without (6.1).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lab::{Agent, Checks, Delay, Disk, Kernel, Server, SlowLine};
use nfscope_model::{Histogram, ProbeState, ProbeStatus, Snapshot, family};

/// Delay of a slow log. It is not less than 50 ms: see [`lab::Delay`].
const DELAY: Duration = Duration::from_millis(100);

/// Operations of the mixed load.
const MIXED: u64 = 3_000;

/// Time limit for work in the background.
const PATIENCE: Duration = Duration::from_secs(60);

/// All checks of a server that exports a pool with a spare log disk.
pub fn is_told_as_it_counts_itself(server: &Server, checks: &mut Checks) -> Result<()> {
    let agent = server.agent(&["--client"])?;
    checks.run("attached", || {
        let states = agent.snapshot()?.probes;
        let zfs: Vec<_> = states.iter().filter(|p| p.probe == "zfs").collect();
        ensure!(
            zfs.len() == 12 && zfs.iter().all(|p| p.state == attached(server)),
            "{zfs:#?}"
        );
        Ok(())
    });
    checks.run("raw calls", || {
        crate::call_counts::raw_calls_are_counted(server, &agent)
    });
    checks.run("a mixed load", || {
        crate::call_counts::a_mixed_load_is_counted(server, &agent, MIXED)
    });
    checks.run("files by their inode numbers", || {
        crate::breakdown::names_each_file(server, &agent)
    });
    let watch = Watch::begin(server, &agent)?;
    checks.run("waits without a log device", || {
        every_wait_is_counted(&watch, "main")
    });
    // This check adds the log device.
    match server.kernel() {
        Kernel::V6_12 => {
            checks.run("the pool's disks are as slow as asked", || {
                crate::disks::of_a_pool_are_as_slow_as_told(server)
            });
        }
        _ => server
            .sh("zpool add -f tank log /dev/mapper/log")
            .map(drop)?,
    }
    // The next block of the log was allocated before on the pool's disk.
    server.run_clients("write --times 5")?;
    checks.run("waits with a log device", || {
        every_wait_is_counted(&watch, "separate")
    });
    checks.run("a slow log is in phase log", || {
        a_slow_log_is_found_in_phase_log(&watch)
    });
    checks.run("what is not durable", || {
        what_is_not_durable_is_told(&watch)
    });
    checks.run("a bypassed log", || a_bypassed_log_is_told(&watch));
    checks.run("pools come and go", || pools_come_and_go(&watch));
    match server.kernel() {
        Kernel::V6_12 => {
            checks.run("the agent stops", || agent.stop());
            checks.run("matrix", || crate::matrix::is_as_check_says(server));
        }
        _ => {
            checks.run("matrix", || {
                crate::matrix::is_as_the_agent_says(server, &agent)
            });
            checks.run("the agent stops", || agent.stop());
        }
    }
    // Each half takes a minute of a CPU. The agent's code for both is the same on every kernel; kprobes by name, which might stay in
    // tracefs, are those of 6.1.
    match server.kernel() {
        Kernel::V6_12 => checks.run("the module is upgraded", || the_module_is_upgraded(server)),
        _ => checks.run("the module comes after the agent", || {
            the_module_comes_after_the_agent(server)
        }),
    };
    Ok(())
}

/// State of programs that are attached on this kernel.
fn attached(server: &Server) -> ProbeState {
    match server.kernel() {
        Kernel::V6_1 => ProbeState::Fallback,
        _ => ProbeState::Attached,
    }
}

/// Counters of OpenZFS for all intent logs.
fn zil(server: &Server) -> Result<BTreeMap<String, u64>> {
    let text = server.sh("cat /proc/spl/kstat/zfs/zil")?.stdout;
    let fields = text.lines().skip(2).filter_map(|l| {
        let mut words = l.split_whitespace();
        Some((words.next()?.to_owned(), words.nth(1)?.parse().ok()?))
    });
    Ok(fields.collect())
}

/// Windows of OpenZFS's counters and the agent's.
struct Watch<'a> {
    server: &'a Server,
    agent: &'a Agent,
}

struct Window {
    counted: BTreeMap<String, u64>,
    seen: Snapshot,
    after: Snapshot,
}

impl<'a> Watch<'a> {
    fn begin(server: &'a Server, agent: &'a Agent) -> Result<Self> {
        // The first commit of a dataset makes its log, for which it waits for a transaction group.
        server.run_clients("write --times 1")?;
        Ok(Watch { server, agent })
    }

    /// Counters at a moment without a commit: OpenZFS counts the begin of a commit, and the agent its end.
    fn settled(&self) -> Result<(BTreeMap<String, u64>, Snapshot)> {
        let started = Instant::now();
        let mut last = zil(self.server)?;
        loop {
            let (_, mut seen) = lab::reconcile::settled(self.server, &[self.agent])?;
            let now = zil(self.server)?;
            if now == last {
                return Ok((now, seen.remove(0)));
            }
            last = now;
            ensure!(started.elapsed() < PATIENCE, "the intent log does not rest");
        }
    }

    fn during(&self, load: impl FnOnce() -> Result<()>) -> Result<Window> {
        let (before, earlier) = self.settled()?;
        load()?;
        let (counted, after) = self.settled()?;
        let counted = counted
            .into_iter()
            .map(|(name, n)| {
                let old = before.get(&name).copied().unwrap_or(0);
                (name, n - old)
            })
            .collect();
        let seen = after.since(&earlier).delta;
        Ok(Window {
            counted,
            seen,
            after,
        })
    }
}

impl Window {
    fn counted(&self, name: &str) -> u64 {
        self.counted.get(name).copied().unwrap_or(0)
    }

    fn count(&self, h: Option<&Histogram>) -> u64 {
        h.map_or(0, Histogram::count)
    }

    fn waits(&self) -> u64 {
        self.count(self.seen.hist(&family::LOG_WAIT, ["zfs", "tank"]))
    }

    fn bytes(&self, target: &str) -> u64 {
        let bytes = self.seen.value(&family::LOG_BYTES, ["zfs", "tank", target]);
        bytes.unwrap_or(0.0) as u64
    }

    fn commits(&self, sync: &str) -> u64 {
        let n = self.seen.value(&family::ZFS_COMMITS, ["tank", sync]);
        n.unwrap_or(0.0) as u64
    }

    /// Sum of a family's counters in the window with this last label, over all pools.
    fn sum<const N: usize>(&self, of: &family::Family<N>, last: &str) -> u64 {
        let sums = lab::reconcile::by_last_label(&self.seen, &of.info, |_| true);
        sums.get(last).copied().unwrap_or(0.0) as u64
    }

    fn lost(&self) -> Vec<(String, f64)> {
        let lost = lab::reconcile::lost(&self.seen);
        lost.into_iter()
            .filter(|(k, _)| k.starts_with("zfs"))
            .collect()
    }
}

/// 600 FILE_SYNC writes over v3 and as many COMMITs over v4.2.
fn every_wait_is_counted(watch: &Watch, target: &str) -> Result<()> {
    let w = watch.during(|| {
        for version in ["3", "4.2"] {
            let load = format!("write --nfs {version} --clients 8 --times 75");
            watch.server.run_clients(&load)?;
        }
        Ok(())
    })?;
    let commits = w.counted("zil_commit_count");
    println!(
        "{target}: {commits} commits, {} waits, {} bytes, lost {:?}",
        w.waits(),
        w.bytes(target),
        w.lost()
    );
    ensure!(commits >= 1200, "only {commits} commits");
    assert_eq!(
        w.waits(),
        commits,
        "waits, and commits that OpenZFS counted"
    );
    assert_eq!(w.commits("standard"), commits);
    assert_eq!((w.commits("always"), w.commits("disabled")), (0, 0));
    assert_eq!(w.sum(&family::ZFS_ZIL_COMMITS, volume(watch)), commits);
    assert_eq!(w.lost(), []);

    let wait = w.seen.hist(&family::LOG_WAIT, ["zfs", "tank"]);
    let wait = wait.context("no waits")?.sum;
    let ops = lab::reconcile::merged(&w.seen, &family::OP_DURATION.info, |_| true);
    let ops = ops.context("no operations")?.sum;
    ensure!(0.0 < wait && wait <= ops, "{wait} s of waits in {ops} s");

    let (kind, other) = match target {
        "main" => ("normal", "separate"),
        _ => ("slog", "main"),
    };
    let blocks = w.counted(&format!("zil_itx_metaslab_{kind}_count"));
    let commit = w.seen.hist(&family::LOG_COMMIT, ["zfs", "tank"]);
    assert_eq!(w.count(commit), blocks, "blocks of the log");
    for of in [&family::ZFS_LWB_WRITE, &family::ZFS_LWB_FLUSH] {
        assert_eq!(w.count(w.seen.hist(of, ["tank", target])), blocks);
    }
    // From 2.2 on OpenZFS also counts the bytes that it writes; before, only the contents.
    let bytes = w.bytes(target);
    match w.counted.get(&format!("zil_itx_metaslab_{kind}_write")) {
        Some(&written) => assert_eq!(bytes, written),
        None => ensure!(bytes >= w.counted(&format!("zil_itx_metaslab_{kind}_bytes"))),
    }
    assert_eq!(w.bytes(other), 0);
    // Each place is a single disk, which got all bytes written.
    assert_eq!(w.sum(&family::ZFS_LOG_DEVICE, target), bytes);
    assert_eq!(w.sum(&family::ZFS_LOG_DEVICE, other), 0);
    let separate = w.after.value(&family::LOG_SEPARATE, ["zfs", "tank"]);
    assert_eq!(separate, Some(f64::from(u8::from(target == "separate"))));
    Ok(())
}

/// Label of kstats: 2.1 has them for all pools together.
fn volume(watch: &Watch) -> &'static str {
    match watch.server.kernel() {
        Kernel::V6_1 => "all",
        _ => "tank",
    }
}

/// Loads with a fast and a slow log: the added time is in phase `log`.
fn a_slow_log_is_found_in_phase_log(watch: &Watch) -> Result<()> {
    for (version, op) in [("3", "write"), ("4.2", "commit")] {
        let phases = |delay| -> Result<BTreeMap<String, f64>> {
            watch.server.delay(Disk::Log, delay)?;
            let load = format!("write --nfs {version} --times 10");
            let w = watch.during(|| watch.server.run_clients(&load).map(drop))?;
            Ok(lab::reconcile::by_last_label(
                &w.seen,
                &family::OP_PHASE.info,
                |l| l[0] == version && l[1] == op,
            ))
        };
        // The check is repeated if needed, because the host may take CPUs away at any time.
        let mut wrong = String::new();
        let found = (0..3).try_fold(false, |found, _| -> Result<bool> {
            if found {
                return Ok(true);
            }
            let (fast, slow) = (phases(Delay::NONE)?, phases(Delay::writes(DELAY))?);
            let added = |phase: &str| {
                slow.get(phase).unwrap_or(&0.0) - fast.get(phase).unwrap_or(&0.0)
            };
            let total: f64 = slow.keys().map(|p| added(p)).sum();
            wrong = format!(
                "{version} {op}: {total:.3} s were added, {:.3} of it to phase log: {fast:.3?}, {slow:.3?}",
                added("log") / total
            );
            println!("{wrong}");
            Ok(total > 0.5 && added("log") >= 0.8 * total)
        })?;
        ensure!(found, "{wrong}");
    }
    // A slow operation has the dataset that it is on.
    let listener = watch.agent.slow("over=50ms&op=write")?;
    watch.server.run_clients("write --times 3")?;
    let started = Instant::now();
    while listener.so_far().len() < 3 {
        ensure!(started.elapsed() < PATIENCE, "{:?}", listener.so_far());
        lab::pass(Duration::from_millis(200));
    }
    for line in listener.so_far() {
        if let SlowLine::Op(op) = SlowLine::parse(&line)? {
            ensure!(op.dataset.as_deref() == Some("tank/export"), "{op:?}");
        }
    }
    watch.server.delay(Disk::Log, Delay::NONE)
}

fn what_is_not_durable_is_told(watch: &Watch) -> Result<()> {
    watch.server.sh("zfs set sync=disabled tank/export")?;
    let w = watch.during(|| watch.server.run_clients("write --times 50").map(drop))?;
    assert_eq!(w.counted("zil_commit_count"), 0);
    assert_eq!(w.waits(), 0, "nothing was waited for");
    ensure!(w.commits("disabled") >= 50, "{}", w.commits("disabled"));
    assert_eq!(w.commits("standard"), 0);
    assert_eq!(datasets(&w.after), ["tank/export disabled latency"]);
    assert_eq!(not_durable(&w.after), ["/run/exp sync_disabled"]);
    let lost = |w: &Window, why: &str| w.sum(&family::UNSAFE_WRITES, why);
    assert_eq!(lost(&w, "sync_disabled"), 50);
    assert_eq!((lost(&w, "async"), lost(&w, "no_wait")), (0, 0));
    let exported = |option: &str| {
        let options = format!("rw,{option},no_root_squash,insecure,no_subtree_check,fsid=0");
        watch
            .server
            .sh(&format!("exportfs -o {options} '*:/run/exp'"))
    };
    exported("async")?;
    watch.server.sh("zfs set sync=always tank/export")?;
    let w = watch.during(|| watch.server.run_clients("write --times 50").map(drop))?;
    assert_eq!(not_durable(&w.after), ["/run/exp async"]);
    assert_eq!((lost(&w, "sync_disabled"), lost(&w, "async")), (0, 50));
    exported("sync")?;
    ensure!(w.commits("always") >= 50, "{}", w.commits("always"));
    assert_eq!(w.waits(), w.counted("zil_commit_count"));
    watch.server.sh("zfs set sync=standard tank/export")?;
    Ok(())
}

/// A log device exists, and the data bypass it.
fn a_bypassed_log_is_told(watch: &Watch) -> Result<()> {
    let mount = watch.server.client(0).mount_v4_2()?;
    let script = |file: &str| {
        format!("dd if=/dev/urandom of={mount}/{file} bs=128k count=16 oflag=sync status=none")
    };
    let data = 16 * 128 * 1024;
    let write = |file: &str| {
        let script = script(file);
        watch.during(|| watch.server.client(0).sh(&script).map(drop))
    };
    let through = write("through")?;
    watch.server.sh("zfs set logbias=throughput tank/export")?;
    let past = write("past")?;
    for (name, w) in [("latency", &through), ("throughput", &past)] {
        println!(
            "logbias={name}: {} bytes indirect, {} to the log device",
            w.sum(&family::ZFS_ITX_BYTES, "indirect"),
            w.bytes("separate")
        );
    }
    ensure!(through.bytes("separate") >= data);
    assert_eq!(through.sum(&family::ZFS_ITX_BYTES, "indirect"), 0);
    ensure!(past.sum(&family::ZFS_ITX_BYTES, "indirect") >= data);
    ensure!(past.bytes("separate") < data / 4);
    assert_eq!(datasets(&past.after), ["tank/export standard throughput"]);
    watch.server.sh("zfs set logbias=latency tank/export")?;
    Ok(())
}

/// Dataset, sync and logbias of each dataset that is reported.
fn datasets(seen: &Snapshot) -> Vec<String> {
    let series = seen.series(&family::ZFS_DATASET.info).iter();
    series.map(|s| s.labels[1..].join(" ")).collect()
}

/// Exports that lose acknowledged writes, with the reason.
fn not_durable(seen: &Snapshot) -> Vec<String> {
    let series = seen.series(&family::NOT_DURABLE.info).iter();
    series.map(|s| s.labels.join(" ")).collect()
}

/// Pools that have series of their own.
fn pools(agent: &Agent) -> Result<Vec<String>> {
    let seen = agent.snapshot()?;
    let mut names: Vec<String> = family::ALL
        .iter()
        .filter(|f| f.name.starts_with("nfscope_zfs_") || f.name.starts_with("nfscope_log_"))
        .flat_map(|f| seen.series(f))
        .filter_map(|s| s.labels.iter().find(|l| *l == "tank" || *l == "two"))
        .cloned()
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn pools_come_and_go(watch: &Watch) -> Result<()> {
    let server = watch.server;
    // The agent repeats its last reading for a moment.
    let reported = |want: &[&str]| -> Result<()> {
        let started = Instant::now();
        loop {
            let now = pools(watch.agent)?;
            if now == want {
                return Ok(());
            }
            ensure!(started.elapsed() < PATIENCE, "{now:?} instead of {want:?}");
            lab::pass(Duration::from_millis(500));
        }
    };
    let write = "dd if=/dev/zero of=/run/two/f bs=4k count=5 oflag=sync status=none";
    reported(&["tank"])?;
    server.sh(&format!(
        "set -e; truncate -s 256M /run/two.img
         zpool create -f -o cachefile=none -m /run/two two /run/two.img; {write}"
    ))?;
    reported(&["tank", "two"])?;
    server.sh("zpool export two")?;
    reported(&["tank"])?;
    server.sh(&format!(
        "set -e; zpool import -o cachefile=none -d /run/two.img two; {write}"
    ))?;
    reported(&["tank", "two"])?;
    server.sh("zpool destroy two")?;
    reported(&["tank"])?;
    // The remaining pool is still counted. When zpool shares and unshares, exportfs drops exports that /etc/exports does not have, so
    // nfsd is set up again.
    server.nfsd_start()?;
    let w = watch.during(|| server.run_clients("write --times 20").map(drop))?;
    assert_eq!(w.waits(), w.counted("zil_commit_count"));
    Ok(())
}

/// Number of the modules of ZFS that are loaded.
const MODULES: &str = "grep -cE '^(spl|zfs) ' /proc/modules || true";

/// The module is loaded after the agent began, and unloaded after it ended: no program of the agent is left.
fn the_module_comes_after_the_agent(server: &Server) -> Result<()> {
    let mount = with_a_file(server)?;
    server.sh("zfs_down").context("with no agent")?;
    assert_eq!(server.sh(MODULES)?.stdout, "0\n");
    let agent = server.agent_start(&[])?;
    let now = states(&agent)?;
    ensure!(
        now.iter().all(|p| p.state == ProbeState::Unused),
        "{now:#?}"
    );
    server.sh("zfs_up")?;
    assert_eq!(server.sh(MODULES)?.stdout, "2\n");
    server.nfsd_start()?;
    the_file_is_there(server, &mount)?;
    counts_all(server, &agent)?;
    agent.stop()?;
    server.sh("zfs_down").context("after the agent")?;
    let left = server.sh("grep nfscope /sys/kernel/tracing/kprobe_events || true")?;
    ensure!(left.stdout.is_empty(), "left in tracefs: {}", left.stdout);
    Ok(())
}

/// An upgrade detaches the probe, unloads the module and loads it again, under the same agent.
fn the_module_is_upgraded(server: &Server) -> Result<()> {
    let mount = with_a_file(server)?;
    let agent = server.agent(&[])?;
    let program = lab::nfscope_program()?;
    let url = format!("http://127.0.0.1:{}", agent.port());
    let said = server.sh(&format!("{} detach zfs --url {url}", program.display()))?;
    ensure!(said.stdout.starts_with("zfs: detached"), "{}", said.stdout);
    let now = states(&agent)?;
    ensure!(
        now.iter().all(|p| p.state == ProbeState::Detached),
        "{now:#?}"
    );
    server
        .sh("zfs_down")
        .context("under an agent that detached")?;
    assert_eq!(server.sh(MODULES)?.stdout, "0\n");
    server.sh("zfs_up")?;
    server.nfsd_start()?;
    let started = Instant::now();
    while states(&agent)?
        .iter()
        .any(|p| p.state == ProbeState::Detached)
    {
        ensure!(started.elapsed() < PATIENCE, "still detached");
        lab::pass(Duration::from_millis(500));
    }
    the_file_is_there(server, &mount)?;
    counts_all(server, &agent)?;
    agent.stop().map(drop)
}

/// A client's file in the pool, which must outlive the module; returns the mount.
fn with_a_file(server: &Server) -> Result<String> {
    let pool = server.sh("zpool status -P tank")?.stdout;
    ensure!(
        pool.contains("\n\tlogs") && pool.contains("/dev/mapper/log"),
        "{pool}"
    );
    let client = server.client(0);
    client.unmount_all()?;
    let mount = client.mount_v4_2()?;
    client.sh(&format!("echo hello > {mount}/f"))?;
    Ok(mount)
}

fn the_file_is_there(server: &Server, mount: &str) -> Result<()> {
    let client = server.client(0);
    assert_eq!(client.sh(&format!("cat {mount}/f"))?.stdout, "hello\n");
    client.unmount_all()
}

/// States of the programs of the probe of ZFS, once the agent has attached.
fn states(agent: &Agent) -> Result<Vec<ProbeStatus>> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let probes = agent.snapshot()?.probes.into_iter();
        let zfs: Vec<_> = probes.filter(|p| p.probe == "zfs").collect();
        if !zfs.is_empty() {
            return Ok(zfs);
        }
        lab::pass(Duration::from_millis(500));
    }
    bail!("the agent knows no probe of zfs");
}

/// Every program is attached, and every wait is counted.
fn counts_all(server: &Server, agent: &Agent) -> Result<()> {
    let started = Instant::now();
    while states(agent)?.iter().any(|p| p.state.may_come()) {
        ensure!(started.elapsed() < PATIENCE, "the probe still waits");
        lab::pass(Duration::from_millis(500));
    }
    let now = states(agent)?;
    ensure!(now.iter().all(|p| p.state == attached(server)), "{now:#?}");
    let watch = Watch::begin(server, agent)?;
    let w = watch.during(|| server.run_clients("write --times 20").map(drop))?;
    ensure!(w.waits() >= 20);
    assert_eq!(w.waits(), w.counted("zil_commit_count"));
    Ok(())
}
