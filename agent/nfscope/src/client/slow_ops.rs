//! Where the lines come from: a running agent, or probes of this very process.

use crate::api::slow_filter as filter;
use crate::api::slow_line::Line;
use crate::client::http as fetch;
use crate::client::http::Answer;
use crate::client::local_or_remote::{self, Found};
use crate::service::slow_subscribers::SIGN_OF_LIFE;
use crate::service::source_thread::Reader;
use anyhow::Context;
use nfscope_model::{ProbeStatus, SlowFilter};
use nfscope_source as source;
use nfscope_source::Source;
use serde::Deserialize;
use std::io::{BufRead, ErrorKind, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// What can happen while lines are printed.
pub(crate) enum Event {
    /// A line came.
    Line(Line),
    /// The user has had enough.
    Stop,
    /// No more will come.
    End(anyhow::Error),
}

/// An agent that sends nothing for so long is gone.
const SILENCE: Duration = SIGN_OF_LIFE.saturating_mul(6);
/// Longest line taken.
const LONGEST: u64 = 64 << 10;

/// What is being listened to, for questions aside.
pub(crate) enum Feed {
    Agent(String),
    Own(Arc<Reader>),
}

/// The part of `/probes` that is of interest here.
#[derive(Deserialize)]
struct Probes {
    probes: Vec<ProbeStatus>,
}

impl Feed {
    /// Begins to send events.
    pub(crate) fn open(
        url: Option<&str>,
        want: &SlowFilter,
        tell: SyncSender<Event>,
    ) -> anyhow::Result<Feed> {
        let page = format!("/slow?{}", filter::to_query(want));
        match local_or_remote::agent_or_own(url, |at| fetch::ask(at, &page))? {
            Found::Agent(at, answer) => {
                listen(&at, answer, tell)?;
                Ok(Feed::Agent(at))
            }
            Found::Own => {
                let start = || source::start(&source::Options::default());
                Ok(Feed::Own(measure(start, want, tell)?))
            }
        }
    }

    /// Why operations come without phases.
    pub(crate) fn why_no_phases(&self) -> String {
        let probes = match self {
            Feed::Own(reader) => reader.status().probes().to_vec(),
            Feed::Agent(url) => {
                fetch::json::<Probes>(url, "/probes").map_or(Vec::new(), |p| p.probes)
            }
        };
        // The probe whose absence means that no operation has phases.
        match probes.iter().find(|p| p.probe == PHASES_PROBE) {
            Some(p) if !p.state.measures() && !p.reason.is_empty() => p.reason.clone(),
            Some(_) => "see `nfscope check`".to_owned(),
            None => "turned off by --no-phases, or see `nfscope check`".to_owned(),
        }
    }
}

const PHASES_PROBE: &str = "sched";

/// Reads an agent's answer on a thread of its own.
fn listen(url: &str, mut answer: Answer<TcpStream>, tell: SyncSender<Event>) -> anyhow::Result<()> {
    let code = answer.code();
    if code != Some(200) {
        let mut why = String::new();
        // Whatever can be read of the reason is better than none.
        let _ = answer.body.take(LONGEST).read_to_string(&mut why);
        match code {
            Some(400 | 503) => anyhow::bail!("the agent at {url} refuses: {}", why.trim()),
            Some(404) => anyhow::bail!(
                "the agent at {url} tells of no slow operations: it is older than this nfscope"
            ),
            _ => anyhow::bail!("{url} does not answer like an nfscope agent"),
        }
    }
    answer.body.get_ref().set_read_timeout(Some(SILENCE))?;
    let url = url.to_owned();
    std::thread::Builder::new()
        .name("slow".to_owned())
        .spawn(move || {
            loop {
                let event = match next(&mut answer) {
                    Ok(Some(line)) => Event::Line(line),
                    Ok(None) => Event::End(anyhow::anyhow!("the agent at {url} has ended")),
                    Err(e) => Event::End(e.context(format!("cannot read the agent at {url}"))),
                };
                let last = matches!(event, Event::End(_));
                if tell.send(event).is_err() || last {
                    return;
                }
            }
        })?;
    Ok(())
}

/// The next line; `None` at the end, which is also where a line breaks off.
fn next(answer: &mut Answer<TcpStream>) -> anyhow::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut rest = (&mut answer.body).take(LONGEST);
    if let Err(e) = rest.read_until(b'\n', &mut line) {
        match e.kind() {
            ErrorKind::ConnectionReset => return Ok(None),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                anyhow::bail!("no sign of life for {} s", SILENCE.as_secs())
            }
            _ => return Err(e.into()),
        }
    }
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line).with_context(|| {
        format!(
            "unknown line `{}`",
            String::from_utf8_lossy(&line).trim_end()
        )
    })?))
}

/// Attaches probes, and listens to them as an agent's listener would.
fn measure(
    start: impl FnOnce() -> anyhow::Result<Box<dyn Source>> + Send + 'static,
    want: &SlowFilter,
    tell: SyncSender<Event>,
) -> anyhow::Result<Arc<Reader>> {
    let gone = "the thread that owns the probes has ended";
    let (reader, started) = Reader::spawn(start)?;
    started.blocking_recv().context(gone)??;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut lines = runtime.block_on(reader.slow(want.clone()))?;
    let reader = Arc::new(reader);
    std::thread::Builder::new()
        .name("slow".to_owned())
        .spawn(move || {
            while let Some(line) = lines.blocking_recv() {
                let event = match serde_json::from_slice(&line) {
                    Ok(line) => Event::Line(line),
                    Err(e) => Event::End(e.into()),
                };
                if tell.send(event).is_err() {
                    return;
                }
            }
            let _ = tell.send(Event::End(anyhow::anyhow!(gone)));
        })?;
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::example;
    use crate::api::example::{Script, probe};
    use nfscope_model::{ProbeState, SlowBatch};
    use std::sync::mpsc::sync_channel;

    #[test]
    fn probes_of_its_own_are_listened_to_like_an_agents() {
        let source = Script {
            batch: SlowBatch {
                ops: vec![example::op()],
                left_out: 3,
            },
            ..Script::default()
        };
        let (tell, events) = sync_channel(8);
        let want = filter::from_query("op=write").unwrap();
        let _reader = measure(|| Ok(Box::new(source)), &want, tell).unwrap();
        let line = || match events.recv().unwrap() {
            Event::Line(line) => line,
            Event::Stop => panic!("stopped"),
            Event::End(why) => panic!("{why}"),
        };
        assert_eq!(line(), Line::Op(Box::new(example::op())));
        assert_eq!(line(), Line::LeftOut { left_out: 3 });

        let (tell, _events) = sync_channel(8);
        let source = Script {
            refuses: Some("not timed here"),
            ..Script::default()
        };
        let all = filter::from_query("").unwrap();
        let why = measure(|| Ok(Box::new(source)), &all, tell).err().unwrap();
        assert_eq!(why.to_string(), "not timed here");
    }

    #[test]
    fn absent_phases_are_explained() {
        let why = |probes| {
            let (tell, _events) = sync_channel(8);
            let source = Script {
                probes,
                ..Script::default()
            };
            let want = filter::from_query("").unwrap();
            let reader = measure(|| Ok(Box::new(source)), &want, tell).unwrap();
            Feed::Own(reader).why_no_phases()
        };
        let unsupported = probe("sched", ProbeState::Unsupported, "no BTF for it");
        let attached = probe("sched", ProbeState::Attached, "");
        assert_eq!(why(vec![unsupported]), "no BTF for it");
        assert_eq!(why(vec![attached]), "see `nfscope check`");
        assert_eq!(
            why(Vec::new()),
            "turned off by --no-phases, or see `nfscope check`"
        );
    }
}
