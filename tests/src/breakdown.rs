//! Stream of `/breakdown`, as a program other than nfscope reads it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nfscope_model::breakdown::Moved;
use serde::Deserialize;

use crate::http::Lines;

/// Line of a stream. An unknown field is an error.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Header { header: Header },
    Interval(Interval),
}

/// First line of a stream.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/breakdown.md has the fields")]
pub struct Header {
    pub host: String,
    pub by: Vec<String>,
    pub r#where: Vec<String>,
    pub interval_seconds: f64,
    pub max_rows: usize,
    pub kernel_bytes: u64,
}

/// Operations of an interval.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/breakdown.md has the fields")]
pub struct Interval {
    pub at: f64,
    pub seconds: f64,
    pub by: Vec<String>,
    pub rows: Vec<Row>,
    pub other: Times,
    pub evicted: u64,
    pub cost_seconds: f64,
}

/// Row of an interval: its values, and the times of its operations.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "docs/breakdown.md has the fields")]
pub struct Row {
    #[serde(flatten)]
    pub times: Times,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub no_path: Option<String>,
    #[serde(default)]
    pub client_name: Option<String>,
    #[serde(default)]
    pub user_name: Option<String>,
    #[serde(flatten)]
    pub values: BTreeMap<String, serde_json::Value>,
}

/// Times of operations.
#[derive(Clone, Debug, Default, Deserialize)]
#[expect(missing_docs, reason = "docs/breakdown.md has the fields")]
pub struct Times {
    pub count: u64,
    pub sum_seconds: f64,
    pub buckets: Vec<(Option<f64>, u64)>,
    pub moved: Moved,
}

impl Times {
    /// Adds the operations of `other`.
    pub fn add(&mut self, other: &Times) {
        self.count += other.count;
        self.sum_seconds += other.sum_seconds;
        self.buckets.extend(&other.buckets);
        self.moved += other.moved;
    }
}

/// A stream that is being read.
#[derive(Debug)]
pub struct Breakdown(Lines);

/// All content of a stream.
#[derive(Debug)]
pub struct Told {
    /// First line of the stream.
    pub header: Header,
    /// Times by the values of `by`, in its order, of all intervals.
    pub rows: BTreeMap<Vec<String>, Times>,
    /// Last path of the file, or the reason why it has none, by the values of `by`.
    pub paths: BTreeMap<Vec<String>, Result<String, String>>,
    /// Times of operations without a row, of all intervals.
    pub other: Times,
    /// All intervals.
    pub intervals: Vec<Interval>,
}

impl Breakdown {
    /// Opens the stream, and returns when the kernel counts.
    ///
    /// # Errors
    /// When the agent refuses.
    pub fn begin(agent: SocketAddr, query: &str) -> Result<Breakdown> {
        let lines = Lines::open(agent, &format!("/breakdown?{query}"))?;
        let stream = Breakdown(lines);
        stream.wait_for(1)?;
        Ok(stream)
    }

    fn wait_for(&self, lines: usize) -> Result<()> {
        let started = Instant::now();
        while self.0.so_far().len() < lines {
            ensure!(
                started.elapsed() < Duration::from_secs(60),
                "{} lines of a break-down, not {lines}",
                self.0.so_far().len()
            );
            crate::control::pass(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Ends the stream after its next whole intervals, and returns all of it.
    ///
    /// # Errors
    /// When a line is not understood, or no line comes any more.
    pub fn end(self) -> Result<Told> {
        // Two more lines: one for the interval that is open now, and one for an interval that may have ended before this call.
        self.wait_for(self.0.so_far().len() + 2)?;
        let mut lines = self.0.so_far().into_iter().map(|line| {
            serde_json::from_str::<Line>(&line).with_context(|| format!("not understood: {line}"))
        });
        let Some(Line::Header { header }) = lines.next().transpose()? else {
            bail!("no header");
        };
        let (mut rows, mut other) = (BTreeMap::<_, Times>::new(), Times::default());
        let (mut paths, mut intervals) = (BTreeMap::new(), Vec::new());
        for line in lines {
            let Line::Interval(interval) = line? else {
                bail!("two headers");
            };
            for row in &interval.rows {
                ensure!(row.values.len() == header.by.len(), "{row:?}");
                let value = |name: &String| {
                    let value = row.values.get(name).and_then(|v| v.as_str());
                    value
                        .map(str::to_owned)
                        .with_context(|| format!("{name} in {row:?}"))
                };
                let key = header.by.iter().map(value).collect::<Result<Vec<_>>>()?;
                let why = row.no_path.clone().map(Err);
                if let Some(path) = row.path.clone().map(Ok).or(why) {
                    paths.insert(key.clone(), path);
                }
                rows.entry(key).or_default().add(&row.times);
            }
            other.add(&interval.other);
            intervals.push(interval);
        }
        Ok(Told {
            header,
            rows,
            paths,
            other,
            intervals,
        })
    }
}

impl Told {
    /// Times of all operations, with and without a row.
    pub fn total(&self) -> Times {
        let mut all = self.other.clone();
        self.rows.values().for_each(|times| all.add(times));
        all
    }

    /// Operations by the values of `of`, which are some of `by`.
    pub fn counts(&self, of: &[&str]) -> BTreeMap<Vec<String>, u64> {
        let mut counts = BTreeMap::new();
        for (key, times) in &self.rows {
            let value = |name: &&str| {
                let place = self.header.by.iter().position(|b| b == name);
                place.map_or_else(String::new, |p| key[p].clone())
            };
            *counts.entry(of.iter().map(value).collect()).or_default() += times.count;
        }
        counts
    }
}
