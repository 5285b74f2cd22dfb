//! Query of `/breakdown`: the dimensions and filters of a break-down.

use super::query::QueryString;
use nfscope_model::breakdown::Keys;
use nfscope_model::{BreakdownWant, Dimension};
use nfscope_text::parse;
use nfscope_text::suggest::nearest;
use std::time::Duration;

/// Default number of rows of an answer.
pub const ROWS: usize = 200;
/// Most rows of an answer.
pub const MOST_ROWS: usize = 1000;
/// Default interval of an answer.
pub const INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
/// Limits of a query: the number of filters, and the bytes of all their values together.
const MOST_FILTERS: usize = 16;
const MOST_BYTES: usize = 1024;

const PARAMETERS: [&str; 5] = ["by", "where", "paths", "interval", "rows"];
/// The values of the label `version`.
const VERSIONS: [&str; 5] = ["3", "4.0", "4.1", "4.2", "4"];

/// A filter: only operations with this value pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Dimension of the value.
    pub dimension: Dimension,
    /// Value in the form that rows have, or the name of a client or user. A file may have its export and a colon in front.
    pub value: String,
}

impl Filter {
    /// Parses a filter of a query: `client:192.0.2.7`, `export:/srv/a`.
    ///
    /// # Errors
    /// When the text has another form; the error shows the right one.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let (name, value) = text
            .split_once([':', '='])
            .ok_or_else(|| format!("`{text}` is not of the form DIMENSION:VALUE"))?;
        let dimension = dimension(name)?;
        Ok(Filter {
            value: checked(dimension, value).map_err(|why| format!("{name}: {why}"))?,
            dimension,
        })
    }
}

impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.dimension.name(), self.value)
    }
}

/// Finds a dimension by its name.
///
/// # Errors
/// When there is none of this name; the error lists all.
pub fn dimension(name: &str) -> Result<Dimension, String> {
    Dimension::of(name).ok_or_else(|| {
        let all = Dimension::ALL.map(Dimension::name);
        let hint = nearest(name, all.into_iter(), |n| format!("`{n}`"));
        format!(
            "operations are told apart by {}, not by `{name}`{hint}",
            all.join(", ")
        )
    })
}

const A_FILE: &str =
    "an inode number, `SUBVOLUME/INODE`, `handle-` and 16 digits, `/`, `none` or `unknown`";

/// Returns true for a file that is named by its handle.
fn is_handle(file: &str) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (file.strip_prefix("handle-")).is_some_and(|hash| hash.len() == 16 && hash.bytes().all(digit))
}

/// Returns true for a text that can be the name of a client or a user, and is no mistyped address.
fn is_name(value: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-$".contains(&b);
    value.bytes().all(plain) && value.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Validates a filter's value, and returns it in the form that rows have. Names of clients and users pass unchanged: `Query::resolved`
/// replaces them later.
fn checked(dimension: Dimension, value: &str) -> Result<String, String> {
    if value.is_empty() || value.contains('\u{fffd}') || value.contains(char::is_control) {
        return Err(format!("`{value}` is no value"));
    }
    let number = |text: &str, most: u64, what: &str| match text.parse::<u64>() {
        Ok(n) if n <= most => Ok(n.to_string()),
        _ => Err(format!("`{text}` is not {what}")),
    };
    Ok(match dimension {
        Dimension::Client if value == "local" || is_name(value) => value.to_owned(),
        Dimension::Client => parse::client(value)?.to_canonical().to_string(),
        Dimension::Op => parse::operation(value)?,
        Dimension::Version if VERSIONS.contains(&value) => value.to_owned(),
        Dimension::Version => return Err(format!("`{value}` is none of {}", VERSIONS.join(", "))),
        Dimension::User if is_name(value) => value.to_owned(),
        Dimension::User => number(value, u64::from(u32::MAX) - 1, "a user id")?,
        Dimension::Export => value.to_owned(),
        Dimension::File => {
            let (export, file) = match value.rsplit_once(':') {
                Some((export, file)) => (Some(export), file),
                None => (None, value),
            };
            let file = match file {
                "/" | "none" | "unknown" => file.to_owned(),
                handle if is_handle(handle) => handle.to_owned(),
                other => {
                    let inode = |text| number(text, u64::MAX, A_FILE);
                    match other.split_once('/') {
                        Some((subvolume, of_it)) => {
                            format!("{}/{}", inode(subvolume)?, inode(of_it)?)
                        }
                        None => inode(other)?,
                    }
                }
            };
            export.map_or(file.clone(), |export| format!("{export}:{file}"))
        }
    })
}

/// A break-down that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Dimensions that rows are grouped by, in this order, each once.
    pub by: Vec<Dimension>,
    /// Filters: an operation passes if it has one of the values of each dimension with filters.
    pub filters: Vec<Filter>,
    /// True if rows of files have their paths, too.
    pub paths: bool,
    /// Time that each answer covers.
    pub interval: Duration,
    /// Most rows of an answer.
    pub rows: usize,
}

impl Query {
    /// Query with these dimensions and filters, and the default rows and interval.
    ///
    /// # Errors
    /// With the reason.
    pub fn new(by: Vec<Dimension>, filters: Vec<Filter>) -> Result<Query, String> {
        Query {
            by,
            filters,
            paths: false,
            interval: INTERVAL,
            rows: ROWS,
        }
        .within_bounds()
    }

    /// Query with this interval.
    ///
    /// # Errors
    /// When it is outside of the limits, which the error names.
    pub fn every(mut self, interval: Duration) -> Result<Query, String> {
        if !(INTERVAL..=LONGEST_INTERVAL).contains(&interval) {
            return Err(format!(
                "an interval of a break-down is {} s to {} s",
                INTERVAL.as_secs(),
                LONGEST_INTERVAL.as_secs()
            ));
        }
        self.interval = interval;
        Ok(self)
    }

    /// Query with this interval, or the nearest one within the limits.
    pub fn near(mut self, interval: Duration) -> Query {
        self.interval = interval.clamp(INTERVAL, LONGEST_INTERVAL);
        self
    }

    /// Query with the paths of files if `paths` is true.
    ///
    /// # Errors
    /// When the text has another form; the error shows the right one.
    pub fn naming(mut self, paths: bool) -> Result<Query, String> {
        self.paths = paths;
        self.within_bounds()
    }

    fn within_bounds(mut self) -> Result<Query, String> {
        let mut seen = Vec::new();
        self.by.retain(|d| {
            let new = !seen.contains(d);
            seen.push(*d);
            new
        });
        if self.by.is_empty() {
            let all = Dimension::ALL.map(Dimension::name).join(", ");
            return Err(format!("by: name one or more of {all}"));
        }
        if self.paths && !self.by.contains(&Dimension::File) {
            return Err("paths: only files have paths; add file to by".to_owned());
        }
        let bytes: usize = self.filters.iter().map(|f| f.value.len()).sum();
        if self.filters.len() > MOST_FILTERS || bytes > MOST_BYTES {
            return Err(format!(
                "where: at most {MOST_FILTERS} filters of {MOST_BYTES} bytes in all"
            ));
        }
        Ok(self)
    }

    /// This query with addresses and numbers in place of names of clients and users.
    ///
    /// # Errors
    /// When a name belongs to no client or user, or to too many of them.
    pub fn resolved(
        mut self,
        clients: impl Fn(&str) -> Vec<String>,
        users: impl Fn(&str) -> Vec<String>,
    ) -> Result<Query, String> {
        let filters = std::mem::take(&mut self.filters);
        for filter in filters {
            let (found, what) = match filter.dimension {
                Dimension::Client if filter.value != "local" && is_name(&filter.value) => {
                    (clients(&filter.value), "an address")
                }
                Dimension::User if filter.value != "unknown" && is_name(&filter.value) => {
                    (users(&filter.value), "a number")
                }
                _ => {
                    self.filters.push(filter);
                    continue;
                }
            };
            if found.is_empty() {
                return Err(format!(
                    "where: no {} with the name `{}` is known here; give {what}",
                    filter.dimension.name(),
                    filter.value
                ));
            }
            let dimension = filter.dimension;
            let all = found.into_iter().map(|value| Filter { dimension, value });
            self.filters.extend(all);
        }
        self.within_bounds()
    }

    /// Returns true if its rows name people or their files.
    pub fn is_private(&self) -> bool {
        self.dimensions().any(Dimension::is_private)
    }

    fn dimensions(&self) -> impl Iterator<Item = Dimension> {
        let filtered = self.filters.iter().map(|f| f.dimension);
        self.by.iter().copied().chain(filtered)
    }

    /// Returns true if all filters let an operation with these keys pass.
    pub fn lets_pass(&self, keys: &Keys) -> bool {
        Dimension::ALL.into_iter().all(|d| {
            let mut filters = self.filters.iter().filter(|f| f.dimension == d).peekable();
            filters.peek().is_none() || filters.any(|f| is_value(keys, f))
        })
    }

    /// Break-down that a source has to count for this query.
    pub fn want(&self) -> BreakdownWant {
        let values = |d| self.filters.iter().filter(move |f| f.dimension == d);
        let mut by: std::collections::BTreeSet<_> = self.dimensions().collect();
        if by.contains(&Dimension::File) {
            // Files of two exports may have the same number, so exports are counted, too.
            by.insert(Dimension::Export);
        }
        let mut clients = values(Dimension::Client);
        let client = clients.next().and_then(|f| f.value.parse().ok());
        BreakdownWant {
            by,
            ops: values(Dimension::Op).map(|f| f.value.clone()).collect(),
            client: client.filter(|_| clients.next().is_none()),
            paths: self.paths,
        }
    }
}

fn is_value(keys: &Keys, filter: &Filter) -> bool {
    let value = &keys[filter.dimension as usize];
    *value == filter.value
        || filter.dimension == Dimension::File
            && filter.value.rsplit_once(':')
                == Some((&keys[Dimension::Export as usize], value.as_str()))
}

/// Break-down that serves all of these; `None` for none.
pub fn union(wants: impl Iterator<Item = BreakdownWant>) -> Option<BreakdownWant> {
    wants.reduce(|mut a, b| {
        a.by.extend(b.by);
        if a.ops.is_empty() || b.ops.is_empty() {
            a.ops.clear();
        } else {
            a.ops.extend(b.ops);
        }
        a.client = a.client.filter(|_| a.client == b.client);
        a.paths |= b.paths;
        a
    })
}

/// Text of the query of `/breakdown`.
impl QueryString for Query {
    fn from_query(query: &str) -> Result<Query, String> {
        let (mut by, mut filters) = (Vec::new(), Vec::new());
        let (mut paths, mut interval, mut rows) = (None, None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = |why: String| format!("{name}: {why}");
            let once = |before: bool| match before {
                true => Err(format!("{name}: given twice")),
                false => Ok(()),
            };
            match &*name {
                "by" => {
                    for d in value.split(',').filter(|d| !d.is_empty()) {
                        by.push(dimension(d).map_err(wrong)?);
                    }
                }
                "where" => filters.push(Filter::parse(&value).map_err(wrong)?),
                "paths" => {
                    once(paths.is_some())?;
                    let told = || wrong(format!("`{value}` is neither `true` nor `false`"));
                    paths = Some(value.parse::<bool>().map_err(|_| told())?);
                }
                "interval" => {
                    once(interval.is_some())?;
                    let bounds = INTERVAL..=LONGEST_INTERVAL;
                    interval = Some(parse::duration(&value, bounds).map_err(wrong)?);
                }
                "rows" => {
                    once(rows.is_some())?;
                    let number = value.parse().ok().filter(|n| (1..=MOST_ROWS).contains(n));
                    let wanted =
                        || wrong(format!("`{value}` is not a number from 1 to {MOST_ROWS}"));
                    rows = Some(number.ok_or_else(wanted)?);
                }
                _ => {
                    let hint = nearest(&name, PARAMETERS.into_iter(), |n| format!("`{n}`"));
                    return Err(format!("unknown parameter `{name}`{hint}"));
                }
            }
        }
        Query {
            by,
            filters,
            paths: paths.unwrap_or_default(),
            interval: interval.unwrap_or(INTERVAL),
            rows: rows.unwrap_or(ROWS),
        }
        .within_bounds()
    }

    fn to_query(&self) -> String {
        let by: Vec<_> = self.by.iter().map(|d| d.name()).collect();
        let mut out = form_urlencoded::Serializer::new(String::new());
        out.append_pair("by", &by.join(","));
        for filter in &self.filters {
            out.append_pair("where", &filter.to_string());
        }
        if self.paths {
            out.append_pair("paths", "true");
        }
        out.append_pair("interval", &parse::exact(self.interval));
        out.append_pair("rows", &self.rows.to_string());
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(values: [&str; 6]) -> Keys {
        values.map(str::to_owned)
    }

    #[test]
    fn queries_are_read_as_they_were_written() {
        for text in [
            "by=client,op",
            "by=file&by=user&where=export:/srv/a+b:c&where=client:fe80::1&interval=10s&rows=7",
            "by=op&where=op:write&where=op:read&where=version:4.1&where=user:0&where=file:/srv/a:77&where=file:/",
            "by=client,client&where=export:%26%3D%25%0",
            "by=op,file&paths=true",
            "by=op&where=file:258/257&where=file:/srv:258/257&where=file:/srv/a:handle-0123456789abcdef",
        ] {
            let query = Query::from_query(text).unwrap();
            assert_eq!(Query::from_query(&query.to_query()), Ok(query), "{text}");
        }
        assert_eq!(
            Query::from_query("by=op,client,op").unwrap().by,
            [Dimension::Op, Dimension::Client]
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let says = |query: &str| Query::from_query(query).unwrap_err();
        assert_eq!(
            says(""),
            "by: name one or more of client, export, op, version, user, file"
        );
        assert_eq!(
            says("by=clinet"),
            "by: operations are told apart by client, export, op, version, user, file, not by `clinet`; did you mean `client`?"
        );
        assert_eq!(
            says("by=op&wher=x"),
            "unknown parameter `wher`; did you mean `where`?"
        );
        assert!(says("by=op&where=/srv").contains("DIMENSION:VALUE"));
        for wrong in [
            "by=op&where=op:wrote",
            "by=op&where=client:me!",
            "by=op&where=version:5",
            "by=op&where=user:4294967295",
            "by=op&where=user:-1",
            "by=op&where=file:x",
            "by=op&where=file:1/2/3",
            "by=op&where=file:1/",
            "by=op&where=file:handle-12",
            "by=op&where=file:handle-0123456789ABCDEF",
            "by=op&where=export:",
            "by=op&where=export:%ff",
            "by=op&where=export:a%0ab",
            "by=op&interval=0s",
            "by=op&interval=61s",
            "by=op&interval=1s&interval=2s",
            "by=op&rows=0",
            "by=op&rows=1001",
            "by=op&rows=1&rows=1",
            "by=op&paths=true",
            "by=file&paths=1",
            "by=file&paths=true&paths=true",
        ] {
            assert!(Query::from_query(wrong).is_err(), "{wrong}");
        }
        let long = format!("by=op&where=export:{}", "x".repeat(MOST_BYTES + 1));
        assert!(says(&long).starts_with("where: at most"), "{}", says(&long));
        let many = format!("by=op{}", "&where=op:read".repeat(MOST_FILTERS + 1));
        assert!(says(&many).starts_with("where: at most"));
    }

    #[test]
    fn the_longest_query_is_a_question() {
        use crate::link::{Ask, Have, Question, Turn};
        let path = "/".repeat(MOST_BYTES);
        let query = Query::from_query(&format!(
            "by=client,export,op,version,user,file&where=export:{path}"
        ));
        let ask = Ask {
            path: "/breakdown".to_owned(),
            query: query.unwrap().to_query(),
            format: 0,
            may: crate::access::Access::FileNames,
            turn: Turn::Stream,
            have: Have {
                reading: u64::MAX,
                parts: u64::MAX,
            },
        };
        assert!(Question::Ask(ask).encode().is_ok());
    }

    #[test]
    fn filters_of_a_dimension_are_alternatives() {
        let row = keys(["10.0.0.1", "/a", "read", "4.2", "0", "77"]);
        let passes = |query: &str| Query::from_query(query).unwrap().lets_pass(&row);
        assert!(passes("by=op"));
        assert!(passes("by=op&where=op:write&where=op:read"));
        assert!(!passes("by=op&where=op:write"));
        assert!(!passes("by=op&where=op:read&where=client:10.0.0.2"));
        assert!(passes("by=op&where=file:77"));
        assert!(passes("by=op&where=file:/a:77"));
        assert!(!passes("by=op&where=file:/b:77"));
    }

    #[test]
    fn a_source_is_asked_for_all_that_somebody_needs() {
        let want = |query: &str| Query::from_query(query).unwrap().want();
        let one = want("by=file&where=client:10.0.0.1&where=op:read");
        use Dimension::{Client, Export, File, Op};
        assert_eq!(one.by, [Client, Export, Op, File].into());
        assert_eq!(one.client, "10.0.0.1".parse().ok());
        let other = want("by=op&where=op:write&where=client:10.0.0.1");
        let both = union([one.clone(), other].into_iter()).unwrap();
        assert_eq!(both.by, one.by);
        assert_eq!(both.ops, ["read".to_owned(), "write".to_owned()].into());
        assert_eq!(both.client, one.client);
        let all = union([both, want("by=op")].into_iter()).unwrap();
        assert_eq!((all.ops.len(), all.client), (0, None));
        let named = union([want("by=file&paths=true"), want("by=op")].into_iter());
        assert!(named.unwrap().paths && !one.paths);
        let two = want("by=op&where=client:10.0.0.1&where=client:10.0.0.2");
        assert_eq!(two.client, None);
        assert_eq!(union([].into_iter()), None);
    }
}
