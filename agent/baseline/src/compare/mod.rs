//! Two baselines held against each other.
//!
//! [`rows`] estimates and judges each quantity, [`doubts`] says what else differs, [`answer`] puts it into one paragraph,
//! [`plots`] collects what is drawn.

mod confounders;
mod headline;
pub mod html;
mod hypothesis;
mod labels;
mod plot_data;
pub mod result;
mod selection;
pub mod text;

use crate::series::Columns;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_text::units::percent;
use result::{Comparison, Side};

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
pub fn compare(before: &Columns, after: &Columns, least: f64) -> Comparison {
    let subjects = selection::choose(before, after);
    let rows = hypothesis::judged(before, after, &subjects.kept, least);
    let warnings = confounders::about(before, after);
    Comparison {
        answer: headline::paragraph(before, after, &rows, &warnings),
        before: side(before),
        after: side(after),
        method: method(&rows, least),
        left_out: subjects.left_out.clone(),
        curves: plot_data::curves(before, after, &subjects.kept),
        bars: plot_data::bars(before, after, &subjects.kept),
        courses: plot_data::courses(before, after, &subjects.kept),
        warnings,
        rows,
    }
}

fn side(c: &Columns) -> Side {
    let operations = c.spreads(&f::OP_DURATION, |_| true);
    Side {
        about: c.about.clone(),
        windows: c.windows,
        seconds: c.seconds(),
        operations: operations.map_or(0.0, |s| s.count()),
        clients: clients(c),
    }
}

/// Clients that did something.
fn clients(c: &Columns) -> usize {
    let all = c.sums(&f::CLIENT_OPS);
    all.iter().filter(|(_, n)| *n > 0.0).count()
}

fn method(rows: &[result::Row], least: f64) -> Vec<String> {
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
