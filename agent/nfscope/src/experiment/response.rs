//! The responses of an experiment: a metric of an operation, any row of a comparison, or a number that the load printed.

use crate::experiment::data::LOAD;
use anyhow::{Context, ensure};
use nfscope_baseline::compare::{FAMILIES, ResponseRow};
use nfscope_baseline::experiment::Unit;
use nfscope_baseline::series::{self, SeriesSet};
use nfscope_baseline::store::{Entry, Store};
use nfscope_baseline::target_metric::{self, Metric, Statistic};
use nfscope_model::family as f;

/// Response that somebody asks for.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    /// `write:p99`
    Operation(Metric),
    /// `WRITE 3 in log`
    Row(ResponseRow),
    /// `load:mbs`, by the name of the number.
    Load(String),
}

impl Asked {
    /// Parses `load:mbs`, or the name of a row that one of these recordings has.
    ///
    /// # Errors
    /// When none has it: names that are like it.
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
    /// As [`Asked::parse`].
    pub(super) fn any(text: &str, store: &Store, entries: &[&Entry]) -> anyhow::Result<Asked> {
        match target_metric::parse(text) {
            Ok(metric) => Ok(Asked::Operation(metric)),
            Err(_) => Asked::parse(text, store, entries),
        }
    }

    /// Name in the analysis.
    pub(super) fn name(&self) -> String {
        match self {
            Asked::Operation(metric) => metric.to_string(),
            Asked::Row(row) => row.name(),
            Asked::Load(name) => format!("{name} of the load"),
        }
    }

    /// The unit of its values.
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

    /// Value in a recording, and how far that may be off within a bucket, as a part of it.
    ///
    /// # Errors
    /// When the recording has none.
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

/// Value of an operation in a recording.
///
/// # Errors
/// When it says nothing.
pub(super) fn of_operation(
    c: &SeriesSet,
    entry: &Entry,
    metric: &Metric,
) -> anyhow::Result<nfscope_baseline::estimate::Value> {
    let op = metric.op.as_str();
    metric
        .is_known(&entry.metadata)
        .map_err(anyhow::Error::msg)?;
    // A client of NFSv4.2 may read by READ_PLUS what another reads by READ.
    let is = |o: &str| o == op || op == "read" && o == "read_plus";
    c.histograms(&f::OP_DURATION, |[_, o]| is(o))
        .and_then(|s| metric.of(&s, &c.lengths))
        .with_context(|| format!("`{}` has no {metric}", entry.metadata.name))
}
