//! The fingerprint of a certificate, as `openssl x509 -fingerprint -sha256` and browsers show it.

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// SHA-256 of a certificate's DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Fingerprint([u8; SHA256_OUTPUT_LEN]);

impl Fingerprint {
    /// Fingerprint of this certificate.
    pub fn of(der: &[u8]) -> Fingerprint {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(digest(&SHA256, der).as_ref());
        Fingerprint(bytes)
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "give 32 bytes in hexadecimal, as `openssl x509 -in FILE -noout -fingerprint -sha256` prints them".to_owned()
        };
        // OpenSSL writes `sha256 Fingerprint=AB:CD`.
        let hex: String = text
            .rsplit('=')
            .next()
            .unwrap_or_default()
            .split(':')
            .collect();
        if hex.len() != 2 * SHA256_OUTPUT_LEN || !hex.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        for (n, byte) in bytes.iter_mut().enumerate() {
            let pair = &hex[2 * n..2 * n + 2];
            if !pair.chars().all(|c| c.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Fingerprint(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, byte) in self.0.iter().enumerate() {
            let colon = if n == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_openssl_writes_them() {
        let of = Fingerprint::of(b"abc");
        let hex = "BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:B0:03:61:A3:96:17:7A:9C:B4:10:FF:61:F2:00:15:AD";
        assert_eq!(of.to_string(), hex);
        let bare = hex.replace(':', "").to_lowercase();
        for text in [hex, &bare, &format!("sha256 Fingerprint={hex}")] {
            assert_eq!(text.parse(), Ok(of), "{text}");
        }
        for text in [
            "",
            "AB:CD",
            &hex[..62],
            &hex.replace("BA", "+A"),
            &format!("{hex}:00"),
        ] {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }
}
