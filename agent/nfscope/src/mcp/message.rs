//! The form of JSON-RPC 2.0.

use serde_json::{Map, Value, json};

/// Codes of JSON-RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// No JSON.
    Parse = -32700,
    /// JSON, and no request.
    Invalid = -32600,
    /// No such method.
    Method = -32601,
    /// Wrong parameters.
    Parameters = -32602,
    /// No such resource.
    Resource = -32002,
}

/// Why a request has no result.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// The reason.
    pub why: String,
}

impl Refusal {
    /// With this code.
    pub fn new(code: Code, why: impl Into<String>) -> Refusal {
        let why = why.into();
        Refusal { code, why }
    }

    /// Of wrong parameters.
    pub fn parameters(why: impl Into<String>) -> Refusal {
        Refusal::new(Code::Parameters, why)
    }
}

/// What came.
#[derive(Debug, PartialEq)]
pub enum Message {
    /// A question, which has an answer.
    Request {
        /// A number or a text.
        id: Value,
        /// What is asked.
        method: String,
        /// How.
        params: Map<String, Value>,
    },
    /// Has no answer.
    Notification {
        /// What happened.
        method: String,
        /// To what.
        params: Map<String, Value>,
    },
    /// An answer to a question that was never asked.
    Answer,
}

/// Reads a line. Otherwise the refusal, with the number of the request where that can be told.
pub fn read(line: &[u8]) -> Result<Message, (Value, Refusal)> {
    let invalid = |id: &Value, why: &str| Err((id.clone(), Refusal::new(Code::Invalid, why)));
    let value: Value = serde_json::from_slice(line)
        .map_err(|e| (Value::Null, Refusal::new(Code::Parse, e.to_string())))?;
    let Value::Object(mut object) = value else {
        return invalid(
            &Value::Null,
            "a message is one JSON object; batches are not taken",
        );
    };
    let id = object.remove("id");
    let id = match id {
        None => None,
        Some(id @ (Value::String(_) | Value::Number(_))) => Some(id),
        Some(_) => return invalid(&Value::Null, "id is no number and no text"),
    };
    let known = id.clone().unwrap_or(Value::Null);
    if object.get("jsonrpc") != Some(&json!("2.0")) {
        return invalid(&known, "jsonrpc is not \"2.0\"");
    }
    let method = match object.remove("method") {
        Some(Value::String(method)) => method,
        None if object.contains_key("result") || object.contains_key("error") => {
            return Ok(Message::Answer);
        }
        _ => return invalid(&known, "method is no text"),
    };
    let params = match object.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return invalid(&known, "params is no object"),
    };
    Ok(match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    })
}

/// The answer as a line without its end.
pub fn answer(id: &Value, result: Result<Value, Refusal>) -> String {
    let whole = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Refusal { code, why }) => {
            let error = json!({"code": code as i32, "message": why});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    };
    whole.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_comes_is_a_message_or_a_refusal() {
        let code = |line: &str| read(line.as_bytes()).err().map(|(id, r)| (id, r.code));
        let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
        assert!(matches!(read(ping.as_bytes()), Ok(Message::Request { .. })));
        let told = r#"{"jsonrpc":"2.0","method":"x","params":null}"#;
        assert!(matches!(
            read(told.as_bytes()),
            Ok(Message::Notification { .. })
        ));
        assert_eq!(
            read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Ok(Message::Answer)
        );
        let null = Value::Null;
        for (line, id, expected) in [
            ("", null.clone(), Code::Parse),
            ("{", null.clone(), Code::Parse),
            ("[]", null.clone(), Code::Invalid),
            ("7", null.clone(), Code::Invalid),
            (
                r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#,
                json!(3),
                Code::Invalid,
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                null.clone(),
                Code::Invalid,
            ),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":7}"#,
                json!(4),
                Code::Invalid,
            ),
            (
                r#"{"jsonrpc":"2.0","id":5,"method":"x","params":[1]}"#,
                json!(5),
                Code::Invalid,
            ),
        ] {
            assert_eq!(code(line), Some((id, expected)), "{line}");
        }
        // Deeper than anything that a person writes.
        let deep = "[".repeat(100_000);
        assert_eq!(code(&deep), Some((null, Code::Parse)));
    }
}
