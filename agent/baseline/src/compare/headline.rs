//! The answer in one paragraph.

use crate::compare::hypothesis::phases;
use crate::compare::labels as words;
use crate::compare::result::{Quantity, Row, Subject, Verdict, Warning};
use crate::series::Columns;
use nfscope_model::{family as f, phase};
use nfscope_text::units::seconds;

/// More sentences of changes would not be read.
const MOST: usize = 3;

/// What changed, the operation with the most time first.
pub(super) fn paragraph(
    before: &Columns,
    after: &Columns,
    rows: &[Row],
    warnings: &[Warning],
) -> String {
    let (mut changed, mut unchanged, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (_, rows) in words::by_subject(rows) {
        let Subject::Op { version, op } = &rows[0].subject else {
            continue;
        };
        let name = words::operation(version, op);
        match headline(rows) {
            Some(row) => {
                // What the mean did not do has no part in it.
                let mean = rows.iter().find(|r| r.quantity == Quantity::Mean);
                let why = match mean.is_some_and(|m| m.verdict == row.verdict) {
                    true => why(before, after, version, op),
                    false => String::new(),
                };
                changed.push(sentence(&name, row, &why));
            }
            None if rows.iter().any(|r| r.p.is_some()) => unchanged.push(name),
            None => unknown.push(name),
        }
    }
    // Operations begin in a thread: what waits for one is told of requests.
    if changed.is_empty() {
        changed.extend(requests(rows));
    }
    let more = changed.len().saturating_sub(MOST);
    changed.truncate(MOST);
    if more > 0 {
        changed.push(format!("{more} more operations changed, see the table."));
    }
    if changed.is_empty() && !unchanged.is_empty() {
        changed.push("No evidence of a change in how long operations take.".into());
    } else if !unchanged.is_empty() {
        changed.push(format!(
            "No evidence of a change in {}.",
            unchanged.join(", ")
        ));
    }
    if !unknown.is_empty() {
        changed.push(format!("Not comparable: {}.", unknown.join(", ")));
    }
    if changed.is_empty() {
        changed.push("There is nothing to compare: hardly any operations on one side.".into());
    }
    if warnings.iter().any(|w| DOUBTFUL.contains(&w.kind)) {
        changed.push("But the two did not do the same work: see the warnings.".into());
    }
    changed.join(" ")
}

fn requests(rows: &[Row]) -> impl Iterator<Item = String> {
    words::by_subject(rows).filter_map(|(_, rows)| {
        let name = match &rows[0].subject {
            Subject::Requests { version } => format!("Requests {version}, from arrival to reply:"),
            Subject::Queue => "The wait for a thread:".to_owned(),
            _ => return None,
        };
        Some(sentence(&name, headline(rows)?, ""))
    })
}

/// Differences that may be the whole reason.
const DOUBTFUL: [&str; 3] = ["load", "mix", "clients"];

/// The change to tell of an operation: that of its worst moments, else of its mean, else of any quantile.
fn headline(rows: &[Row]) -> Option<&Row> {
    [
        Quantity::Quantile { percent: 99 },
        Quantity::Mean,
        Quantity::Quantile { percent: 90 },
        Quantity::Quantile { percent: 50 },
    ]
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
    let value = |side: Option<crate::compare::result::Estimate>| side.map_or(0.0, |e| e.value);
    let (change, interval) = words::change(row.ratio).unwrap_or_default();
    let interval = interval.map_or(String::new(), |i| format!(", 95 % CI {i}"));
    format!(
        "{name} {} {verb} from {} to {} ({change}{interval}){why}.",
        words::quantity(&row.quantity),
        seconds(value(row.before)),
        seconds(value(row.after)),
    )
}

/// Which phase most of the mean's change is in, where one is.
fn why(before: &Columns, after: &Columns, version: &str, op: &str) -> String {
    let mean = |c: &Columns| c.spreads(&f::OP_DURATION, |l| l == [version, op])?.mean();
    let phases = |c| phases(c, version, op);
    let (Some(b), Some(a)) = (mean(before), mean(after)) else {
        return String::new();
    };
    let (Some(before), Some(after)) = (phases(before), phases(after)) else {
        return String::new();
    };
    let sides = before.iter().zip(&after);
    let most = phase::OF_OP
        .iter()
        .zip(sides.map(|(b, a)| a.unwrap_or(0.0) - b.unwrap_or(0.0)))
        .map(|(phase, change)| (phase, change / (a - b)))
        .filter(|(_, share)| share.is_finite())
        .max_by(|x, y| x.1.total_cmp(&y.1));
    match most {
        Some((phase, share)) if share >= 0.5 => {
            let what = match *phase {
                "cpu" => "time on processors",
                "runqueue" => "waiting for a processor",
                "log" => "log wait",
                "disk" => "disk wait",
                _ => "waiting for other threads",
            };
            // More than all of it: something else went the other way.
            format!(
                "; {:.0} % of the mean's change is {what}",
                (share * 100.0).min(100.0)
            )
        }
        _ => String::new(),
    }
}
