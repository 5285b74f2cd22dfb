//! Labels and formatted numbers of a comparison, shared by the terminal and the page.

use crate::compare::result::{Comparison, Quantity, Row, Side, Subject, Verdict};
use crate::list::{began, labels};
use crate::workload;
use nfscope_stats::Interval;
use nfscope_text::units;
use nfscope_text::units::{many, percent, rate, seconds};
use std::time::Duration;

/// Stands for a missing value.
pub(super) const NONE: &str = "-";

/// Groups rows by subject, with the label of each.
pub(super) fn by_subject(rows: &[Row]) -> impl Iterator<Item = (String, &[Row])> {
    rows.chunk_by(|a, b| a.subject == b.subject)
        .map(|rows| (subject(&rows[0].subject), rows))
}

pub(super) fn subject(of: &Subject) -> String {
    match of {
        Subject::Op { version, op } => operation(version, op),
        Subject::Requests { version } => format!("Requests {version}, from arrival to reply"),
        Subject::Queue => "Queue, requests that wait for a thread".to_owned(),
        Subject::Log { fs, volume } => format!("Log of {fs} {volume}"),
        Subject::SyncWrites => "Stable WRITEs, and COMMITs".to_owned(),
        Subject::Errors { version, op } => format!("Failures of {}", operation(version, op)),
        Subject::Dropped { reason } => format!("Calls without an answer: {reason}"),
        Subject::Replays => "Calls sent again, answered from the reply cache".to_owned(),
        Subject::Workload { job, operation } => {
            format!("Workload: {}", workload::label(job, operation))
        }
        Subject::WorkloadErrors { job } => format!("Failures of the workload: {job}"),
    }
}

/// `WRITE 4.2`
pub(super) fn operation(version: &str, op: &str) -> String {
    format!("{} {version}", op.to_uppercase())
}

/// `p99`, `mean`, `in log`.
pub(super) fn quantity(q: &Quantity) -> String {
    match q {
        Quantity::Rate => "rate".to_owned(),
        Quantity::Mean => "mean".to_owned(),
        Quantity::MeanAtOneMix => "mean at one mix".to_owned(),
        Quantity::Quantile { percent } => format!("p{percent}"),
        Quantity::Phase { phase } => format!("in {phase}"),
        Quantity::Share => "share".to_owned(),
    }
}

/// Mark of a primary quantity, after its name.
pub(super) const PRIMARY: &str = " *";
/// The meaning of the mark.
pub(super) const FOOTNOTE: &str = "* primary quantity: tested first, and for any change";

/// Quantity of a row, with a mark if it is tested first.
pub(super) fn marked(row: &Row) -> String {
    let mark = if row.primary { PRIMARY } else { "" };
    quantity(&row.quantity) + mark
}

/// `WRITE 4.2 p99`
pub(super) fn named(row: &Row) -> String {
    format!("{} {}", subject(&row.subject), quantity(&row.quantity))
}

/// A value with its unit.
pub(super) fn value(q: &Quantity, v: f64) -> String {
    match q {
        _ if v.is_nan() => NONE.to_owned(),
        Quantity::Rate => format!("{}/s", rate(v)),
        Quantity::Share => percent(v),
        Quantity::Mean
        | Quantity::MeanAtOneMix
        | Quantity::Quantile { .. }
        | Quantity::Phase { .. } => seconds(v),
    }
}

/// Text of a ratio as a change in percent, with its 95 % confidence interval: `-12 %` and `-13 .. -11`; a large one as a factor: `9.2
/// times`, `1/12`.
pub(super) fn change(ratio: Option<Interval>) -> Option<(String, Option<String>)> {
    let r = ratio.filter(|r| r.value.is_finite())?;
    let finite = r.low.is_finite() && r.high.is_finite();
    // Percentages of large changes are hard to read: -97 and -98 % differ by half.
    if r.value >= LARGE && r.low >= LARGE {
        let interval = finite.then(|| format!("{} .. {}", times(r.low), times(r.high)));
        return Some((format!("{} times", times(r.value)), interval));
    }
    if r.value > 0.0 && r.value <= 1.0 / LARGE && r.high <= 1.0 / LARGE {
        let part = |ratio: f64| format!("1/{}", times(1.0 / ratio));
        let interval =
            (finite && r.low > 0.0).then(|| format!("{} .. {}", part(r.low), part(r.high)));
        return Some((part(r.value), interval));
    }
    // The exact end of such a wide interval has no meaning.
    let high = |ratio: f64| match ratio > WIDE {
        true => "over +900".to_owned(),
        false => signed(ratio),
    };
    let interval = finite.then(|| format!("{} .. {}", signed(r.low), high(r.high)));
    Some((format!("{} %", signed(r.value)), interval))
}

/// Ratio from which on a rise is written as a factor; its inverse for a fall.
const LARGE: f64 = 3.0;
/// Ratio at which a wide interval is cut.
const WIDE: f64 = 10.0;

fn times(ratio: f64) -> String {
    match ratio {
        r if r < 9.95 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

fn signed(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    match change.abs() {
        a if a < 0.05 => "0.0".to_owned(),
        a if a < 9.95 => format!("{change:+.1}"),
        _ => format!("{change:+.0}"),
    }
}

/// A probability to three decimals.
pub(super) fn probability(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.001 => "<0.001".to_owned(),
        Some(p) if p.is_finite() => format!("{p:.3}"),
        _ => NONE.to_owned(),
    }
}

/// The label of a verdict.
pub(super) fn verdict(v: Verdict) -> &'static str {
    match v {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::More => "more",
        Verdict::Less => "less",
        Verdict::NoEvidence => "no evidence",
        Verdict::Small => "too small",
        Verdict::Few => "few",
        Verdict::NotComparable => "not comparable",
        Verdict::NotTested => "not tested",
        Verdict::NotJudged => "no verdict",
    }
}

/// Properties of both recordings: name, before, after.
pub(super) fn sides(c: &Comparison) -> Vec<[String; 3]> {
    let both = |name: &str, of: fn(&Side) -> String| [name.to_owned(), of(&c.before), of(&c.after)];
    let mut rows = vec![
        both("name", |s| s.recordings.join(", ")),
        both("began", |s| began(s.metadata.began_ms)),
        both("host", |s| s.metadata.host.clone()),
        both("kernel", |s| {
            s.metadata.kernel.clone().unwrap_or_else(|| NONE.to_owned())
        }),
        both("agent", |s| s.metadata.agent.clone()),
        both("length", |s| {
            format!(
                "{} in {}",
                length(s.seconds),
                many(s.windows as f64, "window")
            )
        }),
        both("operations", |s| format!("{:.0}", s.operations)),
        both("clients", |s| s.clients.to_string()),
    ];
    let [before, after] = [0, 1].map(|side| stretches(&c.rows, side));
    rows.push(["independent".to_owned(), before, after]);
    if !(c.before.metadata.labels.is_empty() && c.after.metadata.labels.is_empty()) {
        rows.push(both("labels", |s| labels(&s.metadata.labels)));
    }
    rows
}

/// Range of the numbers of independent stretches of one side.
fn stretches(rows: &[Row], side: usize) -> String {
    let all = || rows.iter().filter_map(|r| r.stretches[side]);
    let (low, high) = (all().reduce(f64::min), all().reduce(f64::max));
    match (low, high) {
        (Some(low), Some(high)) if low.round() < high.round() => {
            format!("{low:.0} to {high:.0} stretches")
        }
        (Some(one), _) => format!("{one:.0} stretches"),
        _ => NONE.to_owned(),
    }
}

/// Smallest detectable change from which on its size is not given: ten times as long.
const LARGEST_FOUND: f64 = 9.0;

/// Text of the smallest change that would have been found: `12 %`.
pub(super) fn finds(finds: Option<f64>) -> String {
    match finds {
        None => String::new(),
        // With very few stretches only a multiple would have been found, and its size is a guess.
        Some(f) if f > LARGEST_FOUND => format!("over {:.0} %", LARGEST_FOUND * 100.0),
        Some(f) if f >= 0.0995 => format!("{:.0} %", f * 100.0),
        Some(f) => format!("{:.1} %", f * 100.0),
    }
}

/// A duration, given in seconds, in its two largest units.
pub(super) fn length(seconds: f64) -> String {
    units::length(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_told_as_a_change() {
        let of = |value, low, high| change(Some(Interval { value, low, high }));
        let both = |a: &str, b: &str| Some((a.to_owned(), Some(b.to_owned())));
        assert_eq!(of(0.08, 0.07, 0.09), both("1/12", "1/14 .. 1/11"));
        assert_eq!(of(0.88, 0.87, 0.89), both("-12 %", "-13 .. -11"));
        assert_eq!(of(0.3, 0.29, 0.4), both("-70 %", "-71 .. -60"));
        assert_eq!(of(1.0, 0.971, 1.0999), both("0.0 %", "-2.9 .. +10"));
        assert_eq!(
            of(31.0, 30.0, f64::INFINITY),
            Some(("31 times".into(), None))
        );
        assert_eq!(of(9.2, 9.0, 9.5), both("9.2 times", "9.0 .. 9.5"));
        assert_eq!(of(1.05, 1e-4, 12431.4), both("+5.0 %", "-100 .. over +900"));
        assert_eq!(of(3.1, 2.9, 3.3), both("+210 %", "+190 .. +230"));
        assert_eq!(of(f64::NAN, 1.0, 1.0), None);
        assert_eq!(change(None), None);
    }

    #[test]
    fn the_smallest_change_that_would_have_been_found() {
        let all = [None, Some(0.05), Some(0.12), Some(2.62), Some(5e14)];
        let told = all.map(finds);
        assert_eq!(told, ["", "5.0 %", "12 %", "262 %", "over 900 %"]);
    }

    #[test]
    fn probabilities() {
        assert_eq!(probability(Some(0.0004)), "<0.001");
        assert_eq!(probability(Some(f64::NAN)), "-");
    }
}
