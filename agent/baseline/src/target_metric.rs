//! The one quantity that a recording watches.

use crate::estimate;
use crate::estimate::Value;
use crate::histogram_series::Spreads;
use nfscope_text::parse;
use nfscope_text::suggest::near;
use nfscope_text::units;
use std::fmt;

/// A quantity of an operation, over all versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The operation.
    pub op: String,
    /// What of it.
    pub what: What,
}

/// What is asked of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A quantile of its duration, in percent.
    Quantile(u8),
    /// Its mean duration.
    Mean,
    /// Operations a second.
    Rate,
}

const WORDS: [(&str, What); 5] = [
    ("p50", What::Quantile(50)),
    ("p90", What::Quantile(90)),
    ("p99", What::Quantile(99)),
    ("mean", What::Mean),
    ("rate", What::Rate),
];

/// `write`, which is `write:p99`, or another quantity of it.
///
/// # Errors
/// Names what there is.
pub fn parse(text: &str) -> Result<Metric, String> {
    let (op, word) = text.split_once(':').unwrap_or((text, "p99"));
    let op = parse::operation(op)?;
    match WORDS.iter().find(|(w, _)| *w == word) {
        Some((_, what)) => Ok(Metric { op, what: *what }),
        None => {
            let hint = match near(word, WORDS.iter().map(|(w, _)| *w)) {
                Some(w) => format!("did you mean {op}:{w}?"),
                None => format!("there are {op}:p50, p90, p99, mean and rate"),
            };
            Err(format!(
                "`{word}` of an operation is not known here; {hint}"
            ))
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
    /// Its value in these windows, each so many seconds long.
    pub fn of(&self, spreads: &Spreads, seconds: &[f64]) -> Option<Value> {
        match self.what {
            What::Quantile(percent) => estimate::quantile(spreads, f64::from(percent) / 100.0),
            What::Mean => estimate::mean(spreads),
            What::Rate => estimate::rate(spreads, seconds),
        }
    }

    /// A value of it for people.
    pub fn show(&self, value: f64) -> String {
        match self.what {
            What::Rate => format!("{}/s", units::rate(value)),
            _ => units::seconds(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(e.contains("there are write:p50"), "{e}");
    }
}
