//! Names of clients, from the agent that this command asked last.

use nfscope_text::console::one_line;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

static NAMES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Names in a snapshot, beside its values.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    names: BTreeMap<String, String>,
}

/// Longest name on a terminal, in characters.
const MOST_CHARACTERS: usize = 100;

/// Learns the names in an answer's JSON. An agent that looks up no names sends none. Another program may listen at the agent's address, so
/// names are cut, and their control characters are removed.
pub(super) fn learn(json: &[u8]) {
    if let Ok(told) = serde_json::from_slice::<Named>(json) {
        let plain = |name: &str| one_line(name).chars().take(MOST_CHARACTERS).collect();
        let named = told
            .names
            .iter()
            .map(|(of, name)| (of.clone(), plain(name)));
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        names.extend(named);
    }
}

/// Name of the client with this address.
pub fn of(address: &str) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get(address).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_answers_are_known_without_control_characters() {
        learn(br#"{"at":1,"names":{"10.0.0.7":"db"},"x":[]}"#);
        assert_eq!(of("10.0.0.7").as_deref(), Some("db"));
        assert_eq!(of("10.0.0.8"), None);
        // An answer about one client does not remove the names of others.
        learn(br#"{"names":{"10.0.0.9":"a\u001b]0;b"}}"#);
        assert_eq!(of("10.0.0.7").as_deref(), Some("db"));
        assert!(!of("10.0.0.9").unwrap().contains('\u{1b}'));
    }
}
