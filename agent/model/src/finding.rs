//! Findings: what makes requests slow, with the evidence.

use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident: $name:literal, $title:literal;)*) => {
        /// The causes that nfscope can find: label `kind` of `nfscope_bottleneck_active`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind {
            $(
                $(#[doc = $doc])*
                #[serde(rename = $name)]
                $kind,
            )*
        }

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: [Kind; <[&str]>::len(&[$($name),*])] = [$(Kind::$kind),*];

            /// True if the share of this kind is not time in the server. It is a share of requests that wait outside the server, of requests that
            /// need not be sent, or of RPCs of this host's own mounts. Kinds with a share of the time in the server are listed before these.
            pub fn is_listed_behind(self) -> bool {
                matches!(
                    self,
                    Kind::SlotStarvation
                        | Kind::StateRecoveryStorm
                        | Kind::PnfsFallback
                        | Kind::ConnectionLimit
                        | Kind::BadRpcs
                        | Kind::SlowMount
                )
            }

            /// The kind's name in labels and JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)*
                }
            }

            /// The cause in a few words.
            pub fn title(self) -> &'static str {
                match self {
                    $(Kind::$kind => $title,)*
                }
            }
        }
    };
}

kinds! {
    /// Threads have had the same requests in hand for a long time, and still have them.
    StuckRequests: "stuck_requests", "Requests are stuck in the server";
    /// Clients are told to try again later, and wait outside the server.
    RetryLater: "retry_later", "Clients are told to try again later";
    /// Replies stay in the server's TCP because clients acknowledge none.
    UnacknowledgedReplies: "unacknowledged_replies", "Clients acknowledge no replies";
    /// WRITEs and COMMITs are acknowledged that a crash may lose.
    UnsafeWrites: "unsafe_writes", "Acknowledged writes that a crash loses";
    /// A client sends its requests with every slot of its session in use.
    SlotStarvation: "slot_starvation", "Too few session slots";
    /// Clients make or recover state again and again.
    StateRecoveryStorm: "state_recovery_storm", "Clients recover state instead of working";
    /// Clients with layouts read and write through the server.
    PnfsFallback: "pnfs_fallback", "Clients with pNFS layouts use the server instead of the storage";
    /// The kernel closes connections because too many are open.
    ConnectionLimit: "connection_limit", "Too many connections";
    /// Calls come that are refused before anything is executed.
    BadRpcs: "bad_rpcs", "Clients send RPCs that are refused";
    /// Requests wait for a free thread, no matter what the threads wait for.
    ThreadStarvation: "thread_starvation", "Too few nfsd threads";
    /// The journal or intent log takes long to make changes durable.
    SlowIntentLog: "slow_intent_log", "Slow journal or intent log";
    /// Block I/O outside the log takes long.
    SlowDisk: "slow_disk", "Slow disks";
    /// Writers are held back until written data is stored.
    WriteThrottle: "write_throttle", "Writes are throttled";
    /// Threads wait for rpc.mountd or another daemon.
    SlowUpcall: "slow_upcall", "Threads wait for rpc.mountd or another daemon";
    /// Threads wait for clients to return delegations.
    DelegationRecalls: "delegation_recalls", "Threads wait for clients to return delegations";
    /// Threads free memory before they go on.
    MemoryReclaim: "memory_reclaim", "Threads wait for free memory";
    /// Threads wait for a CPU.
    CpuSaturation: "cpu_saturation", "Busy CPUs";
    /// Changes of the same directory or file wait for its lock.
    LockContention: "lock_contention", "Changes wait for the lock of a directory or file";
    /// Threads sleep, and neither a phase nor a directory or file explains it.
    UnknownWaits: "unknown_waits", "Waits of unknown kind";
    /// Replies wait for the client or the network.
    SlowReply: "slow_reply", "Replies wait for the client or the network";
    /// Most requests are metadata queries or tiny READs.
    ChattyClient: "chatty_client", "Mostly metadata queries and tiny READs";
    /// Synchronous writes make few bytes durable at a time.
    SmallSyncWrites: "small_sync_writes", "Small synchronous writes";
    /// RPCs of one of this host's own NFS mounts take long.
    SlowMount: "slow_mount", "A mount of this host is slow";
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The finding explains a good part of request time, or it is the way in which clients use the server.
    Warning,
    /// The finding explains most of request time.
    Critical,
}

impl Severity {
    /// The severity's name in labels, in JSON and in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// A number that supports a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The sentence, with the number in it.
    pub text: String,
    /// The metric family of the number.
    pub metric: String,
    /// The number in base units: seconds, bytes, a ratio, a count.
    pub value: f64,
    /// The threshold for the number, in the same unit; `None` where the number only describes.
    pub limit: Option<f64>,
}

/// A cause that explains a good part of the time that requests spent in the server (residence).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind of the cause.
    pub kind: Kind,
    /// How much the finding matters.
    pub severity: Severity,
    /// The part of residence that the cause explains, 0 to 1.
    pub share: f64,
    /// The finding in one sentence.
    pub summary: String,
    /// The numbers that support the finding.
    pub evidence: Vec<Evidence>,
    /// Recommended actions.
    pub advice: Vec<String>,
}

/// A cause that was evaluated and is no finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuledOut {
    /// The kind of the cause.
    pub kind: Kind,
    /// The part of residence that the cause explains, 0 to 1; `None` where this host cannot measure it.
    pub share: Option<f64>,
    /// Why the cause is not a finding.
    pub why: String,
}

/// The result of a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No finding, and every kind was evaluated.
    Healthy,
    /// At least one finding.
    Findings,
    /// No finding, but this host cannot measure every kind, or clients wait outside the server.
    Unknown,
}

/// Utilization of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headroom {
    /// The resource (`8 threads`, `4 CPUs`, `log of ext4 on sda`).
    pub resource: String,
    /// The part of the resource that was in use, 0 to 1.
    pub utilization: f64,
}

/// The diagnosis of one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Length of the window.
    pub window_seconds: f64,
    /// The result.
    pub verdict: Verdict,
    /// Why the result is unknown, what clients wait for, or that there was too little load; else empty.
    pub reason: String,
    /// Requests that ended in the window.
    pub requests: f64,
    /// Time of these requests in the server, added up.
    pub residence_seconds: f64,
    /// Sentence on the requests without a complete time line, and why; `None` if nearly all requests have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Findings, the largest share first.
    pub findings: Vec<Finding>,
    /// Every other kind, the largest share first.
    pub ruled_out: Vec<RuledOut>,
    /// Utilization of the resources, the highest first.
    pub headroom: Vec<Headroom>,
    /// Dangers that do not depend on the load: acknowledged writes that a crash loses.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Causes for which clients wait outside the server, such as the distance, and what would change them.
    #[serde(default)]
    pub outside: Vec<String>,
    /// Sentences on what this host cannot measure, so that a verdict of `healthy` does not cover it.
    #[serde(default)]
    pub unseen: Vec<String>,
}

impl Diagnosis {
    /// The finding of this kind.
    pub fn finding(&self, kind: Kind) -> Option<&Finding> {
        self.findings.iter().find(|f| f.kind == kind)
    }

    /// The share that a kind explains, finding or not; `None` where this host cannot measure it.
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
    fn the_family_table_has_every_kind() {
        let names = Kind::ALL.map(Kind::as_str).join(", ");
        assert_eq!(BOTTLENECK_ACTIVE.info.labels[0].values, names);
        for kind in Kind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.as_str()));
        }
    }
}
