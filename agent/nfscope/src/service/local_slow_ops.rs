//! Slow operations from probes of this very process, where no agent runs.

use crate::api::slow_line::Line;
use crate::service::source_thread::{SOURCE_ENDED, SourceHandle};
use anyhow::Context;
use bytes::Bytes;
use nfscope_model::SlowFilter;
use nfscope_source::Source;
use tokio::sync::mpsc::Receiver;

/// Lines as an agent's subscriber gets them.
#[derive(Debug)]
pub struct LocalLines(Receiver<Bytes>);

impl LocalLines {
    /// Waits for the next line.
    ///
    /// # Errors
    /// When no more will come.
    pub fn next(&mut self) -> anyhow::Result<Line> {
        let line = self.0.blocking_recv().context(SOURCE_ENDED)?;
        Ok(serde_json::from_slice(&line)?)
    }
}

/// Attaches probes and subscribes to them. They stay attached while the handle is kept.
///
/// # Errors
/// When nothing can be measured, or the source refuses.
pub fn measure(
    start: impl FnOnce() -> anyhow::Result<Box<dyn Source>> + Send + 'static,
    want: SlowFilter,
) -> anyhow::Result<(SourceHandle, LocalLines)> {
    let (source, started) = SourceHandle::spawn(start)?;
    started.blocking_recv().context(SOURCE_ENDED)??;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let lines = runtime.block_on(source.slow(want))?;
    Ok((source, LocalLines(lines)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::example::{self, Script};
    use crate::api::query::QueryString;
    use nfscope_model::SlowBatch;

    #[test]
    fn local_probes_are_read_like_an_agents() {
        let source = Script {
            batch: SlowBatch {
                ops: vec![example::op()],
                left_out: 3,
            },
            ..Script::default()
        };
        let want = SlowFilter::from_query("op=write").unwrap();
        let (_source, mut lines) = measure(|| Ok(Box::new(source)), want).unwrap();
        assert_eq!(lines.next().unwrap(), Line::Op(Box::new(example::op())));
        assert_eq!(lines.next().unwrap(), Line::LeftOut { left_out: 3 });

        let source = Script {
            refuses: Some("not timed here"),
            ..Script::default()
        };
        let all = SlowFilter::from_query("").unwrap();
        let why = measure(|| Ok(Box::new(source)), all).err().unwrap();
        assert_eq!(why.to_string(), "not timed here");
    }
}
