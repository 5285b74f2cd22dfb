//! An operation and a source as literals, for the tests of other crates.

#![forbid(unsafe_code)]

use nfscope_model::{BreakdownBatch, BreakdownWant, Dimension};
use nfscope_model::{OpArguments, OpPhases, ProbeState, ProbeStatus, SlowBatch, SlowFilter};
use nfscope_model::{SlowOp, Snapshot};
use nfscope_source::Source;
use std::time::{Duration, SystemTime};

/// A WRITE of 64 KiB that waited for the log.
pub fn op() -> SlowOp {
    SlowOp {
        arguments: OpArguments::default(),
        at: SystemTime::UNIX_EPOCH + Duration::from_micros(1_795_254_420_123_456),
        client: "192.0.2.7".parse().ok(),
        version: "4.2".into(),
        op: "write".into(),
        export: Some("/srv/home".into()),
        dataset: None,
        inode: Some(131_073),
        path: None,
        xid: Some(0x0b5f_0c11),
        bytes: Some(65_536),
        stability: Some("file_sync".into()),
        status: "ok".into(),
        duration: Duration::from_micros(34_500),
        phases: Some(OpPhases {
            cpu: Duration::from_micros(200),
            runqueue: Duration::from_micros(15),
            log: Duration::from_micros(31_200),
            disk: Duration::from_micros(3_085),
            lock: Duration::ZERO,
            ..OpPhases::default()
        }),
    }
}

/// A source that returns given results, and keeps the requests that it gets.
#[derive(Default)]
pub struct Script {
    /// Filters of slow operations that were requested.
    pub asked: Vec<Option<SlowFilter>>,
    /// Slow operations that it returns.
    pub batch: SlowBatch,
    /// Probes that it returns.
    pub probes: Vec<ProbeStatus>,
    /// Reason with which it refuses to watch all operations.
    pub refuses: Option<&'static str>,
    /// Break-downs that were requested.
    pub broken_down: Vec<Option<BreakdownWant>>,
    /// Break-down that it returns.
    pub breakdown: BreakdownBatch,
    /// Dimension that it refuses to group operations by.
    pub breaks_down_no: Option<Dimension>,
}

impl Source for Script {
    fn snapshot(&mut self) -> Snapshot {
        Snapshot::default()
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        self.probes.clone()
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()> {
        if let (Some(why), true) = (self.refuses, want.is_some_and(|w| w.ops.is_empty())) {
            anyhow::bail!("{why}");
        }
        self.asked.push(want.cloned());
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        std::mem::take(&mut self.batch)
    }

    fn watch_breakdown(&mut self, want: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        if let (Some(no), Some(want)) = (self.breaks_down_no, want) {
            anyhow::ensure!(!want.by.contains(&no), "no {} here", no.name());
        }
        self.broken_down.push(want.cloned());
        Ok(self.take_breakdown())
    }

    fn take_breakdown(&mut self) -> BreakdownBatch {
        std::mem::take(&mut self.breakdown)
    }
}

/// The only program of this probe.
pub fn probe(word: &str, state: ProbeState, reason: &str) -> ProbeStatus {
    ProbeStatus {
        probe: word.into(),
        program: "sched_switched".into(),
        hook: String::new(),
        gives: String::new(),
        required: false,
        state,
        reason: reason.into(),
        fix: String::new(),
    }
}
