//! The primary quantity, which is tested first.
//!
//! `--primary` names it. Otherwise it is the mean of the subject that took the most time on both sides together: an operation of the
//! client's workload, an operation of the server, or the wait for a thread. Times of both sides together do not depend on the difference
//! between them, so the choice makes no finding more likely.

use crate::compare::options::Options;
use crate::compare::quantities::durations_of;
use crate::compare::result::{Quantity, Row, Subject};
use crate::compare::sides::Sides;
use crate::series::SeriesSet;

/// Returns true for a row that `--primary` names.
pub(super) fn is_asked(row: &Row, options: &Options) -> bool {
    let primary = options.primary.as_ref();
    primary.is_some_and(|m| {
        matches!(&row.subject, Subject::Op { op, .. } if *op == m.op)
            && row.quantity == Quantity::from(m.what)
    })
}

/// Marks the rows that are tested first, among those that have a p value.
pub(super) fn mark(rows: &mut [&mut Row], sides: &Sides, options: &Options) {
    if options.primary.is_some() {
        for row in rows.iter_mut() {
            row.primary = row.p.is_some() && is_asked(row, options);
        }
        return;
    }
    let all = sides.compared();
    let candidates = rows.iter().enumerate().filter(|(_, r)| is_candidate(r));
    let ranks = candidates.map(|(i, r)| (i, rank(&all, &r.subject)));
    let first = ranks.max_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    if let Some((first, _)) = first {
        rows[first].primary = true;
    }
}

fn is_candidate(row: &Row) -> bool {
    let of = matches!(
        row.subject,
        Subject::Op { .. } | Subject::Queue | Subject::Workload { .. }
    );
    of && row.quantity == Quantity::Mean && row.p.is_some()
}

/// Rank of a subject. Figures of a client go before those of the server. Then comes the time per second, the mean of all recordings.
fn rank(all: &[&SeriesSet], subject: &Subject) -> (bool, f64) {
    let each = all.iter().filter_map(|c| {
        let seconds: f64 = durations_of(c, subject)?.sums.iter().sum();
        Some(seconds / c.seconds().max(f64::MIN_POSITIVE))
    });
    let is_of_client = matches!(subject, Subject::Workload { .. });
    (is_of_client, each.sum())
}
