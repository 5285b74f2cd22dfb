//! Suggestions for mistyped names.

/// End of an error message on a mistyped name: the nearest known name, or all of them where none is near.
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
    let length = typed.chars().count();
    known
        .filter(|name| can_be_near(length, name))
        .map(|name| (strsim::damerau_levenshtein(typed, name), name))
        .filter(|(distance, name)| *distance <= reach(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Number of edits up to which a name is near. Two edits of a name with three letters leave one of them.
fn reach(name: &str) -> usize {
    match name.len() {
        0..=3 => 1,
        length => length.div_ceil(3).max(2),
    }
}

/// Returns false if the lengths alone differ by too much. A comparison takes time and memory by the product of both, and a peer may send
/// thousands of letters.
fn can_be_near(letters: usize, name: &str) -> bool {
    letters.abs_diff(name.chars().count()) <= reach(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_meant_and_what_is_much_longer_is_not_compared() {
        let near = |typed| near(typed, ["write", "commit", "read", "readdir"].into_iter());
        assert_eq!(near("wirte"), Some("write"));
        assert_eq!(near("reddir"), Some("readdir"));
        assert_eq!(near("reads"), Some("read"));
        assert_eq!(near("x"), None);
        let key = |typed| super::near(typed, ["op", "user", "file"].into_iter());
        assert_eq!(key("foo"), None);
        assert_eq!(key("opp"), Some("op"));
        assert_eq!(key("usr"), Some("user"));
        assert!(can_be_near(7, "write") && !can_be_near(8, "write"));
        assert!(!can_be_near(16_000, "readdir"));
    }
}
