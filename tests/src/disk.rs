//! Disks whose speed can be changed while they are in use.

use std::time::Duration;

/// A disk of a [`crate::Server`] that was built with [`crate::Builder::delayed`], [`crate::Builder::external_log`] or
/// [`crate::Builder::spare_log`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// The one that the exported file system lies on.
    Data,
    /// The one that only its log lies on, or will.
    Log,
}

impl Disk {
    /// Its name under `/dev/mapper`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Disk::Data => "data",
            Disk::Log => "log",
        }
    }

    /// What lies below, and keeps its speed.
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

/// How much longer requests to a disk take (dm-delay, in milliseconds). They are held before they become requests of the
/// device below, and sleep there: delays of less than 50 ms make newer kernels poll for their end instead, on a CPU
/// that others need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Each read.
    pub reads: Duration,
    /// Each write and each flush.
    pub writes: Duration,
}

impl Delay {
    /// As fast as the device.
    pub const NONE: Delay = Delay {
        reads: Duration::ZERO,
        writes: Duration::ZERO,
    };

    /// Slow reads.
    pub fn reads(by: Duration) -> Delay {
        Delay {
            reads: by,
            ..Delay::NONE
        }
    }

    /// Slow writes and flushes.
    pub fn writes(by: Duration) -> Delay {
        Delay {
            writes: by,
            ..Delay::NONE
        }
    }
}
