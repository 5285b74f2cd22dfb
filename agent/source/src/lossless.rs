//! Names and tables of a host as text: paths on Unix are bytes in any encoding, and labels are UTF-8.
//!
//! A byte that is no UTF-8 stands as `\xff`, and so do the bytes of characters that steer a terminal, except for tabs and ends of lines. A
//! backslash that would look like the begin of such an escape stands as `\x5c`. All other text is unchanged. Different bytes therefore have
//! different texts, and [`path`] restores the bytes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The text of these bytes.
pub fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(|c| c == '\\' || steers(c)) {
            let (before, from) = rest.split_at(at);
            out += before;
            let mut after = from.chars();
            let special = after.next().unwrap_or_default();
            match special {
                '\\' if escaped(from.as_bytes()).is_none() => out.push('\\'),
                _ => {
                    for byte in special.encode_utf8(&mut [0; 4]).bytes() {
                        out += &format!("\\x{byte:02x}");
                    }
                }
            }
            rest = after.as_str();
        }
        out += rest;
        for byte in chunk.invalid() {
            out += &format!("\\x{byte:02x}");
        }
    }
    out
}

/// True for characters that control a terminal, in ASCII and behind it (C1).
fn steers(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n')
}

/// The text of a path.
pub fn of_path(path: &Path) -> String {
    text(path.as_os_str().as_bytes())
}

/// The bytes that have this text.
pub fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        match escaped(rest) {
            Some(code) => {
                out.push(code);
                rest = &rest[4..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

/// The path that has this text.
pub fn path(text: &str) -> PathBuf {
    OsString::from_vec(bytes(text)).into()
}

/// Byte that stands at the begin of this text as `\xff`.
fn escaped(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = text else {
        return None;
    };
    // Upper case is never written.
    let digit = |c: &u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    Some(digit(high)? << 4 | digit(low)?)
}

/// Text of these bytes, without a copy if the bytes are their own text.
pub fn owned(bytes: Vec<u8>) -> String {
    // Most are UTF-8 and have no backslash: then their bytes are their text.
    match String::from_utf8(bytes) {
        Ok(all) if !all.contains("\\x") && !all.contains(steers) => all,
        Ok(all) => text(all.as_bytes()),
        Err(other) => text(other.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_text_and_every_text_its_name() {
        let names: [&[u8]; 10] = [
            b"/srv/\x1b[2J\x07\xc2\x9b\x7f",
            b"/srv/plain",
            "/srv/\u{e9}t\u{e9}".as_bytes(),
            b"/srv/\xff",
            b"/srv/\\xff",
            b"/srv/\\x5cxff",
            b"/srv/\\",
            b"a\\b \n\t\0c",
            b"\xc3",
            b"\xef\xbf\xbd",
        ];
        for name in names {
            assert_eq!(bytes(&text(name)), name, "{name:?}");
        }
        let all: std::collections::BTreeSet<_> = names.iter().map(|name| text(name)).collect();
        assert_eq!(all.len(), names.len());
        assert_eq!(text(b"/srv/\xff\xe9"), "/srv/\\xff\\xe9");
        assert_eq!(text(b"/srv/\\xff"), "/srv/\\x5cxff");
        assert_eq!(
            text("/srv/\u{1b}[2J\u{7}\u{9b}\r".as_bytes()),
            "/srv/\\x1b[2J\\x07\\xc2\\x9b\\x0d"
        );
        assert_eq!(text(b"C:\\xyz\\"), "C:\\xyz\\");
    }

    #[test]
    fn a_file_in_any_encoding_has_a_text() {
        let text = owned(b"one\ntw\xff\n\\x41".to_vec());
        assert_eq!(text, "one\ntw\\xff\n\\x5cx41");
    }
}
