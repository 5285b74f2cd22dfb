//! A stream of a running agent, line by line.

use crate::client::http::{Answer, Stream};
use anyhow::Context;
use serde::de::DeserializeOwned;
use std::io::{BufRead, ErrorKind, Read};
use std::marker::PhantomData;
use std::time::Duration;

/// Longest reason taken of a refusal.
const MAX_REASON: u64 = 64 << 10;

/// What a stream is of, and what it may be like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// For a sentence: the agent does not do that.
    pub(crate) does: &'static str,
    /// An agent that sends nothing for so long is gone.
    pub(crate) silence: Duration,
    /// Longest line taken.
    pub(crate) max_line: u64,
}

/// The lines of an agent's answer.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    url: String,
    answer: Answer<Stream>,
    kind: Kind,
    lines: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Lines<T> {
    /// Takes the answer to a request.
    ///
    /// # Errors
    /// When the agent refuses, with its reason.
    pub(crate) fn new(url: &str, answer: Answer<Stream>, kind: Kind) -> anyhow::Result<Self> {
        let code = answer.code();
        if code != Some(200) {
            match code {
                Some(400 | 503) => {
                    let mut why = String::new();
                    // Whatever can be read of the reason is better than none.
                    let _ = answer.body.take(MAX_REASON).read_to_string(&mut why);
                    anyhow::bail!("the agent at {url} refuses: {}", why.trim())
                }
                Some(404) => anyhow::bail!(
                    "the agent at {url} does not {}: it is older than this nfscope",
                    kind.does
                ),
                Some(401 | 403 | 421 | 429) => {
                    anyhow::bail!("the agent at {url} refuses: {}", answer.refusal())
                }
                _ => anyhow::bail!("{url} does not answer like an nfscope agent"),
            }
        }
        (answer.body.get_ref()).set_read_timeout(Some(kind.silence))?;
        Ok(Lines {
            url: url.to_owned(),
            answer,
            kind,
            lines: PhantomData,
        })
    }

    /// The next line.
    ///
    /// # Errors
    /// When no more will come.
    pub(crate) fn next(&mut self) -> anyhow::Result<T> {
        let read = self.read();
        let url = &self.url;
        match read {
            Ok(Some(line)) => Ok(line),
            Ok(None) => anyhow::bail!("the agent at {url} has ended"),
            Err(e) => Err(e.context(format!("cannot read from the agent at {url}"))),
        }
    }

    /// The next line; `None` at the end, which is also where a line breaks off.
    fn read(&mut self) -> anyhow::Result<Option<T>> {
        let mut line = Vec::new();
        let mut rest = (&mut self.answer.body).take(self.kind.max_line);
        if let Err(e) = rest.read_until(b'\n', &mut line) {
            match e.kind() {
                ErrorKind::ConnectionReset => return Ok(None),
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    anyhow::bail!("it sent nothing for {} s", self.kind.silence.as_secs())
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
