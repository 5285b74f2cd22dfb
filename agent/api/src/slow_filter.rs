//! Filters of slow operations: read from flags and queries, and joined for the source.

use super::query::QueryString;
use nfscope_model::{SlowFilter, SlowOp};
use nfscope_text::parse;
use nfscope_text::suggest::near;
use std::time::Duration;

/// Default of the latency above which an operation counts as slow.
pub const MIN_LATENCY: &str = "10ms";
/// Default limit of reported operations per second.
pub const LIMIT: u32 = 1000;
const MAX_MIN_LATENCY: Duration = Duration::from_secs(3600);

/// Parses the latency above which an operation counts as slow.
///
/// # Errors
/// When the text has another form; the error shows the right one.
pub fn min_latency(text: &str) -> Result<Duration, String> {
    parse::duration(text, Duration::ZERO..=MAX_MIN_LATENCY)
}

const PARAMETERS: [&str; 4] = ["min_latency", "op", "client", "limit"];
/// Former name of `min_latency`, which is still read.
const OLD_MIN_LATENCY: &str = "over";

/// Query of `/slow`.
impl QueryString for SlowFilter {
    fn from_query(query: &str) -> Result<SlowFilter, String> {
        let mut filter = SlowFilter {
            over: min_latency(MIN_LATENCY)?,
            ops: Vec::new(),
            client: None,
            per_second: LIMIT,
        };
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value =
                decode(value).ok_or_else(|| format!("{name}: `{value}` is not valid text"))?;
            let value = value.as_str();
            let right = match name {
                "min_latency" | OLD_MIN_LATENCY => min_latency(value).map(|v| filter.over = v),
                "op" => value
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .try_for_each(|name| parse::operation(name).map(|name| filter.ops.push(name))),
                "client" => parse::client(value).map(|v| filter.client = Some(v)),
                "limit" => parse::events_per_second(value).map(|v| filter.per_second = v),
                _ => {
                    let hint = near(name, PARAMETERS.into_iter()).map_or_else(
                        || format!("known are {}", PARAMETERS.join(", ")),
                        |known| format!("did you mean `{known}`?"),
                    );
                    return Err(format!("unknown parameter `{name}`; {hint}"));
                }
            };
            right.map_err(|why| format!("{name}: {why}"))?;
            let parameter = match name {
                OLD_MIN_LATENCY => "min_latency",
                other => other,
            };
            if parameter != "op" && seen.contains(&parameter) {
                return Err(format!("{name}: given twice"));
            }
            seen.push(parameter);
        }
        filter.ops.sort_unstable();
        filter.ops.dedup();
        Ok(filter)
    }

    fn to_query(&self) -> String {
        let mut out = format!(
            "min_latency={}&limit={}",
            parse::exact(self.over),
            self.per_second
        );
        if !self.ops.is_empty() {
            out += &format!("&op={}", self.ops.join(","));
        }
        if let Some(client) = self.client {
            out += &format!("&client={client}");
        }
        out
    }
}

/// Decodes percent-encoding; `None` if it is broken.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        out.push(match b {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            b => b,
        });
    }
    String::from_utf8(out).ok()
}

/// Returns true if the filter lets this operation pass.
pub fn wants(filter: &SlowFilter, op: &SlowOp) -> bool {
    op.duration > filter.over
        && (filter.ops.is_empty() || filter.ops.contains(&op.op))
        && filter
            .client
            .is_none_or(|c| op.client.is_some_and(|o| o.to_canonical() == c))
}

/// Narrowest filter that passes each operation that one of `filters` passes; `None` without filters.
pub fn union<'a>(filters: impl Iterator<Item = &'a SlowFilter>) -> Option<SlowFilter> {
    filters.cloned().reduce(|a, b| SlowFilter {
        over: a.over.min(b.over),
        ops: if a.ops.is_empty() || b.ops.is_empty() {
            Vec::new()
        } else {
            let mut both = [a.ops, b.ops].concat();
            both.sort_unstable();
            both.dedup();
            both
        },
        client: a.client.filter(|_| a.client == b.client),
        per_second: a.per_second.max(b.per_second),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(over_ms: u64, ops: &[&str], client: Option<&str>, per_second: u32) -> SlowFilter {
        SlowFilter {
            over: Duration::from_millis(over_ms),
            ops: ops.iter().map(|&o| o.to_owned()).collect(),
            client: client.map(|c| c.parse().unwrap()),
            per_second,
        }
    }

    #[test]
    fn queries_there_and_back() {
        for (query, wanted) in [
            ("", filter(10, &[], None, 1000)),
            ("min_latency=2s&&", filter(2000, &[], None, 1000)),
            ("over=2s", filter(2000, &[], None, 1000)),
            (
                "op=write%2Ccommit&op=read,write&client=2001%3Adb8::1&limit=7",
                filter(10, &["commit", "read", "write"], Some("2001:db8::1"), 7),
            ),
            (
                "client=::ffff:192.0.2.7",
                filter(10, &[], Some("192.0.2.7"), 1000),
            ),
        ] {
            let read = SlowFilter::from_query(query).unwrap();
            assert_eq!(read, wanted, "{query}");
            assert_eq!(SlowFilter::from_query(&read.to_query()).unwrap(), wanted);
        }
    }

    #[test]
    fn a_bad_query_says_what_is_right() {
        for (query, why) in [
            (
                "min_latency=10x",
                "min_latency: give a duration such as 500ms, 2s, 5m or 1h",
            ),
            ("over", "over: give a duration such as 500ms, 2s, 5m or 1h"),
            ("min_latency=10", "min_latency: give a unit: 10ms or 10s"),
            (
                "min_latency=61m",
                "min_latency: give a duration of at most 1h",
            ),
            ("min_latency=1s&min_latency=2s", "min_latency: given twice"),
            ("over=1s&min_latency=2s", "min_latency: given twice"),
            (
                "op=wirte",
                "op: no operation is called `wirte`; did you mean `write`?",
            ),
            (
                "op=defragment",
                "op: no operation is called `defragment`; names are those of the RFCs in lower case: read, write, commit, open",
            ),
            (
                "client=nfs1",
                "client: give an IP address without port: 192.0.2.7, 2001:db8::7",
            ),
            ("limit=0", "limit: give a number from 1 to 10000"),
            ("limit=%zz", "limit: `%zz` is not valid text"),
            ("limit=%f", "limit: `%f` is not valid text"),
            (
                "min_latnecy=1s",
                "unknown parameter `min_latnecy`; did you mean `min_latency`?",
            ),
            (
                "x=1",
                "unknown parameter `x`; known are min_latency, op, client, limit",
            ),
            (
                "longest=1s",
                "unknown parameter `longest`; known are min_latency, op, client, limit",
            ),
        ] {
            assert_eq!(SlowFilter::from_query(query).unwrap_err(), why);
        }
    }

    #[test]
    fn a_union_describes_what_each_part_does() {
        let union = |filters: &[SlowFilter]| union(filters.iter());
        let (a, b) = (Some("192.0.2.1"), Some("192.0.2.2"));
        assert_eq!(union(&[]), None);
        let one = filter(5, &["write"], a, 10);
        assert_eq!(union(std::slice::from_ref(&one)), Some(one.clone()));
        assert_eq!(
            union(&[one.clone(), filter(3, &["commit"], a, 5)]),
            Some(filter(3, &["commit", "write"], a, 10))
        );
        assert_eq!(
            union(&[one.clone(), filter(9, &[], b, 20)]),
            Some(filter(5, &[], None, 20))
        );
        assert_eq!(
            union(&[
                one,
                filter(9, &["write"], None, 1),
                filter(9, &["write"], a, 1)
            ]),
            Some(filter(5, &["write"], None, 10))
        );
    }

    #[test]
    fn a_filter_wants_only_what_it_describes() {
        let op = nfscope_example::op();
        let ms = u64::try_from(op.duration.as_millis()).unwrap();
        let client = op.client.map(|c| c.to_string());
        let client = client.as_deref();
        for (filter, is_wanted) in [
            (filter(ms, &[], None, 1), true),
            (filter(ms + 1, &[], None, 1), false),
            (filter(1, &["read", "write"], client, 1), true),
            (filter(1, &["read"], None, 1), false),
            (filter(1, &[], Some("192.0.2.99"), 1), false),
        ] {
            assert_eq!(wants(&filter, &op), is_wanted, "{filter:?}");
        }
        let exactly = SlowFilter {
            over: op.duration,
            ..filter(0, &[], None, 1)
        };
        assert!(!wants(&exactly, &op));
        let unknown = SlowOp { client: None, ..op };
        assert!(wants(&filter(1, &[], None, 1), &unknown));
        assert!(!wants(&filter(1, &[], client, 1), &unknown));
    }
}
