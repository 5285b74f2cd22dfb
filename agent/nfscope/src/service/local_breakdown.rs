//! A break-down by probes of this very process, where no agent runs.

use crate::api::breakdown_line::Line;
use crate::api::breakdown_query::Query;
use crate::service::source_thread::{SOURCE_ENDED, SourceHandle};
use anyhow::Context;
use bytes::Bytes;
use nfscope_source::Source;
use tokio::sync::mpsc::Receiver;

/// Lines as an agent's listener gets them. The probes stay attached as long as this is there.
#[derive(Debug)]
pub struct LocalBreakdown {
    lines: Receiver<Bytes>,
    _source: SourceHandle,
}

impl LocalBreakdown {
    /// Attaches probes and asks them.
    ///
    /// # Errors
    /// When nothing can be measured, or the source refuses.
    pub fn measure(
        start: impl FnOnce() -> anyhow::Result<Box<dyn Source>> + Send + 'static,
        query: Query,
    ) -> anyhow::Result<LocalBreakdown> {
        let (source, started) = SourceHandle::spawn(start)?;
        started.blocking_recv().context(SOURCE_ENDED)??;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(LocalBreakdown {
            lines: runtime.block_on(source.breakdown(query))?,
            _source: source,
        })
    }

    /// Waits for the next line.
    ///
    /// # Errors
    /// When no more will come.
    pub fn next(&mut self) -> anyhow::Result<Line> {
        let line = self.lines.blocking_recv().context(SOURCE_ENDED)?;
        Ok(serde_json::from_slice(&line)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::breakdown_query::Query;
    use crate::api::example::Script;
    use crate::api::query::QueryString;
    use nfscope_model::Dimension;

    #[test]
    fn local_probes_are_read_like_an_agents() {
        let query = Query::from_query("by=op").unwrap();
        let start = || Ok(Box::new(Script::default()) as Box<dyn Source>);
        let mut local = LocalBreakdown::measure(start, query).unwrap();
        assert!(matches!(local.next().unwrap(), Line::Header { .. }));
        assert!(matches!(local.next().unwrap(), Line::Interval(_)));
        let start = || {
            Ok(Box::new(Script {
                breaks_down_no: Some(Dimension::User),
                ..Script::default()
            }) as Box<dyn Source>)
        };
        let why = LocalBreakdown::measure(start, Query::from_query("by=user").unwrap());
        assert_eq!(why.err().unwrap().to_string(), "no user here");
    }
}
