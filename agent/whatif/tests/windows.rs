//! Predictions and refusals from windows whose truth is known.

#![allow(missing_docs, clippy::unwrap_used)]

use nfscope_model::{Family, Histogram, Kind, Snapshot, Window, family as f};
use nfscope_whatif::{Change, MIN_GAIN, Part, Prediction, Refusal, fullest, plausible, predict};
use std::time::Duration;

const SECONDS: f64 = 10.0;

fn times<const N: usize>(of: &Family<N>, n: u64, mean: f64) -> Histogram {
    let Kind::Histogram(scheme) = of.info.kind else {
        panic!("no histogram")
    };
    let mut h = Histogram::new(scheme);
    h.counts[scheme.bucket(mean)] = n;
    h.sum = n as f64 * mean;
    h
}

/// Load of ten seconds: clients that each send one small synchronous WRITE after the other.
struct Writes {
    clients: u64,
    threads: u64,
    rate: f64,
    /// Seconds of each WRITE by phase.
    log: f64,
    lock: f64,
    cpu: f64,
    commit: f64,
    /// Seconds between the requests of a client.
    cycle: f64,
}

/// The lab's ext4 server with this number of threads and a log of 8 ms: a wait is two commits of two requests to the device.
fn ext4(threads: u64) -> Writes {
    Writes {
        clients: 28,
        threads,
        rate: threads.min(28) as f64 / 0.0324,
        log: 0.032,
        lock: 0.0,
        cpu: 0.0001,
        commit: 0.016,
        cycle: 28.0 * 0.0324 / threads.min(28) as f64,
    }
}

impl Writes {
    fn window(&self) -> Window {
        let mut s = Snapshot::new(Duration::from_secs_f64(SECONDS));
        let n = (self.rate * SECONDS) as u64;
        let all = n as f64;
        let executed = self.log + self.lock + self.cpu + 0.0003;
        // Requests without a thread wait for one.
        let under_way = (self.rate * self.cycle).min(self.clients as f64);
        let busy = self.rate * executed;
        let queue = match busy > 0.9 * self.threads as f64 {
            true => (under_way - busy).max(0.0) / self.rate,
            false => 1e-5,
        };
        s.histogram(
            &f::OP_DURATION,
            ["3", "write"],
            times(&f::OP_DURATION, n, executed),
        );
        for (phase, each) in [
            ("cpu", self.cpu),
            ("runqueue", 0.0003),
            ("log", self.log),
            ("lock", self.lock),
        ] {
            s.counter(&f::OP_PHASE, ["3", "write", phase], each * all);
        }
        s.histogram(
            &f::RPC_DURATION,
            ["3"],
            times(&f::RPC_DURATION, n, executed + queue),
        );
        for (phase, each) in [
            ("queue", queue),
            ("receive", 1e-6),
            ("execute", executed),
            ("reply", 1e-6),
        ] {
            s.counter(&f::RPC_PHASE, ["3", phase], each * all);
        }
        s.histogram(&f::RPC_QUEUE, ["0"], times(&f::RPC_QUEUE, n, queue));
        s.gauge(&f::THREADS, ["0"], self.threads as f64);
        s.gauge(&f::CPUS, [], 2.0);
        s.counter(&f::CPU_IDLE, [], 2.0 * SECONDS - all * 0.0003);
        let sizes = times(&f::IO_SIZE, n, 4096.0);
        s.histogram(&f::IO_SIZE, ["3", "write"], sizes);
        let commits = (SECONDS / self.commit) as u64;
        s.histogram(
            &f::LOG_WAIT,
            ["ext4", "dm-0"],
            times(&f::LOG_WAIT, n, self.log),
        );
        s.histogram(
            &f::LOG_COMMIT,
            ["ext4", "dm-0"],
            times(&f::LOG_COMMIT, commits, self.commit),
        );
        s.gauge(&f::LOG_SEPARATE, ["ext4", "dm-0"], 1.0);
        let device = times(&f::BLOCK_DEVICE, commits * 2, self.commit / 2.0);
        s.histogram(&f::BLOCK_DEVICE, ["log", "write"], device);
        for client in 0..self.clients {
            let name = format!("192.0.2.{client}");
            s.counter(&f::CLIENT_OPS, [&name], all / self.clients as f64);
            s.counter(
                &f::CLIENT_OP_SECONDS,
                [&name],
                all * executed / self.clients as f64,
            );
        }
        Window {
            length: Duration::from_secs_f64(SECONDS),
            delta: s,
        }
    }
}

fn threads(n: u32) -> Change {
    Change {
        threads: Some(n),
        ..Change::default()
    }
}

#[track_caller]
fn times_as_many(p: &Prediction, low: f64, high: f64) {
    let gain = p.rate.after / p.rate.before;
    assert!((low..high).contains(&gain), "{gain} times\n{p:?}");
    assert!(
        p.rate.low <= p.rate.after && p.rate.after <= p.rate.high,
        "{p:?}"
    );
}

#[test]
fn threads_multiply_what_one_commit_carries() {
    // Measured in the lab: 122, 238 and 788 WRITEs per second.
    times_as_many(&predict(&ext4(4).window(), &threads(8)).unwrap(), 1.8, 2.1);
    times_as_many(&predict(&ext4(8).window(), &threads(32)).unwrap(), 3.0, 3.6);
    times_as_many(
        &predict(&ext4(32).window(), &threads(64)).unwrap(),
        0.97,
        1.03,
    );
}

#[test]
fn a_faster_log_serves_each_commit_sooner() {
    let change = Change {
        log_seconds: Some(0.001),
        ..Change::default()
    };
    let p = predict(&ext4(8).window(), &change).unwrap();
    times_as_many(&p, 5.0, 8.5);
    assert!(
        p.assumptions
            .iter()
            .any(|a| a.contains("2 one after the other")),
        "{p:?}"
    );
}

fn disks_of(seconds: f64) -> Change {
    Change {
        disk_seconds: Some(seconds),
        ..Change::default()
    }
}

/// The server of [`ext4`] with another file system, whose log lies on the disk of the export. WRITEs sleep for that disk, too, which data
/// keep busier than the log does.
fn log_inside(fs: &str, disks: &[&str]) -> Window {
    let of = ext4(8);
    let n = of.rate * SECONDS;
    let mut w = of.window();
    w.delta = without(&w.delta, f::BLOCK_DEVICE.info.name);
    w.delta = without(&w.delta, f::LOG_SEPARATE.info.name);
    let json = serde_json::to_string(&w.delta).unwrap();
    w.delta = serde_json::from_str(&json.replace("\"ext4\"", &format!("\"{fs}\""))).unwrap();
    w.delta.gauge(&f::LOG_SEPARATE, [fs, "dm-0"], 0.0);
    w.delta
        .counter(&f::OP_PHASE, ["3", "write", "disk"], 0.0001 * n);
    for disk in disks {
        w.delta.gauge(&f::EXPORT_DEVICE, ["/srv", disk], 1.0);
        let writes = times(&f::BLOCK_DEVICE, 6000, 0.008);
        w.delta.histogram(&f::BLOCK_DEVICE, [disk, "write"], writes);
    }
    w
}

#[test]
fn a_log_on_the_data_disk_becomes_faster_with_that_disk() {
    for fs in ["btrfs", "xfs", "ext4"] {
        let p = predict(&log_inside(fs, &["sda"]), &disks_of(0.002)).unwrap();
        times_as_many(&p, 2.5, 5.0);
        let said = |a: &String| {
            a.contains("the log lies on sda") && a.ends_with("and becomes faster with it")
        };
        assert!(p.assumptions.iter().any(said), "{fs}: {:?}", p.assumptions);
        let ranked = plausible(&log_inside(fs, &["sda"])).unwrap();
        let disks = ranked
            .iter()
            .find(|p| p.part() == Some(Part::Disk))
            .unwrap();
        assert!(disks.gain > 2.0, "{fs}: {disks:?}");
        // btrfs has its log there for good.
        let has_log = ranked.iter().any(|p| p.part() == Some(Part::Log));
        assert_eq!(has_log, fs != "btrfs", "{fs}");
    }
}

#[test]
fn a_log_on_one_of_several_disks_gives_no_prediction_of_disks() {
    let w = log_inside("btrfs", &["sda", "sdb"]);
    let refused = predict(&w, &disks_of(0.002)).unwrap_err();
    assert!(matches!(refused, Refusal::SharedDisks(_)), "{refused:?}");
    // The other changes are ranked.
    assert!(!plausible(&w).unwrap().is_empty());
    let log = Change {
        log_seconds: Some(0.001),
        ..Change::default()
    };
    let refused = predict(&log_inside("btrfs", &["sda"]), &log).unwrap_err();
    assert!(matches!(refused, Refusal::NoLogDevice(_)), "{refused:?}");
    assert!(refused.to_string().contains("give --disk"), "{refused}");
}

/// 24 clients whose pauses are 1 % of the time between two of their requests, as long as they wait for one thread.
#[test]
fn pauses_that_waits_for_a_thread_hide_are_in_the_interval() {
    let starved = ext4(1);
    let p = predict(&starved.window(), &threads(28)).unwrap();
    let cycle = starved.cycle;
    // Each client pauses for this time after each reply, at most.
    let unseen = cycle * (f64::from(28_u32) / (starved.rate * SECONDS)).max(0.01);
    let slowest = 28.0 / (0.0324 + unseen);
    assert!(
        p.rate.low <= slowest && slowest < p.rate.after,
        "{slowest} {p:?}"
    );
}

#[test]
fn threads_shorten_the_wait_for_a_thread_and_nothing_else() {
    let w = ext4(4).window();
    let p = predict(&w, &threads(64)).unwrap();
    // A request is in a thread for 0.0324 s of its 0.227 s in the server.
    assert!(p.residence.low >= 0.95 * 0.0324, "{:?}", p.residence);
    assert!(p.residence.low <= p.residence.after, "{:?}", p.residence);
}

#[test]
fn what_is_worth_most_comes_first() {
    let all = plausible(&ext4(4).window()).unwrap();
    let words: Vec<_> = all.iter().map(|p| p.prediction.change.words()).collect();
    assert_eq!(words[0], "a log device of 100 µs", "{words:?}");
    assert_eq!(words[1], "32 threads", "{words:?}");
    assert!(all[2].gain < MIN_GAIN, "{:?}", all[2]);
    assert_eq!(all[2].sentence(), "4 CPUs: no gain");
    assert!(
        all[1].sentence().ends_with("times as many requests"),
        "{}",
        all[1].sentence()
    );
}

#[test]
fn a_server_that_waits_for_its_clients_gains_nothing() {
    let slow_clients = Writes {
        clients: 8,
        threads: 16,
        rate: 8.0 / 0.5,
        log: 0.0002,
        commit: 0.0002,
        cycle: 0.5,
        ..ext4(16)
    };
    let p = predict(&slow_clients.window(), &threads(64)).unwrap();
    times_as_many(&p, 0.97, 1.03);
}

#[test]
fn a_server_that_the_model_does_not_know_gets_no_prediction() {
    let change = threads(32);
    let refused = |w: Writes| predict(&w.window(), &change).unwrap_err();
    let few = Writes {
        rate: 5.0,
        ..ext4(8)
    };
    assert_eq!(refused(few), Refusal::TooFew(50.0));
    let locks = Writes {
        lock: 0.02,
        ..ext4(8)
    };
    assert!(matches!(refused(locks), Refusal::Sleeps(_, "lock")));
    // Eight threads that execute for 32 ms cannot serve 900 WRITEs per second.
    let odd = Writes {
        rate: 900.0,
        ..ext4(8)
    };
    assert!(matches!(refused(odd), Refusal::NotReproduced(..)));
    let nothing = predict(&ext4(8).window(), &Change::default());
    assert_eq!(nothing.unwrap_err(), Refusal::NoChange);
    let disk = Change {
        disk_seconds: Some(0.001),
        ..Change::default()
    };
    assert!(matches!(
        predict(&ext4(8).window(), &disk),
        Err(Refusal::NotUsed("disks"))
    ));
    let mut other_log = ext4(8).window();
    let waits = times(&f::LOG_WAIT, 3000, 0.032);
    other_log
        .delta
        .histogram(&f::LOG_WAIT, ["xfs", "dm-9"], waits);
    assert!(matches!(
        predict(&other_log, &change),
        Err(Refusal::ManyLogs(_))
    ));
}

#[test]
fn a_prediction_is_the_same_each_time() {
    let w = ext4(8).window();
    assert_eq!(predict(&w, &threads(32)), predict(&w, &threads(32)));
}

/// A window with reads and writes of the disks, and those that nfsd's threads caused, in bytes.
fn with_disks(w: Writes, all: [f64; 2], own: [f64; 2]) -> Window {
    let n = w.rate * SECONDS;
    let mut w = w.window();
    let s = &mut w.delta;
    s.counter(&f::OP_PHASE, ["3", "write", "disk"], 0.005 * n);
    for (i, op) in ["read", "write"].into_iter().enumerate() {
        s.counter(&f::BLOCK_BYTES, ["sda", op], all[i]);
        s.counter(&f::THREAD_IO, [op], own[i]);
    }
    w
}

#[test]
fn a_disk_that_other_programs_flood_gets_no_prediction() {
    let flooded = with_disks(ext4(8), [9e8, 1e8], [1e8, 1e8]);
    match predict(&flooded, &threads(32)) {
        Err(Refusal::ForeignDisk(part)) => assert!((part - 0.8).abs() < 1e-9, "{part}"),
        other => panic!("{other:?}"),
    }
    let words = predict(&flooded, &threads(32)).unwrap_err().to_string();
    assert!(words.contains("80 % of the bytes"), "{words}");
    // Foreign writes count as far as they exceed what a file system writes beside the data.
    let written = with_disks(ext4(8), [0.0, 9e8], [0.0, 1e8]);
    assert!(matches!(
        predict(&written, &threads(32)),
        Err(Refusal::ForeignDisk(_))
    ));
    for own in [
        with_disks(ext4(8), [9e8, 1e8], [9e8, 1e8]),
        with_disks(ext4(8), [1e8, 3e8], [1e8, 2e8]),
    ] {
        assert!(!matches!(
            predict(&own, &threads(32)),
            Err(Refusal::ForeignDisk(_))
        ));
    }
    // No export lies on the disk with foreign I/O.
    let mut elsewhere = with_disks(ext4(8), [9e8, 1e8], [1e8, 1e8]);
    let export = ["/srv", "sdb"];
    elsewhere.delta.gauge(&f::EXPORT_DEVICE, export, 1.0);
    assert!(!matches!(
        predict(&elsewhere, &threads(32)),
        Err(Refusal::ForeignDisk(_))
    ));
}

fn write_size(bytes: u64) -> Change {
    Change {
        write_bytes: Some(bytes),
        ..Change::default()
    }
}

#[test]
fn larger_writes_are_predicted_where_their_bytes_can_cost_little() {
    // The log has fewer bytes than the WRITEs stored: their data is not in it, and the log costs no more.
    let mut w = ext4(8).window();
    let log = ["ext4", "dm-0", "separate"];
    w.delta.counter(&f::LOG_BYTES, log, 1e6);
    let p = predict(&w, &write_size(16384)).unwrap();
    times_as_many(&p, 0.9, 1.0);
    assert!(
        p.assumptions
            .iter()
            .any(|a| a.contains("a WRITE of 16 KiB costs lies between what one of 4 KiB")),
        "{:?}",
        p.assumptions
    );
    // A log with more bytes than the WRITEs may have their data, and then takes longer.
    let mut w = ext4(8).window();
    w.delta.counter(&f::LOG_BYTES, log, 20e6);
    let refused = predict(&w, &write_size(1 << 20)).unwrap_err();
    assert!(matches!(refused, Refusal::WriteSize(..)), "{refused:?}");
    assert!(refused.to_string().contains("by request"), "{refused}");
}

#[test]
fn reads_have_no_size_of_writes() {
    let mut w = ext4(8).window();
    let none = f::IO_SIZE.info.name;
    w.delta = without(&w.delta, none);
    assert_eq!(
        predict(&w, &write_size(8192)).unwrap_err(),
        Refusal::NoWrites
    );
}

fn without(s: &Snapshot, family: &str) -> Snapshot {
    let mut json = serde_json::to_value(s).unwrap();
    json["families"].as_object_mut().unwrap().remove(family);
    serde_json::from_value(json).unwrap()
}

#[test]
fn threads_are_recommended_by_pool() {
    let mut w = ext4(4).window();
    let n = (ext4(4).rate * SECONDS) as u64;
    w.delta = without(&w.delta, f::THREADS.info.name);
    w.delta = without(&w.delta, f::RPC_QUEUE.info.name);
    for pool in ["0", "1"] {
        w.delta.gauge(&f::THREADS, [pool], 2.0);
        let queue = times(&f::RPC_QUEUE, n / 2, 0.19);
        w.delta.histogram(&f::RPC_QUEUE, [pool], queue);
    }
    let all = plausible(&w).unwrap();
    let threads = all
        .iter()
        .find(|p| p.part() == Some(Part::Threads))
        .unwrap();
    assert_eq!(threads.prediction.threads_by_pool, [16, 16]);
    let words = threads.sentence();
    assert!(
        words.contains("32 threads (16 in each of 2 pools): "),
        "{words}"
    );
}

#[test]
fn more_clients_fill_a_server_until_something_is_full() {
    let p = fullest(&ext4(32).window()).unwrap();
    assert!(p.change.clients_factor.is_some());
    assert!(p.rate.after > p.rate.before, "{p:?}");
    assert_ne!(p.used[0].utilization, 0.0);
}

/// The agent predicts beside its work: no window, of any host or release, may end it.
#[test]
fn no_window_is_too_odd() {
    let odd = [0.0, -1.0, 1e-9, 1e6, 1e18, 1e300, f64::NAN];
    let whole = ext4(4).window();
    let mut played = 0;
    for family in nfscope_whatif::FAMILIES {
        for value in odd {
            let mut json = serde_json::to_value(&whole.delta).unwrap();
            let Some(all) = json["families"][family.name].as_array_mut() else {
                continue;
            };
            for series in all {
                for (kind, v) in series["sample"].as_object_mut().unwrap() {
                    match kind.as_str() {
                        // NaN and infinity become null, which is refused.
                        "histogram" | "Histogram" => v["sum"] = serde_json::json!(value),
                        _ => *v = serde_json::json!(value),
                    }
                }
            }
            let Ok(delta) = serde_json::from_value::<Snapshot>(json) else {
                continue;
            };
            for length in [1e-9, SECONDS, 1e9] {
                let w = Window {
                    length: Duration::from_secs_f64(length),
                    delta: delta.clone(),
                };
                let _ = plausible(&w);
                played += 1;
            }
        }
    }
    assert!(played > 200, "{played}");
}
