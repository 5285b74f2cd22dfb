//! Parsers of what people type, the same everywhere: durations, percentages, operations, clients, rates.
//!
//! A duration is a number with a unit: `500ms`, `1.5s`, `10m`, `24h`, `7d`. Only 0 needs none: a bare 10 would be milliseconds to one
//! reader and seconds to another. A percentage is a number with or without its sign: `5%`, `2.5`.

use crate::suggest::near;
use nfscope_model::op;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Units of a duration, and nanoseconds in each.
const UNITS: [(&str, u64); 8] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

/// Highest rate of slow operations. Each event costs the thread that serves NFS some microseconds, and the agent that passes it on even
/// more.
pub const MAX_EVENTS_PER_SECOND: u32 = 1_000_000;

/// Parses a duration within bounds.
///
/// # Errors
/// Shows the grammar, or names the bounds.
pub fn duration(text: &str, bounds: RangeInclusive<Duration>) -> Result<Duration, String> {
    let wrong = || "give a duration such as 500ms, 2s, 5m or 1h".to_owned();
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = &text[digits.len()..];
    let named = UNITS.iter().find(|u| u.0 == unit);
    let (_, ns) = named
        .or_else(|| UNITS.last().filter(|_| unit.is_empty()))
        .ok_or_else(wrong)?;
    // The parser of floats takes `inf`, `1e9` and a sign as well.
    if !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(wrong());
    }
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if named.is_none() && number != 0.0 {
        return Err(missing_unit(digits, &bounds));
    }
    Duration::try_from_secs_f64(number * *ns as f64 / 1e9)
        .ok()
        .filter(|d| bounds.contains(d))
        .ok_or_else(|| match (bounds.start(), exact(*bounds.end())) {
            (&Duration::ZERO, most) => format!("give a duration of at most {most}"),
            (&least, most) => format!("give a duration between {} and {most}", exact(least)),
        })
}

/// Error for a bare number: suggests the two most usual units that are within bounds.
fn missing_unit(number: &str, bounds: &RangeInclusive<Duration>) -> String {
    let with_units = ["ms", "s", "m", "h", "d", "us"].map(|unit| format!("{number}{unit}"));
    let right = with_units
        .iter()
        .filter(|text| duration(text, bounds.clone()).is_ok());
    let right: Vec<&str> = right.map(String::as_str).take(2).collect();
    match right.is_empty() {
        true => "give a duration with a unit such as 500ms, 2s, 5m or 1h".to_owned(),
        false => format!("give a unit: {}", right.join(" or ")),
    }
}

/// A duration as [`duration`] reads it, without rounding.
pub fn exact(time: Duration) -> String {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let whole = |u: &&(&str, u64)| u.0.is_ascii() && ns % u.1 == 0;
    match UNITS.iter().find(whole) {
        _ if ns == 0 => "0s".to_owned(),
        Some((unit, size)) => format!("{}{unit}", ns / size),
        None => format!("{ns}ns"),
    }
}

/// Parses a percentage within bounds that are fractions: `5%` is 0.05.
///
/// # Errors
/// Names the bounds.
pub fn percent(text: &str, bounds: RangeInclusive<f64>) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    match number.parse::<f64>().map(|n| n / 100.0) {
        Ok(part) if plain && bounds.contains(&part) => Ok(part),
        _ => Err(format!(
            "give a percentage between {}% and {}%, such as 5%",
            bounds.start() * 100.0,
            bounds.end() * 100.0
        )),
    }
}

/// Parses the name of an operation.
///
/// # Errors
/// Names the nearest operation that exists.
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

/// Parses an address without port.
///
/// # Errors
/// Shows valid addresses.
pub fn client(text: &str) -> Result<IpAddr, String> {
    text.parse::<IpAddr>()
        .map(|a| a.to_canonical())
        .map_err(|_| "give an IP address without port: 192.0.2.7, 2001:db8::7".to_owned())
}

/// Parses a number of events a second, at most [`MAX_EVENTS_PER_SECOND`].
///
/// # Errors
/// Names the bounds.
pub fn events_per_second(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=MAX_EVENTS_PER_SECOND).contains(n))
        .ok_or_else(|| format!("give a number from 1 to {MAX_EVENTS_PER_SECOND}"))
}

/// Parses `KEY=VALUE`.
///
/// # Errors
/// Shows the form.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("give KEY=VALUE, as in disks=hdd".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const YEAR: Duration = Duration::from_secs(366 * 86_400);

    #[test]
    fn durations() {
        for (text, ns) in [
            ("0", 0_u64),
            ("0.0", 0),
            ("500ms", 500_000_000),
            ("1.5s", 1_500_000_000),
            ("200us", 200_000),
            ("200µs", 200_000),
            ("7ns", 7),
            ("5m", 300_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("7d", 604_800_000_000_000),
        ] {
            let read = duration(text, Duration::ZERO..=YEAR);
            assert_eq!(read, Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in [
            "",
            "s",
            "-1s",
            "+1s",
            "1w",
            "1 s",
            "NaN",
            "inf",
            "infd",
            "1e3s",
            "1..2s",
            "99999999999999999999h",
        ] {
            assert!(duration(text, Duration::ZERO..=YEAR).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_without_unit_is_no_duration() {
        let of = |text, least, most| duration(text, least..=most).unwrap_err();
        let (ms, second) = (Duration::from_millis(1), Duration::from_secs(1));
        assert_eq!(of("10", Duration::ZERO, HOUR), "give a unit: 10ms or 10s");
        assert_eq!(
            of("0.5", ms / 1000, 10 * second),
            "give a unit: 0.5ms or 0.5s"
        );
        assert_eq!(of("10", 100 * ms, HOUR), "give a unit: 10s or 10m");
        assert_eq!(of("24", HOUR, 7 * 24 * HOUR), "give a unit: 24h");
        assert_eq!(
            of("90000", ms, ms),
            "give a duration with a unit such as 500ms, 2s, 5m or 1h"
        );
        // Zero needs no unit, and may be below the bounds.
        assert_eq!(of("0", second, HOUR), "give a duration between 1s and 1h");
        assert_eq!(
            of(".", second, HOUR),
            "give a duration such as 500ms, 2s, 5m or 1h"
        );
    }

    #[test]
    fn bounds_are_named_as_they_may_be_typed() {
        let read = |text| duration(text, Duration::from_millis(100)..=HOUR);
        assert_eq!(read("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(read("1h"), Ok(HOUR));
        let wrong = Err("give a duration between 100ms and 1h".to_owned());
        assert_eq!(read("99ms"), wrong);
        assert_eq!(read("3601s"), wrong);
        let most = duration("2h", Duration::ZERO..=HOUR);
        assert_eq!(most, Err("give a duration of at most 1h".to_owned()));
    }

    #[test]
    fn exact_durations_are_read_back() {
        for ns in [
            0,
            1,
            1_500,
            10_000_000,
            1_500_000_000,
            60_000_000_000,
            86_400_000_000_000,
        ] {
            let time = Duration::from_nanos(ns);
            assert_eq!(
                duration(&exact(time), Duration::ZERO..=YEAR),
                Ok(time),
                "{ns}"
            );
        }
        assert_eq!(exact(Duration::from_millis(10)), "10ms");
        assert_eq!(exact(Duration::from_secs(90)), "90s");
    }

    #[test]
    fn percentages() {
        for (text, part) in [("5%", 0.05), ("2.5", 0.025), ("5 %", 0.05), ("100%", 1.0)] {
            assert_eq!(percent(text, 0.001..=1.0), Ok(part), "{text}");
        }
        assert_eq!(percent("0", 0.0..=1.0), Ok(0.0));
        for text in ["", "%", "0%", "101%", "-1%", "+5%", "NaN", "x", "5%%"] {
            assert!(percent(text, 0.001..=1.0).is_err(), "{text}");
        }
        let why = percent("0", 0.001..=1.0).unwrap_err();
        assert_eq!(why, "give a percentage between 0.1% and 100%, such as 5%");
    }

    #[test]
    fn labels() {
        assert_eq!(label("disks=hdd"), Ok(("disks".into(), "hdd".into())));
        assert_eq!(label("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(label("disks").is_err() && label("=hdd").is_err());
    }
}
