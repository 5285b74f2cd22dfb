//! A server that does not exist, with counters that are honest: each grows at a rate that is known, counts are whole numbers, and what
//! must add up does. Its numbers are those of its index, and the same in every run.

use nfscope_model::{
    Histogram, ProbeState, ProbeStatus, Scheme, SlowBatch, SlowFilter, Snapshot, family as f, phase,
};
use nfscope_source::Source;
use std::time::{Duration, Instant};

/// How much of everything a server has.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub operations: usize,
    pub clients: usize,
    pub exports: usize,
    pub disks: usize,
}

/// An ordinary server, and one that is as large as a scrape is meant to be.
pub const ORDINARY: Size = Size {
    operations: 12,
    clients: 20,
    exports: 8,
    disks: 4,
};
pub const LARGE: Size = Size {
    operations: 25,
    clients: 100,
    exports: 100,
    disks: 20,
};

/// Names of operations, what part of all requests of a version they are, and their mean time.
const V3: [(&str, f64, f64); 6] = [
    ("getattr", 0.40, 15e-6),
    ("lookup", 0.15, 25e-6),
    ("read", 0.20, 200e-6),
    ("write", 0.15, 400e-6),
    ("commit", 0.05, 800e-6),
    ("access", 0.05, 12e-6),
];
const V4: [(&str, f64, f64); 6] = [
    ("sequence", 1.0, 3e-6),
    ("putfh", 1.0, 2e-6),
    ("getattr", 0.6, 12e-6),
    ("read", 0.25, 200e-6),
    ("write", 0.15, 500e-6),
    ("open", 0.1, 60e-6),
];
/// How times spread: factors of the mean, and their shares. The mean of the factors is 1.
const SPREAD: [(f64, f64); 5] = [
    (0.4, 0.3),
    (0.8, 0.5),
    (1.6, 0.15),
    (3.0, 0.04),
    (12.0, 0.01),
];

/// What slows a server down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trouble {
    None,
    Log,
    Disk,
    Threads,
}

pub struct Simulated {
    index: usize,
    size: Size,
    begun: Instant,
}

impl Simulated {
    pub fn new(index: usize, size: Size) -> Self {
        Simulated {
            index,
            size,
            begun: Instant::now(),
        }
    }

    /// Of ten servers one has a slow log, one slow disks and one too few threads.
    pub fn trouble(&self) -> Trouble {
        match self.index % 10 {
            3 => Trouble::Log,
            5 => Trouble::Disk,
            7 => Trouble::Threads,
            _ => Trouble::None,
        }
    }

    /// Requests a second of each version.
    fn requests(&self) -> f64 {
        20.0 + 5.0 * (self.index % 16) as f64
    }

    /// Operations a second: what the fleet's total is checked against.
    pub fn operations(&self) -> f64 {
        let parts: f64 = self
            .all_operations()
            .iter()
            .map(|(_, _, part, _)| part)
            .sum();
        self.requests() * parts
    }

    /// Version, name, how many a request, and mean time of each operation.
    fn all_operations(&self) -> Vec<(&'static str, &'static str, f64, f64)> {
        let half = self.size.operations / 2;
        let known = |of: &'static [(&str, f64, f64)], version: &'static str| {
            of.iter()
                .map(move |(name, part, each)| (version, *name, *part, *each))
        };
        let mut all: Vec<_> = known(&V3, "3").chain(known(&V4, "4.2")).collect();
        // More of them are rare.
        let more = |version: &'static str, of: &[&'static str]| -> Vec<_> {
            let names = of
                .iter()
                .filter(|n| !all.iter().any(|a| a.0 == version && a.1 == **n));
            let names = names.take((2 * half).saturating_sub(6).min(19) * usize::from(half > 6));
            names.map(|n| (version, *n, 0.02, 40e-6)).collect()
        };
        let v3 = more("3", &nfscope_model::op::V3_PROCS);
        let v4 = more("4.2", &nfscope_model::op::V4_OPS);
        all.extend(v3);
        all.extend(v4);
        all
    }

    /// All counters after `t` seconds.
    pub fn after(&self, t: f64) -> Snapshot {
        let mut s = Snapshot::new(Duration::from_secs_f64(1000.0 + t));
        s.began = Duration::from_secs(1000);
        s.host = Some(format!("nfs{}", self.index));
        let executed = self.put_operations(&mut s, t);
        self.put_requests(&mut s, t, executed);
        self.put_storage(&mut s, t);
        self.put_users(&mut s, t);
        self.put_itself(&mut s, t);
        s
    }

    /// How much longer than usual an operation takes, and in which phase.
    fn slowed(&self, name: &str) -> (f64, &'static str) {
        let writes = matches!(name, "write" | "commit" | "open");
        match self.trouble() {
            Trouble::Log if writes => (20e-3, "log"),
            Trouble::Disk if name == "read" || name == "write" => (15e-3, "disk"),
            _ => (0.0, "lock"),
        }
    }

    /// Seconds of execution for each version.
    fn put_operations(&self, s: &mut Snapshot, t: f64) -> [f64; 2] {
        let mut executed = [0.0; 2];
        let mut counted = [0.0; 2];
        let mut bytes = [0.0; 2];
        for (version, name, part, each) in self.all_operations() {
            let v = usize::from(version != "3");
            let rate = self.requests() * part;
            let (more, slow_phase) = self.slowed(name);
            let times = spread(Scheme::TIME, each + more, rate, t);
            executed[v] += times.sum;
            counted[v] += times.count() as f64;
            for p in phase::OF_OP
                .into_iter()
                .filter(|p| !phase::RARE.contains(p))
            {
                let share = match p {
                    _ if p == slow_phase => more / (each + more),
                    "cpu" => 0.9 * each / (each + more),
                    "runqueue" => 0.1 * each / (each + more),
                    _ => 0.0,
                };
                s.counter(&f::OP_PHASE, [version, name, p], times.sum * share);
            }
            if name == "read" || name == "write" {
                let sizes = spread(Scheme::SIZE, 65_536.0, rate, t);
                bytes[usize::from(name == "write")] += sizes.sum;
                if name == "write" {
                    s.counter(&f::WRITE, [version, "file_sync"], sizes.count() as f64);
                    s.counter(&f::WRITE_BYTES, [version, "file_sync"], sizes.sum);
                }
                s.histogram(&f::IO_SIZE, [version, name], sizes);
            }
            if name == "lookup" || name == "open" {
                let errors = (times.count() / 20) as f64;
                s.counter(&f::OP_ERRORS, [version, name, "noent"], errors);
            }
            s.histogram(&f::OP_DURATION, [version, name], times);
        }
        for (version, n) in ["3", "4.2"].iter().zip(counted) {
            s.counter(&f::KERNEL_OPS, [version], n);
            s.counter(&f::TIMED_OPS, [version], n);
            s.gauge(&f::COVERAGE, [version], 1.0);
        }
        for (op, n) in ["read", "write"].iter().zip(bytes) {
            s.counter(&f::KERNEL_IO_BYTES, [op], n);
            s.counter(&f::TIMED_IO_BYTES, [op], n);
        }
        executed
    }

    fn put_requests(&self, s: &mut Snapshot, t: f64, executed: [f64; 2]) {
        let rate = self.requests();
        let queue = if self.trouble() == Trouble::Threads {
            5e-3
        } else {
            10e-6
        };
        let mut busy = 0.0;
        for (version, executed) in ["3", "4.2"].iter().zip(executed) {
            // Always the same: a value must not change its bucket with time.
            let execute: f64 = self
                .all_operations()
                .iter()
                .filter(|(of, ..)| of == version)
                .map(|(_, name, part, each)| part * (each + self.slowed(name).0))
                .sum();
            let residence = spread(Scheme::TIME, queue + execute + 20e-6, rate, t);
            let requests = residence.count() as f64;
            for (name, seconds) in [
                ("queue", queue * requests),
                ("receive", 10e-6 * requests),
                ("upcall", 0.0),
                ("execute", executed),
                ("reply", 10e-6 * requests),
            ] {
                s.counter(&f::RPC_PHASE, [version, name], seconds);
            }
            busy += executed + 20e-6 * requests;
            s.counter(&f::RPC_RECEIVED_BYTES, [version], 4000.0 * requests);
            s.counter(&f::RPC_SENT_BYTES, [version], 9000.0 * requests);
            if *version != "3" {
                let compounds = spread(Scheme::TIME, execute, rate, t);
                s.histogram(&f::COMPOUND_DURATION, [version], compounds);
                s.histogram(
                    &f::COMPOUND_OPS,
                    [version],
                    spread(Scheme::COUNT, 4.0, rate, t),
                );
            }
            s.histogram(&f::RPC_DURATION, [version], residence);
        }
        let queued = spread(Scheme::TIME, queue, 2.0 * rate, t);
        let requests = queued.count() as f64;
        s.histogram(&f::RPC_QUEUE, ["0"], queued);
        s.counter(&f::KERNEL_RPCS, [], requests);
        s.counter(&f::TIMED_RPCS, [], requests);
        let saturated = if self.trouble() == Trouble::Threads {
            0.6
        } else {
            0.0
        };
        let threads = if self.trouble() == Trouble::Threads {
            1.0
        } else {
            16.0
        };
        s.gauge(&f::THREADS, ["0"], threads);
        s.gauge(&f::THREADS_LIMIT, ["0"], threads);
        s.gauge(&f::THREADS_BUSY, ["0"], 1.0);
        s.counter(&f::THREAD_BUSY, ["0"], busy);
        s.counter(&f::THREADS_SATURATED, ["0"], saturated * t);
        s.gauge(&f::CPUS, [], 8.0);
        s.counter(
            &f::CPU_IDLE,
            [],
            8.0 * t * (0.95 - 0.03 * (self.index % 10) as f64),
        );
        for wait in ["log", "disk", "lock"] {
            s.gauge(&f::STUCK_REQUESTS, [wait], 0.0);
            s.gauge(&f::OLDEST_REQUEST, [wait], 0.0);
        }
    }

    fn put_storage(&self, s: &mut Snapshot, t: f64) {
        let wait = if self.trouble() == Trouble::Log {
            20e-3
        } else {
            300e-6
        };
        let rate = self.requests() * 0.2;
        s.histogram(
            &f::LOG_WAIT,
            ["ext4", "sda"],
            spread(Scheme::TIME, wait, rate, t),
        );
        s.histogram(
            &f::LOG_COMMIT,
            ["ext4", "sda"],
            spread(Scheme::TIME, wait, rate / 2.0, t),
        );
        s.counter(&f::LOG_BYTES, ["ext4", "sda", "main"], 8192.0 * rate * t);
        s.gauge(&f::LOG_SEPARATE, ["ext4", "sda"], 0.0);
        let slow = if self.trouble() == Trouble::Disk {
            15e-3
        } else {
            150e-6
        };
        for disk in 0..self.size.disks {
            // The same names on all servers.
            let device = format!("sd{}", char::from(b'a' + disk as u8));
            for op in ["read", "write"] {
                let rate = self.requests() * 0.5 / self.size.disks as f64;
                let times = spread(Scheme::TIME, slow, rate, t);
                s.counter(
                    &f::BLOCK_BYTES,
                    [&device, op],
                    65_536.0 * times.count() as f64,
                );
                s.histogram(&f::BLOCK_DEVICE, [&device, op], times);
                s.histogram(
                    &f::BLOCK_QUEUE,
                    [&device, op],
                    spread(Scheme::TIME, 5e-6, rate, t),
                );
            }
            s.gauge(&f::BLOCK_INFLIGHT, [&device], 0.0);
            s.counter(
                &f::BLOCK_BUSY,
                [&device],
                t * (0.05 + 0.008 * (self.index % 100) as f64),
            );
            s.gauge(&f::EXPORT_DEVICE, ["/srv/0", &device], 1.0);
        }
    }

    fn put_users(&self, s: &mut Snapshot, t: f64) {
        let of = |n: usize| (self.operations() * t / n as f64).floor();
        for client in 0..self.size.clients {
            let name = format!("10.{}.{}.{client}", self.index / 250, self.index % 250);
            s.counter(&f::CLIENT_OPS, [&name], of(self.size.clients));
            s.counter(&f::CLIENT_OP_SECONDS, [&name], of(self.size.clients) * 1e-4);
            s.gauge(&f::CLIENT_RTT, [&name], 2e-4);
        }
        for export in 0..self.size.exports {
            let name = format!("/srv/{export}");
            s.counter(&f::EXPORT_OPS, [&name], of(self.size.exports));
            s.counter(&f::EXPORT_OP_SECONDS, [&name], of(self.size.exports) * 1e-4);
        }
    }

    fn put_itself(&self, s: &mut Snapshot, t: f64) {
        for probe in ["nfsd", "sched", "jbd2", "block"] {
            s.gauge(&f::KERNEL_MEMORY, [probe], 4e6);
            s.counter(&f::EVENTS_LOST, [probe, "late"], (t / 100.0).floor());
        }
        s.gauge(&f::MAP_ENTRIES, ["block_device"], self.size.disks as f64);
        s.gauge(&f::MAP_CAPACITY, ["block_device"], 64.0);
        s.probes = programs();
    }
}

/// `rate` values a second for `t` seconds, of this mean: each value of the spread has as many as it has by now.
fn spread(scheme: Scheme, mean: f64, rate: f64, t: f64) -> Histogram {
    let mut h = Histogram::new(scheme);
    for (factor, share) in SPREAD {
        let n = (rate * share * t).floor();
        h.counts[scheme.bucket(mean * factor)] += n as u64;
        h.sum += mean * factor * n;
    }
    h
}

fn programs() -> Vec<ProbeStatus> {
    let names = [
        "nfsd_op_end",
        "nfsd_ops_begin",
        "nfsd_reply",
        "nfsd_run",
        "nfsd_send",
    ];
    let program = |name: &&str| ProbeStatus {
        probe: "nfsd".into(),
        program: (*name).into(),
        hook: format!("fentry/{name}"),
        gives: "execution time of NFS operations".into(),
        required: true,
        state: ProbeState::Attached,
        reason: String::new(),
        fix: String::new(),
    };
    names.iter().map(program).collect()
}

impl Source for Simulated {
    fn snapshot(&mut self) -> Snapshot {
        self.after(self.begun.elapsed().as_secs_f64())
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        programs()
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
        anyhow::bail!("a simulated server has no single operations")
    }

    fn take_slow(&mut self) -> SlowBatch {
        SlowBatch::default()
    }
}
