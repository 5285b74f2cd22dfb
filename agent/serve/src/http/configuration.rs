//! What the agent gives the process that serves HTTP: everything that it would otherwise have to read from files.

use super::web_config::{Contents, WebConfig};
use anyhow::Context;
use nfscope_text::console::{self, Level};
use serde::{Deserialize, Serialize};

/// Fate of a process that serves HTTP and cannot be confined as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sandbox {
    /// The process does not serve.
    Require,
    /// The process serves, and what it lacks is an error in the log and a metric.
    Try,
}

impl Sandbox {
    /// The one of this name.
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

/// The configuration of the process that serves HTTP.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Configuration {
    /// The web configuration, with its certificates and keys.
    pub web: Contents,
    /// Everybody who can connect may read `/slow`, `/breakdown`, `/stuck` and `/snapshot`.
    pub allow_details: bool,
    /// Those of other hosts who may read these may read `/breakdown` by user and by file, too.
    pub allow_file_names: bool,
    /// Names of this host, and those that requests may have beside them.
    pub hosts: Vec<String>,
    /// The least important lines that are written.
    pub log_level: String,
    /// Whether lines are JSON.
    pub log_json: bool,
    /// As whom the process runs, for a person.
    pub who: String,
    /// Whether the process may serve without a part of its sandbox.
    pub sandbox: Sandbox,
}

impl Configuration {
    /// As it is sent.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// What was sent.
    ///
    /// # Errors
    /// When it is something else.
    pub fn of(text: &[u8]) -> anyhow::Result<Configuration> {
        serde_json::from_slice(text).context("the agent sent no configuration")
    }

    /// How peers reach the agent.
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
