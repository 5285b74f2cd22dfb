//! The metric whose precision a recording tracks.

use crate::estimate;
use crate::estimate::Value;
use crate::histogram_series::HistogramSeries;
use crate::recording::Metadata;
use nfscope_text::parse;
use nfscope_text::suggest::near;
use nfscope_text::units;
use std::fmt;

/// A statistic of one operation, over all versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The operation.
    pub op: String,
    /// Statistic of the operation.
    pub what: Statistic,
}

/// A statistic of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// A quantile of the operation's duration, in percent.
    Quantile(u8),
    /// Mean duration of the operation.
    Mean,
    /// Operations per second.
    Rate,
}

const WORDS: [(&str, Statistic); 5] = [
    ("p50", Statistic::Quantile(50)),
    ("p90", Statistic::Quantile(90)),
    ("p99", Statistic::Quantile(99)),
    ("mean", Statistic::Mean),
    ("rate", Statistic::Rate),
];

/// Parses `write`, which means `write:p99`, or `write:mean` and the like.
///
/// # Errors
/// When the name is unknown; the error lists all.
pub fn parse(text: &str) -> Result<Metric, String> {
    let (op, word) = text.split_once(':').unwrap_or((text, "p99"));
    let op = parse::operation(op)?;
    match WORDS.iter().find(|(w, _)| *w == word) {
        Some((_, what)) => Ok(Metric { op, what: *what }),
        None => {
            let hint = match near(word, WORDS.iter().map(|(w, _)| *w)) {
                Some(w) => format!("did you mean {op}:{w}?"),
                None => format!("known are {op}:p50, p90, p99, mean and rate"),
            };
            Err(format!("unknown statistic `{word}`; {hint}"))
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = WORDS.iter().find(|(_, w)| *w == self.what);
        write!(f, "{} {}", self.op, known.map_or("", |(w, _)| w))
    }
}

impl Metric {
    /// Value of the metric in windows with these lengths.
    pub fn of(&self, histograms: &HistogramSeries, seconds: &[f64]) -> Option<Value> {
        match self.what {
            Statistic::Quantile(percent) => {
                estimate::quantile(histograms, f64::from(percent) / 100.0)
            }
            Statistic::Mean => estimate::mean(histograms),
            Statistic::Rate => estimate::rate(histograms, seconds),
        }
    }

    /// Checks that this recording has the metric: quantiles are unknown if histograms have few edges.
    ///
    /// # Errors
    /// When the recording lacks it; the error names the metrics that it has.
    pub fn is_known(&self, of: &Metadata) -> Result<(), String> {
        match self.what {
            Statistic::Quantile(_) if of.has_few_edges() => Err(format!(
                "`{}` was imported from classic histograms, whose few edges tell no quantiles; fix: ask for {op}:mean or {op}:rate",
                of.name,
                op = self.op
            )),
            _ => Ok(()),
        }
    }

    /// Formats a value with its unit.
    pub fn show(&self, value: f64) -> String {
        match self.what {
            Statistic::Rate => format!("{}/s", units::rate(value)),
            _ => units::seconds(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::CLASSIC;

    #[test]
    fn classic_histograms_tell_means_and_rates_alone() {
        let of = |kind: &str| Metadata {
            name: "june".into(),
            began_ms: 0,
            host: "nfs1".into(),
            kernel: None,
            agent: "0.1.0".into(),
            interval: std::time::Duration::from_secs(10),
            labels: [(CLASSIC.0.to_owned(), kind.to_owned())].into(),
        };
        let known = |metric, kind| parse(metric).unwrap().is_known(&of(kind));
        let e = known("write:p50", "classic").unwrap_err();
        assert!(e.contains("`june`") && e.contains("write:mean"), "{e}");
        assert_eq!(known("write:mean", "classic"), Ok(()));
        assert_eq!(known("write:p50", "native"), Ok(()));
    }

    #[test]
    fn words() {
        let parsed = |t| parse(t).map(|m| m.to_string());
        assert_eq!(parsed("write"), Ok("write p99".to_owned()));
        assert_eq!(parsed("read:mean"), Ok("read mean".to_owned()));
        let e = parsed("wirte:p99").unwrap_err();
        assert!(e.contains("did you mean `write`"), "{e}");
        let e = parsed("write:p98").unwrap_err();
        assert!(e.contains("did you mean write:p9"), "{e}");
        let e = parsed("write:throughput").unwrap_err();
        assert!(e.contains("known are write:p50"), "{e}");
    }
}
