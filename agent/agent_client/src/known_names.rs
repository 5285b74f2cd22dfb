//! Names of clients, as the agent told them that this command asked last.

use nfscope_text::console::one_line;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

static NAMES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Names that a snapshot has beside its values.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    names: BTreeMap<String, String>,
}

/// A name has at most so many characters on a terminal.
const MOST_CHARACTERS: usize = 100;

/// Takes the names of an answer's JSON. An agent that looks up none tells none. Somebody else may listen at its address: names are cut,
/// and have no control characters.
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

/// The name of the client with this address.
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
        // An answer about one client forgets no other.
        learn(br#"{"names":{"10.0.0.9":"a\u001b]0;b"}}"#);
        assert_eq!(of("10.0.0.7").as_deref(), Some("db"));
        assert!(!of("10.0.0.9").unwrap().contains('\u{1b}'));
    }
}
