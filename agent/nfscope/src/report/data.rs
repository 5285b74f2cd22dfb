//! Answers of an agent for a report, as JSON.

use serde_json::Value;

/// Windows in the answers of an agent.
pub(super) fn windows(data: &Value) -> impl Iterator<Item = &Value> {
    data["windows"]["windows"].as_array().into_iter().flatten()
}

/// End of a window, in seconds since 1970.
pub(super) fn ended(window: &Value) -> f64 {
    window["at"].as_f64().unwrap_or_default()
}

pub(super) fn seconds(window: &Value) -> f64 {
    window["seconds"].as_f64().unwrap_or_default()
}
