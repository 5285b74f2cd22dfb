//! An endpoint: a path of the agent's HTTP server, with everything that is declared about it.
//!
//! A file of [`crate::endpoints`] implements [`Endpoint`], and the list there makes a [`Declaration`] of it. The process that serves HTTP
//! reads declarations and nothing else. The agent parses the query, checks the class of access, and answers.

use super::source_thread::SourceHandle;
use crate::exposition::Format;
use bytes::Bytes;
use nfscope_api::access::Access;
use nfscope_api::link::{Made, Turn, Why};
use nfscope_api::query::QueryString;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

/// Form of an answer, which decides its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A word or a sentence of text, which is never compressed.
    Word,
    /// Text.
    Text,
    /// A JSON object.
    Json,
    /// JSON objects, one per line, until the peer hangs up.
    Lines,
    /// HTML with this content security policy.
    Html(&'static str),
    /// Metrics in the format that the header `Accept` asks for.
    Exposition,
}

/// Sharing of an answer, and the time that the agent may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// Made for each request anew, at once.
    Each,
    /// Made for all requests with the same query within a quarter of a second.
    Shared,
    /// Shared like [`Shared`](Served::Shared); a request with another query waits until the quarter of a second is over.
    Paced,
    /// Made from a reading of the probes, which all such endpoints share for a quarter of a second.
    Reading,
    /// Made for each request anew from a disk, one at a time.
    Disk,
    /// Lines that come as things happen. Refused while operations are not timed.
    Stream,
}

impl Served {
    /// Turn that a request waits for.
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
    /// Handle to the thread with the probes, and to the data that the agent keeps on disks.
    pub source: Arc<SourceHandle>,
    /// Format of an exposition.
    pub format: Format,
    /// All endpoints, for the endpoint that lists them.
    pub endpoints: &'static [Declaration],
}

/// Answer of an endpoint.
pub enum Reply {
    /// A body.
    Body(Bytes),
    /// A body that was made from a reading.
    Part(Made, Bytes),
    /// Lines of NDJSON, until the receiver is dropped.
    Lines(Receiver<Bytes>),
}

impl Reply {
    /// Reply with a body of JSON.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn json(value: &(impl serde::Serialize + ?Sized)) -> Result<Reply, Refusal> {
        let text = serde_json::to_vec(value).map_err(anyhow::Error::from)?;
        Ok(Reply::Body(text.into()))
    }
}

/// Reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Kind of the refusal, which decides the status.
    pub why: Why,
    /// A sentence for the peer, without a newline.
    pub text: String,
}

impl Refusal {
    /// Refusal of this kind with this text.
    pub fn new(why: Why, text: impl Into<String>) -> Refusal {
        Refusal {
            why,
            text: text.into(),
        }
    }

    /// Turns an error into a refusal of this kind.
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
    /// Path, from `/` on.
    const PATH: &'static str;
    /// Line of HTML about the path, for the list at `/about`.
    const ABOUT: &'static str;
    /// Text about the path for `nfscope agent --help`, in lines of at most 64 columns; empty for a path that is not listed there.
    /// Consecutive paths with the same text share a line.
    const HELP: &'static str;
    /// Form of the answer.
    const CONTENT: Content = Content::Json;
    /// Class of access that every query needs.
    const ACCESS: Access = Access::Everybody;
    /// Sharing of the answer.
    const SERVED: Served;
    /// True if an answer may have megabytes that requests do not share. Such answers have a common limit.
    const LARGE: bool = false;
    /// Type of the query; `()` for a path without parameters.
    type Query: QueryString + Send + 'static;

    /// Class of access that this query needs.
    fn access(_: &Self::Query) -> Access {
        Self::ACCESS
    }

    /// Sharing of the answer to this query.
    fn served(_: &Self::Query) -> Served {
        Self::SERVED
    }

    /// Makes the answer. It runs in the agent's main process, on its main thread: [`SourceHandle::on_thread`] reaches the probes.
    ///
    /// # Errors
    /// With the reason and its status.
    fn answer(
        asked: &Asked,
        query: Self::Query,
    ) -> impl Future<Output = Result<Reply, Refusal>> + Send;
}

/// Entry of the list of endpoints.
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
    /// Origin of the answer.
    pub origin: Origin,
}

/// Origin of an answer.
#[derive(Debug, Clone, Copy)]
pub enum Origin {
    /// The program itself: the process that serves HTTP has it.
    Program(fn() -> Bytes),
    /// The agent, which parses the query.
    Agent(Served, Parse),
}

/// A query that has been parsed.
pub struct Parsed {
    /// See [`Endpoint::access`].
    pub access: Access,
    /// See [`Endpoint::served`].
    pub served: Served,
    /// Normal form of the query: equal queries have the same text.
    pub text: String,
    /// Function that answers the query.
    pub answer: Handler,
}

/// Parses a query, or returns the error in a parameter.
pub type Parse = fn(&str) -> Result<Parsed, String>;

/// Answers a query.
pub type Handler = Box<dyn for<'a> FnOnce(&'a Asked) -> Answering<'a> + Send>;

/// Future of an answer.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send + 'a>>;

impl Declaration {
    /// Declares a text that is part of the program, so that the agent need not be asked.
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

    /// Declares an endpoint that the agent answers.
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
