//! The statistical methods of a comparison, in sentences, with their sources.

use crate::compare::families::{CHOSEN, FAILURES, LEVEL, is_failure};
use crate::compare::labels;
use crate::compare::options::Options;
use crate::compare::result::Row;
use crate::compare::sides::Sides;
use crate::compare::times;
use nfscope_stats::MIN_STRETCHES;
use nfscope_text::units::percent;

/// Sentences about the methods. The first one is about the promise of the verdicts, and its limits.
pub(super) fn sentences(
    sides: &Sides,
    rows: &[Row],
    options: &Options,
    is_judged: bool,
) -> Vec<String> {
    let compared = rows.iter().filter(|r| r.p.is_some()).count();
    let unit = match (options.matching, sides.has_replicates(), options.between) {
        (Some(_), ..) => "if nothing else changed from one day to the other".to_owned(),
        (None, true, _) => "if nothing else differs between the sides".to_owned(),
        (None, false, Some(b)) => {
            format!(
                "if recordings of an unchanged server differ by {} beyond their windows",
                percent(b)
            )
        }
        (None, false, None) => String::new(),
    };
    // Without failures all tests come after the primary quantity.
    let beside = options.primary.is_some() && rows.iter().any(is_failure);
    let chosen = rows.iter().find(|r| r.primary && r.p.is_some());
    let order = match (&options.primary, beside) {
        (None, _) => chosen.map_or_else(String::new, |row| {
            format!(
                "The primary quantity is {}, which takes the most time, and any change of it counts. It has {:.0} % of the level, and the \
                 others have the rest, or all of it where it is found (Holm's weights). ",
                labels::named(row),
                CHOSEN * 100.0
            )
        }),
        (Some(_), false) => {
            "The primary quantity is tested first, for any change, and the others only behind it (a fixed sequence). ".into()
        }
        (Some(_), true) => format!(
            "The primary quantity is tested first, for any change, and the others only behind it (a fixed sequence). Failures are tested beside it, \
             whatever it says, at a level of {:.0} %. ",
            FAILURES * 100.0
        ),
    };
    let level = LEVEL + if beside { FAILURES } else { 0.0 };
    let earlier: Vec<_> = sides.earlier.iter().flatten().collect();
    let earlier: Vec<_> = earlier.iter().map(|c| c.metadata.name.as_str()).collect();
    let from = match earlier.is_empty() {
        true => String::new(),
        false => format!(
            " How much recordings differ is known from earlier ones: {}.",
            earlier.join(", ")
        ),
    };
    let any = match compared {
        1 => "the verdict".to_owned(),
        n => format!("at least one of the {n} verdicts"),
    };
    let verdicts = format!(
        "A verdict reports a change by more than {}. {order}The probability that {any} reports a \
         change where there is none is at most {:.0} % (Holm 1979), {unit}. Confidence intervals are not corrected for multiple \
         comparisons, but for those of rows whose note says so. FINDS is the smallest change that four of five such comparisons would have found.{from}",
        percent(options.min_effect),
        level * 100.0
    );
    let overlap = [sides.before, sides.after]
        .iter()
        .any(|side| times::overlapping(side).is_some());
    let mut all = vec![match is_judged {
        true => verdicts,
        false if overlap => "There is no verdict: recordings that overlap in time do not show how much recordings of an unchanged server \
                 differ (Kalibera and Jones 2013). Intervals are as narrow as if they did."
            .to_owned(),
        false => "There is no verdict: recordings of an unchanged server differ by more than their windows show (Kalibera and Jones \
                 2013). Intervals are those of the windows of these recordings alone."
            .to_owned(),
    }];
    if options.matching.is_some() || sides.has_replicates() {
        let unit = match (options.matching, is_judged) {
            (Some(_), true) => {
                "Each hour is compared with the same hour of the other side. Days or weeks are the unit: Student's t on their means over \
                 the hours that all of them have, each hour relative to its mean over all of them."
            }
            (Some(_), false) => "Each hour is compared with the same hour of the other side.",
            (None, true) => {
                "The recording is the unit: Student's t on the logarithms, with the variance of all groups pooled (Kalibera and Jones \
                 2013). Drawings show the first recording of each side."
            }
            (None, false) => "Drawings show the first recording of each side.",
        };
        all.push(unit.into());
    }
    all.extend([
        "Standard errors: batch means of windows, because consecutive windows are correlated (Law, Simulation Modeling and \
         Analysis, section 9.5.3), prewhitened (Andrews and Monahan 1992) and corrected for the correlation that remains \
         (N-Skart, Tafazzoli et al. 2011)."
            .into(),
        format!(
            "Independent stretches: windows that resemble each other tell as much as fewer that do not. With fewer than \
             {MIN_STRETCHES:.0} the verdict is few."
        ),
        "Quantiles: from the merged histograms of all windows, interpolated within a bucket by the slope of its neighbours. \
         Confidence intervals by Woodruff (1952) on log odds (Dean and Pagano 2015); as wide as the bucket if it holds nearly \
         all values on one side of the quantile."
            .into(),
    ]);
    all.push(
        "Totals over operations: the mean of requests is tested at one mix, the mean of both sides, where their mixes matter (direct \
         standardisation, Kitagawa 1955). What another mix, size or stability explains of the others is no verdict."
            .into(),
    );
    if options.matching.is_none() && !sides.has_replicates() {
        all.push(
            "Changes: the confidence intervals of both sides combined on the logarithms (MOVER, Zou and Donner 2008).".into(),
        );
    }
    all
}
