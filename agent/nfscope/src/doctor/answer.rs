//! Answers of rules.

use serde::Serialize;

/// How something stands, the most pressing first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Change it: it is wrong for any load.
    Change,
    /// Consider it: whether it helps depends on the load or on the hardware.
    Consider,
    /// Not known.
    Unknown,
    /// Good: nothing is to be done.
    Good,
}

/// Statement of a rule about one thing on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How it stands.
    pub state: State,
    /// Words for the thing that was found.
    pub says: String,
    /// How it is changed, or how it can be known; empty where it is good.
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

    /// Not known, and how it can be.
    pub fn unknown(says: impl Into<String>, how: impl Into<String>) -> Answer {
        Answer {
            state: State::Unknown,
            says: says.into(),
            how: how.into(),
        }
    }

    /// To be changed.
    pub fn change(says: impl Into<String>, how: impl Into<String>) -> Answer {
        Answer {
            state: State::Change,
            says: says.into(),
            how: how.into(),
        }
    }

    /// To be considered.
    pub fn consider(says: impl Into<String>, how: impl Into<String>) -> Answer {
        Answer {
            state: State::Consider,
            says: says.into(),
            how: how.into(),
        }
    }
}

/// An answer with its rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// How it stands.
    pub state: State,
    /// Words for the thing that was found.
    pub says: String,
    /// Why the rule matters.
    pub why: &'static str,
    /// How it is changed, or how it can be known.
    pub how: String,
    /// Where the rule comes from.
    pub source: &'static str,
}
