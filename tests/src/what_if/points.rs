//! Servers of the experiment, and pairs of them that differ by one change.

use nfscope_whatif::Change;

use crate::CountedCpus;
use crate::scenarios::{Expected, Fault, Place, Scenario};

/// Bytes of READs and WRITEs in pairs with another change.
const SIZE: u32 = 4096;
/// OpenZFS frees the blocks of its log only every few seconds, and writes blocks without room to the main disks.
const ZFS_LOG_MIB: u32 = 512;
const LOG_MIB: u32 = 64;

/// A server under a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// ext4, xfs, btrfs, zfs or tmpfs.
    pub fs: &'static str,
    /// Milliseconds of each request to the data's disk.
    pub disk_ms: f64,
    /// Milliseconds of each request to the log's own disk, if it has one.
    pub log_ms: Option<f64>,
    /// nfsd threads.
    pub threads: u32,
    /// Load of the clients.
    pub load: Load,
    /// Number of clients.
    pub clients: u32,
    /// Bytes of each READ and WRITE.
    pub size: u32,
    /// CPUs of the machine, which the clients use, too.
    pub cpus: CountedCpus,
}

/// Load of clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Small synchronous WRITEs, each client as fast as it can.
    Writes,
    /// Small synchronous WRITEs, each client every 40 ms.
    PacedWrites,
    /// READs that miss every cache, each client as fast as it can.
    Reads,
    /// READs that miss every cache, each client every 40 ms.
    PacedReads,
    /// GETATTRs, each client as fast as it can.
    Getattrs,
    /// WRITEs of three quarters of the clients, GETATTRs of the others.
    WritesAndGetattrs,
}

/// A change that the lab makes.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The server before.
    pub before: Point,
    /// The server after.
    pub after: Point,
    /// The change, as the model gets it.
    pub change: Change,
}

impl Point {
    /// Unique name, fit for a file.
    pub fn name(&self) -> String {
        let log = self.log_ms.map_or(String::new(), |ms| format!("-log{ms}"));
        let mut name = format!(
            "{}-{:?}-disk{}{log}-threads{}-clients{}",
            self.fs, self.load, self.disk_ms, self.threads, self.clients
        );
        if self.size != SIZE {
            name += &format!("-size{}", self.size);
        }
        if self.cpus != CountedCpus::One {
            name += &format!("-cpus{:?}", self.cpus);
        }
        name.to_lowercase()
    }

    /// The scenario that the lab plays.
    pub fn scenario(&self) -> Scenario {
        let reads = matches!(self.load, Load::Reads | Load::PacedReads);
        let prepare = match reads {
            true => {
                "dd if=/dev/zero of=/run/exp/shared bs=1M count=128 status=none; sync; \
                 echo 3 >/proc/sys/vm/drop_caches"
            }
            false => "",
        };
        Scenario {
            name: self.name(),
            title: self.name(),
            server: Place {
                fs: self.fs.into(),
                disk_ms: self.disk_ms,
                disk_depth: 64,
                log_ms: self.log_ms,
                log_mib: match self.fs {
                    "zfs" => ZFS_LOG_MIB,
                    _ => LOG_MIB,
                },
                threads: self.threads,
                prepare: prepare.into(),
            },
            load: self.load.commands(self.clients, self.size),
            clients_first: false,
            fault: Fault::default(),
            diagnosis: Expected::default(),
            seconds: self.seconds(),
            kernels: Vec::new(),
        }
    }
}

impl Point {
    /// Seconds of the window. The agent's own readings use the CPU at both ends of a window. If requests are few, a short window
    /// would contain much of the readings, and too few requests. A CPU that is always busy takes the host some twenty times as long,
    /// and hides the readings. Cold reads have a file that is read once in some four seconds.
    fn seconds(&self) -> f64 {
        let slowest = self.log_ms.map_or(self.disk_ms, |ms| ms.max(self.disk_ms));
        match self.load {
            Load::PacedWrites | Load::PacedReads => 6.0,
            Load::Writes if slowest >= 1.0 => 6.0,
            _ => 2.0,
        }
    }
}

impl Load {
    fn commands(self, clients: u32, size: u32) -> Vec<String> {
        let one = |what: &str| vec![format!("clients {what} --clients {clients} --size {size}")];
        match self {
            Load::Writes => one("write --within 4"),
            Load::PacedWrites => one("write --within 4 --every 40 --scatter"),
            Load::Reads => one("read --within 128"),
            Load::PacedReads => one("read --within 128 --every 40 --scatter"),
            Load::Getattrs => one("getattr"),
            Load::WritesAndGetattrs => {
                let few = clients / 4;
                vec![
                    format!("clients write --within 4 --clients {}", clients - few),
                    format!("clients getattr --from 127.0.2.1 --clients {few}"),
                ]
            }
        }
    }

    /// The load in words.
    pub fn words(self) -> &'static str {
        match self {
            Load::Writes => "small sync writes",
            Load::PacedWrites => "paced sync writes",
            Load::Reads => "cold reads",
            Load::PacedReads => "paced cold reads",
            Load::Getattrs => "getattr",
            Load::WritesAndGetattrs => "sync writes and getattr",
        }
    }
}

fn writes(fs: &'static str, log_ms: f64, threads: u32) -> Point {
    // The log of btrfs has no disk of its own.
    let (disk_ms, log_ms) = match fs {
        "btrfs" => (log_ms, None),
        "tmpfs" => (0.1, None),
        _ => (0.1, Some(log_ms)),
    };
    Point {
        fs,
        disk_ms,
        log_ms,
        threads,
        load: Load::Writes,
        clients: 28,
        size: SIZE,
        cpus: CountedCpus::One,
    }
}

fn reads(disk_ms: f64, threads: u32) -> Point {
    Point {
        fs: "ext4",
        disk_ms,
        log_ms: Some(0.1),
        threads,
        load: Load::Reads,
        clients: 16,
        size: SIZE,
        cpus: CountedCpus::One,
    }
}

fn load(point: Point, load: Load, clients: u32) -> Point {
    Point {
        load,
        clients,
        ..point
    }
}

/// Every pair.
pub fn pairs() -> Vec<Pair> {
    let mut all = threads();
    all.extend(devices());
    all.extend(clients());
    all.extend(cpus());
    all.extend(sizes());
    all
}

fn threads() -> Vec<Pair> {
    let mut all = Vec::new();
    let mut pair = |before: Point, n: u32| {
        all.push(Pair {
            after: Point {
                threads: n,
                ..before.clone()
            },
            before,
            change: Change {
                threads: Some(n),
                ..Change::default()
            },
        });
    };
    for (from, to) in [(1, 8), (4, 8), (8, 32), (4, 32), (32, 64)] {
        pair(writes("ext4", 8.0, from), to);
    }
    for (from, to) in [(1, 8), (4, 8), (8, 32), (32, 64)] {
        pair(writes("xfs", 8.0, from), to);
    }
    for fs in ["zfs", "btrfs"] {
        for (from, to) in [(1, 8), (4, 8), (8, 32)] {
            pair(writes(fs, 8.0, from), to);
        }
    }
    for (from, to) in [(1, 4), (4, 16), (16, 64)] {
        pair(writes("tmpfs", 0.1, from), to);
    }
    pair(load(writes("tmpfs", 0.1, 2), Load::Getattrs, 12), 8);
    pair(reads(8.0, 4), 16);
    pair(load(reads(1.0, 16), Load::PacedReads, 16), 64);
    pair(load(writes("ext4", 0.1, 8), Load::PacedWrites, 8), 16);
    pair(
        load(writes("ext4", 8.0, 8), Load::WritesAndGetattrs, 28),
        32,
    );
    all
}

fn devices() -> Vec<Pair> {
    let mut all = Vec::new();
    for fs in ["ext4", "xfs", "zfs"] {
        for to in [1.0, 0.1] {
            all.push(Pair {
                before: writes(fs, 8.0, 8),
                after: writes(fs, to, 8),
                change: Change {
                    log_seconds: Some(to / 1e3),
                    ..Change::default()
                },
            });
        }
    }
    // A server with paced clients: the times change, and the rate does not.
    all.push(Pair {
        before: load(writes("ext4", 1.0, 8), Load::PacedWrites, 8),
        after: load(writes("ext4", 0.1, 8), Load::PacedWrites, 8),
        change: Change {
            log_seconds: Some(0.1 / 1e3),
            ..Change::default()
        },
    });
    for n in [4, 16] {
        all.push(Pair {
            before: reads(20.0, n),
            after: reads(4.0, n),
            change: Change {
                disk_seconds: Some(4.0 / 1e3),
                ..Change::default()
            },
        });
    }
    all
}

fn clients() -> Vec<Pair> {
    let twice = |before: Point| Pair {
        after: Point {
            clients: before.clients * 2,
            ..before.clone()
        },
        before,
        change: Change {
            clients_factor: Some(2.0),
            ..Change::default()
        },
    };
    vec![
        twice(load(writes("ext4", 8.0, 32), Load::Writes, 14)),
        twice(load(reads(8.0, 16), Load::Reads, 8)),
        twice(load(writes("ext4", 8.0, 4), Load::Writes, 14)),
        twice(load(writes("tmpfs", 0.1, 16), Load::Writes, 14)),
    ]
}

fn cpus() -> Vec<Pair> {
    let two = |point: Point| Pair {
        before: Point {
            cpus: CountedCpus::OneSlow,
            ..point.clone()
        },
        after: Point {
            cpus: CountedCpus::TwoSlow,
            ..point
        },
        change: Change {
            cpus: Some(2),
            ..Change::default()
        },
    };
    vec![
        two(writes("tmpfs", 0.1, 16)),
        two(load(writes("tmpfs", 0.1, 8), Load::Getattrs, 12)),
        two(writes("ext4", 8.0, 8)),
    ]
}

fn sizes() -> Vec<Pair> {
    let larger = |before: Point, size: u32| Pair {
        after: Point {
            size,
            ..before.clone()
        },
        before,
        change: Change {
            write_bytes: Some(size.into()),
            ..Change::default()
        },
    };
    vec![
        larger(writes("xfs", 8.0, 8), 16384),
        larger(writes("xfs", 8.0, 32), 8192),
        larger(load(writes("xfs", 0.1, 8), Load::PacedWrites, 8), 8192),
    ]
}
