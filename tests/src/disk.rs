//! Disks whose speed can be changed while they are in use.

use std::time::Duration;

/// A disk of a [`crate::Server`] that was built with [`crate::Builder::delayed`], [`crate::Builder::external_log`] or
/// [`crate::Builder::spare_log`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Disk of the exported file system.
    Data,
    /// Disk that only the log of that file system uses, now or later.
    Log,
}

impl Disk {
    /// Name of the disk under `/dev/mapper`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Disk::Data => "data",
            Disk::Log => "log",
        }
    }

    /// Device below, which keeps its speed.
    pub(crate) fn device(self) -> &'static str {
        match self {
            Disk::Data => "/dev/vda",
            Disk::Log => "/dev/vdb",
        }
    }

    pub(crate) fn mapped(self) -> String {
        format!("/dev/mapper/{}", self.name())
    }
}

/// Time that dm-delay adds to requests, in milliseconds. It holds them before they become requests of the device below, and they
/// sleep there. Newer kernels poll for the end of delays below 50 ms, on a CPU that others need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Delay of each read.
    pub reads: Duration,
    /// Delay of each write and each flush.
    pub writes: Duration,
}

impl Delay {
    /// No delay: the disk is as fast as its device.
    pub const NONE: Delay = Delay {
        reads: Duration::ZERO,
        writes: Duration::ZERO,
    };

    /// Delays reads.
    pub fn reads(by: Duration) -> Delay {
        Delay {
            reads: by,
            ..Delay::NONE
        }
    }

    /// Delays writes and flushes.
    pub fn writes(by: Duration) -> Delay {
        Delay {
            writes: by,
            ..Delay::NONE
        }
    }
}
