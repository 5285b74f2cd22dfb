//! What a source is, whatever the operating system, and what the admin may choose about it.

use nfscope_model::{ProbeStatus, SlowBatch, SlowFilter, Snapshot};

/// What the admin may choose about measuring.
#[derive(Debug, Clone)]
pub struct Options {
    /// Attach to kernel modules that load after the start. Costs keeping CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.
    pub late_attach: bool,
    /// Ask the kernel for run counts and run times of every probe program (about 60 instructions per run).
    pub probe_stats: bool,
    /// Split operations into phases. Costs some instructions an operation, or one short program at every context switch where
    /// the scheduler's books cannot be read.
    pub phases: bool,
    /// Most clients with a series of their own.
    pub max_clients: usize,
    /// Most exports with a series of their own.
    pub max_exports: usize,
    /// Most pairs of client and export that the probes tell apart at a time, at most [`MOST_PAIRS`]. With more, all are
    /// told apart anew.
    pub max_pairs: u32,
    /// For tests: programs are skipped at random, one run in so many; 0: none.
    pub skip_one_in: u32,
    /// For tests: false where the scheduler's books are not to be read.
    pub books: bool,
}

/// See [`Options::max_pairs`]: 14 bits of a word are its number (`probes/bpf/lib/client_accounting.h`).
pub const MOST_PAIRS: u32 = 1 << 14;

impl Default for Options {
    fn default() -> Self {
        Options {
            late_attach: true,
            probe_stats: false,
            phases: true,
            max_clients: 100,
            max_exports: 100,
            max_pairs: MOST_PAIRS,
            skip_one_in: 0,
            books: true,
        }
    }
}

/// A running set of probes.
pub trait Source: Send {
    /// Reads everything now, for publication.
    fn snapshot(&mut self) -> Snapshot;
    /// Reads everything now without publishing it, for the agent's own findings. What a client or an export gained since the
    /// last [`snapshot`](Source::snapshot) may still move to `other` before the next one.
    fn peek(&mut self) -> Snapshot {
        self.snapshot()
    }
    /// The health of every probe program, without reading the measurements.
    fn probes(&self) -> Vec<ProbeStatus>;
    /// Attaches what has become possible since the last call (a module was loaded). Cheap when nothing changed;
    /// called every second.
    fn poll(&mut self);
    /// Gives at most so many clients and exports series of their own from now on; see [`Options`].
    fn limit_series(&mut self, _clients: usize, _exports: usize) {}
    /// Detaches these probes, and so releases the kernel modules that they hold. They stay detached until
    /// [`attach`](Source::attach), or until such a module is loaded anew; their counters then start at zero. Returns one line
    /// for each probe; a source that holds no modules returns none.
    fn detach(&mut self, _probes: &[&'static str]) -> Vec<String> {
        Vec::new()
    }
    /// Attaches detached probes again; returns one line for each.
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
