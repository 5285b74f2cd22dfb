//! A running agent where there is one, else probes of this very process.

use super::http::Error;
use nfscope_api::address;
use nfscope_source::privileges;
use nfscope_text::console::say;

/// Who tells what is measured.
pub enum Found<T> {
    /// The agent at this address, with its first answer.
    Agent(String, T),
    /// Nobody yet: probes of this very process will.
    Own,
}

/// Asks the agent at `url`. Where none is named and this host's does not answer, says that probes of its own measure.
///
/// # Errors
/// When there is no agent and probes of its own are not possible, or with the agent's own trouble.
pub fn agent_or_own<T>(
    url: Option<&str>,
    ask: impl FnOnce(&str) -> Result<T, Error>,
) -> anyhow::Result<Found<T>> {
    let at = match url {
        Some(url) => url.to_owned(),
        None => address::default_url(),
    };
    match ask(&at) {
        Ok(answer) => Ok(Found::Agent(at, answer)),
        Err(e @ (Error::NoAgent(_) | Error::Unreached { .. })) if url.is_none() => {
            say(&format!("no agent at {at}: attaching local probes"));
            // Without the right to do that, the missing agent is the news.
            privileges::require().map_err(|why| anyhow::anyhow!("{e}; or {why}"))?;
            Ok(Found::Own)
        }
        Err(e) => Err(e.into()),
    }
}
