//! Moments as text: the date of RFC 3339 in UTC for programs, the local time of day for people.

use jiff::{Timestamp, ToSpan, Zoned, civil, tz::TimeZone};
use std::time::{SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// `2026-11-21T09:47:00.123456Z`
pub fn date(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::MAX);
    let at = at.max(Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Reads what [`date`] writes.
pub fn parse(text: &str) -> Option<SystemTime> {
    // Offsets of RFC 3339 are refused: [`date`] never writes them.
    let at: Timestamp = text.strip_suffix('Z').and(text.parse().ok())?;
    (at >= Timestamp::UNIX_EPOCH).then(|| at.into())
}

/// Seconds by which this host's local time is ahead of UTC at that moment.
pub fn local_offset(at: SystemTime) -> i64 {
    let Ok(at) = Timestamp::try_from(at) else {
        return 0;
    };
    TimeZone::system().to_offset(at).seconds().into()
}

/// `09:47:00.123` in a time zone that is `offset` seconds ahead of UTC.
pub fn time_of_day(at: SystemTime, offset: i64) -> String {
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

/// `2026-11-21 09:47:00` in the reader's time zone.
pub fn local(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::MAX);
    at.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

/// Parses a time as people type it: `03:10` for the last time that local clocks showed it, `2026-11-27 03:10`, or the form of [`date`].
///
/// # Errors
/// Shows the forms, or says that the time is in the future.
pub fn moment(text: &str, now: SystemTime) -> Result<SystemTime, String> {
    moment_in(text, now, &TimeZone::system())
}

fn moment_in(text: &str, now: SystemTime, zone: &TimeZone) -> Result<SystemTime, String> {
    let wrong = || "give a time such as 03:10 or \"2026-11-27 03:10\"".to_owned();
    let here = Timestamp::try_from(now).map_err(|_| wrong())?;
    let here = here.to_zoned(zone.clone());
    let at: Zoned = if let Ok(time) = text.parse::<civil::Time>()
        && !text.contains('-')
    {
        let of = |day: civil::Date| day.to_datetime(time).to_zoned(zone.clone());
        let today = of(here.date()).map_err(|_| wrong())?;
        match today <= here {
            true => today,
            false => of(here.date() - 1.day()).map_err(|_| wrong())?,
        }
    } else if let Ok(at) = text.parse::<Timestamp>() {
        at.to_zoned(zone.clone())
    } else {
        let at = text.parse::<civil::DateTime>().ok();
        let at = at.filter(|_| text.contains(':')).ok_or_else(wrong)?;
        at.to_zoned(zone.clone()).map_err(|_| wrong())?
    };
    if at > here {
        return Err("that time has not come yet".to_owned());
    }
    Ok(at.timestamp().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
    fn moments_are_typed_with_and_without_a_day() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // Local time 2026-11-21 11:47.
        let now = UNIX_EPOCH + Duration::from_secs(1_795_254_420);
        let told = |text: &str| moment_in(text, now, &zone).map(date);
        let some = |date: &str| Ok(format!("{date}.000000Z"));
        assert_eq!(told("03:10"), some("2026-11-21T01:10:00"));
        assert_eq!(told("11:47"), some("2026-11-21T09:47:00"));
        // The time 11:48 has not come today: yesterday is meant.
        assert_eq!(told("11:48"), some("2026-11-20T09:48:00"));
        assert_eq!(told("01:10:30"), some("2026-11-20T23:10:30"));
        assert_eq!(told("2026-11-20 03:10"), some("2026-11-20T01:10:00"));
        assert_eq!(told("2026-11-20T03:10:05"), some("2026-11-20T01:10:05"));
        assert_eq!(told("2026-11-20T03:10:05Z"), some("2026-11-20T03:10:05"));
        let ahead = told("2026-11-22 03:10").unwrap_err();
        assert_eq!(ahead, "that time has not come yet");
        for text in [
            "",
            "3",
            "25:00",
            "2026-11-20",
            "yesterday",
            "2026-13-01 03:10",
            "-03:10",
        ] {
            assert!(
                told(text)
                    .unwrap_err()
                    .starts_with("give a time such as 03:10"),
                "{text}"
            );
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
