//! Slow operations of a running agent, line by line.

use crate::api::query::QueryString;
use crate::api::slow_line::{HEARTBEAT_INTERVAL, Line};
use crate::client::http::{self, Answer, Error, Stream};
use crate::client::lines::{Kind, Lines};
use nfscope_model::{ProbeStatus, SlowFilter};
use serde::Deserialize;

const KIND: Kind = Kind {
    does: "report slow operations",
    silence: HEARTBEAT_INTERVAL.saturating_mul(6),
    max_line: 64 << 10,
};

/// The part of `/probes` that is of interest here.
#[derive(Deserialize)]
struct Probes {
    probes: Vec<ProbeStatus>,
}

/// Asks the agent at `url` for slow operations.
///
/// # Errors
/// When no agent answers there.
pub(crate) fn request(url: &str, want: &SlowFilter) -> Result<Answer<Stream>, Error> {
    http::ask(url, &format!("/slow?{}", want.to_query()))
}

/// The agent's probe programs; none where it does not answer.
pub(crate) fn probes(url: &str) -> Vec<ProbeStatus> {
    http::json::<Probes>(url, "/probes").map_or(Vec::new(), |p| p.probes)
}

/// The lines of the answer to a [`request`].
///
/// # Errors
/// When the agent refuses, with its reason.
pub(crate) fn lines(url: &str, answer: Answer<Stream>) -> anyhow::Result<Lines<Line>> {
    Lines::new(url, answer, KIND)
}
