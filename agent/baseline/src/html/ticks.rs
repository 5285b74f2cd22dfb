//! Ticks of axes, and their labels.

use nfscope_text::units::seconds;

/// Most ticks of a time axis or of a logarithmic one.
const MANY: usize = 7;

/// Round numbers on a logarithmic axis.
pub(crate) fn powers(from: f64, to: f64) -> Vec<f64> {
    let decades = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let every = |digits: &[f64]| -> Vec<f64> {
        let all = decades
            .clone()
            .flat_map(|k| digits.iter().map(move |d| d * 10f64.powi(k)));
        all.filter(|v| (from..=to).contains(v)).collect()
    };
    let tries = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(every);
    let places = tries
        .iter()
        .find(|places| places.len() <= MANY)
        .unwrap_or(&tries[2])
        .clone();
    let step = places.len().div_ceil(MANY).max(1);
    places.into_iter().step_by(step).collect()
}

/// Ticks on a logarithmic axis of seconds, as their decimal logarithms.
pub(crate) fn logarithmic(from: f64, to: f64) -> Vec<(f64, String)> {
    let places = powers(from, to);
    if places.len() < 2 {
        return vec![(from.log10(), seconds(from)), (to.log10(), seconds(to))];
    }
    places.into_iter().map(|v| (v.log10(), time(v))).collect()
}

/// Round numbers from 0 to the first that is not below `max`, four or five of them.
pub(crate) fn upwards(max: f64, label: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    let max = if max.is_finite() && max > 0.0 {
        max
    } else {
        1.0
    };
    let power = 10f64.powf((max / 4.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power);
    let step = step.into_iter().find(|s| s * 4.0 >= max).unwrap_or(max);
    let last = (max / step).ceil() as u32;
    (0..=last)
        .map(|i| f64::from(i) * step)
        .map(|v| (v, label(v)))
        .collect()
}

/// Factors on a logarithmic axis from one over the largest to the largest, with labels that do not overlap.
pub(crate) fn factors(largest: f64) -> Vec<(f64, String)> {
    let all: &[f64] = match largest {
        f if f < 1.35 => &[0.8, 0.9, 1.0, 1.1, 1.25],
        f if f < 2.7 => &[0.4, 0.5, 0.8, 1.0, 1.25, 2.0, 2.5],
        f if f < 6.0 => &[0.2, 0.5, 1.0, 2.0, 5.0],
        f if f < 21.0 => &[0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0],
        f if f < 110.0 => &[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
        _ => &[0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0],
    };
    let inside = all.iter().filter(|f| f.ln().abs() <= largest.ln());
    let label = |f: f64| match f {
        1.0 => "same".to_owned(),
        f => format!("{f}x"),
    };
    inside.map(|f| (*f, label(*f))).collect()
}

/// Ticks of the time since a recording began, in seconds.
pub(crate) fn elapsed(max: f64) -> Vec<(f64, String)> {
    const UNITS: [(f64, &str, &[f64]); 4] = [
        (1.0, "s", &[1.0, 2.0, 5.0, 10.0, 15.0, 30.0]),
        (60.0, "min", &[1.0, 2.0, 5.0, 10.0, 15.0, 30.0]),
        (3600.0, "h", &[1.0, 2.0, 3.0, 6.0, 12.0]),
        (
            86_400.0,
            "d",
            &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0],
        ),
    ];
    let steps = UNITS
        .iter()
        .flat_map(|(unit, name, steps)| steps.iter().map(move |n| (*unit, *name, *n)));
    let fits = |(unit, _, n): &(f64, &str, f64)| max / (unit * n) < MANY as f64;
    let Some((unit, name, n)) = steps.into_iter().find(fits) else {
        return vec![(0.0, "0".to_owned())];
    };
    let count = (max / (unit * n)).floor() as u32;
    let place = |i: u32| match f64::from(i) * n {
        0.0 => (0.0, "0".to_owned()),
        v => (v * unit, format!("{v} {name}")),
    };
    (0..=count).map(place).collect()
}

/// Ticks of the time since a recording began, with labels of the time of the day (UTC) on the side that began at `began_ms`.
pub(crate) fn times_of_day(began_ms: i64, max: f64) -> Vec<(f64, String)> {
    let places = elapsed(max);
    let step = places.get(1).map_or(max, |(v, _)| *v);
    let label = |v: f64| {
        let at = (began_ms as f64 / 1e3 + v) as i64;
        let (day, s) = (at.div_euclid(86_400), at.rem_euclid(86_400));
        let (hours, minutes) = (s / 3600, s / 60 % 60);
        match step {
            // Labels are days since the first one.
            _ if step >= 86_400.0 => {
                let first = (began_ms / 1000).div_euclid(86_400);
                format!("day {} {hours:02}:{minutes:02}", day - first + 1)
            }
            _ if step < 60.0 => format!("{hours:02}:{minutes:02}:{:02}", s % 60),
            _ => format!("{hours:02}:{minutes:02}"),
        }
    };
    // Labels of the time of day are wider than those of durations.
    let short = (60.0..86_400.0).contains(&step);
    let every = if short { 1 } else { 2 };
    let kept = places.into_iter().step_by(every);
    kept.map(|(v, _)| (v, label(v))).collect()
}

/// Text of a round duration.
pub(crate) fn time(s: f64) -> String {
    let (v, unit) = match s {
        _ if s <= 0.0 => return "0".to_owned(),
        _ if s < 0.999e-3 => (s * 1e6, "µs"),
        _ if s < 0.999 => (s * 1e3, "ms"),
        _ => (s, "s"),
    };
    format!("{} {unit}", rounded(v))
}

/// Text of a round number of events per second.
pub(crate) fn count(n: f64) -> String {
    match n {
        _ if n >= 999_999.0 => format!("{} M", rounded(n / 1e6)),
        _ if n >= 9_999.0 => format!("{} k", rounded(n / 1e3)),
        _ => rounded(n).to_string(),
    }
}

/// Removes the rounding errors that steps of floating point have added.
fn rounded(v: f64) -> f64 {
    (v * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(logarithmic(2e-6, 0.9e-3)),
            ["3 µs", "10 µs", "30 µs", "100 µs", "300 µs"]
        );
        assert_eq!(
            labels(logarithmic(40e-6, 2.0)),
            ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]
        );
        assert_eq!(
            labels(logarithmic(0.9e-3, 5.1e-3)),
            ["1 ms", "2 ms", "5 ms"]
        );
        assert_eq!(labels(logarithmic(2.1e-3, 2.5e-3)), ["2.10 ms", "2.50 ms"]);
        assert!(logarithmic(1e-9, 1e9).len() <= MANY);
        assert_eq!(
            labels(upwards(0.0071, time)),
            ["0", "2 ms", "4 ms", "6 ms", "8 ms"]
        );
        assert_eq!(
            labels(upwards(39_000.0, count)),
            ["0", "10 k", "20 k", "30 k", "40 k"]
        );
        assert_eq!(
            labels(upwards(f64::NAN, count)),
            ["0", "0.25", "0.5", "0.75", "1"]
        );
        assert_eq!(
            labels(elapsed(86_400.0)),
            ["0", "6 h", "12 h", "18 h", "24 h"]
        );
        assert_eq!(
            labels(elapsed(30.0)),
            ["0", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]
        );
        assert_eq!(labels(elapsed(f64::NAN)), ["0"]);
        // 2026-11-21 09:47:00 UTC.
        let began = 1_795_254_420_000;
        assert_eq!(
            labels(times_of_day(began, 1800.0)),
            [
                "09:47", "09:52", "09:57", "10:02", "10:07", "10:12", "10:17"
            ]
        );
        assert_eq!(labels(times_of_day(began, 15.0)), ["09:47:00", "09:47:10"]);
        assert_eq!(
            labels(times_of_day(began, 86_400.0))[..3],
            ["09:47", "15:47", "21:47"]
        );
    }
}
