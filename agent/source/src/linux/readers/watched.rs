//! Subscriptions to single operations, and their buffers in the probes: slow operations and break-downs.

use crate::linux::host::file_handle::Exports;
use crate::linux::load::object::Loaded;
use crate::linux::read::breakdown::Looking;
use crate::linux::read::slow_ops::Listening;
use crate::source::NOT_TIMED;
use nfscope_model::{BreakdownBatch, BreakdownWant, SlowBatch, SlowFilter};

/// Requests of subscribers, which stay while the probe is detached, and the buffers for them.
#[derive(Default)]
pub struct Watched {
    slow: Option<SlowFilter>,
    listening: Option<Listening>,
    breakdown: Option<BreakdownWant>,
    looking: Option<Looking>,
}

impl Watched {
    /// See [`Source::watch_slow`](crate::Source::watch_slow). `l`: the probe nfsd, where it is attached.
    pub fn watch_slow(
        &mut self,
        l: Option<&Loaded>,
        want: Option<&SlowFilter>,
    ) -> anyhow::Result<()> {
        self.slow = want.cloned();
        let Some(l) = l else {
            anyhow::ensure!(want.is_none(), "{NOT_TIMED}");
            return Ok(());
        };
        let done = match (want, self.listening.take()) {
            (None, None) => Ok(()),
            (None, Some(listening)) => {
                listening.stop(l);
                Ok(())
            }
            (Some(filter), Some(mut listening)) => {
                let changed = listening.change(l, filter);
                self.listening = Some(listening);
                changed
            }
            (Some(filter), None) => Listening::start(l, filter).map(|new| {
                self.listening = Some(new);
            }),
        };
        done.and(self.watch(l))
    }

    /// See [`Source::take_slow`](crate::Source::take_slow).
    pub fn take_slow(
        &mut self,
        l: Option<&Loaded>,
        exports: &mut Exports,
        phases: bool,
    ) -> SlowBatch {
        match (l, &mut self.listening) {
            (Some(l), Some(listening)) => listening.take(l, exports, phases),
            _ => SlowBatch::default(),
        }
    }

    /// See [`Source::watch_breakdown`](crate::Source::watch_breakdown). `rows` is the size of each table, 0 for the usual size.
    pub fn watch_breakdown(
        &mut self,
        l: Option<&Loaded>,
        want: Option<&BreakdownWant>,
        exports: &mut Exports,
        rows: u32,
    ) -> anyhow::Result<BreakdownBatch> {
        let Some(l) = l else {
            anyhow::ensure!(want.is_none(), "{NOT_TIMED}");
            self.breakdown = None;
            return Ok(BreakdownBatch::default());
        };
        let came = match (want, self.looking.take()) {
            (None, None) => Ok(BreakdownBatch::default()),
            (None, Some(looking)) => Ok(looking.stop(l, exports)),
            (Some(want), Some(mut looking)) => {
                let changed = looking.change(l, want, exports);
                self.looking = Some(looking);
                changed
            }
            (Some(want), None) => Looking::start(l, want, rows).map(|new| {
                let kernel_bytes = new.kernel_bytes();
                self.looking = Some(new);
                BreakdownBatch {
                    kernel_bytes,
                    ..BreakdownBatch::default()
                }
            }),
        }?;
        self.breakdown = want.cloned();
        self.watch(l)?;
        Ok(came)
    }

    /// See [`Source::take_breakdown`](crate::Source::take_breakdown).
    pub fn take_breakdown(&mut self, l: Option<&Loaded>, exports: &mut Exports) -> BreakdownBatch {
        match (l, &mut self.looking) {
            (Some(l), Some(looking)) => looking.take(l, exports),
            _ => BreakdownBatch::default(),
        }
    }

    /// Sets the duration from which the probe reports or groups operations at all: probes/bpf/nfsd/watched.h.
    fn watch(&self, l: &Loaded) -> anyhow::Result<()> {
        let slow = (self.listening.as_ref()).map_or(u64::MAX, |listening| {
            let over = u64::try_from(listening.over().as_nanos()).unwrap_or(u64::MAX);
            over.saturating_add(1)
        });
        let from = if self.looking.is_some() { 0 } else { slow };
        l.set(".data.nfsd_watch", &from)
    }

    /// Frees the buffers before the probe is detached. The requests stay.
    pub fn leave(&mut self, l: &Loaded, exports: &mut Exports) {
        if let Some(listening) = self.listening.take() {
            listening.stop(l);
        }
        if let Some(looking) = self.looking.take() {
            looking.stop(l, exports);
        }
        // A failed write does no harm: the section exists as long as the probe does.
        let _ = self.watch(l);
    }

    /// Serves the requests by a probe that was attached. If it cannot, subscribers get empty batches.
    pub fn come(&mut self, l: &Loaded, exports: &mut Exports, rows: u32) {
        if let Some(want) = self.slow.clone() {
            let _ = self.watch_slow(Some(l), Some(&want));
        }
        if let Some(want) = self.breakdown.clone() {
            let _ = self.watch_breakdown(Some(l), Some(&want), exports, rows);
        }
    }
}
