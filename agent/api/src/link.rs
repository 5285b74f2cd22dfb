//! Messages between the process that serves HTTP and the agent, over sockets that only the two have.
//!
//! Each lane carries one question at a time and its answer, so the number of lanes bounds the questions at once. The only question is the
//! request for a path of the agent's closed list. An intruder in the process that serves HTTP therefore cannot change a setting or detach a
//! probe.
//!
//! The agent trusts no question: it is short, is read as a whole, and the agent parses the query in it. Answers may have any length.

use crate::access::Access;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use std::io;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest question. The longest useful one names all operations.
pub const MAX_QUESTION: usize = 4096;
/// Largest answer that the format can express.
const MAX_ANSWER: usize = 1 << 30;
/// Bytes of an answer before its body: kind, detail, reading, length.
const ANSWER_HEAD: usize = 14;

/// A message of the process that serves HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Question {
    /// Request for the answer of an endpoint.
    Ask(Ask),
    /// End of a stream: no more lines are wanted.
    Stop,
}

/// A request, as the process that serves HTTP passes it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Path. The agent refuses a path that is not in its list.
    pub path: String,
    /// The query, as it came. The agent parses it.
    pub query: String,
    /// Index of the exposition's format among all formats.
    pub format: u8,
    /// Highest class of access that the peer has.
    pub may: Access,
    /// Turn that the request has waited for.
    pub turn: Turn,
    /// Bodies of the endpoint's last reading that the process has already.
    pub have: Have,
}

/// Classes of requests, each with a limit of requests at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turn {
    /// Requests that are answered at once: one at a time for each path.
    Quick,
    /// Requests that read a disk: one at a time in all.
    Disk,
    /// Requests for lines over a lane for streams: one for each such lane.
    Stream,
}

impl Turn {
    const ALL: [Turn; 3] = [Turn::Quick, Turn::Disk, Turn::Stream];
}

/// Origin of a body that many requests get. The agent numbers readings from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Made {
    /// Number of the reading; 0 for a body that no other request gets.
    pub reading: u64,
    /// Index among the bodies of that reading.
    pub part: u8,
}

/// Bodies of a reading that the process has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Have {
    /// Number of the reading; 0 for none.
    pub reading: u64,
    /// A bit for each part, from the lowest on.
    pub parts: u64,
}

impl Have {
    /// Returns true if the process has this body.
    pub fn has(self, made: Made) -> bool {
        let bit = 1_u64.checked_shl(made.part.into()).unwrap_or(0);
        made.reading != 0 && made.reading == self.reading && self.parts & bit != 0
    }
}

/// Reasons why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The query has an error.
    Query,
    /// The peer may not read this.
    Access,
    /// The agent does not have it.
    Absent,
    /// The agent has failed.
    Failed,
    /// The agent's state does not allow it.
    Unavailable,
    /// The agent is busy: try again in a moment.
    Busy,
    /// Too many requests for this reading: the next one will answer.
    Crowded,
}

impl Why {
    const ALL: [Why; 7] = [
        Why::Query,
        Why::Access,
        Why::Absent,
        Why::Failed,
        Why::Unavailable,
        Why::Busy,
        Why::Crowded,
    ];
}

/// An answer of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A body.
    Body(Made, Bytes),
    /// A body that the process has already.
    Same(Made),
    /// A refusal: its kind and the reason.
    Refused(Why, String),
    /// No answer yet: the request has to wait for this turn, and to be sent again.
    Wait(Turn),
    /// Lines about operations. The first answer is empty, and says that lines will come.
    Lines(Bytes),
    /// End of the lines.
    End,
}

/// A message that does not follow this protocol.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a message that the agent and its HTTP process exchange: {0}")]
pub struct BadFrame(String);

impl Question {
    /// Encodes the question for sending.
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

    /// Takes the first question from the bytes that have arrived; `None` if it is not complete.
    ///
    /// # Errors
    /// When it is no question, or too long. No memory is reserved by the length that it claims.
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
    /// Parts of the encoded answer: the head, and the body.
    pub fn parts(&self) -> ([u8; ANSWER_HEAD], &[u8]) {
        let (kind, detail, reading, body): (u8, u8, u64, &[u8]) = match self {
            Answer::Body(made, body) => (0, made.part, made.reading, body),
            Answer::Same(made) => (1, made.part, made.reading, &[]),
            Answer::Refused(why, text) => (2, *why as u8, 0, text.as_bytes()),
            Answer::Wait(turn) => (3, *turn as u8, 0, &[]),
            Answer::Lines(lines) => (4, 0, 0, lines),
            Answer::End => (5, 0, 0, &[]),
        };
        let mut head = [0; ANSWER_HEAD];
        let mut to = &mut head[..];
        to.put_u8(kind);
        to.put_u8(detail);
        to.put_u64_le(reading);
        to.put_u32_le(body.len() as u32);
        (head, body)
    }

    /// Takes the first answer from the bytes that have arrived; `None` if it is not complete.
    ///
    /// # Errors
    /// When it is no answer.
    pub fn take(arrived: &mut BytesMut) -> Result<Option<Answer>, BadFrame> {
        let Some(head) = arrived.first_chunk::<ANSWER_HEAD>() else {
            return Ok(None);
        };
        let mut head = &head[..];
        let (kind, detail) = (head.get_u8(), head.get_u8());
        let (reading, length) = (head.get_u64_le(), head.get_u32_le() as usize);
        let bad = || BadFrame(format!("kind {kind}/{detail} of {length} bytes"));
        if length > MAX_ANSWER || kind > 5 {
            return Err(bad());
        }
        if arrived.len() < ANSWER_HEAD + length {
            arrived.reserve(ANSWER_HEAD + length - arrived.len());
            return Ok(None);
        }
        arrived.advance(ANSWER_HEAD);
        let body = arrived.split_to(length).freeze();
        let made = Made {
            reading,
            part: detail,
        };
        Ok(Some(match kind {
            0 => Answer::Body(made, body),
            1 => Answer::Same(made),
            2 => {
                let why = Why::ALL.get(usize::from(detail)).ok_or_else(bad)?;
                Answer::Refused(*why, String::from_utf8_lossy(&body).into_owned())
            }
            3 => Answer::Wait(*Turn::ALL.get(usize::from(detail)).ok_or_else(bad)?),
            4 => Answer::Lines(body),
            _ => Answer::End,
        }))
    }
}

/// Next message of a lane; `None` if the other side has gone. The future can be dropped without loss: bytes that have arrived stay in
/// `arrived`.
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

    fn ask() -> Ask {
        Ask {
            path: "/metrics".to_owned(),
            query: "collect[]=op".to_owned(),
            format: 2,
            may: Access::Details,
            turn: Turn::Quick,
            have: Have {
                reading: u64::MAX,
                parts: 5,
            },
        }
    }

    fn questions() -> [Question; 3] {
        let other = Ask {
            path: "/slow".to_owned(),
            query: String::new(),
            may: Access::Everybody,
            turn: Turn::Stream,
            have: Have::default(),
            ..ask()
        };
        [Question::Ask(ask()), Question::Ask(other), Question::Stop]
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
            Answer::Body(Made::default(), body.clone()),
            Answer::Body(
                Made {
                    reading: 9,
                    part: 3,
                },
                body.clone(),
            ),
            Answer::Same(Made {
                reading: u64::MAX,
                part: u8::MAX,
            }),
            Answer::Refused(Why::Query, "no".to_owned()),
            Answer::Refused(Why::Crowded, String::new()),
            Answer::Wait(Turn::Stream),
            Answer::Lines(body),
            Answer::Lines(Bytes::new()),
            Answer::End,
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
        let right = String::from_utf8(Question::Ask(ask()).encode().unwrap().split_off(4)).unwrap();
        let wrong = |from: &str, to: &str| {
            assert!(right.contains(from), "{from} is not in {right}");
            right.replace(from, to)
        };
        for text in [
            String::new(),
            "{}".to_owned(),
            "\"Detach\"".to_owned(),
            "\"stop\"".to_owned(),
            wrong("\"format\":2", "\"format\":-1"),
            wrong("\"format\":2", "\"format\":2,\"more\":1"),
            wrong("\"parts\":5", "\"parts\":5,\"more\":1"),
            wrong("\"Details\"", "\"Everything\""),
            wrong("\"Quick\"", "\"Never\""),
            right.clone() + " \"x\"",
        ] {
            let mut frame = (text.len() as u32).to_le_bytes().to_vec();
            frame.extend(text.as_bytes());
            assert!(take(&frame).is_err(), "{text}");
        }
        let long = Ask {
            query: "x".repeat(MAX_QUESTION),
            ..ask()
        };
        assert!(Question::Ask(long).encode().is_err());
        assert!(Answer::take(&mut BytesMut::from(&[7; 14][..])).is_err());
    }
}
