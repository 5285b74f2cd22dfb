//! A part of a recording, in the form in which users write it: `09:00..10:00` or `+2h..+3h`.

use nfscope_text::parse;
use std::ops::Range;
use std::time::Duration;

const DAY_MS: i64 = 86_400_000;
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// A part of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    from: End,
    to: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Time of day in UTC, in milliseconds.
    Clock(i64),
    /// Time since the recording began, in milliseconds.
    Since(i64),
}

/// Parses `09:00..10:00`, times of day in UTC, or `+2h..+3h`, since the recording began.
///
/// # Errors
/// When the text has another form; the error shows the grammar.
pub fn parse(text: &str) -> Result<Slice, String> {
    let wrong = || {
        "give FROM..TO, as in 09:00..10:00 (UTC) or +2h..+3h (since the recording began)".to_owned()
    };
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let (Some(from), Some(to)) = (end(from), end(to)) else {
        return Err(wrong());
    };
    match (from, to) {
        (End::Since(a), End::Since(b)) if a >= b => Err(wrong()),
        _ => Ok(Slice { from, to }),
    }
}

fn end(text: &str) -> Option<End> {
    if let Some(since) = text.strip_prefix('+') {
        let since = parse::duration(since, Duration::ZERO..=LONGEST).ok()?;
        return Some(End::Since(i64::try_from(since.as_millis()).ok()?));
    }
    let mut parts = text.split(':');
    let mut number = |limit: i64| {
        let part = parts.next()?;
        let right = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        part.parse::<i64>().ok().filter(|n| right && *n < limit)
    };
    let (hour, minute) = (number(24)?, number(60)?);
    let seconds = match text.len() {
        5 => 0,
        8 => number(60)?,
        _ => return None,
    };
    Some(End::Clock((hour * 3600 + minute * 60 + seconds) * 1000))
}

impl Slice {
    /// Part from the beginning of a recording on.
    pub fn first(length: Duration) -> Slice {
        let ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Slice {
            from: End::Since(0),
            to: End::Since(ms),
        }
    }

    /// Range in milliseconds since 1970 for a recording that began at `began_ms`. A time of day is the first one after the beginning; the
    /// end is the first one after the start.
    pub fn of(&self, began_ms: i64) -> Range<i64> {
        let from = self.from.after(began_ms, began_ms);
        // A slice with equal ends is a day long.
        let to = self.to.after(began_ms, from + 1);
        from..to
    }
}

impl End {
    fn after(self, began_ms: i64, earliest: i64) -> i64 {
        match self {
            End::Since(ms) => began_ms + ms,
            End::Clock(ms) => earliest + (ms - earliest).rem_euclid(DAY_MS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_and_since_the_beginning() {
        // 1970-01-02 08:30.
        let began = DAY_MS + 8 * 3_600_000 + 1_800_000;
        let of = |text| parse(text).map(|s| s.of(began));
        let at = |h: i64, m: i64| DAY_MS + (h * 60 + m) * 60_000;
        assert_eq!(of("09:00..10:30"), Ok(at(9, 0)..at(10, 30)));
        assert_eq!(of("08:30..08:30:30"), Ok(at(8, 30)..at(8, 30) + 30_000));
        // The slice ends after midnight.
        assert_eq!(of("23:00..01:00"), Ok(at(23, 0)..at(25, 0)));
        assert_eq!(of("07:00..07:30"), Ok(at(31, 0)..at(31, 30)));
        assert_eq!(of("+30m..+2h"), Ok(at(9, 0)..at(10, 30)));
        for wrong in [
            "",
            "9:00..10:00",
            "09:00",
            "25:00..26:00",
            "+2h..+1h",
            "09:00-10:00",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
