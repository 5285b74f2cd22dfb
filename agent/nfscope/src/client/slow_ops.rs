//! Slow operations of a running agent, line by line.

use crate::api::slow_filter;
use crate::api::slow_line::{HEARTBEAT_INTERVAL, Line};
use crate::client::http::{self, Answer, Error};
use anyhow::Context;
use nfscope_model::{ProbeStatus, SlowFilter};
use serde::Deserialize;
use std::io::{BufRead, ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;

/// An agent that sends nothing for so long is gone.
const SILENCE_TIMEOUT: Duration = HEARTBEAT_INTERVAL.saturating_mul(6);
/// Longest line taken.
const MAX_LINE: u64 = 64 << 10;

/// The part of `/probes` that is of interest here.
#[derive(Deserialize)]
struct Probes {
    probes: Vec<ProbeStatus>,
}

/// Asks the agent at `url` for slow operations.
///
/// # Errors
/// When no agent answers there.
pub(crate) fn request(url: &str, want: &SlowFilter) -> Result<Answer<TcpStream>, Error> {
    http::ask(url, &format!("/slow?{}", slow_filter::to_query(want)))
}

/// The agent's probe programs; none where it does not answer.
pub(crate) fn probes(url: &str) -> Vec<ProbeStatus> {
    http::json::<Probes>(url, "/probes").map_or(Vec::new(), |p| p.probes)
}

/// The lines of an agent's answer.
#[derive(Debug)]
pub(crate) struct AgentLines {
    url: String,
    answer: Answer<TcpStream>,
}

impl AgentLines {
    /// Takes the answer to a [`request`].
    ///
    /// # Errors
    /// When the agent refuses, with its reason.
    pub(crate) fn new(url: &str, answer: Answer<TcpStream>) -> anyhow::Result<Self> {
        let code = answer.code();
        if code != Some(200) {
            let mut why = String::new();
            // Whatever can be read of the reason is better than none.
            let _ = answer.body.take(MAX_LINE).read_to_string(&mut why);
            match code {
                Some(400 | 503) => {
                    anyhow::bail!("the agent at {url} refuses: {}", why.trim())
                }
                Some(404) => anyhow::bail!(
                    "the agent at {url} does not report slow operations: it is older than this nfscope"
                ),
                _ => anyhow::bail!("{url} does not answer like an nfscope agent"),
            }
        }
        answer
            .body
            .get_ref()
            .set_read_timeout(Some(SILENCE_TIMEOUT))?;
        Ok(AgentLines {
            url: url.to_owned(),
            answer,
        })
    }

    /// The next line.
    ///
    /// # Errors
    /// When no more will come.
    pub(crate) fn next(&mut self) -> anyhow::Result<Line> {
        let url = &self.url;
        match read(&mut self.answer) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => anyhow::bail!("the agent at {url} has ended"),
            Err(e) => Err(e.context(format!("cannot read from the agent at {url}"))),
        }
    }
}

/// The next line; `None` at the end, which is also where a line breaks off.
fn read(answer: &mut Answer<TcpStream>) -> anyhow::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut rest = (&mut answer.body).take(MAX_LINE);
    if let Err(e) = rest.read_until(b'\n', &mut line) {
        match e.kind() {
            ErrorKind::ConnectionReset => return Ok(None),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                anyhow::bail!("it sent nothing for {} s", SILENCE_TIMEOUT.as_secs())
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
