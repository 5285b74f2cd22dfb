//! Configuration that the agent gives to the process that serves HTTP: everything that it would otherwise read from files.

use super::web_config::{Contents, WebConfig};
use anyhow::Context;
use nfscope_text::console::{self, Level};
use serde::{Deserialize, Serialize};

/// Behaviour of the process that serves HTTP if it cannot be confined as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sandbox {
    /// The process does not serve.
    Require,
    /// The process serves. A missing part of its confinement is an error in the log, and a metric.
    Try,
}

impl Sandbox {
    /// Sandbox of this name.
    pub fn of(word: &str) -> Option<Sandbox> {
        [Sandbox::Require, Sandbox::Try]
            .into_iter()
            .find(|s| s.word() == word)
    }

    /// Name as users write it.
    pub fn word(self) -> &'static str {
        match self {
            Sandbox::Require => "require",
            Sandbox::Try => "try",
        }
    }
}

/// Configuration of the process that serves HTTP.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Configuration {
    /// Web configuration, with its certificates and keys.
    pub web: Contents,
    /// True if every peer that can connect may read `/slow`, `/breakdown`, `/stuck` and `/snapshot`.
    pub allow_details: bool,
    /// True if peers of other hosts that may read these may read `/breakdown` by user and by file, too.
    pub allow_file_names: bool,
    /// Names of this host, and further ones that requests may have.
    pub hosts: Vec<String>,
    /// Least important level of the log.
    pub log_level: String,
    /// True if log lines are JSON.
    pub log_json: bool,
    /// User of the process, as text.
    pub who: String,
    /// Behaviour if a part of the sandbox is missing.
    pub sandbox: Sandbox,
}

impl Configuration {
    /// Encodes the configuration for sending.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// Decodes a configuration that was sent.
    ///
    /// # Errors
    /// When it is no configuration.
    pub fn of(text: &[u8]) -> anyhow::Result<Configuration> {
        serde_json::from_slice(text).context("the agent sent no configuration")
    }

    /// Web configuration with the agent's settings for it.
    pub(super) fn web(&self) -> anyhow::Result<WebConfig> {
        let mut web = WebConfig::new(self.web.clone())?;
        web.allow_details = self.allow_details;
        web.allow_file_names = self.allow_file_names;
        web.hosts.clone_from(&self.hosts);
        Ok(web)
    }

    pub(super) fn apply_to_log(&self) {
        let level = Level::of(&self.log_level).unwrap_or(Level::Info);
        console::configure(level, self.log_json);
    }
}
