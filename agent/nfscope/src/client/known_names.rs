//! Names of clients, as the agent told them that this command asked last.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

static NAMES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// What a snapshot has beside its values.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    names: BTreeMap<String, String>,
}

/// Takes the names of a snapshot's JSON. An agent that looks up none tells none.
pub(super) fn learn(json: &[u8]) {
    if let Ok(told) = serde_json::from_slice::<Named>(json) {
        *NAMES.lock().unwrap_or_else(PoisonError::into_inner) = told.names;
    }
}

/// The name of the client with this address.
pub(crate) fn of(address: &str) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get(address).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_last_answer_are_known() {
        learn(br#"{"at":1,"names":{"10.0.0.7":"db"},"x":[]}"#);
        assert_eq!(of("10.0.0.7").as_deref(), Some("db"));
        assert_eq!(of("10.0.0.8"), None);
        learn(b"{}");
        assert_eq!(of("10.0.0.7"), None);
    }
}
