//! The headline: first the differences that make the sides incomparable, and then the changes.

use crate::compare::cause;
use crate::compare::confounders::first_sentence;
use crate::compare::errors::{Failures, failures as failures_of};
use crate::compare::explained::PRICE;
use crate::compare::families::is_failure;
use crate::compare::labels;
use crate::compare::labels::named;
use crate::compare::result::{Caveat, Quantity, Row, Subject, Verdict};
use crate::durability::DurabilityChange;
use crate::series::SeriesSet;
use nfscope_stats::Interval;
use nfscope_text::units::{many, seconds};

/// Most changes that are listed; readers skip longer paragraphs.
const MOST: usize = 3;

/// Paragraph about durability, failures and other differences of the work, and then about the latency of the operations with the most time.
pub(super) fn paragraph(
    before: &SeriesSet,
    after: &SeriesSet,
    rows: &[Row],
    caveats: &[Caveat],
    durability: Option<&DurabilityChange>,
    not_judged: Option<&str>,
) -> String {
    let mut all: Vec<String> = durability.iter().map(|d| d.text.clone()).collect();
    let is_empty = caveats.iter().any(|w| w.kind == "empty");
    if !is_empty {
        let failures: Vec<String> = failures(rows).collect();
        let more = failures.len().saturating_sub(MOST);
        all.extend(failures.into_iter().take(MOST));
        if more > 0 {
            let more = many(more as f64, "more share");
            all.push(format!("{more} of failures changed: see the table."));
        }
        all.extend(differences(caveats));
    }
    all.push(latencies(before, after, rows, is_empty, not_judged));
    all.join(" ")
}

/// Differences beside the server, the gravest first.
fn differences(caveats: &[Caveat]) -> Vec<String> {
    let of = |kind: &'static str| caveats.iter().filter(move |w| w.kind == kind);
    let all: Vec<&Caveat> = FIRST.into_iter().flat_map(of).collect();
    let each = all.iter().take(MOST).map(|w| first_sentence(&w.text));
    let mut told: Vec<_> = each
        .map(|text| format!("{}.", sentence_case(text)))
        .collect();
    if let more @ 1.. = all.len().saturating_sub(MOST) {
        told.push(format!(
            "{}: see the caveats.",
            many(more as f64, "more difference")
        ));
    }
    told
}

fn latencies(
    before: &SeriesSet,
    after: &SeriesSet,
    rows: &[Row],
    is_empty: bool,
    not_judged: Option<&str>,
) -> String {
    if is_empty {
        return "There is nothing to compare: see the caveats.".into();
    }
    if let Some(why) = not_judged.filter(|_| rows.iter().any(|r| r.verdict == Verdict::NotJudged)) {
        return without_verdict(rows, why);
    }
    let (mut changed, mut unchanged, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (_, rows) in labels::by_subject(rows) {
        let subject = &rows[0].subject;
        if !matches!(subject, Subject::Op { .. } | Subject::Workload { .. }) {
            continue;
        }
        let name = labels::subject(subject);
        match headline(rows) {
            Some(row) => {
                // Phases explain the change of the mean, so they are named only if the mean changed in the same direction.
                let mean = rows.iter().find(|r| r.quantity == Quantity::Mean);
                let why = match (subject, mean.is_some_and(|m| m.verdict == row.verdict)) {
                    (Subject::Op { version, op }, true) => why(before, after, version, op),
                    _ => String::new(),
                };
                changed.push(sentence(&name, row, &why));
            }
            None if rows
                .iter()
                .any(|r| r.verdict == Verdict::NotComparable && r.p.is_some()) =>
            {
                unknown.push(name);
            }
            // Untested rows are not mentioned.
            None if is_untested(rows) => {}
            None if (rows.iter()).any(|r| r.p.is_some() && !r.quantity.is_count()) => {
                unchanged.push(name);
            }
            None => unknown.push(name),
        }
    }
    // An operation starts when a thread takes its request. The wait for a thread shows in requests only.
    if changed.is_empty() {
        changed.extend(requests(rows));
    }
    let more = changed.len().saturating_sub(MOST);
    changed.truncate(MOST);
    if more > 0 {
        changed.push(format!("{more} more operations changed: see the table."));
    }
    if changed.is_empty() && !unchanged.is_empty() {
        changed.push("No evidence of a change in the latency of operations.".into());
    } else if !unchanged.is_empty() {
        changed.push(format!(
            "No evidence of a change in {}.",
            unchanged.join(", ")
        ));
    }
    if !unchanged.is_empty() {
        changed.extend(would_have_found(rows));
    }
    if !unknown.is_empty() {
        changed.push(match of_all(rows, &unknown) {
            Some(why) => format!("Not comparable: {} ({why}).", unknown.join(", ")),
            None => format!("Not comparable: {}.", unknown.join(", ")),
        });
    }
    if is_untested(rows) {
        let primary: Vec<_> = rows.iter().filter(|r| r.primary).map(named).collect();
        changed.push(match primary.is_empty() {
            true => {
                "The primary quantity could not be tested, and nothing is tested behind it.".into()
            }
            false => format!(
                "No evidence of a change in the primary quantity, {}: nothing is tested behind it.",
                primary.join(", ")
            ),
        });
    }
    if changed.is_empty() {
        changed.push("There is nothing to compare: one side has too few operations.".into());
    }
    changed.join(" ")
}

/// The reason that all rows of these subjects have in common.
fn of_all<'a>(rows: &'a [Row], names: &[String]) -> Option<&'a str> {
    let is_named = |r: &&Row| names.contains(&labels::subject(&r.subject));
    let mut reasons = rows.iter().filter(is_named).map(|r| r.why.as_deref());
    let first = reasons.next()??;
    reasons.all(|why| why == Some(first)).then_some(first)
}

/// The measured values of both sides, without a verdict.
fn without_verdict(rows: &[Row], why: &str) -> String {
    let mut all = vec![format!(
        "No verdict: two recordings of an unchanged server may differ by as much. {}.",
        sentence_case(why)
    )];
    let both = |row: &Row| {
        let value = |side: Option<Interval>| Some(labels::value(&row.quantity, side?.value));
        Some([value(row.before)?, value(row.after)?])
    };
    let failed = rows.iter().filter(|r| {
        let value = |side: Option<Interval>| side.map_or(0.0, |e| e.value);
        is_failure(r) && failures_of(value(r.before), value(r.after)) != Failures::Same
    });
    let ops = labels::by_subject(rows).filter(|(_, rows)| {
        matches!(
            rows[0].subject,
            Subject::Op { .. } | Subject::Workload { .. }
        )
    });
    let first = ops.filter_map(|(_, rows)| {
        let of = |q: &Quantity| rows.iter().find(|r| r.quantity == *q && r.ratio.is_some());
        ORDER.iter().find_map(of)
    });
    let shown = failed.chain(first).filter_map(|row| {
        let [before, after] = both(row)?;
        let change = labels::change(row.ratio).map_or(String::new(), |(c, _)| format!(" ({c})"));
        Some(format!(
            "{}: {before} before, {after} after{change}.",
            named(row)
        ))
    });
    all.extend(shown.take(MOST));
    all.join(" ")
}

fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Sentence about the smallest change that the primary quantity, or else the first operation without evidence, would have shown.
fn would_have_found(rows: &[Row]) -> Option<String> {
    let of_ops = rows.iter().filter(|r| {
        let is_op = matches!(r.subject, Subject::Op { .. } | Subject::Workload { .. });
        is_op && r.verdict == Verdict::NoEvidence && !r.quantity.is_count()
    });
    let finds = |r: &Row| r.finds.unwrap_or(f64::INFINITY);
    let first = of_ops.filter(|r| ORDER.contains(&r.quantity) && r.finds.is_some());
    let first = first.min_by(|a, b| {
        let primary = b.primary.cmp(&a.primary);
        primary.then(finds(a).total_cmp(&finds(b)))
    })?;
    Some(format!(
        "A rise of {} by {} would have been found in four of five such comparisons.",
        named(first),
        labels::finds(first.finds)
    ))
}

fn is_untested(rows: &[Row]) -> bool {
    rows.iter().any(|r| r.verdict == Verdict::NotTested)
}

fn requests(rows: &[Row]) -> impl Iterator<Item = String> {
    labels::by_subject(rows).filter_map(|(_, rows)| {
        let name = match &rows[0].subject {
            Subject::Requests { version } => format!("Requests {version}, from arrival to reply:"),
            Subject::Queue => "The wait for a thread:".to_owned(),
            _ => return None,
        };
        Some(sentence(&name, headline(rows)?, ""))
    })
}

/// Sentences about more failures and replays, for which no shorter duration makes up, or about fewer.
fn failures(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|row| {
        let verb = match row.verdict {
            Verdict::Worse if is_failure(row) => "rose",
            Verdict::Better if is_failure(row) => "fell",
            _ => return None,
        };
        let value =
            |side: Option<Interval>| labels::value(&row.quantity, side.map_or(0.0, |e| e.value));
        Some(format!(
            "{} {verb} from {} to {}.",
            labels::subject(&row.subject),
            value(row.before),
            value(row.after)
        ))
    })
}

/// Kinds of differences that may explain any change of a latency, the gravest first.
const FIRST: [&str; 17] = [
    "same",
    "overlap",
    "write_cache",
    "stability",
    "mix",
    "size",
    "clients",
    "host",
    "kernel",
    "coverage",
    "lost",
    "workload",
    "load",
    "warmup",
    "drift",
    "hours",
    "weekdays",
];

/// Quantities of an operation by rank: the first one with a change represents it.
const ORDER: [Quantity; 5] = [
    Quantity::Quantile { percent: 99 },
    Quantity::Mean,
    Quantity::MeanAtOneMix,
    Quantity::Quantile { percent: 90 },
    Quantity::Quantile { percent: 50 },
];

/// The row that represents an operation: p99 if it changed, else the mean, else another quantile.
fn headline(rows: &[Row]) -> Option<&Row> {
    ORDER
        .iter()
        .filter_map(|q| rows.iter().find(|r| r.quantity == *q))
        .find(|r| matches!(r.verdict, Verdict::Better | Verdict::Worse))
}

fn sentence(name: &str, row: &Row, why: &str) -> String {
    let verb = if row.verdict == Verdict::Better {
        "fell"
    } else {
        "rose"
    };
    let value = |side: Option<Interval>| side.map_or(0.0, |e| e.value);
    let (change, interval) = labels::change(row.ratio).unwrap_or_default();
    let interval = interval.map_or(String::new(), |i| format!(", 95 % CI {i}"));
    let price = match &row.why {
        Some(why) if why.contains(PRICE) => "The price of durability: ",
        _ => "",
    };
    format!(
        "{price}{name} {} {verb} from {} to {} ({change}{interval}){why}.",
        labels::quantity(&row.quantity),
        seconds(value(row.before)),
        seconds(value(row.after)),
    )
}

/// Phase that accounts for most of the change of the mean, if there is one.
fn why(before: &SeriesSet, after: &SeriesSet, version: &str, op: &str) -> String {
    let shares = cause::shares(before, after, version, op).into_iter();
    let most = shares.max_by(|(_, x), (_, y)| x.total_cmp(y));
    let Some((phase, share)) = most.filter(|(_, share)| *share >= 0.5) else {
        return String::new();
    };
    // Above 100 %, another phase changed in the opposite direction.
    format!(
        "; {:.0} % of the change of the mean is {}",
        (share * 100.0).min(100.0),
        cause::name(phase)
    )
}
