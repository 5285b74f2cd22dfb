//! External data representation (RFC 4506), as far as NFSv3 needs it.

use std::io;

/// Longest variable-length item that is read from a server: names, handles, authenticators.
const MAX_OPAQUE: usize = 64 << 10;

/// Encodes arguments.
#[derive(Debug, Default)]
pub(super) struct Encoder(pub(super) Vec<u8>);

impl Encoder {
    pub(super) fn u32(&mut self, n: u32) -> &mut Self {
        self.0.extend(n.to_be_bytes());
        self
    }

    pub(super) fn u64(&mut self, n: u64) -> &mut Self {
        self.0.extend(n.to_be_bytes());
        self
    }

    /// Bytes with their length before them and padding behind them.
    pub(super) fn opaque(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// Decodes results. An item beyond the end is an error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl<'a> Decoder<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> io::Result<&'a [u8]> {
        let (head, rest) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| invalid("the server's answer ends too early"))?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn u32(&mut self) -> io::Result<u32> {
        let b = self.bytes(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    pub(super) fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    pub(super) fn bool(&mut self) -> io::Result<bool> {
        Ok(self.u32()? != 0)
    }

    pub(super) fn opaque(&mut self) -> io::Result<&'a [u8]> {
        let n = self.u32()? as usize;
        if n > MAX_OPAQUE {
            return Err(invalid("an item of the server's answer is too long"));
        }
        Ok(&self.bytes(n.next_multiple_of(4))?[..n])
    }
}

/// Error for an answer that is no answer of the protocol.
pub(super) fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_there_and_back() {
        let mut e = Encoder::default();
        e.u32(7).u64(1 << 40).opaque(b"name!");
        assert_eq!(e.0.len(), 4 + 8 + 4 + 8);
        let mut d = Decoder(&e.0);
        assert_eq!(d.u32().unwrap(), 7);
        assert_eq!(d.u64().unwrap(), 1 << 40);
        assert_eq!(d.opaque().unwrap(), b"name!");
        assert!(d.u32().is_err());
    }

    #[test]
    fn a_length_beyond_the_end_or_the_limit_is_an_error() {
        assert!(Decoder(&[0, 0, 0, 8, 1]).opaque().is_err());
        assert!(Decoder(&u32::MAX.to_be_bytes()).opaque().is_err());
    }
}
