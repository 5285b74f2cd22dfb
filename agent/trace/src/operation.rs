//! An operation of a trace.

use nfscope_model::op;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// An operation. A field is `None` where the trace does not know it; 0 is a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Arrival, in nanoseconds since the trace began.
    pub arrival: u64,
    /// Nanoseconds from the arrival to the end: in the server, or, of a client's trace, until the reply.
    pub duration: Option<u64>,
    /// Index into [`Header::clients`](crate::Header::clients).
    pub client: u32,
    /// NFS version.
    pub version: Version,
    /// Operation, by the name that the protocol has for it.
    pub op: Op,
    /// File: a pseudonym of its handle, the same in the whole trace.
    pub file: Option<u64>,
    /// Second file: the object that was looked up or created in the directory [`file`](Self::file), or the other directory or file of
    /// RENAME and LINK.
    pub other: Option<u64>,
    /// First byte of a READ, WRITE, COMMIT, ALLOCATE or such, from the beginning of the file.
    pub offset: Option<u64>,
    /// Bytes: those that a READ returned or was asked for if that is not known, those of a WRITE, or those that a COMMIT names.
    pub length: Option<u32>,
    /// Stability that a WRITE asked for.
    pub stability: Option<Stability>,
    /// Status of NFS, 0 for success (RFC 1813 section 2.6, RFC 8881 section 15.1).
    pub status: Option<u32>,
    /// Size of the file after the operation, in bytes.
    pub size: Option<u64>,
    /// Number of the COMPOUND; all its operations have the same one.
    pub compound: Option<u64>,
}

impl Operation {
    /// An operation of which nothing else is known.
    pub fn new(arrival: u64, client: u32, version: Version, op: Op) -> Operation {
        Operation {
            arrival,
            duration: None,
            client,
            version,
            op,
            file: None,
            other: None,
            offset: None,
            length: None,
            stability: None,
            status: None,
            size: None,
            compound: None,
        }
    }

    /// True unless the operation is known to have failed.
    pub fn succeeded(&self) -> bool {
        self.status.is_none_or(|status| status == 0)
    }

    /// First byte after those of the operation; `None` where offset or length are not known, or their sum is no offset.
    pub fn end(&self) -> Option<u64> {
        self.offset?.checked_add(u64::from(self.length?))
    }
}

/// NFS version of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// NFSv2, of old traces.
    V2,
    /// NFSv3.
    V3,
    /// NFSv4, of a minor version that is not known.
    V4,
    /// NFSv4.0.
    V4_0,
    /// NFSv4.1.
    V4_1,
    /// NFSv4.2.
    V4_2,
}

impl Version {
    /// Every version, in order.
    pub const EACH: [Version; 6] = [
        Version::V2,
        Version::V3,
        Version::V4,
        Version::V4_0,
        Version::V4_1,
        Version::V4_2,
    ];

    /// Value of the label `version` of metrics: `3`, `4.0`, `4`.
    pub fn name(self) -> &'static str {
        match self {
            Version::V2 => "2",
            Version::V3 => "3",
            Version::V4 => "4",
            Version::V4_0 => "4.0",
            Version::V4_1 => "4.1",
            Version::V4_2 => "4.2",
        }
    }

    /// The version with this name.
    pub fn named(name: &str) -> Option<Version> {
        Version::EACH.into_iter().find(|v| v.name() == name)
    }
}

/// Stability that a WRITE asks for (RFC 1813 section 3.3.7, RFC 8881 section 18.32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stability {
    /// Durable after a COMMIT.
    Unstable,
    /// Data and what is needed to find it are durable before the reply.
    DataSync,
    /// Data and all attributes are durable before the reply.
    FileSync,
}

impl Stability {
    /// Every stability, by its number in the protocol.
    pub const EACH: [Stability; 3] = [
        Stability::Unstable,
        Stability::DataSync,
        Stability::FileSync,
    ];

    /// Value of the label `stability` of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Stability::Unstable => "unstable",
            Stability::DataSync => "data_sync",
            Stability::FileSync => "file_sync",
        }
    }

    /// The stability with this name.
    pub fn named(name: &str) -> Option<Stability> {
        Stability::EACH.into_iter().find(|s| s.name() == name)
    }
}

/// Operation by its name in the protocol, in lower case: `write`, `readdirplus`, `open`. A name that nfscope does not know stays.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(Cow<'static, str>);

/// Longest name of an operation, in bytes.
pub const LONGEST_OP: usize = 32;

/// Names that come in traces beside those of the model: the procedure that carries NFSv4, and procedures of NFSv2.
const MORE: [&str; 4] = ["compound", "root", "writecache", "statfs"];

static KNOWN: LazyLock<HashMap<&'static str, &'static str>> =
    LazyLock::new(|| op::names().chain(MORE).map(|name| (name, name)).collect());

impl Op {
    /// READ
    pub const READ: Op = Op(Cow::Borrowed("read"));
    /// WRITE
    pub const WRITE: Op = Op(Cow::Borrowed("write"));
    /// COMMIT
    pub const COMMIT: Op = Op(Cow::Borrowed("commit"));

    /// The operation with this name: letters, digits and `_`, at most [`LONGEST_OP`] bytes. Upper case becomes lower case.
    pub fn named(name: &str) -> Option<Op> {
        if let Some(known) = KNOWN.get(name) {
            return Some(Op(Cow::Borrowed(known)));
        }
        let is_name = |name: &str| {
            (1..=LONGEST_OP).contains(&name.len())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !is_name(name) {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        Some(Op(match KNOWN.get(lower.as_str()) {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(lower),
        }))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// True for READ and READ_PLUS.
    pub fn is_read(&self) -> bool {
        matches!(self.name(), "read" | "read_plus")
    }

    /// True for WRITE.
    pub fn is_write(&self) -> bool {
        self.name() == "write"
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_operations_need_no_memory_and_unknown_ones_keep_their_name() {
        let write = Op::named("WRITE").unwrap();
        assert_eq!(write, Op::WRITE);
        assert!(matches!(write.0, Cow::Borrowed(_)));
        assert_eq!(Op::named("New_Op9").unwrap().name(), "new_op9");
        for bad in ["", "a b", "a\n", "é", &"x".repeat(33)] {
            assert_eq!(Op::named(bad), None, "{bad}");
        }
    }

    #[test]
    fn versions_and_stabilities_have_the_names_of_metrics() {
        for version in Version::EACH {
            assert_eq!(Version::named(version.name()), Some(version));
        }
        for stability in Stability::EACH {
            assert_eq!(Stability::named(stability.name()), Some(stability));
        }
        assert_eq!(Version::named("5"), None);
    }

    #[test]
    fn an_end_beyond_every_offset_is_not_known() {
        let mut write = Operation::new(0, 0, Version::V3, Op::WRITE);
        write.offset = Some(u64::MAX);
        assert_eq!(write.end(), None);
        write.length = Some(1);
        assert_eq!(write.end(), None);
        write.offset = Some(4096);
        assert_eq!(write.end(), Some(4097));
    }
}
