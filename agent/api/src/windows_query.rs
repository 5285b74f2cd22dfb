//! Query of `/windows`: the windows that a page asks for.

use super::query::QueryString;
use nfscope_text::suggest::nearest;

/// Most windows in one answer.
pub const MOST_COLUMNS: u32 = 400;
/// Longest time that one query may cover.
const LONGEST: f64 = 8.0 * 86_400.0;
/// Longest name of a recording, in bytes.
const LONGEST_NAME: usize = 100;

/// Time range of windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Begin in seconds since 1970.
    pub from: f64,
    /// End in seconds since 1970, later than the begin.
    pub to: f64,
    /// Most windows: shorter ones are merged.
    pub columns: u32,
}

impl Range {
    /// Checks the range against its limits.
    ///
    /// # Errors
    /// With the reason.
    pub fn checked(self) -> Result<Range, String> {
        let finite = self.from.is_finite() && self.to.is_finite();
        if !(finite && 0.0 <= self.from && self.from < self.to && self.to < 1e11) {
            return Err("`from` and `to` are seconds since 1970, `from` before `to`".to_owned());
        }
        if self.to - self.from > LONGEST {
            return Err(format!(
                "`from` and `to` are at most {} days apart",
                LONGEST / 86_400.0
            ));
        }
        if !(1..=MOST_COLUMNS).contains(&self.columns) {
            return Err(format!("`columns` is a number from 1 to {MOST_COLUMNS}"));
        }
        Ok(self)
    }
}

/// Last window that a page has seen: the agent, and the number of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Number that distinguishes this run of the agent from an earlier one.
    pub agent: u64,
    /// Number of the window within this run of the agent.
    pub window: u64,
}

impl Seen {
    /// Parses the value of `since` in a query; `None` if the text is malformed.
    pub fn parse(text: &str) -> Option<Seen> {
        let (agent, window) = text.split_once('.')?;
        Some(Seen {
            agent: u64::from_str_radix(agent, 16).ok()?,
            window: window.parse().ok()?,
        })
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}.{}", self.agent, self.window)
    }
}

/// Windows of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct OfRecording {
    /// Name of the recording.
    pub name: String,
    /// Begin and end in seconds since 1970; `None` for the whole recording.
    pub span: Option<(f64, f64)>,
    /// Most windows, as in a [`Range`].
    pub columns: u32,
}

/// Windows that a query asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// Latest windows that a page has not seen.
    Latest(Option<Seen>),
    /// Windows of a range, from the disk.
    Past(Range),
    /// Windows of a recording.
    Recorded(OfRecording),
}

const PARAMETERS: [&str; 5] = ["since", "from", "to", "columns", "recording"];

/// Query of `/windows`. A `since` that cannot be parsed counts as no window seen.
impl QueryString for Wanted {
    fn from_query(query: &str) -> Result<Wanted, String> {
        let mut values: [Option<String>; 5] = Default::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let Some(i) = PARAMETERS.iter().position(|p| *p == name) else {
                let hint = nearest(&name, PARAMETERS.into_iter(), |n| format!("`{n}`"));
                return Err(format!("unknown parameter `{name}`{hint}"));
            };
            values[i] = Some(value.into_owned());
        }
        let [since, from, to, columns, recording] = values;
        let whole = from.is_none() && to.is_none();
        if recording.is_none() && from.is_none() && to.is_none() && columns.is_none() {
            return Ok(Wanted::Latest(since.as_deref().and_then(Seen::parse)));
        }
        let number = |text: Option<String>| text.and_then(|v| v.parse().ok()).unwrap_or(f64::NAN);
        let columns = columns.map_or(MOST_COLUMNS, |v| v.parse().unwrap_or(0));
        let (from, to) = match whole && recording.is_some() {
            // A query without a range asks for the whole recording; these bounds only pass the check.
            true => (0.0, 1.0),
            false => (number(from), number(to)),
        };
        let range = Range { from, to, columns }.checked()?;
        if recording.as_ref().is_some_and(|n| n.len() > LONGEST_NAME) {
            return Err("there is no recording with such a long name".to_owned());
        }
        Ok(match recording {
            None => Wanted::Past(range),
            Some(name) => Wanted::Recorded(OfRecording {
                name,
                span: (!whole).then_some((range.from, range.to)),
                columns,
            }),
        })
    }

    fn to_query(&self) -> String {
        match self {
            Wanted::Latest(None) => String::new(),
            Wanted::Latest(Some(seen)) => format!("since={seen}"),
            Wanted::Past(Range { from, to, columns }) => {
                format!("from={from}&to={to}&columns={columns}")
            }
            Wanted::Recorded(OfRecording {
                name,
                span,
                columns,
            }) => {
                let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
                let span = span.map_or(String::new(), |(from, to)| format!("&from={from}&to={to}"));
                format!("recording={name}&columns={columns}{span}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_as_they_were_written() {
        let seen = Seen {
            agent: u64::MAX,
            window: 7,
        };
        let range = Range {
            from: 1_800_000_000.125,
            to: 1_800_000_300.5,
            columns: 300,
        };
        for wanted in [
            Wanted::Latest(None),
            Wanted::Latest(Some(seen)),
            Wanted::Past(range),
            Wanted::Recorded(OfRecording {
                name: "a&b=\u{202e}".to_owned(),
                span: Some((1.0, 2.5)),
                columns: 300,
            }),
            Wanted::Recorded(OfRecording {
                name: String::new(),
                span: None,
                columns: 1,
            }),
        ] {
            assert_eq!(Wanted::from_query(&wanted.to_query()), Ok(wanted));
        }
        assert_eq!(Wanted::from_query("since=x"), Ok(Wanted::Latest(None)));
        for bad in [
            "form=1&to=2",
            "from=1",
            "to=1",
            "columns=3",
            "from=1&to=x",
            "from=1&to=2&columns=x",
            "recording=a&from=1",
            "recording=a&columns=0",
        ] {
            assert!(Wanted::from_query(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_have_bounds() {
        let ok = Range {
            from: 1.0,
            to: 2.0,
            columns: 1,
        };
        assert_eq!(ok.checked(), Ok(ok));
        for bad in [
            Range { from: 2.0, ..ok },
            Range {
                from: f64::NAN,
                ..ok
            },
            Range {
                to: f64::INFINITY,
                ..ok
            },
            Range { columns: 0, ..ok },
            Range {
                columns: MOST_COLUMNS + 1,
                ..ok
            },
            Range { to: 1e9, ..ok },
        ] {
            assert!(bad.checked().is_err(), "{bad:?}");
        }
    }
}
