//! Transaction id of an RPC (RFC 5531, section 9): captures, traces of clients and the server's own trace print the same number.
//!
//! In JSON it is text with eight hexadecimal digits, `"0x0b5f0c11"`, as `trace_svc_process` of the kernel prints it.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Text of a transaction id.
pub fn text(xid: u32) -> String {
    format!("{xid:#010x}")
}

/// For `#[serde(with = "xid")]`, beside `default` and `skip_serializing_if = "Option::is_none"`.
///
/// # Errors
/// Errors of the format.
pub fn serialize<S: Serializer>(xid: &Option<u32>, to: S) -> Result<S::Ok, S::Error> {
    match xid {
        Some(xid) => to.serialize_str(&text(*xid)),
        None => to.serialize_none(),
    }
}

/// The inverse of [`serialize`].
///
/// # Errors
/// Text that is no transaction id.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else {
        return Ok(None);
    };
    let digits = text.strip_prefix("0x").filter(|d| d.len() == 8);
    // `from_str_radix` takes a sign, too.
    let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
    let xid = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
    let wrong = || {
        D::Error::custom(format!(
            "`{text}` is no transaction id: 0x and eight digits"
        ))
    };
    xid.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use crate::HeldRequest;

    #[test]
    fn only_eight_hexadecimal_digits_are_a_transaction_id() {
        let of = |xid: &str| serde_json::from_str::<HeldRequest>(&format!("{{\"xid\":{xid}}}"));
        assert_eq!(of("\"0x0b5f0c11\"").unwrap().xid, Some(0x0b5f_0c11));
        assert_eq!(of("null").unwrap().xid, None);
        for wrong in ["\"0x+1234567\"", "\"0b5f0c11\"", "\"0x0b5f0c1\"", "7"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let request = HeldRequest {
            xid: Some(1),
            ..HeldRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        assert!(text.contains("\"xid\":\"0x00000001\""), "{text}");
    }
}
