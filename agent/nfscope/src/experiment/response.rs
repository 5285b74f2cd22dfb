//! Responses of an experiment: a metric of an operation, a row of `baseline compare`, or a number that the load printed.

use crate::experiment::data::LOAD;
use anyhow::{Context, ensure};
use nfscope_baseline::compare::{FAMILIES, ResponseRow};
use nfscope_baseline::experiment::Unit;
use nfscope_baseline::series::{self, SeriesSet};
use nfscope_baseline::store::{Entry, Store};
use nfscope_baseline::target_metric::{self, Metric, Statistic};
use nfscope_model::family as f;

/// Response that the command line or a plan file asks for.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    /// Metric of an operation, such as `write:p99`.
    Operation(Metric),
    /// Row of `baseline compare`, such as `WRITE 3 in log`.
    Row(ResponseRow),
    /// Number of the load, such as `load:mbs`, by its name.
    Load(String),
}

impl Asked {
    /// Parses `load:mbs`, or the name of a row that one of these recordings has.
    ///
    /// # Errors
    /// When no recording has it; the error names similar rows.
    pub(super) fn parse(text: &str, store: &Store, entries: &[&Entry]) -> anyhow::Result<Asked> {
        if let Some(name) = text.strip_prefix("load:") {
            return Ok(Asked::Load(name.to_owned()));
        }
        let mut why = format!("--response {text}: no run is recorded");
        for entry in entries {
            match ResponseRow::find(&series::read(store, entry, FAMILIES)?, text) {
                Ok(row) => return Ok(Asked::Row(row)),
                Err(e) => why = format!("--response: {e}"),
            }
        }
        Err(anyhow::Error::msg(why))
    }

    /// Parses any response: `write:p99`, `load:mbs`, or the name of a row.
    ///
    /// # Errors
    /// See [`Asked::parse`].
    pub(super) fn any(text: &str, store: &Store, entries: &[&Entry]) -> anyhow::Result<Asked> {
        match target_metric::parse(text) {
            Ok(metric) => Ok(Asked::Operation(metric)),
            Err(_) => Asked::parse(text, store, entries),
        }
    }

    /// Name of the response in an analysis.
    pub(super) fn name(&self) -> String {
        match self {
            Asked::Operation(metric) => metric.to_string(),
            Asked::Row(row) => row.name(),
            Asked::Load(name) => format!("{name} of the load"),
        }
    }

    /// Unit of the values.
    pub(super) fn unit(&self) -> Unit {
        match self {
            Asked::Operation(metric) => match metric.what {
                Statistic::Rate => Unit::PerSecond,
                Statistic::Mean | Statistic::Quantile(_) => Unit::Seconds,
            },
            Asked::Row(row) => row.unit(),
            Asked::Load(name) if name.ends_with("_per_second") => Unit::PerSecond,
            Asked::Load(name) if name.ends_with("_seconds") => Unit::Seconds,
            Asked::Load(_) => Unit::Number,
        }
    }

    /// Value in a recording, and the relative error by the width of its histogram bucket.
    ///
    /// # Errors
    /// When the recording has no such value.
    pub(super) fn value(&self, c: &SeriesSet, entry: &Entry) -> anyhow::Result<(f64, f64)> {
        let run = &entry.metadata.name;
        let none = || format!("`{run}` has no {}", self.name());
        match self {
            Asked::Operation(metric) => {
                let value = of_operation(c, entry, metric)?;
                Ok((value.value, value.hidden))
            }
            Asked::Row(row) => row.value(c).with_context(none),
            Asked::Load(name) => {
                let labels = &entry.metadata.labels;
                let known = || {
                    let all = labels.keys().filter_map(|k| k.strip_prefix(LOAD));
                    let all: Vec<_> = all.collect();
                    match all.is_empty() {
                        true => "it has no numbers of its load: see [run.numbers] in `nfscope experiment run --help`".to_owned(),
                        false => format!("known are load:{}", all.join(", load:")),
                    }
                };
                let text = labels.get(&format!("{LOAD}{name}"));
                let text = text.with_context(|| format!("{}; {}", none(), known()))?;
                let value: f64 = text.parse().with_context(none)?;
                ensure!(value.is_finite(), none());
                Ok((value, 0.0))
            }
        }
    }
}

/// Value of a metric of an operation in a recording.
///
/// # Errors
/// When the recording has none, or cannot have one.
pub(super) fn of_operation(
    c: &SeriesSet,
    entry: &Entry,
    metric: &Metric,
) -> anyhow::Result<nfscope_baseline::estimate::Value> {
    let op = metric.op.as_str();
    metric
        .is_known(&entry.metadata)
        .map_err(anyhow::Error::msg)?;
    // READ_PLUS replaces READ in some clients of NFSv4.2 (RFC 7862, section 15.10).
    let is = |o: &str| o == op || op == "read" && o == "read_plus";
    c.histograms(&f::OP_DURATION, |[_, o]| is(o))
        .and_then(|s| metric.of(&s, &c.lengths))
        .with_context(|| format!("`{}` has no {metric}", entry.metadata.name))
}
