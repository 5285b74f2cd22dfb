//! One line of NDJSON, as `/slow` sends it and `nfscope slow --json` prints it.

use nfscope_model::{OpArguments, OpPhases, SlowOp};
use nfscope_text::timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// Longest time between two lines to a subscriber, so that each side notices when the other is gone.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// A line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// Operations that the subscriber asked for and that are missing since the last such line. Zero is a sign of life.
    LeftOut {
        /// Number of missing operations.
        left_out: u64,
    },
    /// An operation.
    Op(#[serde(with = "boxed")] Box<SlowOp>),
}

impl Line {
    /// Encodes the line as JSON with its newline.
    ///
    /// # Errors
    /// JSON can hold each value of a line, so there is none.
    pub fn encode(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    /// Encodes the line with the name of the client, `client_name`, if it has one.
    ///
    /// # Errors
    /// JSON can hold each value of a line, so there is none.
    pub fn encode_named(&self, client: Option<&str>) -> serde_json::Result<String> {
        let Some(client) = client else {
            return self.encode();
        };
        let mut text = serde_json::to_string(self)?;
        text.truncate(text.len() - 1);
        Ok(text + ",\"client_name\":" + &serde_json::to_string(client)? + "}\n")
    }
}

/// Form of [`SlowOp`] for programs: a date, and seconds.
#[derive(Serialize, Deserialize)]
#[serde(remote = "SlowOp")]
struct Wire {
    #[serde(rename = "time", with = "date")]
    at: SystemTime,
    client: Option<IpAddr>,
    version: String,
    op: String,
    export: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    inode: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(
        default,
        with = "nfscope_model::xid",
        skip_serializing_if = "Option::is_none"
    )]
    xid: Option<u32>,
    bytes: Option<u64>,
    stability: Option<String>,
    status: String,
    #[serde(rename = "duration_seconds", with = "seconds")]
    duration: Duration,
    #[serde(rename = "phases_seconds", with = "phases")]
    phases: Option<OpPhases>,
    #[serde(default, skip_serializing_if = "OpArguments::is_empty")]
    arguments: OpArguments,
}

#[derive(Serialize, Deserialize)]
struct Phases {
    #[serde(with = "seconds")]
    cpu: Duration,
    #[serde(with = "seconds")]
    runqueue: Duration,
    #[serde(with = "seconds")]
    log: Duration,
    #[serde(with = "seconds")]
    disk: Duration,
    #[serde(default, with = "seconds")]
    throttle: Duration,
    #[serde(default, with = "seconds")]
    upcall: Duration,
    #[serde(default, with = "seconds")]
    recall: Duration,
    #[serde(default, with = "seconds")]
    reclaim: Duration,
    #[serde(with = "seconds")]
    lock: Duration,
}

mod boxed {
    use super::*;

    pub(super) fn serialize<S: Serializer>(op: &SlowOp, to: S) -> Result<S::Ok, S::Error> {
        Wire::serialize(op, to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<SlowOp>, D::Error> {
        Wire::deserialize(from).map(Box::new)
    }
}

mod phases {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        phases: &Option<OpPhases>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        phases
            .map(|p| Phases {
                cpu: p.cpu,
                runqueue: p.runqueue,
                log: p.log,
                disk: p.disk,
                throttle: p.throttle,
                upcall: p.upcall,
                recall: p.recall,
                reclaim: p.reclaim,
                lock: p.lock,
            })
            .serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<OpPhases>, D::Error> {
        Ok(Option::<Phases>::deserialize(from)?.map(|p| OpPhases {
            cpu: p.cpu,
            runqueue: p.runqueue,
            log: p.log,
            disk: p.disk,
            throttle: p.throttle,
            upcall: p.upcall,
            recall: p.recall,
            reclaim: p.reclaim,
            lock: p.lock,
        }))
    }
}

mod seconds {
    use super::*;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

mod date {
    use super::*;

    pub(super) fn serialize<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&timestamp::date(*at))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let text = String::deserialize(from)?;
        timestamp::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is not a date")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_example::op;

    #[test]
    fn lines_there_and_back() {
        let bare = SlowOp {
            client: None,
            export: None,
            dataset: None,
            inode: None,
            path: None,
            xid: None,
            bytes: None,
            stability: None,
            phases: None,
            ..op()
        };
        for (line, text) in [
            (
                Line::Op(Box::new(op())),
                "{\"time\":\"2026-11-21T09:47:00.123456Z\",\"client\":\"192.0.2.7\",\"version\":\"4.2\",\
                 \"op\":\"write\",\"export\":\"/srv/home\",\"inode\":131073,\"xid\":\"0x0b5f0c11\",\"bytes\":65536,\
                 \"stability\":\"file_sync\",\"status\":\"ok\",\"duration_seconds\":0.0345,\
                 \"phases_seconds\":{\"cpu\":0.0002,\"runqueue\":0.000015,\"log\":0.0312,\"disk\":0.003085,\"throttle\":0.0,\"upcall\":0.0,\"recall\":0.0,\"reclaim\":0.0,\"lock\":0.0}}\n",
            ),
            (
                Line::Op(Box::new(SlowOp {
                    dataset: Some("tank/home".into()),
                    path: Some("/srv/home/a file".into()),
                    phases: None,
                    ..op()
                })),
                "{\"time\":\"2026-11-21T09:47:00.123456Z\",\"client\":\"192.0.2.7\",\"version\":\"4.2\",\
                 \"op\":\"write\",\"export\":\"/srv/home\",\"dataset\":\"tank/home\",\"inode\":131073,\"path\":\"/srv/home/a file\",\"xid\":\"0x0b5f0c11\",\"bytes\":65536,\
                 \"stability\":\"file_sync\",\"status\":\"ok\",\"duration_seconds\":0.0345,\
                 \"phases_seconds\":null}\n",
            ),
            (
                Line::Op(Box::new(bare)),
                "{\"time\":\"2026-11-21T09:47:00.123456Z\",\"client\":null,\"version\":\"4.2\",\
                 \"op\":\"write\",\"export\":null,\"inode\":null,\"bytes\":null,\
                 \"stability\":null,\"status\":\"ok\",\"duration_seconds\":0.0345,\
                 \"phases_seconds\":null}\n",
            ),
            (Line::LeftOut { left_out: 12 }, "{\"left_out\":12}\n"),
        ] {
            assert_eq!(line.encode().unwrap(), text);
            assert_eq!(serde_json::from_str::<Line>(text).unwrap(), line);
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for text in ["", "{}", "[]", "{\"left_out\":-1}", "{\"op\":\"write\"}"] {
            assert!(serde_json::from_str::<Line>(text).is_err(), "{text}");
        }
    }
}
