//! What the process that serves HTTP and the agent say to each other, over sockets that only the two have.
//!
//! Each lane carries one question at a time and its answer, so that the number of lanes bounds what can be asked at once. There are
//! questions for bodies, for the state of the probes and for operations as they happen, and no others: nobody who gets hold of the process
//! that serves HTTP can change a setting or detach a probe.
//!
//! The agent trusts no question: it is short, is read as a whole, and every value is checked. Answers may be as long as they like.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use std::io;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest question. The longest that means something names all operations.
pub const MAX_QUESTION: usize = 4096;
/// Largest answer that can be written down.
const MAX_ANSWER: usize = 1 << 30;
/// Bytes of an answer before its body: kind, reading, length.
const ANSWER_HEAD: usize = 13;

/// What the process that serves HTTP may ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Question {
    /// An exposition.
    Metrics {
        /// Place of the format among all formats.
        format: u8,
        /// `collect[]` and `exclude[]`; empty for everything.
        query: String,
        /// The reading of which this has been answered before; 0 for none.
        have: u64,
    },
    /// The snapshot.
    Snapshot {
        /// As for metrics.
        have: u64,
    },
    /// The body of `/findings`.
    Findings,
    /// Requests in hand, as the query of `/stuck` names them.
    Held {
        /// That query.
        query: String,
    },
    /// Windows for the page, as the query of `/windows` names them.
    Windows {
        /// That query.
        query: String,
    },
    /// The recordings that may be shown, as JSON.
    Recordings,
    /// A [`Health`].
    Health,
    /// The status of every probe program, as JSON; `null` while attaching.
    Probes,
    /// Slow operations from now on, as the query of `/slow` names them.
    Slow {
        /// That query.
        query: String,
    },
    /// Operations broken down from now on, as the query of `/breakdown` names them.
    Breakdown {
        /// That query.
        query: String,
    },
    /// No more lines.
    Stop,
}

/// How the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Probes are being attached.
    pub attaching: bool,
    /// Why NFS operations are not timed.
    pub why: Option<String>,
    /// Why the server does not serve all requests.
    pub degraded: Option<String>,
}

/// What the agent answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A body, and the number of the reading that it was made of; 0 where it is no reading's.
    Body(u64, Bytes),
    /// The reading that the other side has is still the last one.
    Same,
    /// Too many parts have been made of this reading.
    TooMany,
    /// It cannot be had, for this reason.
    Refused(String),
    /// There is no such thing.
    None,
    /// Lines about operations; none as the first answer, which says that they will come.
    Lines(Bytes),
    /// No more lines.
    End,
}

/// Not a message of this protocol.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a message that the agent and its HTTP process exchange: {0}")]
pub struct BadFrame(String);

impl Question {
    /// As it is sent.
    ///
    /// # Errors
    /// When it is too long.
    pub fn encode(&self) -> Result<Vec<u8>, BadFrame> {
        let text = serde_json::to_vec(self).map_err(|e| BadFrame(e.to_string()))?;
        if text.len() > MAX_QUESTION {
            return Err(BadFrame(format!("{} bytes", text.len())));
        }
        let mut out = Vec::with_capacity(4 + text.len());
        out.put_u32_le(text.len() as u32);
        out.extend_from_slice(&text);
        Ok(out)
    }

    /// Takes the first question of what has arrived; `None` where it is not complete.
    ///
    /// # Errors
    /// When it is none, or too long. Nothing is kept for what it says of its length.
    pub fn take(arrived: &mut BytesMut) -> Result<Option<Question>, BadFrame> {
        let Some(head) = arrived.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > MAX_QUESTION {
            return Err(BadFrame(format!("{length} bytes")));
        }
        if arrived.len() < 4 + length {
            return Ok(None);
        }
        arrived.advance(4);
        let text = arrived.split_to(length);
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|e| BadFrame(e.to_string()))
    }
}

impl Answer {
    /// As it is sent: what comes before the body, and the body.
    pub fn parts(&self) -> ([u8; ANSWER_HEAD], &[u8]) {
        let (kind, reading, body): (u8, u64, &[u8]) = match self {
            Answer::Body(reading, body) => (0, *reading, body),
            Answer::Same => (1, 0, &[]),
            Answer::TooMany => (2, 0, &[]),
            Answer::Refused(why) => (3, 0, why.as_bytes()),
            Answer::Lines(lines) => (4, 0, lines),
            Answer::End => (5, 0, &[]),
            Answer::None => (6, 0, &[]),
        };
        let mut head = [0; ANSWER_HEAD];
        let mut to = &mut head[..];
        to.put_u8(kind);
        to.put_u64_le(reading);
        to.put_u32_le(body.len() as u32);
        (head, body)
    }

    /// Takes the first answer of what has arrived; `None` where it is not complete.
    ///
    /// # Errors
    /// When it is none.
    pub fn take(arrived: &mut BytesMut) -> Result<Option<Answer>, BadFrame> {
        let Some(head) = arrived.first_chunk::<ANSWER_HEAD>() else {
            return Ok(None);
        };
        let mut head = &head[..];
        let (kind, reading, length) = (head.get_u8(), head.get_u64_le(), head.get_u32_le());
        let length = length as usize;
        if length > MAX_ANSWER || kind > 6 {
            return Err(BadFrame(format!("kind {kind} of {length} bytes")));
        }
        if arrived.len() < ANSWER_HEAD + length {
            arrived.reserve(ANSWER_HEAD + length - arrived.len());
            return Ok(None);
        }
        arrived.advance(ANSWER_HEAD);
        let body = arrived.split_to(length).freeze();
        Ok(Some(match kind {
            0 => Answer::Body(reading, body),
            1 => Answer::Same,
            2 => Answer::TooMany,
            3 => Answer::Refused(String::from_utf8_lossy(&body).into_owned()),
            4 => Answer::Lines(body),
            5 => Answer::End,
            _ => Answer::None,
        }))
    }
}

/// The next message of a lane; `None` where the other side has gone. What has arrived stays in `arrived` when this is not waited
/// for any more.
///
/// # Errors
/// When the other side sends something else.
pub async fn next<T>(
    from: &mut (impl AsyncRead + Unpin),
    arrived: &mut BytesMut,
    take: impl Fn(&mut BytesMut) -> Result<Option<T>, BadFrame>,
) -> io::Result<Option<T>> {
    loop {
        if let Some(message) = take(arrived).map_err(io::Error::other)? {
            return Ok(Some(message));
        }
        if arrived.spare_capacity_mut().is_empty() {
            arrived.reserve(4096);
        }
        if from.read_buf(arrived).await? == 0 {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions() -> [Question; 11] {
        let query = "collect[]=op".to_owned();
        [
            Question::Metrics {
                format: 2,
                query: query.clone(),
                have: 7,
            },
            Question::Snapshot { have: u64::MAX },
            Question::Findings,
            Question::Held {
                query: "over=2s".to_owned(),
            },
            Question::Windows {
                query: "since=1.2".to_owned(),
            },
            Question::Recordings,
            Question::Health,
            Question::Probes,
            Question::Slow {
                query: query.clone(),
            },
            Question::Breakdown { query },
            Question::Stop,
        ]
    }

    #[test]
    fn questions_arrive_as_they_were_sent_however_they_are_cut() {
        let mut sent = Vec::new();
        for question in questions() {
            sent.extend(question.encode().unwrap());
        }
        let (mut arrived, mut got) = (BytesMut::new(), Vec::new());
        for byte in sent {
            arrived.put_u8(byte);
            got.extend(Question::take(&mut arrived).unwrap());
        }
        assert_eq!(got, questions());
        assert!(arrived.is_empty());
    }

    #[test]
    fn answers_arrive_as_they_were_sent_however_they_are_cut() {
        let body = Bytes::from_static(b"body");
        let answers = [
            Answer::Body(9, body.clone()),
            Answer::Same,
            Answer::TooMany,
            Answer::Refused("no".to_owned()),
            Answer::Lines(body),
            Answer::Lines(Bytes::new()),
            Answer::End,
            Answer::None,
        ];
        let (mut arrived, mut got) = (BytesMut::new(), Vec::new());
        for answer in &answers {
            let (head, body) = answer.parts();
            for byte in head.iter().chain(body) {
                arrived.put_u8(*byte);
                got.extend(Answer::take(&mut arrived).unwrap());
            }
        }
        assert_eq!(got, answers);
    }

    #[test]
    fn what_is_no_question_is_refused_before_it_takes_memory() {
        let take = |bytes: &[u8]| Question::take(&mut BytesMut::from(bytes));
        assert!(take(&u32::MAX.to_le_bytes()).is_err());
        assert!(take(&(MAX_QUESTION as u32 + 1).to_le_bytes()).is_err());
        for text in [
            "",
            "{}",
            "\"Detach\"",
            "\"health\"",
            r#"{"Slow":{"query":"","more":1}}"#,
            r#"{"Snapshot":{"have":-1}}"#,
            r#"{"Snapshot":{"have":1}} "x""#,
        ] {
            let mut frame = (text.len() as u32).to_le_bytes().to_vec();
            frame.extend(text.as_bytes());
            assert!(take(&frame).is_err(), "{text}");
        }
        let long = Question::Slow {
            query: "x".repeat(MAX_QUESTION),
        };
        assert!(long.encode().is_err());
        assert!(Answer::take(&mut BytesMut::from(&[7; 13][..])).is_err());
    }
}
