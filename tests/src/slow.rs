//! A line of `/slow` and of `nfscope slow --json`, as a program of somebody else reads it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anyhow::{Context, Result};
use serde::Deserialize;

/// What a line can say.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum SlowLine {
    /// So many operations are missing that were asked for.
    LeftOut {
        /// How many.
        left_out: u64,
    },
    /// An operation.
    Op(Box<SlowOp>),
}

/// An operation that took long. Fields that nobody knows are a mistake.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/ has the fields of the line")]
pub struct SlowOp {
    pub time: String,
    pub client: Option<IpAddr>,
    pub client_name: Option<String>,
    pub version: String,
    pub op: String,
    pub export: Option<String>,
    pub dataset: Option<String>,
    pub inode: Option<u64>,
    pub xid: Option<String>,
    pub bytes: Option<u64>,
    pub stability: Option<String>,
    pub status: String,
    pub duration_seconds: f64,
    pub phases_seconds: Option<BTreeMap<String, f64>>,
}

impl SlowLine {
    /// Reads one line.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(line: &str) -> Result<SlowLine> {
        serde_json::from_str(line).with_context(|| format!("not understood: {line}"))
    }
}
