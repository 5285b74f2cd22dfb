//! What was measured, before anything is compared.

use super::agent::{Scraped, Started};
use super::attach::With;
use super::context_switches::Switches;
use super::load::Measure;
use super::long_recording::Days;
use super::possible_cpus::Sized;

/// One measurement of each case, and of context switches, with the same thing attached, as far as that concerns them.
#[derive(Debug)]
pub(super) struct Measured {
    pub with: With,
    pub measures: Vec<Measure>,
    pub switches: Option<Switches>,
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Results {
    /// Bytes of the release binary.
    pub binary: u64,
    /// In the order in which they were measured.
    pub measured: Vec<Measured>,
    pub per_program: Vec<Measured>,
    /// On this host; on Linux without an NFS server that is without its probes.
    pub native: Option<(Started, Scraped)>,
    /// Two recordings of a day, compared on this host.
    pub days: Option<Days>,
    /// In the machine, its clock counting instructions, with all probes and after a mixed load.
    pub inside: Option<(Started, Scraped)>,
    /// The memory of the agent's maps in the machine, in bytes.
    pub maps: u64,
    /// Machines to which CPUs could be added.
    pub sized: Vec<Sized>,
}
