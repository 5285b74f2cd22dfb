//! Emulated NFS server of illumos that reports its own operations, traced by the scripts in a real D compiler, through the whole program.

use super::emulator::{Emulator, System, Truth};
use super::tale;
use super::tools::{Agent, Compiler, Dir};
use nfscope_model::Info;
use nfscope_model::family as f;
use nfscope_model::{Family, ProbeState, Snapshot};
use nfscope_source::on_illumos::{OnIllumos, on_illumos};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Requests of the first measurement, with two operations each on average: at least 20,000 operations in all.
const WORK: &str = "work 24000";
/// Requests while slow operations are listened for. The script for these follows the same threads, so it runs only after the first
/// measurement.
const MORE_WORK: &str = "work 6000";

fn kstat(counts: &Path, v3: f64, v4: f64) {
    let text = format!(
        "nfs:0:rfsproccnt_v3:class\tmisc\nnfs:0:rfsproccnt_v3:write\t{}\nnfs:0:rfsproccnt_v4:compound\t999\nnfs:0:rfsproccnt_v4:write\t{}\ncpu:0:sys:cpu_nsec_idle\tIDLE\ncpu:1:sys:cpu_nsec_idle\tIDLE\nsd:0:sd0:rtime\t1.5\nsd:0:sd0,a:rtime\t1.25\nunix:0:rpc_cots_server:dupchecks\t10\nunix:0:rpc_cots_server:dupreqs\t2\nunix:0:rpc_cots_server:badlen\t1\nunix:0:rpc_cots_server:xdrcall\t3\n",
        1000.0 + v3,
        500.0 + v4
    );
    let new = counts.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, counts).unwrap();
}

fn count<const N: usize>(s: &Snapshot, family: &Family<N>, labels: [&str; N]) -> f64 {
    s.hist(family, labels).map_or(0.0, |h| h.count() as f64)
}

/// Asserts that these are all values of a family above 0, by their labels.
fn assert_counts<const N: usize>(s: &Snapshot, family: &Family<N>, expected: &[([&str; N], f64)]) {
    let mut got: Vec<_> = s.numbers(family).filter(|(_, n)| *n > 0.0).collect();
    let mut expected: Vec<_> = expected.iter().filter(|(_, n)| *n > 0.0).copied().collect();
    got.sort_by(|a, b| a.0.cmp(&b.0));
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(got, expected, "{}", family.info.name);
}

#[test]
fn counts_of_an_emulated_server_are_those_it_reports_itself() {
    let Some(compiler) = Compiler::find() else {
        return;
    };
    let dir = Dir::new();
    let mut emulator = Emulator::start(&compiler, &dir);
    let system = System::new(&compiler, &dir);
    kstat(&system.counts, 0.0, 0.0);
    let agent = Agent::start(&system.dtrace, &system.kstat);
    // Scripts: each compiles with all of its parts, and every probe that it names is enabled.
    agent.until("attached", |s| {
        let up = |p: &nfscope_model::ProbeStatus| p.state == ProbeState::Attached;
        !s.probes.is_empty() && s.probes.iter().all(up) && s.value(&f::CPUS, []).is_some()
    });
    let before = agent.snapshot();
    let truth = emulator.told(WORK);
    let ops = truth.of::<2>("op");
    let sum = |v3: bool| {
        let of = ops
            .iter()
            .filter(|([v, op], _)| (*v == "3") == v3 && (v3 || *op != "null"));
        of.map(|(_, n)| n[0]).sum::<f64>()
    };
    let (v3, v4) = (sum(true), sum(false));
    assert!(v3 + v4 >= 20_000.0, "{v3} and {v4} operations");
    kstat(&system.counts, v3, v4);
    let all = |s: &Snapshot| {
        s.histograms(&f::OP_DURATION)
            .map(|(_, h)| h.count() as f64)
            .sum::<f64>()
    };
    let expected: f64 = ops.iter().map(|(_, n)| n[0]).sum();
    let one = |kind: &str| truth.of::<0>(kind)[0].1[0];
    let requests_sent: f64 = truth.of::<1>("requests").iter().map(|(_, n)| n[0]).sum();
    let committed: f64 = truth.of::<1>("commits").iter().map(|(_, n)| n[0]).sum();
    // Wait for all scripts: each prints at a time of its own.
    let s = agent.until("all operations", |s| {
        let kernel = ["3", "4"].map(|v| s.value(&f::KERNEL_OPS, [v]));
        let all_of = |family: &Family<1>| {
            s.histograms(family)
                .map(|(_, h)| h.count() as f64)
                .sum::<f64>()
        };
        let commits: f64 = s.numbers(&f::ZFS_COMMITS).map(|(_, n)| n).sum();
        all(s) >= expected
            && kernel == [Some(v3), Some(v4)]
            && all_of(&f::RPC_DURATION) >= requests_sent
            && commits >= committed
            && all_of(&f::ZFS_THROTTLE) >= one("throttles")
    });

    operations(&s, &truth);
    requests(&s, &truth);
    intent_log(&s, &truth);
    kernel(&s, v3, v4);
    let lost: Vec<_> = s
        .numbers(&f::EVENTS_LOST)
        .filter(|(_, n)| *n > 0.0)
        .collect();
    assert_eq!(lost, []);
    exposition(&agent, &ops);
    phases(&agent, &mut emulator);
    let slow = Slow::listen(&agent);
    slow.compare(&emulator.told(MORE_WORK));
    block_devices(&agent);
    assert!(s.at > before.at);
    only_what_is_listed(&s);
    frames_are_printed_when_asked_for(&agent, &system.kept);
    tale::told(&agent, &mut emulator, &dir);
}

/// Number of frames that the script for operations has printed so far.
fn frames(kept: &Path) -> usize {
    fs::read_to_string(kept).unwrap().matches("@end\n").count()
}

/// Each reading has a frame of its own, although the script by itself prints one in ten seconds. This holds also near one of these. The
/// time that a frame takes depends on the host: on a busy one the agent may request more frames, in vain.
fn frames_are_printed_when_asked_for(agent: &Agent, kept: &Path) {
    const READINGS: usize = 40;
    /// Interval at which the agent requests a frame again, until every script has printed.
    const FRAME_INTERVAL: Duration = Duration::from_millis(250);
    let before = frames(kept);
    let begun = agent.snapshot().at;
    let mut last = begun;
    let mut questions = 0;
    for _ in 0..READINGS {
        let asked = Instant::now();
        last = agent.until("another", |s| s.at > last).at;
        let took = asked.elapsed();
        questions += 1 + (took.as_millis() / FRAME_INTERVAL.as_millis()) as usize;
    }
    let printed = frames(kept) - before;
    // Frames that the script and the agent's own windows add every ten seconds.
    let others = 2 * ((last - begun).as_secs() as usize / 10 + 1);
    assert!(
        (READINGS..=questions + 1 + others).contains(&printed),
        "{printed} frames in {:?}",
        last - begun
    );
}

/// `nfscope slow` for COMMITs of more than 30 ms. Every COMMIT of NFSv3 takes longer.
struct Slow {
    process: Child,
}

impl Slow {
    fn listen(agent: &Agent) -> Slow {
        let process = Command::new(env!("CARGO_BIN_EXE_nfscope"))
            .args([
                "slow",
                "--json",
                "--op",
                "commit",
                "--min-latency",
                "30ms",
                "--limit",
                "10000",
            ])
            .args(["--url", &format!("http://{}", agent.address)])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        agent.until("listening", |s| {
            let up = |p: &nfscope_model::ProbeStatus| {
                p.program == "slow" && p.state == ProbeState::Attached
            };
            s.probes.iter().any(up)
        });
        Slow { process }
    }

    fn compare(mut self, truth: &Truth) {
        let ops = truth.of::<2>("op");
        let commits = ops
            .iter()
            .find(|(names, _)| *names == ["3", "commit"])
            .unwrap()
            .1[0] as usize;
        let errors = truth.of::<2>("error");
        let stale = errors
            .iter()
            .find(|(names, _)| *names == ["3", "commit"])
            .map_or(0.0, |(_, n)| n[0]);
        let out = BufReader::new(self.process.stdout.take().unwrap());
        let mut seen = Vec::new();
        for line in out.lines() {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            // COMMITs of NFSv4 can be that slow, too, if they had no CPU.
            if line["version"] != "3" {
                continue;
            }
            assert_eq!(line["op"], "commit", "{line}");
            assert!(line["duration_seconds"].as_f64() > Some(0.03), "{line}");
            assert!(
                line["export"].as_str().unwrap().starts_with("/export/"),
                "{line}"
            );
            assert!(line["client"].is_string(), "{line}");
            let path = line["path"].as_str().unwrap();
            let export = line["export"].as_str().unwrap();
            let file = path.strip_prefix(export);
            assert!(matches!(file, Some("/file" | "/a\tfile")), "{line}");
            seen.push(line);
            if seen.len() == commits {
                break;
            }
        }
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        phases_of(&seen);
        let refused = seen.iter().filter(|line| line["status"] == "stale").count();
        assert_eq!((seen.len(), refused as f64), (commits, stale));
    }
}

/// A COMMIT takes at least this number of seconds in each of these phases, and its phases add up to its duration. Linux runs no program of
/// a probe on a CPU whose thread was interrupted while it read a map. A single sleep can be missed for that reason, so the median counts.
fn phases_of(lines: &[serde_json::Value]) {
    let of = |line: &serde_json::Value, phase: &str| line["phases_seconds"][phase].as_f64();
    for line in lines {
        let phases = line["phases_seconds"].as_object().unwrap();
        let sum: f64 = phases.values().map(|v| v.as_f64().unwrap()).sum();
        let duration = line["duration_seconds"].as_f64().unwrap();
        assert!((sum / duration - 1.0).abs() < 1e-6, "{line}");
    }
    for (phase, least) in [
        ("cpu", 0.04),
        ("disk", 0.01),
        ("throttle", 0.01),
        ("upcall", 0.01),
        ("recall", 0.01),
        ("reclaim", 0.01),
        ("lock", 0.01),
    ] {
        let mut all: Vec<_> = lines.iter().map(|l| of(l, phase).unwrap()).collect();
        all.sort_by(f64::total_cmp);
        let middle = all[all.len() / 2];
        assert!(
            middle >= least * 0.98 && middle < least * 2.0,
            "{phase}: {all:?}"
        );
    }
}

/// Block devices of this machine: writes of this test are in the counts of the scripts.
fn block_devices(agent: &Agent) {
    let written = |s: &Snapshot| {
        let of = s
            .numbers(&f::BLOCK_BYTES)
            .filter(|([_, op], _)| *op == "write");
        of.map(|(_, n)| n).sum::<f64>()
    };
    let before = written(&agent.snapshot());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dtrace-io");
    let mut file = fs::File::create(&path).unwrap();
    const BYTES: usize = 8 << 20;
    file.write_all(&vec![1; BYTES]).unwrap();
    file.sync_all().unwrap();
    fs::remove_file(path).unwrap();
    let s = agent.until("written", |s| written(s) - before >= BYTES as f64);
    assert!(s.histograms(&f::BLOCK_DEVICE).all(|(_, h)| h.sum > 0.0));
}

/// Families that illumos fills are those of its list, and no others.
fn only_what_is_listed(s: &Snapshot) {
    // Families of the agent's process: it runs on Linux here, and fills more of them.
    let of_the_server = |f: &Info| !f.name.starts_with("process_");
    for (family, _) in s.filled().filter(|(f, _)| of_the_server(f)) {
        assert!(
            matches!(on_illumos(family), OnIllumos::Yes(_)),
            "{}",
            family.name
        );
    }
    // Families that the scripts cannot fill here: the agent's own, and features that the emulator lacks.
    let elsewhere = [
        "evictions",
        "bottleneck",
        "change_gain",
        "recommended_threads",
        "build_info",
        "probe_attached",
        "probe_success",
        "process_",
        "scrape_seconds",
        "block_inflight",
    ];
    for family in nfscope_model::family::ALL {
        let expected = matches!(on_illumos(family), OnIllumos::Yes(_))
            && !elsewhere.iter().any(|w| family.name.contains(w));
        assert!(
            !expected || !s.series(family).is_empty(),
            "{} is missing",
            family.name
        );
    }
}

fn operations(s: &Snapshot, truth: &Truth) {
    for ([version, op], n) in truth.of::<2>("op") {
        let h = s.hist(&f::OP_DURATION, [version, op]);
        let h = h.unwrap_or_else(|| panic!("no {op} of version {version}"));
        assert_eq!(h.count() as f64, n[0], "{version} {op}");
        // Clock of the emulator, read inside and outside of the probes.
        let [inner, outer] = [n[1] / 1e9, n[2] / 1e9];
        assert!(
            inner <= h.sum && h.sum <= outer,
            "{version} {op}: {inner} {} {outer}",
            h.sum
        );
    }
    assert_eq!(
        s.histograms(&f::OP_DURATION).count(),
        truth.of::<2>("op").len()
    );
    let errors: Vec<_> = truth.of::<2>("error");
    let errors: Vec<_> = errors
        .iter()
        .map(|([v, op], n)| ([*v, *op, if *v == "3" { "stale" } else { "delay" }], n[0]))
        .collect();
    assert_counts(s, &f::OP_ERRORS, &errors);
    for ([version], n) in truth.of::<1>("compound") {
        assert_eq!(count(s, &f::COMPOUND_DURATION, [version]), n[0]);
        let ops = s.hist(&f::COMPOUND_OPS, [version]).unwrap();
        assert_eq!((ops.count() as f64, ops.sum), (n[0], n[1]));
    }
    for ([version, op], n) in truth.of::<2>("bytes") {
        assert_eq!(s.hist(&f::IO_SIZE, [version, op]).unwrap().sum, n[0]);
    }
    let stable = truth.of::<2>("stable");
    let how = |i: &str| ["unstable", "data_sync", "file_sync"][i.parse::<usize>().unwrap()];
    let of = |which: usize| -> Vec<_> {
        stable
            .iter()
            .map(|([v, i], n)| ([*v, how(i)], n[which]))
            .collect()
    };
    assert_counts(s, &f::WRITE, &of(0));
    assert_counts(s, &f::WRITE_BYTES, &of(1));
    // NULL and SEQUENCE have no arguments, and count for client and export `other`.
    let total: f64 = truth.of::<2>("op").iter().map(|(_, n)| n[0]).sum();
    for (kind, family) in [("client", &f::CLIENT_OPS), ("export", &f::EXPORT_OPS)] {
        let named = truth.of::<1>(kind);
        let mut expected: Vec<_> = named.iter().map(|(name, n)| (*name, n[0])).collect();
        let rest = total - expected.iter().map(|(_, n)| n).sum::<f64>();
        expected.push((["other"], rest));
        assert_counts(s, family, &expected);
    }
}

fn requests(s: &Snapshot, truth: &Truth) {
    let mut queued = 0.0;
    for ([version], n) in truth.of::<1>("requests") {
        let h = s.hist(&f::RPC_DURATION, [version]).unwrap();
        assert_eq!(h.count() as f64, n[0]);
        let phases = ["queue", "receive", "execute", "reply", "upcall"];
        let phases = phases.map(|p| s.value(&f::RPC_PHASE, [version, p]).unwrap());
        assert!(phases[..4].iter().all(|p| *p > 0.0), "{phases:?}");
        assert!((phases.iter().sum::<f64>() - h.sum).abs() < 1e-6);
        queued += n[0];
    }
    assert_eq!(count(s, &f::RPC_QUEUE, ["1"]), queued);
    assert_eq!(s.value(&f::THREADS, ["1"]), Some(4.0));
    assert_eq!(s.value(&f::THREADS_LIMIT, ["1"]), Some(16.0));
    assert_eq!(s.value(&f::THREADS_BUSY, ["1"]), Some(0.0));
    // Upcalls to daemons, in operations and outside of them. Those outside take 3 ms and 5 ms.
    let asked = truth.of::<0>("upcalls")[0].1[0];
    assert_eq!(s.value(&f::UPCALL_ASKED, ["other"]), Some(asked));
    let waits = s.hist(&f::UPCALL_WAIT, ["other"]).unwrap();
    assert_eq!(waits.count() as f64, asked);
    let of_all = |family: &Family<2>, name| {
        let of = s.numbers(family).filter(|([_, phase], _)| *phase == name);
        of.map(|(_, v)| v).sum::<f64>()
    };
    let outside = of_all(&f::RPC_PHASE, "upcall");
    let in_ops: f64 = s
        .numbers(&f::OP_PHASE)
        .filter(|([_, _, phase], _)| *phase == "upcall")
        .map(|(_, v)| v)
        .sum();
    assert!(outside >= 24000.0 / 2000.0 * 0.008, "{outside}");
    // Bounds of the sum: an operation counts the sleep, and an upcall also the time for which its thread waits for a CPU.
    let runqueue: f64 = s
        .numbers(&f::OP_PHASE)
        .filter(|([_, _, phase], _)| *phase == "runqueue")
        .map(|(_, v)| v)
        .sum();
    assert!(
        outside + in_ops <= waits.sum && waits.sum <= (outside + in_ops + runqueue) * 1.01,
        "{outside} {in_ops} {runqueue} {}",
        waits.sum
    );
    // Requests in hand: none any more.
    assert_eq!(s.held, []);
    let stuck: Vec<_> = s.numbers(&f::STUCK_REQUESTS).collect();
    let known = ["cpu", "log", "disk", "upcall", "lock", "reply"];
    let known: Vec<_> = known.into_iter().map(|wait| ([wait], 0.0)).collect();
    assert_eq!(stuck, known);
    let busy = s.value(&f::THREAD_BUSY, ["1"]).unwrap();
    let resident: f64 = s.histograms(&f::RPC_DURATION).map(|(_, h)| h.sum).sum();
    let queue = s.hist(&f::RPC_QUEUE, ["1"]).unwrap().sum;
    assert!(
        (busy + queue - resident).abs() < 0.02 * resident,
        "{busy} {queue} {resident}"
    );
}

fn intent_log(s: &Snapshot, truth: &Truth) {
    let named = |kind: &str, names: &[&'static str], which: usize| -> Vec<([&str; 2], f64)> {
        let lines = truth.of::<1>(kind);
        let name = |i: &str| names[i.parse::<usize>().unwrap()];
        lines
            .iter()
            .map(|([i], n)| (["tank", name(i)], n[which]))
            .collect()
    };
    let commits = named("commits", &["standard", "always", "disabled"], 0);
    assert_counts(s, &f::ZFS_COMMITS, &commits);
    let waited: f64 = commits[..2].iter().map(|(_, n)| n).sum();
    assert_eq!(count(s, &f::LOG_WAIT, ["zfs", "tank"]), waited);
    let kinds = named("itx", &["indirect", "copied", "needcopy"], 0);
    assert_counts(s, &f::ZFS_ITX_BYTES, &kinds);
    let mut blocks = 0.0;
    for (labels, n) in named("lwb", &["main", "separate"], 0) {
        assert_eq!(count(s, &f::ZFS_LWB_WRITE, labels), n);
        assert_eq!(count(s, &f::ZFS_LWB_FLUSH, labels), n);
        blocks += n;
    }
    assert_eq!(count(s, &f::LOG_COMMIT, ["zfs", "tank"]), blocks);
    for ([_, target], n) in named("lwb", &["main", "separate"], 1) {
        assert_eq!(s.value(&f::LOG_BYTES, ["zfs", "tank", target]), Some(n));
    }
    let one = |kind: &str| truth.of::<0>(kind)[0].1[0];
    assert_eq!(
        s.value(&f::ZFS_TXG_WAITS, ["tank", "any"]),
        Some(one("txg_waits"))
    );
    assert_eq!(count(s, &f::ZFS_TXG_SYNC, ["tank"]), one("syncs"));
    assert_eq!(count(s, &f::ZFS_THROTTLE, ["tank"]), one("throttles"));
    assert!(s.value(&f::LOG_SEPARATE, ["zfs", "tank"]).is_some());
}

/// Long COMMITs of one round.
const COMMITS: u64 = 24;
/// Rounds of the measurement. Linux hides some switches from the probes: those from threads of the kernel that come and go. A round with
/// such a switch counts the whole time until then as CPU time, and is measured again.
const ROUNDS: usize = 8;

fn phases(agent: &Agent, emulator: &mut Emulator) {
    let mut missed = Vec::new();
    for _ in 0..ROUNDS {
        let count = |s: &Snapshot| count(s, &f::OP_DURATION, ["3", "commit"]);
        let before = agent.snapshot();
        let truth = emulator.told(&format!("commits {COMMITS}"));
        let all = count(&before) + COMMITS as f64;
        let s = agent.until("all COMMITs", |s| count(s) >= all);
        match as_in_truth(&s.since(&before).delta, &truth) {
            Ok(()) => return,
            Err(why) => missed.push(why),
        }
    }
    panic!("{}", missed.join("\n"));
}

/// The kernel's accounts of each thread are the reference: its CPU time, and its time without a CPU. They are read inside and outside of
/// the probes. On a busy machine a thread may lose its CPU between the two, which no account distinguishes.
fn as_in_truth(s: &Snapshot, truth: &Truth) -> Result<(), String> {
    let total = s.hist(&f::OP_DURATION, ["3", "commit"]).unwrap().sum;
    let of = |phase| s.value(&f::OP_PHASE, ["3", "commit", phase]).unwrap();
    let phases = truth.of::<1>("phase");
    let all: Vec<_> = phases
        .iter()
        .map(|([phase], ns)| (*phase, of(phase), ns[0] / 1e9, ns[1] / 1e9))
        .collect();
    eprintln!("phases: measured, and true inside and around: {all:.4?}; in all {total:.4}");
    let sum: f64 = all.iter().map(|(_, got, _, _)| got).sum();
    assert!((sum / total - 1.0).abs() < 1e-6, "{sum} of {total}");
    let inside: f64 = all.iter().map(|(_, _, inside, _)| inside).sum();
    let around: f64 = all.iter().map(|(_, _, _, around)| around).sum();
    assert!(
        inside * 0.99 <= total && total <= around * 1.01,
        "{total}, between {inside} and {around} in truth"
    );
    for (phase, got, inside, around) in all {
        if got < inside * 0.98 || got > around * 1.02 {
            return Err(format!(
                "{phase}: {got}, between {inside} and {around} in truth"
            ));
        }
    }
    Ok(())
}

fn kernel(s: &Snapshot, v3: f64, v4: f64) {
    for (version, n) in [("3", v3), ("4", v4)] {
        assert_eq!(s.value(&f::TIMED_OPS, [version]), Some(n));
        assert_eq!(s.value(&f::COVERAGE, [version]), Some(1.0));
    }
    assert_counts(s, &f::REPLY_CACHE, &[(["hit"], 2.0), (["miss"], 8.0)]);
    assert_eq!(s.value(&f::RPC_DROPPED, ["garbage"]), Some(4.0));
    assert_eq!(s.value(&f::CPUS, []), Some(2.0));
    assert!(s.value(&f::CPU_IDLE, []) > Some(0.0));
    assert_counts(s, &f::BLOCK_BUSY, &[(["sd0"], 1.5)]);
}

/// Asserts that the exposition has the same counts.
fn exposition(agent: &Agent, ops: &[([&str; 2], Vec<f64>)]) {
    let text = agent.get("/metrics");
    for ([version, op], n) in ops {
        let line = format!(
            "nfscope_op_duration_seconds_count{{version=\"{version}\",op=\"{op}\"}} {}",
            n[0]
        );
        assert!(text.contains(&line), "{line}");
    }
}
