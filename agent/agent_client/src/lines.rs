//! Reads a stream of a running agent, line by line.

use crate::http::{self, Answer, Error};
use crate::stream::Stream;
use anyhow::Context;
use nfscope_api::breakdown_query::Query;
use nfscope_api::query::QueryString;
use nfscope_api::slow_line::HEARTBEAT_INTERVAL;
use nfscope_api::{breakdown_line, slow_line};
use nfscope_model::SlowFilter;
use serde::de::DeserializeOwned;
use std::io::{BufRead, ErrorKind, Read};
use std::marker::PhantomData;
use std::time::Duration;

/// Longest reason of a refusal that is read.
const MAX_REASON: u64 = 64 << 10;

/// Query of an endpoint whose response is a stream of lines.
pub trait Listens: QueryString {
    /// A line of the stream.
    type Line: DeserializeOwned;
    /// Path of the endpoint.
    const PATH: &'static str;
    /// Verb phrase after "the agent does not", for the error about an agent without the endpoint.
    const DOES: &'static str;
    /// Time without a line after which an agent counts as gone.
    const SILENCE: Duration;
    /// Longest line that is accepted.
    const MAX_LINE: u64;
}

impl Listens for SlowFilter {
    type Line = slow_line::Line;
    const PATH: &str = "/slow";
    const DOES: &str = "report slow operations";
    const SILENCE: Duration = HEARTBEAT_INTERVAL.saturating_mul(6);
    const MAX_LINE: u64 = 64 << 10;
}

/// Lines of `/breakdown` come when an interval ends. A thousand rows with long paths are a few megabytes.
impl Listens for Query {
    type Line = breakdown_line::Line;
    const PATH: &str = "/breakdown";
    const DOES: &str = "break operations down on demand";
    const SILENCE: Duration = Duration::from_secs(120);
    const MAX_LINE: u64 = 64 << 20;
}

/// Sends the agent at `url` a request for lines.
///
/// # Errors
/// When no agent answers there.
pub fn request<Q: Listens>(url: &str, query: &Q) -> Result<Answer<Stream>, Error> {
    http::ask(url, &format!("{}?{}", Q::PATH, query.to_query()))
}

/// Lines of an agent's answer to a [`request`].
#[derive(Debug)]
pub struct Lines<Q> {
    url: String,
    answer: Answer<Stream>,
    query: PhantomData<fn() -> Q>,
}

impl<Q: Listens> Lines<Q> {
    /// Reads the lines of a response whose header has been read already.
    ///
    /// # Errors
    /// When the agent refuses, with its reason.
    pub fn new(url: &str, answer: Answer<Stream>) -> anyhow::Result<Self> {
        let code = answer.code();
        if code != Some(200) {
            match code {
                Some(400 | 503) => {
                    let mut why = String::new();
                    // Errors are ignored: a part of the reason is better than none.
                    let _ = answer.body.take(MAX_REASON).read_to_string(&mut why);
                    anyhow::bail!("the agent at {url} refuses: {}", why.trim())
                }
                // A server that does not answer `/snapshot` either is not an older agent.
                Some(404) if http::snapshot(url).is_err() => {
                    anyhow::bail!(
                        "{url} does not answer like an nfscope agent: {}",
                        answer.refusal()
                    )
                }
                Some(404) => anyhow::bail!(
                    "the agent at {url} does not {}: it is older than this nfscope",
                    Q::DOES
                ),
                Some(401 | 403 | 421 | 429) => {
                    anyhow::bail!("the agent at {url} refuses: {}", answer.refusal())
                }
                _ => anyhow::bail!("{url} does not answer like an nfscope agent"),
            }
        }
        (answer.body.get_ref()).set_read_timeout(Some(Q::SILENCE))?;
        Ok(Lines {
            url: url.to_owned(),
            answer,
            query: PhantomData,
        })
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// When no more will come.
    pub fn next_line(&mut self) -> anyhow::Result<Q::Line> {
        let read = self.read();
        let url = &self.url;
        match read {
            Ok(Some(line)) => Ok(line),
            Ok(None) => anyhow::bail!("the agent at {url} has ended"),
            Err(e) => Err(e.context(format!("cannot read from the agent at {url}"))),
        }
    }

    /// Reads the next line; `None` at the end, and for a line that breaks off there.
    fn read(&mut self) -> anyhow::Result<Option<Q::Line>> {
        let mut line = Vec::new();
        let mut rest = (&mut self.answer.body).take(Q::MAX_LINE);
        if let Err(e) = rest.read_until(b'\n', &mut line) {
            match e.kind() {
                ErrorKind::ConnectionReset => return Ok(None),
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    anyhow::bail!("it sent nothing for {} s", Q::SILENCE.as_secs())
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
}
