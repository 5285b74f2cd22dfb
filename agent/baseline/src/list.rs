//! `nfscope baseline list`

use crate::store::{Entry, State};
use nfscope_text::console::plain;
use nfscope_text::table::{columns, cut};
use nfscope_text::timestamp as clock;
use nfscope_text::units;
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

/// Most letters of labels in a line; `baseline show` has all of them.
const LONGEST_NOTES: usize = 80;

/// Recordings as a table.
pub fn table(entries: &[Entry]) -> String {
    let mut rows = vec![
        [
            "NAME", "BEGAN", "LENGTH", "WINDOWS", "HOST", "KERNEL", "LABELS",
        ]
        .map(str::to_owned),
    ];
    for e in entries {
        let mut notes = vec![labels(&e.metadata.labels)];
        if let Some(note) = note(e.state) {
            notes.insert(0, format!("({note})"));
        }
        notes.retain(|a| !a.is_empty());
        rows.push([
            e.metadata.name.clone(),
            began(e.metadata.began_ms),
            units::length(e.length),
            e.windows.to_string(),
            e.metadata.host.clone(),
            e.metadata.kernel.clone().unwrap_or_else(|| "-".to_owned()),
            cut(&notes.join(" "), LONGEST_NOTES),
        ]);
    }
    plain(&columns(&rows))
}

/// A note on the state, unless the recording is complete.
pub fn note(state: State) -> Option<&'static str> {
    match state {
        State::Complete => None,
        State::Recording => Some("being recorded"),
        State::Interrupted => Some("interrupted"),
        State::Stopped => Some("stopped early"),
        State::Unreached => Some("precision not reached"),
        State::Damaged => Some("damaged"),
    }
}

/// `a=b c=d`
pub fn labels(all: &BTreeMap<String, String>) -> String {
    let all: Vec<_> = all.iter().map(|(k, v)| format!("{k}={v}")).collect();
    all.join(" ")
}

/// `2026-11-21 09:47 UTC`
pub fn began(ms: i64) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(ms.try_into().unwrap_or(0));
    let date = clock::date(at);
    format!("{} UTC", date[..16].replace('T', " "))
}
