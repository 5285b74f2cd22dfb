//! Query of `/findings`: with or without the users and files behind findings.

use super::query::QueryString;
use nfscope_text::suggest::nearest;

const PARAMETER: &str = "files";

/// Parts of `/findings` that a client wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FindingsQuery {
    /// True if the client wants users and files, too.
    pub files: bool,
}

impl QueryString for FindingsQuery {
    fn from_query(query: &str) -> Result<FindingsQuery, String> {
        let mut files = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name != PARAMETER {
                let hint = nearest(&name, [PARAMETER].into_iter(), |n| format!("`{n}`"));
                return Err(format!("unknown parameter `{name}`{hint}"));
            }
            if files.is_some() {
                return Err(format!("{PARAMETER}: given twice"));
            }
            let told = format!("{PARAMETER}: `{value}` is neither `true` nor `false`");
            files = Some(value.parse::<bool>().map_err(|_| told)?);
        }
        Ok(FindingsQuery {
            files: files.unwrap_or(false),
        })
    }

    fn to_query(&self) -> String {
        match self.files {
            true => format!("{PARAMETER}=true"),
            false => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_wants_files_or_not() {
        for (text, files) in [("", false), ("files=false", false), ("files=true", true)] {
            let query = FindingsQuery::from_query(text).unwrap();
            assert_eq!(query, FindingsQuery { files });
            assert_eq!(FindingsQuery::from_query(&query.to_query()), Ok(query));
        }
        for (text, why) in [
            ("files=1", "neither `true` nor `false`"),
            ("files=true&files=true", "given twice"),
            ("file=true", "did you mean `files`?"),
        ] {
            let e = FindingsQuery::from_query(text).unwrap_err();
            assert!(e.contains(why), "{text}: {e}");
        }
    }
}
