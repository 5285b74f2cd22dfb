//! One snapshot, encoded by prometheus-client's own encoders.

use crate::exposition::buckets::{Classic, Native};
use crate::exposition::classic_edges;
use crate::exposition::collectors::Collectors;
use nfscope_model::family::Label;
use nfscope_model::{Info, Kind, Sample, Series, Snapshot};
use prometheus_client::encoding::{
    CounterValueEncoder, DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabel,
    EncodeLabelSet, GaugeValueEncoder, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::borrow::Cow;
use std::fmt::Error;
use std::sync::Arc;

/// Form in which names are passed to the encoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Naming {
    /// Base, unit and type: the encoder appends `_seconds` and `_total` again, and writes `# UNIT`.
    InParts,
    /// Whole names. The text format 0.0.4 wants `_total` in `# TYPE` as well, where OpenMetrics forbids it.
    Whole,
}

/// Encodes a snapshot at a scrape.
#[derive(Debug)]
pub(super) struct Collector {
    snapshot: Arc<Snapshot>,
    naming: Naming,
    collectors: Collectors,
}

impl Collector {
    pub(super) fn new(snapshot: Arc<Snapshot>, naming: Naming, collectors: Collectors) -> Self {
        Collector {
            snapshot,
            naming,
            collectors,
        }
    }

    fn family(
        &self,
        out: &mut DescriptorEncoder,
        info: &Info,
        all: &[&Series],
    ) -> Result<(), Error> {
        let (name, unit) = match self.naming {
            Naming::Whole => (info.name, None),
            Naming::InParts => parts(info.name),
        };
        let help = format!("{}.", info.help);
        let mut family = out.encode_descriptor(name, &help, unit.as_ref(), kind(info.kind))?;
        let edges = classic_edges::of(info).map_or(&[][..], |group| group.edges);
        for s in all {
            let labels = Labels(info.labels, &s.labels);
            if info.labels.is_empty() {
                // An empty label set would be printed as `{}`.
                self.sample(&mut family, &s.sample, edges)?;
            } else {
                self.sample(&mut family.encode_family(&labels)?, &s.sample, edges)?;
            }
        }
        Ok(())
    }

    fn sample(&self, out: &mut MetricEncoder, sample: &Sample, edges: &[f64]) -> Result<(), Error> {
        match sample {
            // The encoder of counters appends `_total`, which a whole name already has.
            Sample::Counter(v) if self.naming == Naming::Whole => out.encode_gauge(&Number(*v)),
            Sample::Counter(v) => out.encode_counter::<NoLabelSet, _, f64>(&Number(*v), None),
            Sample::Gauge(v) => out.encode_gauge(&Number(*v)),
            Sample::Histogram(h) => {
                let (classic, native) = (Classic::of(h, edges), Native::of(h));
                out.encode_histogram_with_native::<NoLabelSet>(
                    h.sum,
                    h.count(),
                    &classic.0,
                    None,
                    native.borrow(),
                )
            }
        }
    }
}

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut out: DescriptorEncoder) -> Result<(), Error> {
        for (info, series) in self.snapshot.filled() {
            if !self.collectors.has(info) {
                continue;
            }
            let shown: Vec<_> = series.iter().filter(|s| shown(info, &s.sample)).collect();
            if !shown.is_empty() {
                self.family(&mut out, info, &shown)?;
            }
        }
        Ok(())
    }
}

/// Returns false for empty histograms of a version that no client uses and of a queue that a disk does not have. Others are shown with
/// zeros: a rate needs the zero before the first wait for a log.
fn shown(info: &Info, sample: &Sample) -> bool {
    let usual = |l: &Label| matches!(l.name, "version" | "device");
    match sample {
        Sample::Histogram(h) => h.count() > 0 || !info.labels.iter().any(usual),
        Sample::Counter(_) | Sample::Gauge(_) => true,
    }
}

/// Splits a full name into the parts that the encoder joins again.
fn parts(name: &str) -> (&str, Option<Unit>) {
    let base = name.strip_suffix("_total").unwrap_or(name);
    for (suffix, unit) in [
        ("_seconds", Unit::Seconds),
        ("_bytes", Unit::Bytes),
        // `Unit::Ratios` would be plural, but the convention is the singular.
        ("_ratio", Unit::Other("ratio".into())),
    ] {
        if let Some(base) = base.strip_suffix(suffix) {
            return (base, Some(unit));
        }
    }
    (base, None)
}

fn kind(kind: Kind) -> MetricType {
    match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram(_) => MetricType::Histogram,
    }
}

/// Value of a label without control characters. Names of this host have none; those of recordings may come from anywhere.
fn printable(value: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n';
    match value.contains(steers) {
        true => value.replace(steers, "\u{fffd}").into(),
        false => value.into(),
    }
}

/// Label names of a family with the values of one series.
struct Labels<'a>(&'a [Label], &'a [String]);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, out: &mut LabelSetEncoder) -> Result<(), Error> {
        for (label, value) in self.0.iter().zip(self.1) {
            (label.name, printable(value).as_ref()).encode(out.encode_label())?;
        }
        Ok(())
    }
}

/// Number that is printed as an integer if it is one.
#[derive(Debug)]
struct Number(f64);

impl Number {
    /// 2^53: up to here every integer is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;

    fn integer(&self) -> Option<i64> {
        (self.0.fract() == 0.0 && self.0.abs() <= Self::EXACT).then_some(self.0 as i64)
    }
}

impl EncodeCounterValue for Number {
    fn encode(&self, out: &mut CounterValueEncoder) -> Result<(), Error> {
        match self.integer().and_then(|n| u64::try_from(n).ok()) {
            Some(n) => EncodeCounterValue::encode(&n, out),
            None => EncodeCounterValue::encode(&self.0, out),
        }
    }
}

impl EncodeGaugeValue for Number {
    fn encode(&self, out: &mut GaugeValueEncoder) -> Result<(), Error> {
        match self.integer() {
            Some(n) => EncodeGaugeValue::encode(&n, out),
            None => EncodeGaugeValue::encode(&self.0, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::family;

    #[test]
    fn every_name_of_the_contract_survives_its_parts() {
        for f in family::ALL {
            let (base, unit) = parts(f.name);
            let unit = unit.map_or(String::new(), |u| format!("_{}", u.as_str()));
            let total = if f.kind == Kind::Counter {
                "_total"
            } else {
                ""
            };
            assert_eq!(format!("{base}{unit}{total}"), f.name);
        }
    }

    #[test]
    fn help_needs_no_escaping() {
        for f in family::ALL {
            assert!(!f.help.contains(['\\', '\n', '"']), "{}", f.name);
        }
    }
}
