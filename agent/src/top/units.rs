//! Numbers for people: three significant digits and a unit.

/// A duration in seconds: `1.23 ms`.
pub(super) fn seconds(s: f64) -> String {
    let (value, unit) = match s {
        _ if s < 999.5e-6 => (s * 1e6, "µs"),
        _ if s < 0.9995 => (s * 1e3, "ms"),
        _ => (s, "s"),
    };
    format!("{} {unit}", three(value))
}

/// Bytes per second: `12.3 MB/s`.
pub(super) fn bytes(b: f64) -> String {
    let (value, unit) = match b {
        _ if b < 999.5 => (b, "B/s"),
        _ if b < 999.5e3 => (b / 1e3, "kB/s"),
        _ if b < 999.5e6 => (b / 1e6, "MB/s"),
        _ => (b / 1e9, "GB/s"),
    };
    format!("{} {unit}", three(value))
}

/// Events per second: `1234`, `12.3`, `0.50`.
pub(super) fn rate(n: f64) -> String {
    if n == 0.0 { "0".to_owned() } else { three(n) }
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
        assert_eq!(bytes(12_340_000.0), "12.3 MB/s");
        assert_eq!(bytes(999_600.0), "1.00 MB/s");
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(0.004), "0.00");
        assert_eq!(rate(12_345.6), "12346");
    }
}
