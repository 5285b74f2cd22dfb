//! Families of tests, and the level that each of them has.
//!
//! Without a primary quantity all rows are one family: Holm's procedure at 5 %. A primary quantity is a family of its own at the whole
//! 5 %, and the others are tested only behind it: a fixed sequence (W. Maurer, L. Hothorn and W. Lehmacher, 1995). What fails is no
//! question that somebody may leave out. Failures are therefore tested beside the primary quantity, whatever it says, as a third family
//! with a level of its own. By Bonferroni's inequality the levels of both add up.

use crate::compare::options::Options;
use crate::compare::result::{Quantity, Row, Subject, Verdict};
use nfscope_stats as stats;
use nfscope_stats::CONFIDENCE;

/// The level of all verdicts together, and of a primary quantity with what is behind it.
pub(super) const LEVEL: f64 = 1.0 - CONFIDENCE;
/// The level of failures beside a primary quantity.
pub(super) const FAILURES: f64 = 0.01;

/// What is tested together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// What was to be tested first.
    Primary,
    /// Shares that failed, where something else is to be tested first.
    Failures,
    /// Everything else.
    Rest,
}

impl Family {
    /// All of them.
    pub(super) const ALL: [Family; 3] = [Family::Primary, Family::Failures, Family::Rest];

    /// Of a row whose p value is corrected.
    pub(super) fn of(row: &Row, options: &Options) -> Family {
        match &options.primary {
            None => Family::Rest,
            Some(_) if row.primary => Family::Primary,
            Some(_) if is_failure(row) => Family::Failures,
            Some(_) => Family::Rest,
        }
    }

    /// The level of all its tests together.
    pub(super) fn level(self) -> f64 {
        match self {
            Family::Failures => FAILURES,
            Family::Primary | Family::Rest => LEVEL,
        }
    }
}

/// True where a rise is bad whatever the reason: the share that failed. More failures per second may be those of more load.
pub(super) fn is_failure(row: &Row) -> bool {
    let failure = matches!(
        row.subject,
        Subject::Errors { .. }
            | Subject::Dropped { .. }
            | Subject::Replays
            | Subject::WorkloadErrors { .. }
    );
    failure && row.quantity == Quantity::Share
}

/// Corrects p values: Holm's procedure in each family, all of them relative to 5 %. What is behind a closed gate is not tested.
pub(super) fn correct(rows: &mut [&mut Row], options: &Options) {
    for row in rows.iter_mut() {
        row.primary = row.p.is_some() && is_primary(row, options);
    }
    let of = |rows: &[&mut Row], family: Family| -> Vec<usize> {
        let tested = |i: &usize| rows[*i].p.is_some() && Family::of(rows[*i], options) == family;
        (0..rows.len()).filter(tested).collect()
    };
    let [first, failures, rest] = Family::ALL.map(|family| {
        let of = of(rows, family);
        let p: Vec<f64> = of.iter().filter_map(|i| rows[*i].p).collect();
        let corrected = stats::holm(&p);
        let relative = corrected
            .into_iter()
            .map(|p| (p * LEVEL / family.level()).min(1.0));
        of.into_iter().zip(relative).collect::<Vec<_>>()
    });
    // The rest is tested only if all of the primary quantity is found: a fixed sequence of tests, each at the whole level.
    let gate = match options.primary {
        None => 0.0,
        Some(_) if first.is_empty() => 1.0,
        Some(_) => first.iter().map(|(_, p)| *p).fold(0.0, f64::max),
    };
    for (i, p) in first.into_iter().chain(failures) {
        rows[i].p = Some(p);
    }
    for (i, p) in rest {
        let row = &mut rows[i];
        if gate > LEVEL {
            (row.p, row.verdict) = (None, Verdict::NotTested);
        } else {
            row.p = Some(p.max(gate));
        }
    }
}

fn is_primary(row: &Row, options: &Options) -> bool {
    let primary = options.primary.as_ref();
    primary.is_some_and(|m| {
        matches!(&row.subject, Subject::Op { op, .. } if *op == m.op)
            && row.quantity == Quantity::from(m.what)
    })
}
