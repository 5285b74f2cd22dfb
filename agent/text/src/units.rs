//! Numbers for people: three significant digits and a unit.

use nfscope_model::Scheme;

/// A duration in seconds: `1.23 ms`; above the highest edge of a histogram `>64 s`.
pub fn seconds(s: f64) -> String {
    if s.is_infinite() {
        let scheme = Scheme::TIME;
        return format!(">{:.0} s", scheme.edge(scheme.len - 2));
    }
    let (value, unit) = match s {
        _ if s < 999.5e-6 => (s * 1e6, "µs"),
        _ if s < 0.9995 => (s * 1e3, "ms"),
        _ => (s, "s"),
    };
    format!("{} {unit}", three(value))
}

/// A length of time in its two largest units: `45 s`, `12m 5s`, `3h 20m`, `7d`.
pub fn length(d: std::time::Duration) -> String {
    let s = d.as_secs_f64();
    if s < 10.0 && d.subsec_nanos() != 0 {
        return format!("{s:.1} s");
    }
    let s = s.round() as u64;
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let Some(first) = units.iter().position(|u| s >= u.0).filter(|i| *i < 3) else {
        return format!("{s} s");
    };
    let (large, small) = (units[first], units[first + 1]);
    match s % large.0 / small.0 {
        0 => format!("{}{}", s / large.0, large.1),
        rest => format!("{}{} {rest}{}", s / large.0, large.1, small.1),
    }
}

/// Bytes per second: `12.3 MB/s`.
pub fn bytes(b: f64) -> String {
    let (value, unit) = match b {
        _ if b < 999.5 => (b, "B/s"),
        _ if b < 999.5e3 => (b / 1e3, "kB/s"),
        _ if b < 999.5e6 => (b / 1e6, "MB/s"),
        _ => (b / 1e9, "GB/s"),
    };
    format!("{} {unit}", three(value))
}

/// Events per second: `1234`, `12.3`, `0.50`.
pub fn rate(n: f64) -> String {
    if n == 0.0 { "0".to_owned() } else { three(n) }
}

/// A part of a whole: `12.3 %`.
pub fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// A number of things: `1 thread`, `8 threads`.
pub fn many(n: f64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1.0 { "" } else { "s" })
}

/// A number of times: `once`, `2 times`.
pub fn times(n: f64) -> String {
    match n {
        1.0 => "once".to_owned(),
        n => many(n, "time"),
    }
}

/// Three significant digits, never more than two decimals; large values keep all their integer digits.
fn three(v: f64) -> String {
    match v {
        _ if v < 9.995 => format!("{v:.2}"),
        _ if v < 99.95 => format!("{v:.1}"),
        _ => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_no_1000_of_a_unit() {
        for (s, text) in [
            (0.0, "0.00 µs"),
            (1.234e-6, "1.23 µs"),
            (999.6e-6, "1.00 ms"),
            (0.012_34, "12.3 ms"),
            (0.123_4, "123 ms"),
            (0.999_6, "1.00 s"),
            (64.0, "64.0 s"),
        ] {
            assert_eq!(seconds(s), text);
        }
        for (s, text) in [
            (0.5, "0.5 s"),
            (59.0, "59 s"),
            (60.0, "1m"),
            (1_805.0, "30m 5s"),
            (90_061.0, "1d 1h"),
            (604_800.0, "7d"),
        ] {
            assert_eq!(length(std::time::Duration::from_secs_f64(s)), text);
        }
        assert_eq!(seconds(f64::INFINITY), ">64 s");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(bytes(12_340_000.0), "12.3 MB/s");
        assert_eq!(bytes(999_600.0), "1.00 MB/s");
        assert_eq!(
            (&*many(1.0, "thread"), &*many(0.0, "thread")),
            ("1 thread", "0 threads")
        );
        assert_eq!((&*times(1.0), &*times(21.0)), ("once", "21 times"));
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(0.004), "0.00");
        assert_eq!(rate(12_345.6), "12346");
    }
}
