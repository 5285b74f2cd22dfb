//! Objects of the stream at `/breakdown`, one per line: first a header, then the rows of each interval.

use super::breakdown_query::Query;
use nfscope_model::breakdown::{FilePath, Keys, Moved};
use nfscope_model::{Dimension, Histogram};
use serde::{Deserialize, Serialize};

/// A line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// First line.
    Header {
        /// Description of the stream.
        header: Header,
    },
    /// Each line after it.
    Interval(Interval),
}

/// Description of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Name of the server.
    pub host: String,
    /// Dimensions that the rows are grouped by.
    pub by: Vec<Dimension>,
    /// Filters that let operations pass: `DIMENSION:VALUE`.
    #[serde(rename = "where")]
    pub filters: Vec<String>,
    /// Least time that each line covers.
    pub interval_seconds: f64,
    /// Most rows of a line; the others are summed up.
    pub max_rows: usize,
    /// Bytes of kernel memory that the break-down takes while a client reads it.
    pub kernel_bytes: u64,
}

/// Operations of one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// End of the interval in seconds since 1970.
    pub at: f64,
    /// Length of the interval.
    pub seconds: f64,
    /// Dimensions that the rows are grouped by.
    pub by: Vec<Dimension>,
    /// Rows, those with the most time first.
    pub rows: Vec<Row>,
    /// Times of all other operations.
    pub other: Times,
    /// Operations that found no room in the kernel's table. They are in `other`, unless there are filters: whether these operations would
    /// pass a filter is not known.
    pub evicted: u64,
    /// CPU time that the break-down has taken, as the probes estimate it.
    pub cost_seconds: f64,
}

/// Operations with the same values. A row has a value for each dimension that it is grouped by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// See [`Dimension::Client`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Name of that client, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// See [`Dimension::Export`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
    /// See [`Dimension::Op`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// See [`Dimension::Version`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// See [`Dimension::User`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name of that user, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// See [`Dimension::File`]. Its export and a colon stand before it where rows are not grouped by export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Path of the file, where paths are wanted and the file has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Reason why the file has no path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_path: Option<String>,
    /// Times of these operations.
    #[serde(flatten)]
    pub times: Times,
}

const COMING: &str = "its path is being looked up";
const LATER: &str = "paths of files that took more time are looked up first";

/// Times of operations, and the bytes that they moved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Number of operations.
    pub count: u64,
    /// Sum of their times.
    pub sum_seconds: f64,
    /// Upper edge and count of each bucket that is not empty; the last bucket has no edge.
    pub buckets: Vec<(Option<f64>, u64)>,
    /// Bytes that READs returned and WRITEs stored; `None` from an agent that does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
}

impl From<(&Histogram, Moved)> for Times {
    fn from((h, moved): (&Histogram, Moved)) -> Times {
        let edge = |i: u16| Some(h.scheme.upper(usize::from(i))).filter(|e| e.is_finite());
        let buckets = h.sparse().into_iter();
        Times {
            count: h.count(),
            sum_seconds: h.sum,
            buckets: buckets.map(|(i, n)| (edge(i), n)).collect(),
            moved: Some(moved),
        }
    }
}

impl Row {
    /// A row of a query's answer.
    pub fn new(keys: Keys, times: Times, by: &[Dimension]) -> Row {
        let [client, export, op, version, user, file] = keys;
        let some = |d, value: String| by.contains(&d).then_some(value);
        Row {
            client: some(Dimension::Client, client),
            file: some(Dimension::File, file),
            export: some(Dimension::Export, export),
            op: some(Dimension::Op, op),
            version: some(Dimension::Version, version),
            user: some(Dimension::User, user),
            client_name: None,
            user_name: None,
            path: None,
            no_path: None,
            times,
        }
    }

    /// Adds the path of the file, or the reason why it has none. `None` stands for a file that was not looked up, because other files of
    /// the interval took more time.
    pub fn named(mut self, path: Option<&FilePath>) -> Row {
        match path {
            Some(FilePath::Is(path)) => self.path = Some(path.as_ref().to_owned()),
            Some(FilePath::Coming) => self.no_path = Some(COMING.to_owned()),
            Some(FilePath::Unknown(why)) => self.no_path = Some(why.as_ref().to_owned()),
            None => self.no_path = Some(LATER.to_owned()),
        }
        self
    }

    /// Value of the row for a dimension.
    pub fn value(&self, of: Dimension) -> Option<&str> {
        match of {
            Dimension::Client => &self.client,
            Dimension::Export => &self.export,
            Dimension::Op => &self.op,
            Dimension::Version => &self.version,
            Dimension::User => &self.user,
            Dimension::File => &self.file,
        }
        .as_deref()
    }
}

/// Keys that group operations into one row of a query's answer.
pub fn keys_of(query: &Query, keys: &Keys) -> Keys {
    let mut out = Keys::default();
    for d in &query.by {
        out[*d as usize] = match d {
            Dimension::File if !query.by.contains(&Dimension::Export) => {
                format!(
                    "{}:{}",
                    keys[Dimension::Export as usize],
                    keys[Dimension::File as usize]
                )
            }
            _ => keys[*d as usize].clone(),
        };
    }
    out
}

impl Line {
    /// Encodes the line as JSON with its newline.
    ///
    /// # Errors
    /// JSON can hold each value of a line, so there is none.
    pub fn encode(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown_query::Query;
    use crate::query::QueryString;
    use nfscope_model::Scheme;

    #[test]
    fn a_row_has_the_values_that_are_asked_for() {
        let mut h = Histogram::new(Scheme::TIME);
        (h.counts[0], h.sum) = (2, 1e-6);
        *h.counts.last_mut().unwrap() = 1;
        let keys: Keys = ["10.0.0.1", "/a", "read", "", "", "77"].map(str::to_owned);
        let moved = Moved {
            read: 4096,
            written: 0,
        };
        let text = |query: &str| {
            let query = Query::from_query(query).unwrap();
            let row = Row::new(keys_of(&query, &keys), (&h, moved).into(), &query.by);
            let text = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
            text
        };
        let times = r#""count":3,"sum_seconds":1e-6,"buckets":[[9.5367431640625e-7,2],[null,1]],"moved":{"read":4096,"written":0}}"#;
        assert_eq!(
            text("by=client,op"),
            format!(r#"{{"client":"10.0.0.1","op":"read",{times}"#)
        );
        assert_eq!(
            text("by=export,file"),
            format!(r#"{{"export":"/a","file":"77",{times}"#)
        );
        assert_eq!(text("by=file"), format!(r#"{{"file":"/a:77",{times}"#));
    }

    #[test]
    fn a_name_is_text_whatever_it_is() {
        fn named(path: Option<&FilePath>) -> String {
            serde_json::to_string(&Row::default().named(path)).unwrap()
        }
        let rest = r#","count":0,"sum_seconds":0.0,"buckets":[]}"#;
        assert_eq!(
            named(Some(&FilePath::Is("/a/\u{1b}[2J\n\"".into()))),
            format!(r#"{{"path":"/a/\u001b[2J\n\""{rest}"#)
        );
        let gone = FilePath::Unknown("it is gone".into());
        assert_eq!(
            named(Some(&gone)),
            format!(r#"{{"no_path":"it is gone"{rest}"#)
        );
        assert_ne!(named(Some(&FilePath::Coming)), named(None));
    }
}
