//! Findings: what makes requests slow, with the evidence.

use serde::{Deserialize, Serialize};

/// The causes that nfscope knows how to name: label `kind` of `nfscope_bottleneck_active`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Requests wait for a thread while the threads that there are do not wait for anything slow.
    ThreadStarvation,
    /// The journal or intent log takes long to make changes durable.
    SlowIntentLog,
    /// Block I/O outside the log takes long.
    SlowDisk,
    /// Threads wait for a processor.
    CpuSaturation,
    /// Threads sleep on locks and the like.
    LockContention,
    /// Replies wait for the client or the network to take them.
    SlowReply,
    /// Most requests only ask for attributes, names or a few bytes.
    ChattyClient,
    /// Few bytes at a time are made durable.
    SmallSyncWrites,
}

impl Kind {
    /// All of them, in the order of the contract.
    pub const ALL: [Kind; 8] = [
        Kind::ThreadStarvation,
        Kind::SlowIntentLog,
        Kind::SlowDisk,
        Kind::CpuSaturation,
        Kind::LockContention,
        Kind::SlowReply,
        Kind::ChattyClient,
        Kind::SmallSyncWrites,
    ];

    /// Its name in labels and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::ThreadStarvation => "thread_starvation",
            Kind::SlowIntentLog => "slow_intent_log",
            Kind::SlowDisk => "slow_disk",
            Kind::CpuSaturation => "cpu_saturation",
            Kind::LockContention => "lock_contention",
            Kind::SlowReply => "slow_reply",
            Kind::ChattyClient => "chatty_client",
            Kind::SmallSyncWrites => "small_sync_writes",
        }
    }

    /// What it is, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Kind::ThreadStarvation => "Too few nfsd threads",
            Kind::SlowIntentLog => "The log is slow",
            Kind::SlowDisk => "The disks are slow",
            Kind::CpuSaturation => "The processors are busy",
            Kind::LockContention => "Threads wait for each other",
            Kind::SlowReply => "Replies are not taken",
            Kind::ChattyClient => "Most requests only ask",
            Kind::SmallSyncWrites => "Little is made durable at a time",
        }
    }
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It explains a good part of the time that requests take, or it is how clients use the server.
    Warning,
    /// It explains most of it.
    Critical,
}

/// One number that speaks for a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The sentence, with the number in it.
    pub text: String,
    /// The family that it comes from.
    pub metric: String,
    /// In base units: seconds, bytes, a ratio, a count.
    pub value: f64,
    /// What it is compared with, in the same unit; `None` where it only describes.
    pub limit: Option<f64>,
}

/// A cause that explains a good part of the time that requests spent in the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which one.
    pub kind: Kind,
    /// How much it matters.
    pub severity: Severity,
    /// The part of residence that it explains, 0 to 1.
    pub share: f64,
    /// One sentence.
    pub summary: String,
    /// Why nfscope thinks so.
    pub evidence: Vec<Evidence>,
    /// What would change it.
    pub advice: Vec<String>,
}

/// A cause that was looked at and is not it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuledOut {
    /// Which one.
    pub kind: Kind,
    /// The part of residence that it explains, 0 to 1; `None` where this host cannot tell.
    pub share: Option<f64>,
    /// Why it is not a finding.
    pub why: String,
}

/// What the judgement of a window comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No finding, and everything that could be one was looked at.
    Healthy,
    /// At least one finding.
    Findings,
    /// No finding, but not everything could be looked at.
    Unknown,
}

/// How much of a resource is in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headroom {
    /// What (`threads`, `processors`, `log of ext4 on sda`).
    pub resource: String,
    /// The part of it that was in use, 0 to 1.
    pub used: f64,
}

/// The judgement of one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Length of the window.
    pub window_seconds: f64,
    /// What it comes to.
    pub verdict: Verdict,
    /// Why it is unknown, or that there was too little to judge; else empty.
    pub reason: String,
    /// Requests that ended in the window.
    pub requests: f64,
    /// Their time in the server, together.
    pub residence_seconds: f64,
    /// The strongest first.
    pub findings: Vec<Finding>,
    /// Everything else that was looked at, the largest share first.
    pub ruled_out: Vec<RuledOut>,
    /// What is in use, the fullest first.
    pub headroom: Vec<Headroom>,
}

impl Diagnosis {
    /// The finding of this kind.
    pub fn finding(&self, kind: Kind) -> Option<&Finding> {
        self.findings.iter().find(|f| f.kind == kind)
    }

    /// The share that a kind explains, finding or not; `None` where this host cannot tell.
    pub fn share(&self, kind: Kind) -> Option<f64> {
        self.finding(kind).map(|f| f.share).or_else(|| {
            self.ruled_out
                .iter()
                .find(|r| r.kind == kind)
                .and_then(|r| r.share)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::BOTTLENECK_ACTIVE;

    #[test]
    fn the_contract_has_every_kind() {
        let names = Kind::ALL.map(Kind::as_str).join(", ");
        assert_eq!(BOTTLENECK_ACTIVE.info.labels[0].values, names);
        for kind in Kind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.as_str()));
        }
    }
}
