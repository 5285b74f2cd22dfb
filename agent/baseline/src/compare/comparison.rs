//! Puts a comparison together from its parts.

use crate::compare::confounders::clients;
use crate::compare::result::{Comparison, Row, Side};
use crate::compare::{confounders, headline, hypothesis, plot_data, selection};
use crate::series::SeriesSet;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_text::units::percent;

/// What a comparison reads of a recording.
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

/// Holds `after` against `before`; changes by up to the part `least` do not matter.
pub fn compare(before: &SeriesSet, after: &SeriesSet, least: f64) -> Comparison {
    let subjects = selection::choose(before, after);
    let rows = hypothesis::rows(before, after, &subjects.kept, least);
    let caveats = confounders::find(before, after);
    Comparison {
        headline: headline::paragraph(before, after, &rows, &caveats),
        before: side(before),
        after: side(after),
        method: method(&rows, least),
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

fn method(rows: &[Row], least: f64) -> Vec<String> {
    let compared = rows.iter().filter(|r| r.p.is_some()).count();
    vec![
        format!(
            "A verdict tells of a change by more than {}; the probability that any of the {compared} tells of one where \
             there is none is 5 % at most (Holm 1979). An interval is that of its own comparison.",
            percent(least)
        ),
        "Standard errors: batch means of windows, because a busy window follows a busy window (Law, Simulation Modeling and \
         Analysis, section 9.5.3), prewhitened (Andrews and Monahan 1992) and corrected for the correlation that remains \
         (N-Skart, Tafazzoli et al. 2011)."
            .into(),
        "Quantiles: from all windows' histograms, inside a bucket along the slope of its neighbours; intervals by Woodruff (1952) \
         on log odds (Dean and Pagano 2015), and as wide as the bucket where it hides nearly all values of one side."
            .into(),
        "Changes: the two sides' intervals combined on the logarithms (MOVER, Zou and Donner 2008).".into(),
    ]
}
