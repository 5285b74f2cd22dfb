//! Chooses between a running agent, if there is one, and probes of this process.

use super::http::Error;
use nfscope_api::address;
use nfscope_source::privileges;
use nfscope_text::console::say;

/// Source of the measurements.
pub enum Found<T> {
    /// The agent at this URL, with its first answer.
    Agent(String, T),
    /// Probes of this process, which have not been started yet.
    Own,
}

/// Asks the agent at `url`. If no URL is given and this host's agent does not answer, announces that the command measures with probes of
/// its own.
///
/// # Errors
/// When there is no agent and this process may not attach probes, or when the agent fails.
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
            // Without the privileges for probes, the missing agent is the error.
            privileges::require().map_err(|why| anyhow::anyhow!("{e}; or {why}"))?;
            Ok(Found::Own)
        }
        Err(e) => Err(e.into()),
    }
}
