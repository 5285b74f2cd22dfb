//! Mistyped names: what was meant.

/// Ends a complaint about a mistyped name: with the known name that is nearest; with all of them where none is near.
pub fn nearest(
    typed: &str,
    known: impl Iterator<Item = &'static str>,
    quote: impl Fn(&str) -> String,
) -> String {
    let mut known: Vec<_> = known.collect();
    known.dedup();
    match near(typed, known.iter().copied()) {
        Some(best) => format!("; did you mean {}?", quote(best)),
        None => {
            let all: Vec<_> = known.iter().map(|k| quote(k)).collect();
            format!("; known are {}", all.join(", "))
        }
    }
}

/// The known name that is nearest to a mistyped one, where one is near.
pub fn near<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(typed, name);
    known
        .min_by_key(distance)
        .filter(|best| distance(best) <= best.len().div_ceil(3).max(2))
}
