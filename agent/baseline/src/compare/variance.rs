//! The variance between recordings of an unchanged server. If it is not known, no difference counts as a change.

use crate::compare::matching;
use crate::compare::options::Options;
use crate::compare::sides::Sides;
use crate::compare::times;

/// Reason why nothing can be judged; `None` if recordings, rounds of hours or the user provide the variance.
pub(super) fn unknown(sides: &Sides, options: &Options) -> Option<String> {
    for (name, side) in [("before", sides.before), ("after", sides.after)] {
        if let Some((a, b)) = times::overlapping(side) {
            return Some(format!(
                "{name}: {a} and {b} overlap in time, or are the same data: they do not show how much recordings of this server differ"
            ));
        }
    }
    let one_each = match options.matching {
        None if sides.has_replicates() || options.between.is_some() => return None,
        None => "recording",
        Some(by) if matching::has_several(sides, by) => return None,
        Some(by) => by.round(),
    };
    Some(format!(
        "one {one_each} on each side: how much two {one_each}s of an unchanged server differ is not known"
    ))
}
