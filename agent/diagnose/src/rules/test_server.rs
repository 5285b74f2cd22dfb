//! Servers for the tests of rules, and functions for the sentences about them.

use crate::evaluate;
use nfscope_model::finding::{Diagnosis, Kind};
use nfscope_model::{Histogram, Scheme, Snapshot, Window, family as f};
use std::time::Duration;

/// Ten seconds of a server with `count` operations, and the time of each.
#[derive(Clone)]
pub struct Server {
    pub op: &'static str,
    pub count: u64,
    pub queue: f64,
    /// Requests whose arrival was not seen; `no_clock` of these have no clock of the arrival.
    pub unseen: u64,
    pub no_clock: u64,
    pub cpu: f64,
    pub log: f64,
    pub disk: f64,
    pub throttle: f64,
    pub runqueue: f64,
    pub lock: f64,
    pub reply: f64,
    pub saturated: f64,
    pub idle: f64,
    /// Lengths and numbers of the waits for the log. If it is empty, each operation has one wait.
    pub log_waits: Vec<(f64, u64)>,
    pub log_fs: &'static str,
    pub log_separate: f64,
    /// Part of the window in which the log is written to.
    pub log_in_use: f64,
    /// Lengths and numbers of the log's writes. If it is empty, a hundred equal ones.
    pub log_writes: Vec<(f64, u64)>,
    /// Part of the log's bytes that bypass a log device.
    pub indirect: f64,
}

pub const SERVER: Server = Server {
    op: "write",
    count: 1000,
    queue: 10e-6,
    unseen: 0,
    no_clock: 0,
    cpu: 100e-6,
    log: 0.0,
    disk: 0.0,
    throttle: 0.0,
    runqueue: 0.0,
    lock: 0.0,
    reply: 10e-6,
    saturated: 0.0,
    idle: 0.7,
    log_waits: Vec::new(),
    log_fs: "ext4",
    log_separate: 0.0,
    log_in_use: 0.1,
    log_writes: Vec::new(),
    indirect: 0.0,
};

pub fn histogram(waits: &[(f64, u64)]) -> Histogram {
    let mut h = Histogram::new(Scheme::TIME);
    for (seconds, n) in waits {
        h.counts[Scheme::TIME.bucket(*seconds)] += n;
        h.sum += seconds * *n as f64;
    }
    h
}

/// Adds sizes and parts of `requests` requests of a version, beside their times.
pub fn measured(s: &mut Snapshot, version: &str, requests: u64) {
    let each = |scheme: Scheme, value: f64| {
        let mut h = Histogram::new(scheme);
        h.counts[scheme.bucket(value)] = requests;
        h.sum = value * requests as f64;
        h
    };
    for op in ["read", "write"] {
        s.histogram(&f::IO_SIZE, [version, op], each(Scheme::SIZE, 65536.0));
    }
    s.counter(&f::WRITE, [version, "unstable"], requests as f64);
    s.counter(
        &f::WRITE_BYTES,
        [version, "unstable"],
        requests as f64 * 65536.0,
    );
    if version.starts_with('4') {
        s.histogram(&f::COMPOUND_OPS, [version], each(Scheme::COUNT, 3.0));
        s.counter(&f::SESSION_REQUESTS, [version, "free"], requests as f64);
    }
}

impl Server {
    /// Server whose clients keep a log in use; a wait for it, and a write of it, take this long, in seconds.
    pub fn with_busy_log(log: f64) -> Server {
        Server {
            count: 4000,
            log,
            log_in_use: 0.9,
            log_writes: vec![(log, 1000)],
            ..SERVER
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let all = |each: f64| each * self.count as f64;
        let execute = self.cpu + self.runqueue + self.log + self.disk + self.throttle + self.lock;
        let mut s = Snapshot::new(Duration::from_secs(110));
        s.histogram(
            &f::OP_DURATION,
            ["3", self.op],
            histogram(&[(execute, self.count)]),
        );
        for (phase, each) in [
            ("cpu", self.cpu),
            ("runqueue", self.runqueue),
            ("log", self.log),
            ("disk", self.disk),
            ("lock", self.lock),
        ] {
            s.counter(&f::OP_PHASE, ["3", self.op, phase], all(each));
        }
        // A kernel that measures the throttle has no series before the first wait.
        if self.throttle > 0.0 {
            let labels = ["3", self.op, "throttle"];
            s.counter(&f::OP_PHASE, labels, all(self.throttle));
        }
        for (phase, each) in [("execute", execute), ("upcall", 0.0), ("reply", self.reply)] {
            s.counter(&f::RPC_PHASE, ["3", phase], all(each));
        }
        let seen = self.count - self.unseen;
        if seen > 0 {
            let queue = self.queue * seen as f64;
            s.counter(&f::RPC_PHASE, ["3", "queue"], queue);
            s.histogram(&f::RPC_QUEUE, ["0"], histogram(&[(self.queue, seen)]));
        }
        s.counter(&f::RPC_NO_CLOCK, [], self.no_clock as f64);
        let residence = self.queue + execute + self.reply;
        s.histogram(
            &f::RPC_DURATION,
            ["3"],
            histogram(&[(residence, self.count)]),
        );
        s.gauge(&f::THREADS, ["0"], 4.0);
        s.counter(&f::THREADS_SATURATED, ["0"], self.saturated * 10.0);
        s.gauge(&f::STUCK_REQUESTS, ["disk"], 0.0);
        s.gauge(&f::CPUS, [], 2.0);
        s.counter(&f::CPU_IDLE, [], self.idle * 20.0);
        if self.log > 0.0 {
            let waits = match self.log_waits.as_slice() {
                [] => vec![(self.log, self.count)],
                some => some.to_vec(),
            };
            let labels = [self.log_fs, "tank"];
            s.histogram(&f::LOG_WAIT, labels, histogram(&waits));
            let writes = match self.log_writes.as_slice() {
                [] => vec![(self.log_in_use * 10.0 / 100.0, 100)],
                some => some.to_vec(),
            };
            s.histogram(&f::LOG_COMMIT, labels, histogram(&writes));
            s.gauge(&f::LOG_SEPARATE, labels, self.log_separate);
            s.counter(&f::ZFS_ITX_BYTES, ["tank", "indirect"], self.indirect * 1e6);
            s.counter(
                &f::ZFS_ITX_BYTES,
                ["tank", "copied"],
                (1.0 - self.indirect) * 1e6,
            );
        }
        s
    }

    pub fn diagnosis(&self) -> Diagnosis {
        judge(self.snapshot())
    }
}

pub fn judge(delta: Snapshot) -> Diagnosis {
    let length = Duration::from_secs(10);
    evaluate(&Window { length, delta }, &[])
}

pub fn kinds(d: &Diagnosis) -> Vec<&str> {
    d.findings.iter().map(|f| f.kind.as_str()).collect()
}

/// All sentences of a finding, one per line.
pub fn page(d: &Diagnosis, kind: Kind) -> String {
    let finding = d
        .finding(kind)
        .unwrap_or_else(|| panic!("{kind:?} in {d:#?}"));
    let evidence = finding.evidence.iter().map(|e| e.text.as_str());
    let advice = finding.advice.iter().map(String::as_str);
    let all: Vec<_> = std::iter::once(finding.summary.as_str())
        .chain(evidence)
        .chain(advice)
        .collect();
    all.join("\n")
}

pub fn why_not(d: &Diagnosis, kind: Kind) -> &str {
    &d.ruled_out.iter().find(|r| r.kind == kind).unwrap().why
}
