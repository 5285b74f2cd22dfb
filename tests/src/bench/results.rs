//! Measurements, before any comparison.

use super::agent::{Scraped, Started};
use super::attach::With;
use super::context_switches::Switches;
use super::load::Measure;
use super::long_recording::Days;
use super::possible_cpus::Sized;

/// Measurement of each case once, and of context switches, with the same program attached, if it can cost them anything.
#[derive(Debug)]
pub(super) struct Measured {
    pub with: With,
    pub measures: Vec<Measure>,
    pub switches: Option<Switches>,
}

/// All measurements.
#[derive(Debug)]
pub(super) struct Results {
    /// Bytes of the release binary.
    pub binary: u64,
    /// Measurements in their order.
    pub measured: Vec<Measured>,
    pub per_program: Vec<Measured>,
    /// Start and scrapes on this host; on a Linux host without an NFS server that is without its probes.
    pub native: Option<(Started, Scraped)>,
    /// Two recordings of a day, compared on this host.
    pub days: Option<Days>,
    /// Start and scrapes in the machine, whose clock counts instructions, with all probes and after a mixed load.
    pub inside: Option<(Started, Scraped)>,
    /// Bytes of the agent's maps in the machine.
    pub maps: u64,
    /// Costs in machines with more possible CPUs.
    pub sized: Vec<Sized>,
}
