//! Where snapshots come from. Only a source talks to a kernel.

pub mod hostname;
pub mod linux;
pub mod privileges;

use nfscope_model::host_report::Report;
use nfscope_model::{ProbeStatus, SlowBatch, SlowFilter, Snapshot};

/// What the admin may choose about measuring.
#[derive(Debug, Clone)]
pub struct Options {
    /// Attach to kernel modules that load after the start. Costs keeping CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.
    pub late_attach: bool,
    /// Ask the kernel for run counts and run times of every probe program (about 60 instructions per run).
    pub probe_stats: bool,
    /// Split operations into phases. Costs one short program at every context switch.
    pub phases: bool,
    /// Most clients with a series of their own.
    pub max_clients: usize,
    /// Most exports with a series of their own.
    pub max_exports: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            late_attach: true,
            probe_stats: false,
            phases: true,
            max_clients: 100,
            max_exports: 100,
        }
    }
}

/// A running set of probes.
pub trait Source: Send {
    /// Reads everything now, to tell somebody.
    fn snapshot(&mut self) -> Snapshot;
    /// The same for the agent's own judgement, of which nobody is told: what a series gained may still count for another one
    /// (a client's for `other`) when somebody is.
    fn look(&mut self) -> Snapshot {
        self.snapshot()
    }
    /// The health of every probe program, without reading the measurements.
    fn probes(&self) -> Vec<ProbeStatus>;
    /// Attaches what has become possible since the last call (a module was loaded). Cheap when nothing changed;
    /// called every second.
    fn poll(&mut self);
    /// Lets go of these probes, and of the kernel modules that they hold, until [`attach`](Source::attach) or until such a
    /// module is loaded anew. What they counted starts anew then. Says what became of each; a source that
    /// holds no modules has nothing to say.
    fn detach(&mut self, _probes: &[&'static str]) -> Vec<String> {
        Vec::new()
    }
    /// Attaches probes that were let go of; says what became of each.
    ///
    /// # Errors
    /// Where the agent has given up the capabilities that attaching needs.
    fn attach(&mut self, _probes: &[&'static str]) -> anyhow::Result<Vec<String>> {
        Ok(Vec::new())
    }
    /// Reports operations that `want` describes from now on, in place of what was asked for before; `None` ends it
    /// and frees the buffer. Costs nothing while nobody asks.
    ///
    /// # Errors
    /// Where operations are not timed here (yet), or `want` names an operation that does not exist.
    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()>;
    /// What was reported since the last call; never waits.
    fn take_slow(&mut self) -> SlowBatch;
}

/// Loads and attaches every probe that this host can run. One that cannot never stops the others.
///
/// # Errors
/// Only what leaves nothing to measure: no permission to load any program, naming the missing capability.
pub fn start(options: &Options) -> anyhow::Result<Box<dyn Source>> {
    linux::start(options)
}

/// Asks the host what it offers, attaching and detaching every probe to be sure.
pub fn check() -> Report {
    linux::check()
}

/// The words of all probes, to name them by.
pub fn words() -> impl Iterator<Item = &'static str> {
    linux::words()
}
