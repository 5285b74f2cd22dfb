//! Input and result of a rule.

use crate::attribution::Attribution;
use crate::breakdown::{Breakdown, part, sum};
use crate::observed::Observed;
use nfscope_model::finding::{Evidence, Kind, Severity};

/// Input of every rule.
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

    /// Part of residence that `seconds` of operations stand for. Only residence counts that is attributed to nothing slow.
    pub fn share_of_unattributed(&self, seconds: f64) -> f64 {
        let b = self.breakdown;
        let unattributed = (b.residence - self.attribution.total()).max(0.0);
        let operations = sum(b.ops.iter().map(|o| self.attribution.unattributed(o)));
        self.share(unattributed * part(seconds, operations))
    }
}

/// Result of a rule.
#[derive(Debug)]
pub struct RuleResult {
    pub kind: Kind,
    /// Part of residence that the cause explains; `None` if this host cannot measure it.
    pub share: Option<f64>,
    /// Part of the threads' time that the cause explains; 0 if the cause does not keep threads.
    pub of_threads: f64,
    /// True if the cause is a finding once its share is large enough.
    pub condition: bool,
    /// The highest severity that the finding can have.
    pub max_severity: Severity,
    pub summary: String,
    pub evidence: Vec<Evidence>,
    pub advice: Vec<String>,
    /// Reason why the cause is not a finding, for the list of those ruled out.
    pub ruled_out_reason: String,
}
