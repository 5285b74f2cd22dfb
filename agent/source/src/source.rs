//! Definition of a source, the same on every operating system, and its options.

use nfscope_model::family;
use nfscope_model::held_request::STUCK_SECONDS;
use nfscope_model::{
    BreakdownBatch, BreakdownWant, HeldRequests, ProbeStatus, SlowBatch, SlowFilter, Snapshot,
};
use std::path::PathBuf;
use std::time::Duration;

/// Reason why a request is not seen.
pub(crate) const NOT_TIMED: &str = "NFS operations are not timed here; `nfscope check` says why";

/// Options of measuring, for the admin.
#[derive(Debug, Clone)]
pub struct Options {
    /// Attach to kernel modules that load after the start. The agent then keeps CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN and
    /// CAP_DAC_READ_SEARCH.
    pub late_attach: bool,
    /// Ask the kernel for run counts and run times of every probe program (about 60 instructions per run).
    pub probe_stats: bool,
    /// Split operations into phases. Costs some instructions an operation, or one short program at every context switch where
    /// the scheduler's books cannot be read.
    pub phases: bool,
    /// Observe this host's own NFS mounts, too. Costs some programs at each of their RPCs.
    pub client: bool,
    /// Most clients with a series of their own.
    pub max_clients: usize,
    /// Most exports with a series of their own.
    pub max_exports: usize,
    /// Limit of pairs of client and export that the probes count apart at a time, at most [`MOST_PAIRS`]. When it is reached, all pairs are
    /// assigned anew.
    pub max_pairs: u32,
    /// For tests: rows of a break-down; 0 for the usual number.
    pub breakdown_rows: u32,
    /// For tests: one run of a program in this number is skipped at random; 0: none.
    pub skip_one_in: u32,
    /// For measurements: a file with another object of the nfsd probe.
    pub nfsd_object: Option<PathBuf>,
    /// For tests: false if the scheduler's books must not be read.
    pub books: bool,
}

/// Largest [`Options::max_pairs`]: a pair's number has 14 bits of a word (`probes/bpf/nfsd/client_accounting.h`).
pub const MOST_PAIRS: u32 = 1 << 14;

impl Default for Options {
    fn default() -> Self {
        Options {
            late_attach: true,
            probe_stats: false,
            phases: true,
            client: false,
            max_clients: 100,
            max_exports: 100,
            max_pairs: MOST_PAIRS,
            breakdown_rows: 0,
            skip_one_in: 0,
            nfsd_object: None,
            books: true,
        }
    }
}

/// A running set of probes.
pub trait Source: Send {
    /// Reads everything now, for publication.
    fn snapshot(&mut self) -> Snapshot;
    /// Reads everything now without publishing it, for the agent's own findings. Counts of a client or an export since the last
    /// [`snapshot`](Source::snapshot) may still move to `other` before the next one.
    fn peek(&mut self) -> Snapshot {
        self.snapshot()
    }
    /// All requests that a thread has had in hand for longer than `over`, the oldest first. By default these are the requests of
    /// [`peek`](Source::peek), which has none below half a second.
    fn held(&mut self, over: Duration) -> HeldRequests {
        const YOUNGEST: Duration = Duration::from_millis(500);
        let over = over.max(YOUNGEST).as_secs_f64();
        let s = self.peek();
        let known = !s.series(&family::STUCK_REQUESTS.info).is_empty();
        let counted = s.numbers(&family::STUCK_REQUESTS).map(|(_, n)| n);
        let counted = counted.fold(0.0, |sum, n| sum + n) as usize;
        let mut requests = s.held;
        let described = requests.iter().filter(|r| r.seconds >= STUCK_SECONDS);
        let left_out = counted.saturating_sub(described.count()) as u64;
        requests.retain(|r| r.seconds > over);
        HeldRequests {
            host: crate::hostname::own_name(),
            over_seconds: over,
            unknown: (!known).then(|| NOT_TIMED.to_owned()),
            requests,
            left_out,
            laundromat: None,
            unacknowledged: None,
        }
    }
    /// Health of every probe program, without reading the measurements.
    fn probes(&self) -> Vec<ProbeStatus>;
    /// Attaches programs that have become possible since the last call, because a module was loaded. Cheap when nothing changed; called
    /// every second.
    fn poll(&mut self);
    /// Limits the clients and exports that have series of their own from now on; see [`Options`].
    fn limit_series(&mut self, _clients: usize, _exports: usize) {}
    /// Detaches these probes, and so releases the kernel modules that they hold. They stay detached until
    /// [`attach`](Source::attach), or until such a module is loaded anew; their counters then start at zero. Returns one line
    /// for each probe.
    ///
    /// # Errors
    /// Where nothing can be detached, as in a source that holds no modules.
    fn detach(&mut self, _probes: &[&'static str]) -> anyhow::Result<Vec<String>> {
        anyhow::bail!("nothing to detach: this agent holds no kernel modules")
    }
    /// Attaches detached probes again; returns one line for each.
    ///
    /// # Errors
    /// Fails if the agent has given up the capabilities that attaching needs, or holds no modules.
    fn attach(&mut self, _probes: &[&'static str]) -> anyhow::Result<Vec<String>> {
        anyhow::bail!("nothing to attach: this agent holds no kernel modules")
    }
    /// Reports operations that match `want` from now on, in place of an earlier filter; `None` ends it and frees the buffer. Costs nothing
    /// without a subscriber.
    ///
    /// # Errors
    /// Fails if operations are not timed here (yet), or `want` names an operation that does not exist.
    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()>;
    /// Operations that were reported since the last call; never waits.
    fn take_slow(&mut self) -> SlowBatch;
    /// Groups operations by `want` from now on, in place of an earlier request; `None` ends it and frees the tables. Costs nothing without
    /// a subscriber. Returns the operations of the earlier request.
    ///
    /// # Errors
    /// Fails if operations are not timed here (yet), or a dimension of `want` cannot be measured.
    fn watch_breakdown(&mut self, want: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        anyhow::ensure!(
            want.is_none(),
            "this source breaks no operations down on demand"
        );
        Ok(BreakdownBatch::default())
    }
    /// Operations since the last call; never waits for operations.
    fn take_breakdown(&mut self) -> BreakdownBatch {
        BreakdownBatch::default()
    }
}
