//! `nfscope top --by`: breakdowns as plain tables, or as JSON.

use crate::cli::TopArgs;
use nfscope_agent_client::lines::{self, Lines};
use nfscope_agent_client::local_or_remote::{self, Found};
use nfscope_api::breakdown_line::Line;
use nfscope_api::breakdown_query::Query;
use nfscope_serve::service::local_lines::{self, LocalLines};
use nfscope_serve::service::source_thread::SourceHandle;
use nfscope_source::Options;
use nfscope_text::console;
use nfscope_tui::Breakdown;
use std::io::{self, Write};

/// Query of `--by`; `None` without the flag.
///
/// # Errors
/// When dimensions, filters, interval or `--paths` do not fit together.
pub(super) fn query(args: &TopArgs) -> anyhow::Result<Option<Query>> {
    if args.by.is_empty() {
        return Ok(None);
    }
    let query = Query::new(args.by.clone(), args.filters.clone());
    let query = query.and_then(|q| q.every(args.interval)?.naming(args.paths));
    query.map(Some).map_err(anyhow::Error::msg)
}

/// Probes of this process. They are attached as long as `_source` lives.
struct Own {
    lines: LocalLines<Line>,
    _source: Box<SourceHandle>,
}

/// Source of breakdowns.
enum Teller {
    Agent(Lines<Query>),
    Own(Own),
}

impl Teller {
    fn find(url: Option<&str>, query: &Query) -> anyhow::Result<Teller> {
        let found = local_or_remote::agent_or_own(url, |at| lines::request(at, query))?;
        Ok(match found {
            Found::Agent(at, answer) => Teller::Agent(Lines::new(&at, answer)?),
            Found::Own => {
                let start = || nfscope_source::start(&Options::default());
                let query = query.clone();
                let (source, lines) = local_lines::measure(start, |r| r.breakdown(query))?;
                Teller::Own(Own {
                    _source: Box::new(source),
                    lines,
                })
            }
        })
    }

    fn next(&mut self) -> anyhow::Result<Line> {
        match self {
            Teller::Agent(lines) => lines.next_line(),
            Teller::Own(own) => own.lines.next_line(),
        }
    }
}

/// Prints one interval after another, up to `--count`; `print` formats a breakdown.
///
/// # Errors
/// When there is no source, or the source refuses or ends.
pub(super) fn run(
    args: &TopArgs,
    query: Query,
    print: impl Fn(&Breakdown) -> String,
) -> anyhow::Result<()> {
    let mut teller = Teller::find(args.url.as_deref(), &query)?;
    let mut left = if args.once { Some(1) } else { args.count };
    let mut told = Breakdown::new(query);
    while left != Some(0) {
        let line = teller.next()?;
        let text = match (&line, args.json) {
            (Line::Header { .. }, _) => None,
            (line, true) => Some(console::json(line)?),
            (_, false) => Some(String::new()),
        };
        told.take(Ok(line));
        let Some(json) = text else { continue };
        let text = if args.json { json } else { print(&told) };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // The reader of the pipe has exited.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            other => other?,
        }
        left = left.map(|n| n - 1);
    }
    Ok(())
}
