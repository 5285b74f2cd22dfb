//! A break-down by a running agent, line by line.

use crate::api::breakdown_line::Line;
use crate::api::breakdown_query::Query;
use crate::api::query::QueryString;
use crate::client::http::{self, Answer, Error, Stream};
use crate::client::lines::{Kind, Lines};
use std::time::Duration;

/// Lines come when an interval ends. A thousand rows with long paths are a few megabytes.
const KIND: Kind = Kind {
    does: "break operations down on demand",
    silence: Duration::from_secs(120),
    max_line: 64 << 20,
};

/// Asks the agent at `url` for a break-down.
///
/// # Errors
/// When no agent answers there.
pub(crate) fn request(url: &str, query: &Query) -> Result<Answer<Stream>, Error> {
    http::ask(url, &format!("/breakdown?{}", query.to_query()))
}

/// The lines of the answer to a [`request`].
///
/// # Errors
/// When the agent refuses, with its reason.
pub(crate) fn lines(url: &str, answer: Answer<Stream>) -> anyhow::Result<Lines<Line>> {
    Lines::new(url, answer, KIND)
}
