//! Description of a load on the host: a `lab load` command in the machine.

use std::time::Duration;

use super::kind::Kind;

/// Kind and length of a load: see [`crate::Server::load`].
#[derive(Clone, Debug)]
pub struct Load {
    operations: u64,
    duration: Option<Duration>,
    seed: u64,
    every: Duration,
    kind: Kind,
    versions: Vec<String>,
}

impl Load {
    /// Sync and async writes, reads and metadata of every sort; 20,000 operations by default.
    pub fn mixed() -> Load {
        Load {
            operations: 20_000,
            duration: None,
            seed: 1,
            every: Duration::ZERO,
            kind: Kind::Mixed,
            versions: vec!["3".to_owned(), "4.2".to_owned()],
        }
    }

    /// 4 KiB writes with O_SYNC from every mount.
    pub fn sync_writes() -> Load {
        Load {
            kind: Kind::SyncWrites,
            ..Load::mixed()
        }
    }

    /// Stops once the kernel has counted this many procedures (v3) and component operations (v4) since the load began.
    pub fn ops(mut self, operations: u64) -> Load {
        self.operations = operations;
        self
    }

    /// Stops after this time instead.
    pub fn duration(mut self, duration: Duration) -> Load {
        self.operations = u64::MAX;
        self.duration = Some(duration);
        self
    }

    /// Goes on until killed.
    pub fn endless(self) -> Load {
        self.ops(u64::MAX)
    }

    /// Runs over mounts of these versions (default: 3 and 4.2).
    pub fn versions(mut self, versions: &[&str]) -> Load {
        self.versions = versions.iter().map(|&v| v.to_owned()).collect();
        self
    }

    /// Seeds the sequence of actions (default: 1).
    pub fn seed(mut self, seed: u64) -> Load {
        self.seed = seed;
        self
    }

    /// Leaves this time from one action of a thread to its next one (default: none).
    pub fn every(mut self, every: Duration) -> Load {
        self.every = every;
        self
    }

    pub(crate) fn patience(&self) -> Duration {
        match self.duration {
            Some(duration) => duration + Duration::from_secs(120),
            // At least 100 operations a second, even emulated, beside another machine, and on a slow device.
            None => Duration::from_secs(120 + self.operations.min(100_000) / 100),
        }
    }

    /// Versions of NFS over which the export is mounted.
    pub(crate) fn mount_versions(&self) -> &[String] {
        &self.versions
    }

    pub(crate) fn command(&self, mounts: &[String]) -> String {
        let kind = match self.kind {
            Kind::Mixed => "mixed",
            Kind::SyncWrites => "sync-writes",
        };
        let mut command = format!("load --kind {kind} --seed {}", self.seed);
        if !self.every.is_zero() {
            command += &format!(" --every {}", self.every.as_secs_f64() * 1e3);
        }
        if self.operations != u64::MAX {
            command += &format!(" --ops {}", self.operations);
        }
        if let Some(duration) = self.duration {
            command += &format!(" --seconds {}", duration.as_secs_f64());
        }
        format!("{command} {}", mounts.join(" "))
    }
}
