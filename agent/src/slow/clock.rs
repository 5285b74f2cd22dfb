//! Moments as text: the date of RFC 3339 in UTC for programs, the local time of day for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH: u64 = 719_468;
/// Days in 400 years.
const ERA: u64 = 146_097;

/// `2026-11-21T09:47:00.123456Z`
pub(crate) fn date(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / DAY, since.as_secs() % DAY);
    // A year that begins in March has its leap day at the end, so that one formula gives all months.
    let days = days + EPOCH;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 {
        (era * 400 + year, month + 3)
    } else {
        (era * 400 + year + 1, month - 9)
    };
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_micros()
    )
}

/// Reads what [`date`] writes.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let mut next = || date.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':').map(str::parse::<u64>);
    let mut next = || time.next()?.ok();
    let (hour, minute, second) = (next()?, next()?, next()?);
    let valid = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60
        && fraction.chars().all(|c| c.is_ascii_digit());
    if !valid {
        return None;
    }
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let in_era = year % 400;
    let day = 365 * in_era + in_era / 4 - in_era / 100 + (153 * month + 2) / 5 + day - 1;
    let days = year / 400 * ERA + day - EPOCH;
    UNIX_EPOCH
        .checked_add(Duration::from_secs(
            days * DAY + hour * 3600 + minute * 60 + second,
        ))?
        .checked_add(Duration::from_micros((fraction * 1e6).round() as u64))
}

/// Seconds by which this host's clock on the wall is ahead of UTC at that moment.
pub(super) fn local_offset(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let Ok(seconds) = libc::time_t::try_from(since.as_secs()) else {
        return 0;
    };
    let mut parts = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to memory of this frame; all zeroes is a valid `tm`, which the call fills or leaves.
    let parts = unsafe {
        libc::localtime_r(&seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    parts.tm_gmtoff
}

/// `09:47:00.123` on a clock that is `offset` seconds ahead of UTC.
pub(super) fn time_of_day(at: SystemTime, offset: i64) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = since
        .as_secs()
        .saturating_add_signed(offset)
        .rem_euclid(DAY);
    format!(
        "{:02}:{:02}:{:02}.{:03}",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_there_and_back() {
        for (seconds, micros, text) in [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.000001Z"),
            (951_868_799, 999_999, "2000-02-29T23:59:59.999999Z"),
            (1_704_067_199, 500_000, "2023-12-31T23:59:59.500000Z"),
            (1_795_254_420, 123_456, "2026-11-21T09:47:00.123456Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros);
            assert_eq!(date(at), text);
            assert_eq!(parse(text), Some(at), "{text}");
        }
        for text in [
            "",
            "2026-11-21",
            "2026-11-21T09:47:00",
            "2026-13-21T09:47:00Z",
            "1969-12-31T00:00:00Z",
            "2026-11-21T09:47:00.-1Z",
            "99999999999999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_day_turns_where_the_reader_is() {
        let at = UNIX_EPOCH + Duration::from_millis(86_399_987);
        assert_eq!(time_of_day(at, 0), "23:59:59.987");
        assert_eq!(time_of_day(at, 3600), "00:59:59.987");
        assert_eq!(time_of_day(at, -5 * 3600), "18:59:59.987");
        assert!(local_offset(at).abs() <= 14 * 3600);
    }
}
