//! Earlier recordings of the same server. They measure the variance between recordings.

use crate::baseline::compare::part::Part;
use nfscope_baseline::compare::{Configuration, in_common};
use nfscope_baseline::series::SeriesSet;
use nfscope_baseline::slice::Slice;
use nfscope_baseline::store::{Entry, State, Store};

/// Most earlier recordings of one configuration that are compared. Reading a recording of a day takes a second.
const MAX_GROUP: usize = 8;

/// Most earlier recordings that are read to find matching ones.
const MAX_READ: usize = 32;

/// Least degrees of freedom of the variance between earlier recordings. An estimate from fewer is too uncertain.
const MIN_FREEDOM: usize = 4;

/// Recordings of the same host that ended before both sides began, the latest first; later ones may follow another change. Overlapping
/// recordings are left out, because copies have no variance. Their windows are no longer than the sides.
pub(super) fn candidates(sides: [&Entry; 2], entries: &[Entry]) -> Vec<Part> {
    let span = |e: &Entry| {
        let began = e.metadata.began_ms;
        began..began.saturating_add(e.length.as_millis() as i64)
    };
    let first = sides.map(|e| e.metadata.began_ms).into_iter().min();
    // Longer recordings are cut to the length of the sides: recordings of a day vary less than recordings of a minute.
    let length = sides.map(|e| e.length).into_iter().max();
    let length = length.unwrap_or_default();
    let ended = [State::Complete, State::Stopped, State::Unreached];
    let is_earlier = |e: &&Entry| {
        sides
            .iter()
            .all(|side| side.metadata.host == e.metadata.host && !in_common(&span(side), &span(e)))
            && ended.contains(&e.state)
            && Some(e.metadata.began_ms) < first
            && e.metadata.interval <= length
    };
    let mut all: Vec<_> = entries.iter().filter(is_earlier).cloned().collect();
    all.sort_by_key(|e| e.metadata.began_ms);
    all.dedup_by(|later, earlier| in_common(&span(later), &span(earlier)));
    let part = |entry: Entry| {
        let slice = (entry.length > length).then(|| Slice::first(length));
        Part { entry, slice }
    };
    all.into_iter().rev().map(part).collect()
}

/// Reads the candidates whose measured configuration is that of a side. Each configuration has a group, in order of time; labels do not
/// count. A change that was not measured only increases the variance of its group, which cannot cause a verdict. Empty if too few match.
///
/// # Errors
/// When the store cannot be read.
pub(super) fn read(
    store: &Store,
    candidates: &[Part],
    sides: [&SeriesSet; 2],
) -> anyhow::Result<Vec<Vec<SeriesSet>>> {
    let mut wanted = sides.map(Configuration::of).to_vec();
    wanted.dedup();
    let mut groups: Vec<Vec<SeriesSet>> = wanted.iter().map(|_| Vec::new()).collect();
    for part in candidates.iter().take(MAX_READ) {
        if groups.iter().all(|group| group.len() == MAX_GROUP) {
            break;
        }
        let c = part.read(store, None)?;
        let configuration = Configuration::of(&c);
        let Some(group) = wanted.iter().position(|w| *w == configuration) else {
            continue;
        };
        if c.windows > 0 && groups[group].len() < MAX_GROUP {
            groups[group].insert(0, c);
        }
    }
    groups.retain(|group| group.len() > 1);
    let freedom: usize = groups.iter().map(|group| group.len() - 1).sum();
    if freedom < MIN_FREEDOM {
        groups.clear();
    }
    Ok(groups)
}
