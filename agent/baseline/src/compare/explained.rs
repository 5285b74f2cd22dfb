//! Withdraws verdicts about changes that may have another reason than a better or worse server: failures, another mix of the work, writes
//! that are not durable.

use crate::compare::cause;
use crate::compare::errors::{self, Failures};
use crate::compare::families::is_failure;
use crate::compare::mix::Mix;
use crate::compare::one_side::OneSided;
use crate::compare::result::{Quantity, Row, Subject, Verdict};
use crate::compare::sides::Sides;
use crate::durability::{Direction, DurabilityChange};
use crate::series::SeriesSet;
use nfscope_stats::MIN_EFFECT;
use nfscope_text::units::percent;

fn is_mean(quantity: &Quantity) -> bool {
    matches!(quantity, Quantity::Mean | Quantity::MeanAtOneMix)
}

/// Failures are often fast. If more operations fail, shorter durations are no better; if fewer fail, longer ones are no worse.
pub(super) fn by_failures(row: &mut Row, sides: &Sides, min_effect: f64) {
    if row.quantity.is_count() || !matches!(row.verdict, Verdict::Better | Verdict::Worse) {
        return;
    }
    let share = |of: &dyn Fn(&SeriesSet) -> f64| {
        let mean = |side: &[SeriesSet]| side.iter().map(of).sum::<f64>() / side.len().max(1) as f64;
        (mean(sides.before), mean(sides.after))
    };
    let (before, after) = match &row.subject {
        Subject::Op { version, op } => share(&|c| errors::share(c, version, op)),
        Subject::Requests { version } => share(&|c| errors::share_of_all(c, Some(version))),
        _ => return,
    };
    // If failures had taken no time at all, their end would have raised the mean by this factor. A change beyond it is real.
    let of_failures = (1.0 - after) / (1.0 - before) * (1.0 + min_effect);
    let longer = is_mean(&row.quantity) && row.ratio.is_some_and(|r| r.low > of_failures);
    let contradicted = match errors::failures(before, after) {
        Failures::More => row.verdict == Verdict::Better,
        Failures::Fewer => row.verdict == Verdict::Worse && !longer,
        Failures::Same => false,
    };
    if contradicted {
        row.verdict = Verdict::NotComparable;
        row.why = Some(format!(
            "{} failed before, {} after, and the durations include failures",
            percent(before),
            percent(after)
        ));
    }
}

/// A total over operations moves with their mix, and a duration with the size and the stability of reads and writes. A note has the change
/// that these explain alone, whether a verdict remains or not. Quantiles of a total have no verdict beside another mix.
pub(super) fn by_mix(row: &mut Row, mix: &Mix, min_effect: f64) {
    // The mean of requests is tested at one mix. Quantiles of a total cannot be tested so, because no histogram has the part of each
    // operation in them.
    let is_total = matches!(
        row.subject,
        Subject::Requests { .. } | Subject::Queue | Subject::Log { .. }
    );
    let is_mixed = is_total && matches!(row.quantity, Quantity::Quantile { .. });
    let is_judged = match row.verdict {
        Verdict::Better | Verdict::Worse | Verdict::NotJudged => true,
        Verdict::NoEvidence | Verdict::Small => is_mixed,
        _ => false,
    };
    let (true, Some(ratio)) = (is_judged, row.ratio) else {
        return;
    };
    let explained = mix.explains(&row.subject, &row.quantity);
    let Some(explained) = explained.filter(|e| !e.is_nothing(min_effect)) else {
        return;
    };
    let is_other = is_mixed && !explained.is_nothing(min_effect.max(MIN_EFFECT));
    let is_left = explained.leaves(ratio, min_effect) && !is_other;
    let is_change = matches!(row.verdict, Verdict::Better | Verdict::Worse);
    if is_other && row.verdict != Verdict::NotJudged || is_change && !is_left {
        (row.verdict, row.finds) = (Verdict::NotComparable, None);
    }
    if is_other || is_change || row.verdict == Verdict::NotJudged {
        add(row, explained.text());
    }
}

/// Adds to the note of a row.
fn add(row: &mut Row, text: String) {
    row.why = Some(match row.why.take() {
        Some(why) => format!("{why}; {text}"),
        None => text,
    });
}

/// The beginning of a note on what durability costs.
pub(super) const PRICE: &str = "the price of durability: ";
/// Phases in which a thread waits until data are durable.
const DURABLE: [&str; 3] = ["log", "disk", "throttle"];
/// Share of the change from which on a longer mean in these phases is the price of durability.
const MOST: f64 = 0.5;

/// Withdraws the verdict about a change of latency if the operation with the most time has a trend on one side alone. The verdicts about
/// all requests of its version and about waits for logs are withdrawn, too.
pub(super) fn by_course(row: &mut Row, courses: &[OneSided]) {
    let concerns = |course: &&OneSided| {
        let [longest, name] = &course.op;
        match &row.subject {
            Subject::Op { version, op } => version == longest && op == name,
            Subject::Requests { version } => version == longest,
            Subject::Log { .. } => true,
            _ => false,
        }
    };
    let course = courses.iter().find(concerns);
    let Some(course) = course.filter(|_| row.verdict.is_change()) else {
        return;
    };
    if !matches!(row.quantity, Quantity::Share | Quantity::Rate) {
        row.verdict = Verdict::NotComparable;
        row.why = Some(course.why.clone());
    }
}

/// A server that acknowledges writes before they are durable is fast. READs profit as well, because the disks have less to do, and
/// errors of disks reach no client.
pub(super) fn by_durability(row: &mut Row, sides: &Sides, change: Option<&DurabilityChange>) {
    let why = match (row.verdict, change.map(|c| c.direction)) {
        (Verdict::Better, Some(Direction::Less)) => {
            "acknowledged writes may be lost in a crash after"
        }
        (Verdict::Better, Some(Direction::Unknown)) => {
            "it is not known whether acknowledged writes were durable after"
        }
        // The verdict stays, with a note: durability has a price.
        (Verdict::Worse, Some(Direction::More)) if !is_failure(row) => {
            if let Some(price) = price(row, sides) {
                add(row, price);
            }
            return;
        }
        _ => return,
    };
    row.verdict = Verdict::NotComparable;
    row.why = Some(why.into());
}

/// Note on the part of a longer latency that is the price of durability, if any is.
fn price(row: &Row, sides: &Sides) -> Option<String> {
    let waits = |share: &f64| *share > MOST;
    let waited = match (&row.subject, &row.quantity) {
        (Subject::Log { .. }, _) => Some(1.0),
        (Subject::Op { .. }, Quantity::Phase { phase }) => {
            Some(f64::from(u8::from(DURABLE.contains(phase))))
        }
        (Subject::Op { version, op }, _) => {
            let shares = cause::shares(&sides.before[0], &sides.after[0], version, op);
            let of = shares.iter().filter(|(phase, _)| DURABLE.contains(phase));
            (!shares.is_empty()).then(|| of.map(|(_, share)| share).sum())
        }
        _ => None,
    };
    let Some(share) = waited else {
        return Some("acknowledged writes are durable now: this may be the price of that".into());
    };
    Some(share).filter(waits).map(|share| {
        format!(
            "{PRICE}{} of the longer time is wait for a log, a disk or written data",
            percent(share.min(1.0))
        )
    })
}
