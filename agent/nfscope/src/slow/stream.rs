//! Sources of slow operations: a running agent, or probes of this process.

use nfscope_agent_client::events::{EventSender, until_error};
use nfscope_agent_client::http;
use nfscope_agent_client::lines::{self, Lines};
use nfscope_agent_client::local_or_remote::{self, Found};
use nfscope_api::slow_line::Line;
use nfscope_model::{ProbeStatus, SlowFilter};
use nfscope_serve::service::local_lines;
use nfscope_serve::service::source_thread::SourceHandle;
use nfscope_source::Options;
use serde::Deserialize;

/// Event while lines are printed.
pub(crate) enum SlowEvent {
    /// Line of the stream.
    Line(Line),
    /// Signal to stop.
    Stop,
    /// End of the stream, with its reason.
    End(anyhow::Error),
}

/// Source that is read, for further questions about it.
pub(crate) enum SlowStream {
    Agent(String),
    Local(Box<SourceHandle>),
}

impl SlowStream {
    /// Opens the stream, and begins to send its events.
    ///
    /// # Errors
    /// When there is no agent and own probes cannot be attached, or when the source refuses.
    pub(crate) fn open(
        url: Option<&str>,
        want: &SlowFilter,
        events: &EventSender<SlowEvent>,
    ) -> anyhow::Result<SlowStream> {
        let found = local_or_remote::agent_or_own(url, |at| lines::request(at, want))?;
        match found {
            Found::Agent(at, answer) => {
                let mut lines = Lines::<SlowFilter>::new(&at, answer)?;
                events.spawn("slow", until_error(move || lines.next_line()).map(event))?;
                Ok(SlowStream::Agent(at))
            }
            Found::Own => {
                let start = || nfscope_source::start(&Options::default());
                let want = want.clone();
                let (source, mut lines) = local_lines::measure(start, |r| r.slow(want))?;
                events.spawn("slow", until_error(move || lines.next_line()).map(event))?;
                Ok(SlowStream::Local(Box::new(source)))
            }
        }
    }

    /// Reason why operations have no phases.
    pub(crate) fn why_no_phases(&self) -> String {
        why_no_phases(&match self {
            SlowStream::Local(source) => source.status().probes().to_vec(),
            SlowStream::Agent(url) => probes(url),
        })
    }
}

/// Part of `/probes` that is used.
#[derive(Deserialize)]
struct Probes {
    probes: Vec<ProbeStatus>,
}

/// Probe programs of the agent; empty if it does not answer.
fn probes(url: &str) -> Vec<ProbeStatus> {
    http::json::<Probes>(url, "/probes").map_or(Vec::new(), |p| p.probes)
}

fn event(line: anyhow::Result<Line>) -> SlowEvent {
    match line {
        Ok(line) => SlowEvent::Line(line),
        Err(why) => SlowEvent::End(why),
    }
}

/// Probe that measures phases.
const PHASES_PROBE: &str = "sched";

fn why_no_phases(probes: &[ProbeStatus]) -> String {
    match probes.iter().find(|p| p.probe == PHASES_PROBE) {
        Some(p) if !p.state.measures() && !p.reason.is_empty() => p.reason.clone(),
        Some(_) => "see `nfscope check`".to_owned(),
        None => "turned off by --no-phases, or see `nfscope check`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_example::probe;
    use nfscope_model::ProbeState;

    #[test]
    fn absent_phases_are_explained() {
        let unsupported = probe("sched", ProbeState::Unsupported, "no BTF for it");
        let attached = probe("sched", ProbeState::Attached, "");
        assert_eq!(why_no_phases(&[unsupported]), "no BTF for it");
        assert_eq!(why_no_phases(&[attached]), "see `nfscope check`");
        assert_eq!(
            why_no_phases(&[]),
            "turned off by --no-phases, or see `nfscope check`"
        );
    }
}
