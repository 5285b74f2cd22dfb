//! A made trace, for tests and examples: mixed load of a file server, the same for the same number.

use crate::operation::{Op, Operation, Stability, Version};

/// Names of its clients, whose number is that of the index.
pub const CLIENTS: usize = 24;
const FILES: u64 = 60_000;
const FRAME: u64 = 4096;

/// Operations of a mixed load: small files by name, sequential reads of 256 KiB and 1 MiB, random pages of 8 KiB with COMMITs, of NFSv3
/// and NFSv4.2, in bursts. The same `seed` makes the same operations.
pub fn mixed(seed: u64) -> Mixed {
    Mixed {
        random: Random(seed),
        now: 0,
        burst: 0,
        compound: 0,
        streams: std::array::from_fn(|i| (1000 + i as u64, 0)),
        queue: Vec::new(),
    }
}

/// Operations of [`mixed`], without end.
pub struct Mixed {
    random: Random,
    now: u64,
    burst: u64,
    compound: u64,
    /// File and next offset of each sequential stream.
    streams: [(u64, u64); 48],
    /// Operations that come next, the first one last.
    queue: Vec<Operation>,
}

/// Numbers that look random (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        (-mean * (1.0 - self.unit()).ln()) as u64
    }
}

fn mix(n: u64) -> u64 {
    let mut z = n;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Mixed {
    /// Pseudonym of a file; few of them are used often.
    fn file(&mut self) -> u64 {
        let u = self.random.unit();
        (FILES as f64 * u.powi(4)) as u64
    }

    fn operation(&mut self, client: u64, name: &str, mean: f64) -> Operation {
        // Half of the clients speak NFSv3.
        let version = match client % 2 {
            0 => Version::V3,
            _ => Version::V4_2,
        };
        let op = Op::named(name).unwrap_or(Op::READ);
        let mut operation = Operation::new(self.now, client as u32, version, op);
        operation.duration = Some(20_000 + self.random.exponential(mean));
        operation.status = Some(0);
        operation
    }

    /// Queues the operations of one request.
    fn request(&mut self) {
        if self.burst == 0 {
            self.burst = 1 + self.random.exponential(60.0);
            self.now += self.random.exponential(20e6);
        }
        self.burst -= 1;
        self.now += self.random.exponential(80e3);
        let client = self.random.below(CLIENTS as u64);
        let kind = self.random.below(100);
        let mut operations = match kind {
            0..30 => self.lookup(client),
            30..65 => self.stream(client, kind < 50),
            65..95 => self.page(client, kind < 80),
            _ => self.create(client),
        };
        if client % 2 == 1 {
            self.compound += 1;
            for (i, operation) in operations.iter_mut().enumerate() {
                operation.compound = Some(self.compound);
                operation.arrival += 2_000 * i as u64;
            }
        }
        operations.reverse();
        self.queue = operations;
    }

    fn lookup(&mut self, client: u64) -> Vec<Operation> {
        let (directory, file) = (self.file() / 100, self.file());
        let mut lookup = self.operation(client, "lookup", 30e3);
        (lookup.file, lookup.other) = (Some(mix(directory)), Some(mix(file)));
        if self.random.below(20) == 0 {
            (lookup.status, lookup.other) = (Some(2), None);
        }
        let mut getattr = self.operation(client, "getattr", 10e3);
        (getattr.file, getattr.size) = (Some(mix(file)), Some(size(file)));
        vec![lookup, getattr]
    }

    fn stream(&mut self, client: u64, reads: bool) -> Vec<Operation> {
        // Reads and writes have streams of their own.
        let number = self.random.below(24) as usize + if reads { 0 } else { 24 };
        let length = match number % 2 {
            0 => 256 << 10,
            _ => 1 << 20,
        };
        let (file, offset) = self.streams[number];
        let next = offset + length;
        self.streams[number] = match next > 256 << 20 {
            true => (self.random.below(FILES), 0),
            false => (file, next),
        };
        let mut io = self.operation(client, if reads { "read" } else { "write" }, 2e6);
        (io.file, io.offset, io.length) = (Some(mix(file)), Some(offset), Some(length as u32));
        io.size = Some(if reads { 256 << 20 } else { next });
        if !reads {
            io.stability = Some(Stability::Unstable);
        }
        let mut all = vec![io];
        if !reads && next % (16 << 20) == 0 {
            let mut commit = self.operation(client, "commit", 8e6);
            (commit.file, commit.offset, commit.length) = (Some(mix(file)), Some(0), Some(0));
            all.push(commit);
        }
        all
    }

    fn page(&mut self, client: u64, reads: bool) -> Vec<Operation> {
        const PAGE: u64 = 2 * FRAME;
        let file = self.random.below(16);
        let offset = self.random.below((8 << 30) / PAGE) * PAGE;
        let mut io = self.operation(client, if reads { "read" } else { "write" }, 500e3);
        (io.file, io.offset, io.length) = (Some(mix(file)), Some(offset), Some(PAGE as u32));
        io.size = Some(8 << 30);
        if !reads {
            io.stability = Some(Stability::FileSync);
        }
        vec![io]
    }

    fn create(&mut self, client: u64) -> Vec<Operation> {
        let (directory, file) = (self.file() / 100, FILES + self.random.below(1 << 40));
        let name = if client % 2 == 0 { "create" } else { "open" };
        let mut create = self.operation(client, name, 1e6);
        (create.file, create.other, create.size) = (Some(mix(directory)), Some(mix(file)), Some(0));
        let mut write = self.operation(client, "write", 1e6);
        let length = size(file) as u32;
        (write.file, write.offset, write.length) = (Some(mix(file)), Some(0), Some(length));
        (write.size, write.stability) = (Some(u64::from(length)), Some(Stability::Unstable));
        let mut commit = self.operation(client, "commit", 8e6);
        (commit.file, commit.offset, commit.length) = (Some(mix(file)), Some(0), Some(0));
        vec![create, write, commit]
    }
}

/// Size of a small file: 1 to 64 KiB.
fn size(file: u64) -> u64 {
    1024 + mix(file) % (63 << 10)
}

impl Iterator for Mixed {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if self.queue.is_empty() {
            self.request();
        }
        self.queue.pop()
    }
}
