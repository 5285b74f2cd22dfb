//! Remote procedure calls over TCP (RFC 5531) with AUTH_SYS.
//!
//! A replay needs hundreds of calls in flight on one connection, each sent at its own time. The clients for NFSv3 among the public
//! libraries send one call at a time, so this is the replayer's own.

use super::xdr::{Decoder, Encoder, invalid};
use rustix::net::{AddressFamily, SocketType};
use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// Program numbers.
pub(super) const PORTMAP: (u32, u32) = (100_000, 2);
pub(super) const MOUNT: (u32, u32) = (100_005, 3);
pub(super) const NFS: (u32, u32) = (100_003, 3);

/// Limit of a connection's set-up, and of one call of the preparation.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest record that is accepted: the largest READ of any server and its head.
const MAX_RECORD: usize = 4 << 20;
/// Bit of a fragment's head that says that it is the last of its record.
const LAST: u32 = 1 << 31;

/// User as whom calls are made.
#[derive(Debug, Clone, Copy)]
pub struct Credentials {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Head of a call; its length is filled in by [`send`].
pub(super) fn call(
    xid: u32,
    (program, version): (u32, u32),
    procedure: u32,
    who: Credentials,
) -> Encoder {
    let mut e = Encoder(Vec::with_capacity(256));
    e.u32(0).u32(xid).u32(0).u32(2);
    e.u32(program).u32(version).u32(procedure);
    let mut sys = Encoder::default();
    sys.u32(0).opaque(b"nfscope");
    sys.u32(who.uid).u32(who.gid).u32(0);
    e.u32(1).opaque(&sys.0);
    e.u32(0).u32(0);
    e
}

/// Sends a call, with `data` behind its arguments.
pub(super) fn send(to: &mut impl Write, mut head: Encoder, data: &[u8]) -> io::Result<()> {
    const PADDING: [u8; 4] = [0; 4];
    let padding = &PADDING[..data.len().next_multiple_of(4) - data.len()];
    let length = head.0.len() - 4 + data.len() + padding.len();
    head.0[..4].copy_from_slice(&(LAST | length as u32).to_be_bytes());
    let mut parts = [
        IoSlice::new(&head.0),
        IoSlice::new(data),
        IoSlice::new(padding),
    ];
    let mut parts = &mut parts[..];
    // The loop is that of `Write::write_all_vectored`, which is not stable.
    while !parts.is_empty() {
        match to.write_vectored(parts) {
            Ok(0) if parts.iter().all(|p| p.is_empty()) => break,
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut parts, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Reads the next record into `record`; false at the end of the connection.
pub(super) fn receive(from: &mut impl Read, record: &mut Vec<u8>) -> io::Result<bool> {
    record.clear();
    loop {
        let mut head = [0; 4];
        match from.read_exact(&mut head) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && record.is_empty() => {
                return Ok(false);
            }
            Err(e) => return Err(e),
        }
        let head = u32::from_be_bytes(head);
        let (start, length) = (record.len(), (head & !LAST) as usize);
        if start + length > MAX_RECORD {
            return Err(invalid("the server sends a record that is too long"));
        }
        record.resize(start + length, 0);
        from.read_exact(&mut record[start..])?;
        if head & LAST != 0 {
            return Ok(true);
        }
    }
}

/// Transaction id of a reply, and its results.
///
/// # Errors
/// When it is no reply; the outer result. When the server refuses the call; the inner result.
pub(super) fn reply(record: &[u8]) -> io::Result<(u32, Result<Decoder<'_>, String>)> {
    let mut d = Decoder(record);
    let xid = d.u32()?;
    if d.u32()? != 1 {
        return Err(invalid("the server sends something that is no reply"));
    }
    if d.u32()? != 0 {
        let why = match (d.u32()?, d.u32()?) {
            (1, why) => format!("the server refuses the credentials (auth_stat {why})"),
            _ => "the server does not speak this version of RPC".to_owned(),
        };
        return Ok((xid, Err(why)));
    }
    d.u32()?;
    d.opaque()?;
    Ok(match d.u32()? {
        0 => (xid, Ok(d)),
        1 => (xid, Err("the server has no such program".to_owned())),
        2 => (xid, Err("the server has no such version".to_owned())),
        n => (
            xid,
            Err(format!("the server refuses the call (accept_stat {n})")),
        ),
    })
}

/// Connects, from a reserved port where this process may: servers refuse others unless the export says `insecure`.
pub(super) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    for port in (512..1024).rev() {
        let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
        let any: IpAddr = match to {
            SocketAddr::V4(_) => IpAddr::from([0; 4]),
            SocketAddr::V6(_) => IpAddr::from([0u16; 8]),
        };
        match rustix::net::bind(&socket, &SocketAddr::new(any, port)) {
            Ok(()) => {}
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => break,
            Err(_) => continue,
        }
        match rustix::net::connect(&socket, &to) {
            Ok(()) => return ready(TcpStream::from(socket)),
            // Pair of ports that an earlier connection still uses.
            Err(rustix::io::Errno::ADDRINUSE | rustix::io::Errno::ADDRNOTAVAIL) => {}
            Err(e) => return Err(e.into()),
        }
    }
    ready(TcpStream::connect_timeout(&to, TIMEOUT)?)
}

fn ready(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// A connection on which one call follows the other.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) stream: TcpStream,
    who: Credentials,
    xid: u32,
    record: Vec<u8>,
}

impl Caller {
    pub(super) fn new(stream: TcpStream, who: Credentials) -> Caller {
        Caller {
            stream,
            who,
            xid: 1,
            record: Vec::new(),
        }
    }

    /// Calls, and waits for the results.
    pub(super) fn call(
        &mut self,
        program: (u32, u32),
        procedure: u32,
        arguments: impl FnOnce(&mut Encoder),
        data: &[u8],
    ) -> io::Result<Decoder<'_>> {
        self.xid = self.xid.wrapping_add(1);
        let mut head = call(self.xid, program, procedure, self.who);
        arguments(&mut head);
        send(&mut self.stream, head, data)?;
        if !receive(&mut self.stream, &mut self.record)? {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection",
            ));
        }
        let (xid, results) = reply(&self.record)?;
        if xid != self.xid {
            return Err(invalid("the server answers another call"));
        }
        results.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_its_length_and_its_data_is_padded() {
        let mut sent = Vec::new();
        let head = call(9, NFS, 7, Credentials { uid: 1, gid: 2 });
        let bare = head.0.len() - 4;
        send(&mut sent, head, b"five!").unwrap();
        let mut record = Vec::new();
        assert!(receive(&mut &sent[..], &mut record).unwrap());
        assert_eq!(record.len(), bare + 8);
        assert_eq!(&record[..4], [0, 0, 0, 9]);
        assert!(!receive(&mut &[][..], &mut record).unwrap());
        assert!(receive(&mut &sent[..20], &mut record).is_err());
        assert!(receive(&mut &[0x7f, 0xff, 0xff, 0xff][..], &mut record).is_err());
    }

    #[test]
    fn refused_calls_name_the_reason() {
        let of = |words: &[u32]| {
            let mut e = Encoder::default();
            for w in words {
                e.u32(*w);
            }
            let (xid, results) = reply(&e.0).unwrap();
            assert_eq!(xid, 5);
            results.err()
        };
        assert_eq!(of(&[5, 1, 0, 0, 0, 0]), None);
        assert!(of(&[5, 1, 0, 0, 0, 2]).unwrap().contains("no such version"));
        assert!(of(&[5, 1, 1, 1, 5]).unwrap().contains("credentials"));
        let mut no_reply = Encoder::default();
        no_reply.u32(5).u32(0);
        assert!(reply(&no_reply.0).is_err());
    }
}
