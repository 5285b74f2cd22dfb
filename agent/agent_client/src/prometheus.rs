//! The HTTP API of Prometheus, as Prometheus, Thanos, Mimir and VictoriaMetrics have it.

use crate::http;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;

/// Longest answer that is accepted.
const MAX_BODY: u64 = 256 << 20;

/// A moment in seconds since 1970, and a number as text, because JSON has no NaN and infinity.
type Point = (f64, String);

/// A series of an answer.
#[derive(Debug, Deserialize)]
pub struct Series {
    /// Labels of the series, `__name__` included.
    pub metric: BTreeMap<String, String>,
    #[serde(default)]
    value: Option<Point>,
    /// Numbers of a range.
    #[serde(default)]
    pub values: Vec<Point>,
    /// Native histograms of a range.
    #[serde(default)]
    pub histograms: Vec<(f64, NativeHistogram)>,
}

impl Series {
    /// Value of a label; empty if the series has no such label, which to Prometheus is the same.
    pub fn label(&self, name: &str) -> &str {
        self.metric.get(name).map_or("", String::as_str)
    }

    /// Number of an instant; `None` if the value is no number.
    pub fn number(&self) -> Option<f64> {
        let number: f64 = self.value.as_ref()?.1.parse().ok()?;
        (!number.is_nan()).then_some(number)
    }
}

/// A native histogram in JSON.
#[derive(Debug, Deserialize)]
pub struct NativeHistogram {
    /// Sum of all values.
    pub sum: String,
    /// Buckets that are not empty: rule of which edges are included, left edge, right edge, count.
    #[serde(default)]
    pub buckets: Vec<(u8, String, String, String)>,
}

/// Asks for the series that an expression has now.
pub fn query(url: &str, expression: &str) -> anyhow::Result<Vec<Series>> {
    ask(url, "query", &[("query", expression)])
}

/// Asks for the series that an expression has from `start` to `end` (seconds since 1970), each `step` seconds.
pub fn query_range(
    url: &str,
    expression: &str,
    (start, end): (f64, f64),
    step: f64,
) -> anyhow::Result<Vec<Series>> {
    let [start, end, step] = [start, end, step].map(|n| n.to_string());
    let fields = [
        ("query", expression),
        ("start", &start),
        ("end", &end),
        ("step", &step),
    ];
    ask(url, "query_range", &fields)
}

fn ask(url: &str, what: &str, fields: &[(&str, &str)]) -> anyhow::Result<Vec<Series>> {
    #[derive(Deserialize)]
    struct Answer {
        data: Option<Data>,
        error: Option<String>,
    }
    #[derive(Deserialize)]
    struct Data {
        result: Vec<Series>,
    }
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let answer = http::ask(url, &format!("/api/v1/{what}?{query}")).map_err(|e| match e {
        http::Error::NoAgent(url) => {
            anyhow::anyhow!(
                "nobody answers at {url}: give the URL of a Prometheus or of what has its API"
            )
        }
        http::Error::Answer { url, why } => {
            anyhow::anyhow!("{url} does not answer like a Prometheus: {why}")
        }
        e => e.into(),
    })?;
    let code = answer.code().unwrap_or_default();
    if code == 401 {
        anyhow::bail!("{url} refuses: {}", answer.refusal());
    }
    let mut body = Vec::new();
    answer.body.take(MAX_BODY).read_to_end(&mut body)?;
    let wrong = |why: &str| anyhow::anyhow!("{url} does not answer like a Prometheus: {why}");
    let answer: Answer =
        serde_json::from_slice(&body).map_err(|e| wrong(&format!("status {code}, {e}")))?;
    if let Some(error) = answer.error {
        anyhow::bail!("{url} refuses a query: {error}");
    }
    let data = answer.data.ok_or_else(|| wrong("an answer without data"))?;
    Ok(data.result)
}

/// Value of a label in quotes, for an expression.
pub fn quoted(value: &str) -> String {
    format!(
        "\"{}\"",
        value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}
