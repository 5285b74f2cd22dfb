//! Least age of the requests in hand that a client asks for: a flag, and the query of `/stuck`.

use super::query::QueryString;
use nfscope_text::parse;
use nfscope_text::suggest::nearest;
use std::time::Duration;

/// Default age from which on a request counts as stuck.
pub const OVER: &str = "1s";
const MAX_OVER: Duration = Duration::from_secs(86_400);
const PARAMETER: &str = "over";

/// Parses an age.
///
/// # Errors
/// When the text has another form; the error shows the right one.
pub fn over(text: &str) -> Result<Duration, String> {
    parse::duration(text, Duration::ZERO..=MAX_OVER)
}

/// Least age in the query of `/stuck`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over(pub Duration);

impl QueryString for Over {
    fn from_query(query: &str) -> Result<Over, String> {
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
        age.map_or_else(|| over(OVER), Ok).map(Over)
    }

    fn to_query(&self) -> String {
        format!("{PARAMETER}={}", parse::exact(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_an_age() {
        assert_eq!(Over::from_query(""), Ok(Over(Duration::from_secs(1))));
        assert_eq!(Over::from_query("over=0"), Ok(Over(Duration::ZERO)));
        let age = Over(Duration::from_millis(1500));
        assert_eq!(Over::from_query(&age.to_query()), Ok(age));
        for (query, why) in [
            ("ovr=1s", "unknown parameter `ovr`; did you mean `over`?"),
            ("over=1s&over=2s", "over: given twice"),
        ] {
            assert_eq!(Over::from_query(query), Err(why.to_owned()));
        }
        for bad in ["over=", "over=x", "over=2d", "over=-1s"] {
            assert!(
                Over::from_query(bad).unwrap_err().starts_with("over: "),
                "{bad}"
            );
        }
    }
}
