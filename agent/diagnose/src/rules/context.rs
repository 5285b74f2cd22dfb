//! What a rule reads, and what it returns.

use crate::attribution::Attribution;
use crate::breakdown::{Breakdown, part, sum};
use crate::observed::Observed;
use nfscope_model::finding::{Evidence, Kind, Severity};

/// What every rule reads.
pub struct Context<'a> {
    pub breakdown: &'a Breakdown,
    pub attribution: &'a Attribution,
    /// Findings that are active.
    pub active: &'a [Kind],
    /// Evidence beside the window.
    pub observed: &'a Observed,
}

impl Context<'_> {
    /// `seconds` as a part of residence.
    pub fn share(&self, seconds: f64) -> f64 {
        part(seconds, self.breakdown.residence)
    }

    /// `seconds` as a part of the time of requests in a thread.
    pub fn share_of_threads(&self, seconds: f64) -> f64 {
        part(seconds, self.breakdown.thread_seconds())
    }

    /// The part of residence that `seconds` of operations stand for. Only residence that is attributed to nothing slow
    /// counts.
    pub fn share_of_unattributed(&self, seconds: f64) -> f64 {
        let b = self.breakdown;
        let unattributed = (b.residence - self.attribution.total()).max(0.0);
        let operations = sum(b.ops.iter().map(|o| self.attribution.unattributed(o)));
        self.share(unattributed * part(seconds, operations))
    }
}

/// What a rule returns.
#[derive(Debug)]
pub struct RuleResult {
    pub kind: Kind,
    /// Part of residence that the cause explains; `None` if this host cannot measure it.
    pub share: Option<f64>,
    /// Part of the threads' time that the cause explains; 0 where it does not keep threads.
    pub of_threads: f64,
    /// Whether the cause is a finding if its share is large enough.
    pub condition: bool,
    /// The highest severity that the finding can have.
    pub max_severity: Severity,
    pub summary: String,
    pub evidence: Vec<Evidence>,
    pub advice: Vec<String>,
    /// Why the cause is not a finding if it is ruled out.
    pub ruled_out_reason: String,
}
