//! An endpoint: a path of the agent's HTTP server, with everything that is said about it.
//!
//! A file of [`crate::endpoints`] implements [`Endpoint`], and the list there makes a [`Declaration`] of it. The process that serves
//! HTTP reads declarations and nothing else. The agent parses the query, looks at the class of access, and answers.

use super::source_thread::SourceHandle;
use crate::exposition::Format;
use bytes::Bytes;
use nfscope_api::access::Access;
use nfscope_api::link::{Made, Turn, Why};
use nfscope_api::query::QueryString;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

/// The form of an answer, from which its headers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A word or a sentence of text, which is never packed.
    Word,
    /// Text.
    Text,
    /// One JSON object.
    Json,
    /// JSON objects, one a line, until the peer hangs up.
    Lines,
    /// HTML with this content security policy.
    Html(&'static str),
    /// Metrics in the format that the header `Accept` asks for.
    Exposition,
}

/// For whom an answer is made, and how long the agent may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// For each request anew, at once.
    Each,
    /// For all who ask the same within a quarter of a second.
    Shared,
    /// The same; who asks something else waits until that time is over.
    Paced,
    /// From a reading of the probes, which all such endpoints share for a quarter of a second.
    Reading,
    /// For each request anew, from a disk: one at a time.
    Disk,
    /// As lines that come as things happen. Refused while operations are not timed.
    Stream,
}

impl Served {
    /// The turn that a request waits for.
    pub(super) fn turn(self) -> Turn {
        match self {
            Served::Each | Served::Shared | Served::Paced | Served::Reading => Turn::Quick,
            Served::Disk => Turn::Disk,
            Served::Stream => Turn::Stream,
        }
    }
}

/// A request without its query, and the parts of the agent that answer it.
pub struct Asked {
    /// The thread with the probes, and what the agent keeps on disks.
    pub source: Arc<SourceHandle>,
    /// The format of an exposition.
    pub format: Format,
    /// All endpoints, for the one that lists them.
    pub endpoints: &'static [Declaration],
}

/// The answer of an endpoint.
pub enum Reply {
    /// A body.
    Body(Bytes),
    /// A body that was made of a reading.
    Part(Made, Bytes),
    /// Lines of NDJSON, until the receiver is dropped.
    Lines(Receiver<Bytes>),
}

impl Reply {
    /// A body of JSON.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn json(value: &(impl serde::Serialize + ?Sized)) -> Result<Reply, Refusal> {
        let text = serde_json::to_vec(value).map_err(anyhow::Error::from)?;
        Ok(Reply::Body(text.into()))
    }
}

/// The reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its kind, from which the status follows.
    pub why: Why,
    /// A sentence for the peer, without a newline.
    pub text: String,
}

impl Refusal {
    /// A refusal with this text.
    pub fn new(why: Why, text: impl Into<String>) -> Refusal {
        Refusal {
            why,
            text: text.into(),
        }
    }

    /// The same reason with another status.
    pub fn with(why: Why) -> impl Fn(anyhow::Error) -> Refusal {
        move |e| Refusal::new(why, format!("{e:#}"))
    }
}

impl From<anyhow::Error> for Refusal {
    fn from(e: anyhow::Error) -> Refusal {
        Refusal::new(Why::Failed, format!("{e:#}"))
    }
}

/// A path that the agent answers. `docs/develop/add-an-endpoint.md` has an example.
pub trait Endpoint: 'static {
    /// The path, from `/` on.
    const PATH: &'static str;
    /// A line of HTML that says what the path has, for the list at `/about`.
    const ABOUT: &'static str;
    /// The same for `nfscope agent --help`, in lines of at most 64 columns; empty for a path that is not listed there. Paths that
    /// follow each other with the same text share a line.
    const HELP: &'static str;
    /// The form of the answer.
    const CONTENT: Content = Content::Json;
    /// The class of access that every query needs.
    const ACCESS: Access = Access::Everybody;
    /// For whom an answer is made.
    const SERVED: Served;
    /// Whether an answer may have megabytes that are nobody else's. Such answers have a bound in all.
    const LARGE: bool = false;
    /// The type of the query; `()` for a path without parameters.
    type Query: QueryString + Send + 'static;

    /// The class of access that this query needs.
    fn access(_: &Self::Query) -> Access {
        Self::ACCESS
    }

    /// For whom the answer to this query is made.
    fn served(_: &Self::Query) -> Served {
        Self::SERVED
    }

    /// The answer. Runs in the agent's main process, on its main thread: [`SourceHandle::on_thread`] reaches the probes.
    ///
    /// # Errors
    /// With the reason and its status.
    fn answer(
        asked: &Asked,
        query: Self::Query,
    ) -> impl Future<Output = Result<Reply, Refusal>> + Send;
}

/// An endpoint as one of a list.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// See [`Endpoint::PATH`].
    pub path: &'static str,
    /// See [`Endpoint::ABOUT`].
    pub about: &'static str,
    /// See [`Endpoint::HELP`].
    pub help: &'static str,
    /// See [`Endpoint::CONTENT`].
    pub content: Content,
    /// See [`Endpoint::ACCESS`].
    pub access: Access,
    /// See [`Endpoint::LARGE`].
    pub is_large: bool,
    /// Where the answer comes from.
    pub origin: Origin,
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy)]
pub enum Origin {
    /// From the program itself: the process that serves HTTP has it.
    Program(fn() -> Bytes),
    /// From the agent, which parses the query.
    Agent(Served, Parse),
}

/// A query that has been read.
pub struct Parsed {
    /// See [`Endpoint::access`].
    pub access: Access,
    /// See [`Endpoint::served`].
    pub served: Served,
    /// The query, in a form that is the same for all who ask the same.
    pub text: String,
    /// Answers it.
    pub answer: Handler,
}

/// Reads a query, or says which parameter is wrong.
pub type Parse = fn(&str) -> Result<Parsed, String>;

/// Answers a query.
pub type Handler = Box<dyn for<'a> FnOnce(&'a Asked) -> Answering<'a> + Send>;

/// An answer that is being made.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send + 'a>>;

impl Declaration {
    /// The declaration of a text that is part of the program, so that the agent need not be asked.
    pub const fn document(
        path: &'static str,
        about: &'static str,
        help: &'static str,
        content: Content,
        text: fn() -> Bytes,
    ) -> Declaration {
        Declaration {
            path,
            about,
            help,
            content,
            access: Access::Everybody,
            is_large: false,
            origin: Origin::Program(text),
        }
    }

    /// The declaration of an endpoint that the agent answers.
    pub const fn of<E: Endpoint>() -> Declaration {
        Declaration {
            path: E::PATH,
            about: E::ABOUT,
            help: E::HELP,
            content: E::CONTENT,
            access: E::ACCESS,
            is_large: E::LARGE,
            origin: Origin::Agent(E::SERVED, parse::<E>),
        }
    }
}

fn parse<E: Endpoint>(query: &str) -> Result<Parsed, String> {
    let query = E::Query::from_query(query)?;
    Ok(Parsed {
        access: E::access(&query).max(E::ACCESS),
        served: E::served(&query),
        text: query.to_query(),
        answer: Box::new(move |asked| Box::pin(E::answer(asked, query))),
    })
}
