//! Lines from probes of this process, for hosts without an agent.

use crate::service::source_loop::Running;
use crate::service::source_thread::{SOURCE_ENDED, SourceHandle};
use anyhow::Context;
use bytes::Bytes;
use nfscope_source::Source;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use tokio::sync::mpsc::Receiver;

/// Lines in the form in which an agent sends them.
#[derive(Debug)]
pub struct LocalLines<T> {
    lines: Receiver<Bytes>,
    kind: PhantomData<fn() -> T>,
}

/// Attaches probes, and starts a stream of lines. The probes stay attached while the handle lives.
///
/// # Errors
/// When nothing can be measured, or the source refuses.
pub fn measure<T>(
    start: impl FnOnce() -> anyhow::Result<Box<dyn Source>> + Send + 'static,
    listen: impl FnOnce(&mut Running<'_>) -> anyhow::Result<Receiver<Bytes>> + Send + 'static,
) -> anyhow::Result<(SourceHandle, LocalLines<T>)> {
    let (source, started) = SourceHandle::spawn(start)?;
    started.blocking_recv().context(SOURCE_ENDED)??;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let lines = LocalLines {
        lines: runtime.block_on(source.on_thread(listen))??,
        kind: PhantomData,
    };
    Ok((source, lines))
}

impl<T: DeserializeOwned> LocalLines<T> {
    /// Waits for the next line.
    ///
    /// # Errors
    /// When no more will come.
    pub fn next_line(&mut self) -> anyhow::Result<T> {
        let line = self.lines.blocking_recv().context(SOURCE_ENDED)?;
        Ok(serde_json::from_slice(&line)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::breakdown_query::Query;
    use nfscope_api::query::QueryString;
    use nfscope_example as example;
    use nfscope_example::Script;
    use nfscope_model::{Dimension, SlowBatch, SlowFilter};

    #[test]
    fn slow_operations_of_local_probes_are_read_like_an_agents() {
        let source = Script {
            batch: SlowBatch {
                ops: vec![example::op()],
                left_out: 3,
            },
            ..Script::default()
        };
        let want = SlowFilter::from_query("op=write").unwrap();
        use nfscope_api::slow_line::Line;
        let (_source, mut lines) =
            measure::<Line>(|| Ok(Box::new(source)), |r| r.slow(want)).unwrap();
        assert_eq!(
            lines.next_line().unwrap(),
            Line::Op(Box::new(example::op()))
        );
        assert_eq!(lines.next_line().unwrap(), Line::LeftOut { left_out: 3 });

        let source = Script {
            refuses: Some("not timed here"),
            ..Script::default()
        };
        let all = SlowFilter::from_query("").unwrap();
        let why = measure::<Line>(|| Ok(Box::new(source)), |r| r.slow(all)).err();
        assert_eq!(why.unwrap().to_string(), "not timed here");
    }

    #[test]
    fn break_downs_of_local_probes_are_read_like_an_agents() {
        use nfscope_api::breakdown_line::Line;
        let query = Query::from_query("by=op").unwrap();
        let start = || Ok(Box::new(Script::default()) as Box<dyn Source>);
        let (_source, mut lines) = measure::<Line>(start, |r| r.breakdown(query)).unwrap();
        assert!(matches!(lines.next_line().unwrap(), Line::Header { .. }));
        assert!(matches!(lines.next_line().unwrap(), Line::Interval(_)));
        let source = Script {
            breaks_down_no: Some(Dimension::User),
            ..Script::default()
        };
        let query = Query::from_query("by=user").unwrap();
        let why = measure::<Line>(|| Ok(Box::new(source)), |r| r.breakdown(query)).err();
        assert_eq!(why.unwrap().to_string(), "no user here");
    }
}
