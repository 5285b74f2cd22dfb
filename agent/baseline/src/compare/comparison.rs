//! Puts a comparison together from its parts.

use crate::compare::confounders::clients;
use crate::compare::result::{Comparison, Row, Side};
use crate::compare::{confounders, headline, hypothesis, plot_data, selection};
use crate::series::SeriesSet;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_text::units::percent;

/// The families that a comparison reads from a recording.
pub const FAMILIES: &[&Info] = &[
    &f::OP_DURATION.info,
    &f::OP_PHASE.info,
    &f::RPC_DURATION.info,
    &f::RPC_QUEUE.info,
    &f::LOG_WAIT.info,
    &f::WRITE.info,
    &f::IO_SIZE.info,
    &f::THREADS.info,
    &f::CLIENT_OPS.info,
    &f::EVENTS_LOST.info,
];

/// Compares `after` with `before`. Changes by up to `min_effect` (0.02 for 2 %) count as none.
pub fn compare(before: &SeriesSet, after: &SeriesSet, min_effect: f64) -> Comparison {
    let subjects = selection::choose(before, after);
    let rows = hypothesis::rows(before, after, &subjects.kept, min_effect);
    let caveats = confounders::find(before, after);
    Comparison {
        headline: headline::paragraph(before, after, &rows, &caveats),
        before: side(before),
        after: side(after),
        method: method(&rows, min_effect),
        left_out: subjects.left_out.clone(),
        curves: plot_data::curves(before, after, &subjects.kept),
        bars: plot_data::bars(before, after, &subjects.kept),
        time_series: plot_data::time_series(before, after, &subjects.kept),
        caveats,
        rows,
    }
}

fn side(c: &SeriesSet) -> Side {
    let operations = c.histograms(&f::OP_DURATION, |_| true);
    Side {
        metadata: c.metadata.clone(),
        windows: c.windows,
        seconds: c.seconds(),
        operations: operations.map_or(0.0, |s| s.count()),
        clients: clients(c),
    }
}

fn method(rows: &[Row], min_effect: f64) -> Vec<String> {
    let compared = rows.iter().filter(|r| r.p.is_some()).count();
    vec![
        format!(
            "A verdict reports a change by more than {}. The probability that at least one of the {compared} verdicts reports \
             a change where there is none is at most 5 % (Holm 1979). Confidence intervals are not corrected for multiple \
             comparisons.",
            percent(min_effect)
        ),
        "Standard errors: batch means of windows, because consecutive windows are correlated (Law, Simulation Modeling and \
         Analysis, section 9.5.3), prewhitened (Andrews and Monahan 1992) and corrected for the correlation that remains \
         (N-Skart, Tafazzoli et al. 2011)."
            .into(),
        "Quantiles: from the merged histograms of all windows, interpolated within a bucket by the slope of its neighbours. \
         Confidence intervals by Woodruff (1952) on log odds (Dean and Pagano 2015); as wide as the bucket if it holds nearly \
         all values on one side of the quantile."
            .into(),
        "Changes: the confidence intervals of both sides combined on the logarithms (MOVER, Zou and Donner 2008).".into(),
    ]
}
