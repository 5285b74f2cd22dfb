//! Families of tests, and the level that each of them has.
//!
//! Without --primary all rows are one family: Holm's procedure at 5 %, in which a chosen primary quantity has 80 % of the level. The rest
//! of the level is for the others. A primary quantity of --primary is a family of its own at the whole 5 %, and the others are tested only
//! after it: a fixed sequence (W. Maurer, L. Hothorn and W. Lehmacher, 1995). Failures must not be left out by that. They are therefore
//! tested beside the primary quantity, whatever its result is, as a third family with a level of its own. By Bonferroni's inequality the
//! levels of both add up.

use crate::compare::options::Options;
use crate::compare::result::{Quantity, Row, Subject, Verdict};
use nfscope_stats as stats;
use nfscope_stats::CONFIDENCE;

/// Level of all verdicts together, and of a primary quantity with the tests after it.
pub(super) const LEVEL: f64 = 1.0 - CONFIDENCE;
/// Level of failures beside a primary quantity.
pub(super) const FAILURES: f64 = 0.01;

/// A family of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// The quantity of --primary, which is tested first.
    Primary,
    /// Shares that failed, if --primary names another quantity.
    Failures,
    /// All other tests.
    Rest,
}

impl Family {
    /// All families.
    pub(super) const ALL: [Family; 3] = [Family::Primary, Family::Failures, Family::Rest];

    /// Family of a row whose p value is corrected.
    pub(super) fn of(row: &Row, options: &Options) -> Family {
        match &options.primary {
            None => Family::Rest,
            Some(_) if row.primary => Family::Primary,
            Some(_) if is_failure(row) => Family::Failures,
            Some(_) => Family::Rest,
        }
    }

    /// Level of all tests of the family together.
    pub(super) fn level(self) -> f64 {
        match self {
            Family::Failures => FAILURES,
            Family::Primary | Family::Rest => LEVEL,
        }
    }
}

/// Returns true for a row whose rise is bad whatever the reason: the share that failed. More failures per second may come from more load.
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

/// Part of the level of all verdicts for a primary quantity that was chosen without --primary; the others share the rest. The main response
/// of `nfscope versions` has the same part.
pub(super) const CHOSEN: f64 = 0.8;

/// Weights of the tests of one family in Holm's procedure. Within a family they are equal, unless a primary quantity is among others.
fn weights(is_primary: &[bool]) -> Vec<f64> {
    let primary = is_primary.iter().filter(|p| **p).count() as f64;
    let others = is_primary.len() as f64 - primary;
    let each = is_primary.iter().map(|first| match (first, others > 0.0) {
        _ if primary == 0.0 || others == 0.0 => 1.0,
        (true, _) => CHOSEN / primary,
        (false, _) => (1.0 - CHOSEN) / others,
    });
    each.collect()
}

/// The rows of a family that have a p value, with their weights.
fn tests_of<R: std::borrow::Borrow<Row>>(
    rows: &[R],
    family: Family,
    options: &Options,
) -> Vec<(usize, f64)> {
    let row = |i: usize| -> &Row { rows[i].borrow() };
    let tested = |i: &usize| row(*i).p.is_some() && Family::of(row(*i), options) == family;
    let of: Vec<usize> = (0..rows.len()).filter(tested).collect();
    let is_primary: Vec<bool> = of.iter().map(|i| row(*i).primary).collect();
    of.into_iter().zip(weights(&is_primary)).collect()
}

/// Corrects p values: Holm's procedure in each family, all of them relative to 5 %. Rows after a closed gate are not tested.
pub(super) fn correct(rows: &mut [&mut Row], options: &Options) {
    let [first, failures, rest] = Family::ALL.map(|family| {
        let seen: Vec<&Row> = rows.iter().map(|r| &**r).collect();
        let of = tests_of(&seen, family, options);
        let p: Vec<f64> = of.iter().filter_map(|(i, _)| seen[*i].p).collect();
        let weights: Vec<f64> = of.iter().map(|(_, w)| *w).collect();
        let relative = stats::holm_weighted(&p, &weights)
            .into_iter()
            .map(|p| (p * LEVEL / family.level()).min(1.0));
        of.iter().map(|(i, _)| *i).zip(relative).collect::<Vec<_>>()
    });
    // The rest is tested only if every row of the primary quantity is found: a fixed sequence of tests, each at the whole level.
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

/// Levels of the test of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Levels {
    /// Level in the first step of Holm's procedure, when nothing else is found.
    pub first: f64,
    /// Level in the step that found no more.
    pub last: f64,
}

/// Levels of each row, after the correction of p values.
pub(super) fn levels(rows: &[&Row], options: &Options) -> Vec<Levels> {
    let mut all: Vec<Levels> = rows
        .iter()
        .map(|r| Family::of(r, options).level())
        .map(|level| Levels {
            first: level,
            last: level,
        })
        .collect();
    for family in Family::ALL {
        let tests = tests_of(rows, family, options);
        let sum = |wanted: &dyn Fn(f64) -> bool| -> f64 {
            let of = tests.iter().filter(|(i, _)| rows[*i].p.is_some_and(wanted));
            of.map(|(_, w)| w).sum()
        };
        let (whole, left) = (sum(&|_| true), sum(&|p| p > LEVEL));
        for (i, w) in &tests {
            let part = |of: f64| family.level() * (w / of.max(*w));
            all[*i] = Levels {
                first: part(whole),
                last: part(left),
            };
        }
    }
    all
}
