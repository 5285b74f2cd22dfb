//! `nfscope baseline changes`: the times at which a server changed during a recording, and the quantities that changed.

use crate::histogram_series::HistogramSeries;
use crate::list::began;
use crate::recording::Metadata;
use crate::series::SeriesSet;
use crate::workload;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats::{Interval, change_points};
use nfscope_text::console::{one_line, plain};
use nfscope_text::table::columns;
use nfscope_text::units::{rate, seconds};
use serde::Serialize;
use std::collections::BTreeMap;

/// Families of a recording that the search reads.
pub const FAMILIES: &[&Info] = &[
    &f::OP_DURATION.info,
    &f::RPC_DURATION.info,
    &f::RPC_QUEUE.info,
    &workload::DURATION.info,
    &workload::SECONDS.info,
];

/// Most windows: those of longer recordings are merged.
pub const MAX_WINDOWS: usize = 2880;

/// Level of all series together.
const LEVEL: f64 = 0.05;
/// Most operations that are searched; each further one weakens all tests.
const MOST_OPS: usize = 3;

/// A change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// Time in milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// Quantity that changed: `operations per second`, `write mean`.
    pub what: String,
    /// Typical value before, until the previous change.
    pub before: f64,
    /// Typical value after, until the next change.
    pub after: f64,
    /// Ratio of after to before.
    pub ratio: Interval,
    /// Probability of such a split without a change.
    pub p: f64,
    #[serde(skip)]
    is_rate: bool,
}

/// Series that were searched, and the changes found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// Metadata of the recording.
    pub metadata: Metadata,
    /// Changes in order of time.
    pub changes: Vec<Found>,
    /// Series that were searched.
    pub searched: Vec<String>,
    /// Windows that were searched.
    pub windows: usize,
    /// Series without a result: too short, or with windows that are too strongly correlated.
    pub refused: Vec<String>,
}

/// A series of positive values, one per window.
struct Line {
    what: String,
    is_rate: bool,
    values: Vec<f64>,
}

/// Searches a recording for changes.
pub fn changes(c: &SeriesSet) -> Changes {
    let lines = lines(c);
    let level = LEVEL / lines.len().max(1) as f64;
    let mut all = Changes {
        metadata: c.metadata.clone(),
        changes: Vec::new(),
        searched: Vec::new(),
        windows: c.windows,
        refused: Vec::new(),
    };
    for line in lines {
        // A window without operations has no latency and is left out; its rate is never zero.
        let at: Vec<usize> = (0..line.values.len())
            .filter(|i| line.values[*i] > 0.0 && line.values[*i].is_finite())
            .collect();
        let logarithms: Vec<f64> = at.iter().map(|i| line.values[*i].ln()).collect();
        let Some(points) = change_points(&logarithms, level) else {
            all.refused.push(line.what);
            continue;
        };
        all.changes.extend(points.into_iter().map(|p| Found {
            at_ms: c.metadata.began_ms + (c.begins[at[p.at]] * 1e3) as i64,
            what: line.what.clone(),
            before: p.before.exp(),
            after: p.after.exp(),
            ratio: Interval {
                value: p.difference.value.exp(),
                low: p.difference.low.exp(),
                high: p.difference.high.exp(),
            },
            p: p.p,
            is_rate: line.is_rate,
        }));
        all.searched.push(line.what);
    }
    all.changes.sort_by_key(|c| c.at_ms);
    all
}

/// Series of a recording: the rate of all operations, the mean latency of those with the most time, and the mean wait for a thread.
fn lines(c: &SeriesSet) -> Vec<Line> {
    let ratio = |y: &[f64], x: &[f64]| y.iter().zip(x).map(|(y, x)| y / x).collect();
    let mut lines = Vec::new();
    if let Some(all) = c.histograms(&f::OP_DURATION, |_| true) {
        lines.push(Line {
            what: "operations per second".into(),
            is_rate: true,
            // Half an operation is added to each window, so that windows without operations, as in an outage, have a logarithm.
            values: ratio(
                &all.counts.iter().map(|n| n + 0.5).collect::<Vec<_>>(),
                &c.lengths,
            ),
        });
    }
    let mean = |what: String, s: &HistogramSeries| Line {
        what,
        is_rate: false,
        values: ratio(&s.sums, &s.counts),
    };
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    for ([_, op], h) in c.totals(&f::OP_DURATION) {
        *times.entry(op).or_default() += h.sum;
    }
    let mut ops: Vec<_> = times.into_iter().filter(|(_, s)| *s > 0.0).collect();
    ops.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (op, _) in ops.into_iter().take(MOST_OPS) {
        if let Some(s) = c.histograms(&f::OP_DURATION, |[_, o]| o == op) {
            lines.push(mean(format!("{op} mean"), &s));
        }
    }
    if let Some(s) = c.histograms(&f::RPC_QUEUE, |_| true) {
        lines.push(mean("wait for a thread, mean".into(), &s));
    }
    // A workload's own results count only if no server was recorded, because each further series weakens all tests.
    if lines.is_empty() {
        for part in workload::parts(&[c]).into_iter().take(MOST_OPS) {
            let what = workload::label(&part.job, &part.operation);
            if let Some((done, seconds)) = workload::rate(c, &part.job, &part.operation) {
                let done: Vec<f64> = done.iter().map(|n| n + 0.5).collect();
                lines.push(Line {
                    what: format!("{what} per second"),
                    is_rate: true,
                    values: ratio(&done, &seconds),
                });
            }
            let of = |l: [&str; 2]| l == [part.job.as_str(), part.operation.as_str()];
            if let Some(s) = c.histograms(&workload::DURATION, of) {
                lines.push(mean(format!("{what} mean"), &s));
            }
        }
    }
    lines
}

/// Text of `nfscope baseline changes`.
pub fn render(c: &Changes) -> String {
    let mut out = String::new();
    if c.changes.is_empty() && !c.searched.is_empty() {
        out += "No change was found.\n";
    }
    if !c.changes.is_empty() {
        let heading = ["WHEN", "WHAT", "BEFORE", "AFTER", "CHANGE", "95 % CI"];
        let mut rows = vec![heading.map(str::to_owned)];
        for found in &c.changes {
            let value = |v: f64| match found.is_rate {
                true => format!("{}/s", rate(v)),
                false => seconds(v),
            };
            let change = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
            rows.push([
                began(found.at_ms),
                found.what.clone(),
                value(found.before),
                value(found.after),
                format!("{} %", change(found.ratio.value)),
                format!(
                    "{} .. {}",
                    change(found.ratio.low),
                    change(found.ratio.high)
                ),
            ]);
        }
        out += &columns(&rows);
    }
    if !c.refused.is_empty() {
        out += &format!(
            "Not searched: {}. The recording is too short, or each window resembles the next too much.\n",
            one_line(&c.refused.join(", "))
        );
    }
    if c.searched.is_empty() {
        if c.refused.is_empty() {
            out += "Nothing was searched: the recording has no operations.\n";
        }
        return plain(&out);
    }
    out += &format!(
        "\nmethod: E-divisive (Matteson and James 2014) on the logarithms of means over stretches without correlation. The\n\
         probability of any change in {} steady series is at most 5 %. Waves with a correlation of up to 0.9 from\n\
         window to window are no change. A daily one is.\n",
        c.searched.len()
    );
    plain(&out)
}
