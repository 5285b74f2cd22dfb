//! Which slow operations somebody wants: read from flags and queries, and joined for the source.

use nfscope_model::{SlowFilter, SlowOp, op};
use nfscope_text::suggest::near;
use std::net::IpAddr;
use std::time::Duration;

/// Operations over this, unless told otherwise.
pub const OVER: &str = "10ms";
/// So many a second, unless told otherwise.
pub const LIMIT: u32 = 1000;
/// Highest limit: each event costs the thread that serves NFS some microseconds, and the agent that passes it on more.
pub const HIGHEST_LIMIT: u32 = 10_000;
const LONGEST: Duration = Duration::from_secs(3600);

/// Units of time, and nanoseconds in each.
const UNITS: [(&str, u64); 6] = [
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

/// `10ms`, `1.5s`, `200us`. A bare number has no unit, so that nobody gets seconds who meant milliseconds.
///
/// # Errors
/// Says what is right.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "give a time with its unit: 10ms, 1.5s, 200us".to_owned();
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = &text[number.len()..];
    let (_, ns) = UNITS.iter().find(|u| u.0 == unit).ok_or_else(wrong)?;
    if !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(wrong());
    }
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * *ns as f64 / 1e9)
        .ok()
        .filter(|d| *d <= LONGEST)
        .ok_or_else(|| "give a time of at most 60m".to_owned())
}

/// A time as [`time`] reads it, exactly.
fn exact(time: Duration) -> String {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let whole = |u: &&(&str, u64)| u.0.is_ascii() && ns % u.1 == 0;
    match UNITS.iter().skip(1).find(whole) {
        Some((unit, size)) => format!("{}{unit}", ns / size),
        None => format!("{ns}ns"),
    }
}

/// The name of an operation.
///
/// # Errors
/// Names the nearest that exists.
pub fn operation(text: &str) -> Result<String, String> {
    if op::exists(text) {
        return Ok(text.to_owned());
    }
    let hint = match near(text, op::names()) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; names are those of the RFCs in lower case: read, write, commit, open".to_owned(),
    };
    Err(format!("no operation is called `{text}`{hint}"))
}

/// An address without port.
///
/// # Errors
/// Says what is right.
pub fn client(text: &str) -> Result<IpAddr, String> {
    text.parse::<IpAddr>()
        .map(|a| a.to_canonical())
        .map_err(|_| "give an IP address without port: 192.0.2.7, 2001:db8::7".to_owned())
}

/// So many operations a second.
///
/// # Errors
/// Says what is right.
pub fn limit(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=HIGHEST_LIMIT).contains(n))
        .ok_or_else(|| format!("give a number from 1 to {HIGHEST_LIMIT}"))
}

const PARAMETERS: [&str; 4] = ["over", "op", "client", "limit"];

/// Reads the query of `/slow`.
///
/// # Errors
/// Says which parameter is wrong, and what is right.
pub fn from_query(query: &str) -> Result<SlowFilter, String> {
    let mut filter = SlowFilter {
        over: time(OVER)?,
        ops: Vec::new(),
        client: None,
        per_second: LIMIT,
    };
    let mut seen = Vec::new();
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value).ok_or_else(|| format!("{name}: `{value}` is no text"))?;
        let value = value.as_str();
        let right = match name {
            "over" => time(value).map(|v| filter.over = v),
            "op" => value
                .split(',')
                .filter(|name| !name.is_empty())
                .try_for_each(|name| operation(name).map(|name| filter.ops.push(name))),
            "client" => client(value).map(|v| filter.client = Some(v)),
            "limit" => limit(value).map(|v| filter.per_second = v),
            _ => {
                let hint = near(name, PARAMETERS.into_iter()).map_or_else(
                    || format!("known are {}", PARAMETERS.join(", ")),
                    |known| format!("did you mean `{known}`?"),
                );
                return Err(format!("unknown parameter `{name}`; {hint}"));
            }
        };
        right.map_err(|why| format!("{name}: {why}"))?;
        if name != "op" && seen.contains(&name) {
            return Err(format!("{name}: given twice"));
        }
        seen.push(name);
    }
    filter.ops.sort_unstable();
    filter.ops.dedup();
    Ok(filter)
}

/// Undoes percent-encoding; `None` where that is broken.
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

/// The query that [`from_query`] reads as this.
pub fn to_query(filter: &SlowFilter) -> String {
    let mut out = format!("over={}&limit={}", exact(filter.over), filter.per_second);
    if !filter.ops.is_empty() {
        out += &format!("&op={}", filter.ops.join(","));
    }
    if let Some(client) = filter.client {
        out += &format!("&client={client}");
    }
    out
}

/// True where `filter` describes this operation.
pub fn wants(filter: &SlowFilter, op: &SlowOp) -> bool {
    op.duration > filter.over
        && (filter.ops.is_empty() || filter.ops.contains(&op.op))
        && filter
            .client
            .is_none_or(|c| op.client.is_some_and(|o| o.to_canonical() == c))
}

/// The narrowest filter that describes whatever one of these does; `None` for none.
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
    fn times() {
        for (text, ns, same) in [
            ("10ms", 10_000_000, "10ms"),
            ("1.5s", 1_500_000_000, "1500ms"),
            ("200us", 200_000, "200us"),
            ("200µs", 200_000, "200us"),
            ("1m", 60_000_000_000, "60s"),
            ("0s", 0, "0s"),
            ("1.5us", 1_500, "1500ns"),
        ] {
            assert_eq!(time(text), Ok(Duration::from_nanos(ns)), "{text}");
            assert_eq!(exact(Duration::from_nanos(ns)), same);
        }
        for text in [
            "", "10", "ms", "1e3s", "-1s", "1 ms", "inf", "NaNs", "1h", "1.1.1s",
        ] {
            let why = time(text).unwrap_err();
            assert_eq!(
                why, "give a time with its unit: 10ms, 1.5s, 200us",
                "{text}"
            );
        }
        assert_eq!(time("61m").unwrap_err(), "give a time of at most 60m");
        assert_eq!(time(&"9".repeat(400)).ok(), None);
    }

    #[test]
    fn queries_there_and_back() {
        for (query, wanted) in [
            ("", filter(10, &[], None, 1000)),
            ("over=2s&&", filter(2000, &[], None, 1000)),
            (
                "op=write%2Ccommit&op=read,write&client=2001%3Adb8::1&limit=7",
                filter(10, &["commit", "read", "write"], Some("2001:db8::1"), 7),
            ),
            (
                "client=::ffff:192.0.2.7",
                filter(10, &[], Some("192.0.2.7"), 1000),
            ),
        ] {
            let read = from_query(query).unwrap();
            assert_eq!(read, wanted, "{query}");
            assert_eq!(from_query(&to_query(&read)).unwrap(), wanted);
        }
    }

    #[test]
    fn a_bad_query_says_what_is_right() {
        for (query, why) in [
            (
                "over=10",
                "over: give a time with its unit: 10ms, 1.5s, 200us",
            ),
            ("over", "over: give a time with its unit: 10ms, 1.5s, 200us"),
            ("over=1s&over=2s", "over: given twice"),
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
            ("limit=%zz", "limit: `%zz` is no text"),
            ("limit=%f", "limit: `%f` is no text"),
            ("ovre=1s", "unknown parameter `ovre`; did you mean `over`?"),
            ("x=1", "unknown parameter `x`; did you mean `op`?"),
            (
                "minimum=1s",
                "unknown parameter `minimum`; known are over, op, client, limit",
            ),
        ] {
            assert_eq!(from_query(query).unwrap_err(), why);
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
        let op = crate::api::example::op();
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
