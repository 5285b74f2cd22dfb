//! A line of `/slow` and of `nfscope slow --json`, as a program other than nfscope reads it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Contents of a line.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum SlowLine {
    /// Operations that were asked for, and that the stream left out.
    LeftOut {
        /// Number of them.
        left_out: u64,
    },
    /// Slow operation.
    Op(Box<SlowOp>),
}

/// Operation that took long. An unknown field is an error.
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
    pub arguments: Option<SlowArguments>,
}

/// Arguments of an operation. An unknown field is an error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/ has the fields of the line")]
pub struct SlowArguments {
    pub handle: Option<String>,
    pub other_handle: Option<String>,
    pub offset: Option<u64>,
    pub length: Option<u32>,
    pub size: Option<u64>,
    pub status_code: Option<u32>,
}

impl SlowLine {
    /// Reads one line.
    ///
    /// # Errors
    /// When the line is not understood.
    pub fn parse(line: &str) -> Result<SlowLine> {
        serde_json::from_str(line).with_context(|| format!("not understood: {line}"))
    }
}
