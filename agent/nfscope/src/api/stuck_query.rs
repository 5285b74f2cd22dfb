//! From which age on somebody wants to see requests in hand: a flag, and the query of `/stuck`.

use nfscope_text::parse;
use nfscope_text::suggest::nearest;
use std::time::Duration;

/// The age of a stuck request, unless the user names another.
pub const OVER: &str = "1s";
const MAX_OVER: Duration = Duration::from_secs(86_400);
const PARAMETER: &str = "over";

/// An age.
///
/// # Errors
/// Says what is right.
pub fn over(text: &str) -> Result<Duration, String> {
    parse::duration(text, Duration::ZERO..=MAX_OVER)
}

/// Reads the query of `/stuck`.
///
/// # Errors
/// Says which parameter is wrong, and what is right.
pub fn from_query(query: &str) -> Result<Duration, String> {
    let mut age = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != PARAMETER {
            let hint = nearest(&name, [PARAMETER].into_iter(), |n| format!("`{n}`"));
            return Err(format!("unknown parameter `{name}`{hint}"));
        }
        if age.is_some() {
            return Err(format!("{PARAMETER}: given twice"));
        }
        age = Some(over(&value).map_err(|why| format!("{PARAMETER}: {why}"))?);
    }
    age.map_or_else(|| over(OVER), Ok)
}

/// The query that [`from_query`] reads as this.
pub fn to_query(over: Duration) -> String {
    format!("{PARAMETER}={}", parse::exact(over))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_an_age() {
        assert_eq!(from_query(""), Ok(Duration::from_secs(1)));
        assert_eq!(from_query("over=0"), Ok(Duration::ZERO));
        let age = Duration::from_millis(1500);
        assert_eq!(from_query(&to_query(age)), Ok(age));
        for (query, why) in [
            ("ovr=1s", "unknown parameter `ovr`; did you mean `over`?"),
            ("over=1s&over=2s", "over: given twice"),
        ] {
            assert_eq!(from_query(query), Err(why.to_owned()));
        }
        for bad in ["over=", "over=x", "over=2d", "over=-1s"] {
            assert!(from_query(bad).unwrap_err().starts_with("over: "), "{bad}");
        }
    }
}
