//! Names of baselines.

const LONGEST: usize = 100;

/// Checks that a name works in a shell and on a page without quotes.
///
/// # Errors
/// When the name has other characters than the error lists.
pub fn check(text: &str) -> Result<String, String> {
    let right = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    match (1..=LONGEST).contains(&text.len()) && text.chars().all(right) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "a name has 1 to {LONGEST} letters, digits or . _ - :, as in before-slog"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let longest = "x".repeat(LONGEST);
        for good in ["a", "before-slog", "2026-11-21T09:47", "v1.2_x", &longest] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "ä", "a\n", &(longest.clone() + "x")] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
