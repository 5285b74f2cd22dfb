//! Puts a comparison together from its parts.

use crate::compare::confounders::clients;
use crate::compare::mix::Mix;
use crate::compare::options::Options;
use crate::compare::result::{Comparison, Quantity, Row, Side, Subject};
use crate::compare::sides::Sides;
use crate::compare::{
    confounders, headline, html, hypothesis, method, next, plot_data, selection, variance,
};
use crate::durability::Durability;
use crate::series::SeriesSet;
use crate::workload;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats::Interval;

/// Share of stable WRITEs from which on all count as stable.
const ALL: f64 = 0.999;

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
    &f::THREAD_BUSY.info,
    &f::CLIENT_OPS.info,
    &f::EVENTS_LOST.info,
    &f::KERNEL_OPS.info,
    &f::TIMED_OPS.info,
    &f::RPC_PHASE.info,
    &f::OP_ERRORS.info,
    &f::RPC_DROPPED.info,
    &f::NOT_DURABLE.info,
    &f::EXPORT_DEVICE.info,
    &f::LOG_SEPARATE.info,
    &f::DURABLE_WRITES.info,
    &f::UNSAFE_WRITES.info,
    &f::BLOCK_DEVICE.info,
    &f::BLOCK_FUA.info,
    &f::REPLY_CACHE.info,
    &workload::DURATION.info,
    &workload::SECONDS.info,
    &workload::ERRORS.info,
];

/// Compares the recordings of two sides, of which each has at least one.
pub fn compare_sides(sides: &Sides, options: &Options) -> Comparison {
    let subjects = selection::choose(&sides.compared());
    let durable = [sides.before, sides.after].map(Durability::of);
    let durability = durable[0].change(&durable[1]);
    let mix = Mix::of(sides.before, sides.after);
    let not_judged = variance::unknown(sides, options);
    let is_judged = not_judged.is_none();
    let change = durability.as_ref();
    let rows = hypothesis::rows(sides, &subjects.kept, options, change, &mix, is_judged);
    let caveats = confounders::find(sides, &rows, options, &mix, &durable, not_judged.as_deref());
    let (before, after) = (&sides.before[0], &sides.after[0]);
    let mut c = Comparison {
        headline: headline::paragraph(
            before,
            after,
            &rows,
            &caveats,
            change,
            not_judged.as_deref(),
        ),
        durability,
        min_effect: options.min_effect,
        before: side(sides.before),
        after: side(sides.after),
        next: next::advice(sides, &rows, options, !is_judged),
        method: method::sentences(sides, &rows, options, is_judged),
        not_judged,
        durable_writes: durable
            .iter()
            .all(|d| d.at_risk() == Some(0.0) && d.unknown().is_none())
            && stable(&rows),
        dots: None,
        left_out: subjects.left_out.clone(),
        curves: plot_data::curves(before, after, &subjects.kept),
        bars: plot_data::bars(before, after, &subjects.kept),
        time_series: plot_data::time_series(before, after, &subjects.kept),
        caveats,
        rows,
    };
    c.dots = html::main_row(&c).map(|row| plot_data::dots(sides, row));
    c
}

/// Returns true if every WRITE of both sides asked to be stable.
fn stable(rows: &[Row]) -> bool {
    let share = |r: &&Row| r.subject == Subject::SyncWrites && r.quantity == Quantity::Share;
    let all = |side: Option<Interval>| side.is_some_and(|i| i.value >= ALL);
    rows.iter()
        .find(share)
        .is_some_and(|r| all(r.before) && all(r.after))
}

fn side(all: &[SeriesSet]) -> Side {
    let operations = |c: &SeriesSet| {
        let all = c.histograms(&f::OP_DURATION, |_| true);
        // Without a recorded server the operations are those of the client's workload.
        let all = all.or_else(|| c.histograms(&workload::DURATION, |_| true));
        all.map_or(0.0, |s| s.count())
    };
    Side {
        metadata: all[0].metadata.clone(),
        recordings: all.iter().map(|c| c.metadata.name.clone()).collect(),
        windows: all.iter().map(|c| c.windows).sum(),
        seconds: all.iter().map(SeriesSet::seconds).sum(),
        operations: all.iter().map(operations).sum(),
        clients: all.iter().map(clients).max().unwrap_or(0),
    }
}
