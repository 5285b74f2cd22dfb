//! Answers of the rules.

use serde::Serialize;

/// State of a setting, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Change it: the setting is wrong for any load.
    Change,
    /// Consider a change: its effect depends on the load or on the hardware.
    Consider,
    /// The state cannot be determined.
    Unknown,
    /// Nothing is to be done.
    Good,
}

/// Statement of a rule about one object of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// State of the object.
    pub state: State,
    /// Description of what was found.
    pub says: String,
    /// Command or setting that changes it, or how to determine it; empty if it is good.
    pub how: String,
}

impl Answer {
    /// Returns a good answer.
    pub fn good(says: impl Into<String>) -> Answer {
        Answer {
            state: State::Good,
            says: says.into(),
            how: String::new(),
        }
    }

    /// Returns an unknown answer; `how` says how to determine it.
    pub fn unknown(says: impl Into<String>, how: impl Into<String>) -> Answer {
        Answer {
            state: State::Unknown,
            says: says.into(),
            how: how.into(),
        }
    }

    /// Returns an answer that advises a change.
    pub fn change(says: impl Into<String>, how: impl Into<String>) -> Answer {
        Answer {
            state: State::Change,
            says: says.into(),
            how: how.into(),
        }
    }

    /// Returns an answer that suggests a change.
    pub fn consider(says: impl Into<String>, how: impl Into<String>) -> Answer {
        Answer {
            state: State::Consider,
            says: says.into(),
            how: how.into(),
        }
    }
}

/// Answer with its rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// State of the object.
    pub state: State,
    /// Description of what was found.
    pub says: String,
    /// Reason for the rule.
    pub why: &'static str,
    /// Command or setting that changes it, or how to determine it; empty if it is good.
    pub how: String,
    /// Standard, manual page, documentation or kernel source that the rule is based on.
    pub source: &'static str,
}
