//! ONC RPC (RFC 5531) without a library: calls over TCP, right ones and wrong ones.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

/// The RPC program number of NFS.
pub const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;
const PORTMAPPER: u32 = 100_000;
/// Directions of a message (RFC 5531, 9).
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Longest wait for a reply. The clock of an icount machine leaps over idle time: a minute of it passes while the host reads a page
/// for rpc.mountd. The caller's limit for the whole program is shorter.
const PATIENCE: Duration = Duration::from_secs(3600);

/// XDR under construction.
#[derive(Clone, Debug, Default)]
pub struct Xdr(pub(super) Vec<u8>);

impl Xdr {
    /// Empty XDR.
    pub fn new() -> Xdr {
        Xdr::default()
    }

    /// Adds a number, or an enum or boolean.
    pub fn u32(mut self, n: u32) -> Xdr {
        self.0.extend_from_slice(&n.to_be_bytes());
        self
    }

    /// Adds several numbers.
    pub fn u32s(self, numbers: &[u32]) -> Xdr {
        numbers.iter().fold(self, |xdr, n| xdr.u32(*n))
    }

    /// Adds a hyper.
    pub fn u64(mut self, n: u64) -> Xdr {
        self.0.extend_from_slice(&n.to_be_bytes());
        self
    }

    /// Adds bytes of a length that both sides know.
    pub fn fixed(mut self, bytes: &[u8]) -> Xdr {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Adds bytes or a string with its length.
    pub fn opaque(self, bytes: &[u8]) -> Xdr {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.u32(length).fixed(bytes)
    }

    /// Adds encoded XDR.
    pub fn append(mut self, other: &Xdr) -> Xdr {
        self.0.extend_from_slice(&other.0);
        self
    }
}

/// Reader of a reply.
#[derive(Debug)]
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next bytes, padding skipped.
    pub fn fixed(&mut self, length: usize) -> Result<&'a [u8]> {
        let padded = length.next_multiple_of(4);
        if self.0.len() < padded {
            bail!("the reply is too short");
        }
        let (taken, rest) = self.0.split_at(padded);
        self.0 = rest;
        Ok(&taken[..length])
    }

    /// The next number.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.fixed(4)?.try_into()?))
    }

    /// The next hyper.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.fixed(8)?.try_into()?))
    }

    /// The next bytes with their length in front.
    pub fn opaque(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()?;
        self.fixed(length as usize)
    }
}

/// Credentials of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// AUTH_SYS of root.
    Sys,
    /// AUTH_SYS of another user.
    User(u32),
    /// Flavour that does not exist.
    Unknown,
}

/// RPC call.
#[derive(Clone, Debug)]
pub struct Call {
    /// RPC version: 2 for a call that is to succeed.
    pub rpc: u32,
    /// Program number.
    pub program: u32,
    /// Program version.
    pub version: u32,
    /// Procedure number.
    pub procedure: u32,
    /// Credentials.
    pub auth: Auth,
    /// Arguments.
    pub body: Xdr,
}

impl Call {
    /// A well-formed call of the NFS program.
    pub fn nfs(version: u32, procedure: u32, body: Xdr) -> Call {
        Call {
            rpc: 2,
            program: NFS,
            version,
            procedure,
            auth: Auth::Sys,
            body,
        }
    }

    /// Bytes on the wire: the record's length and the message.
    pub fn record(&self, xid: u32) -> Result<Vec<u8>> {
        let of = |user| {
            let no_more_groups = [user, user, 0];
            Xdr::new().u32(0).opaque(b"lab").u32s(&no_more_groups)
        };
        let credentials = match self.auth {
            Auth::Sys => Xdr::new().u32(1).opaque(&of(0).0),
            Auth::User(user) => Xdr::new().u32(1).opaque(&of(user).0),
            Auth::Unknown => Xdr::new().u32(77).opaque(b""),
        };
        let message = Xdr::new()
            .u32s(&[xid, CALL, self.rpc])
            .u32s(&[self.program, self.version, self.procedure])
            .append(&credentials)
            .u32s(&[0, 0]) // verifier: none
            .append(&self.body);
        let length = u32::try_from(message.0.len())?;
        let record = Xdr::new().u32(0x8000_0000 | length).append(&message);
        Ok(record.0)
    }
}

/// Reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The procedure ran; these are its results.
    Success(Vec<u8>),
    /// The call was accepted as RPC but not executed: `prog_unavail`, `prog_mismatch`, `proc_unavail`,
    /// `garbage_args` or `system_err`.
    Refused(&'static str),
    /// The call was denied: `rpc_mismatch` or `auth_error`.
    Denied(&'static str),
}

impl Reply {
    /// The results of a call that must have run.
    pub fn body(&self) -> Result<&[u8]> {
        match self {
            Reply::Success(body) => Ok(body),
            Reply::Refused(why) | Reply::Denied(why) => bail!("the server answered {why}"),
        }
    }
}

/// Time without a reply after which a call is sent again, as Linux clients do (`timeo` of nfs(5)).
const AGAIN: Duration = Duration::from_secs(60);

/// A connection to a server on this machine.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    next_xid: u32,
    /// Transaction id of the last call, and its record.
    last: (u32, Vec<u8>),
    /// Transaction ids of calls that were sent again: a second reply to them is dropped.
    again: Vec<u32>,
    /// Calls of the server that arrived before an awaited reply.
    calls: VecDeque<Vec<u8>>,
}

/// Call of the server to its client.
#[derive(Debug)]
pub struct Incoming {
    /// Transaction id, for the answer.
    pub xid: u32,
    /// Program number.
    pub program: u32,
    /// Procedure number.
    pub procedure: u32,
    /// Arguments.
    pub arguments: Vec<u8>,
}

impl Connection {
    /// Connects to `port` of this machine.
    pub fn open(port: u16) -> Result<Connection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .with_context(|| format!("connecting to port {port}; does the server run?"))?;
        Connection::over(stream)
    }

    /// Connects to `port` of this machine from one of its addresses (all of 127/8 are), with a receive buffer of `buffer` bytes
    /// instead of one that grows.
    pub fn open_from(from: Ipv4Addr, port: u16, buffer: Option<usize>) -> Result<Connection> {
        let open = || -> rustix::io::Result<TcpStream> {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            if let Some(bytes) = buffer {
                sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
            }
            bind(&socket, &SocketAddrV4::new(from, 0))?;
            connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
            Ok(socket.into())
        };
        let stream = open().with_context(|| {
            format!("connecting from {from} to port {port}; does the server run?")
        })?;
        Connection::over(stream)
    }

    fn over(stream: TcpStream) -> Result<Connection> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        // Transaction ids hardly collide with those that the duplicate request cache has of an earlier run or another connection.
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let opened = OPENED.fetch_add(1, Ordering::Relaxed);
        let next_xid = (std::process::id() << 12).wrapping_add(opened << 20);
        Ok(Connection {
            stream,
            next_xid,
            last: (0, Vec::new()),
            again: Vec::new(),
            calls: VecDeque::new(),
        })
    }

    /// Sends a call with a new transaction id and returns the id.
    pub fn send(&mut self, call: &Call) -> Result<u32> {
        self.next_xid = self.next_xid.wrapping_add(1);
        self.send_as(self.next_xid, call)?;
        Ok(self.next_xid)
    }

    /// Sends a call with this transaction id, used before or not.
    pub fn send_as(&mut self, xid: u32, call: &Call) -> Result<()> {
        self.last = (xid, call.record(xid)?);
        self.stream
            .write_all(&self.last.1)
            .context("sending a call")
    }

    /// The stream, for a caller that makes and reads records itself.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Waits for the reply to the only unanswered call. A server may drop a call; it is then sent again, with a line on standard
    /// error, because the server may have executed it twice.
    pub fn receive(&mut self) -> Result<Reply> {
        let xid = self.last.0;
        self.stream.set_read_timeout(Some(AGAIN))?;
        self.wait_for_bytes().context("waiting for a reply")?;
        self.stream.set_read_timeout(Some(PATIENCE))?;
        loop {
            let (answered, reply) = self.receive_any()?;
            match self.again.iter().position(|again| *again == answered) {
                // A second reply to an earlier call is dropped.
                Some(n) if answered != xid => drop(self.again.swap_remove(n)),
                _ => return Ok(reply),
            }
        }
    }

    fn wait_for_bytes(&mut self) -> io::Result<()> {
        for _ in 0..PATIENCE.as_secs() / AGAIN.as_secs() {
            match self.stream.peek(&mut [0]) {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let (xid, record) = &self.last;
                    eprintln!("call {xid:#x}: no reply for {AGAIN:?}; sent again");
                    self.again.push(*xid);
                    self.stream.write_all(record)?;
                }
                other => return other.map(drop),
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// Waits for the next reply; returns it with the transaction id of its call.
    pub fn receive_any(&mut self) -> Result<(u32, Reply)> {
        let record = loop {
            let record = self.record().context("waiting for a reply")?;
            let mut head = Cursor(&record);
            let (_xid, direction) = (head.u32()?, head.u32()?);
            if direction == REPLY {
                break record;
            }
            self.calls.push_back(record);
        };
        let mut reply = Cursor(&record);
        let (xid, _direction) = (reply.u32()?, reply.u32()?);
        if reply.u32()? == 1 {
            let why = match reply.u32()? {
                0 => "rpc_mismatch",
                _ => "auth_error",
            };
            return Ok((xid, Reply::Denied(why)));
        }
        let (_flavour, _verifier) = (reply.u32()?, reply.opaque()?);
        let answer = match reply.u32()? {
            0 => Reply::Success(reply.0.to_vec()),
            1 => Reply::Refused("prog_unavail"),
            2 => Reply::Refused("prog_mismatch"),
            3 => Reply::Refused("proc_unavail"),
            4 => Reply::Refused("garbage_args"),
            _ => Reply::Refused("system_err"),
        };
        Ok((xid, answer))
    }

    /// True if a call of the server arrived before a reply.
    pub fn has_call(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Waits for the server's next call, on the back channel of this connection. Calls that arrived before a reply come first.
    pub fn next_call(&mut self) -> Result<Incoming> {
        let record = match self.calls.pop_front() {
            Some(record) => record,
            None => self.record().context("waiting for a call")?,
        };
        let mut call = Cursor(&record);
        let (xid, direction) = (call.u32()?, call.u32()?);
        ensure!(direction == CALL, "a reply to no call");
        let (_rpc, program) = (call.u32()?, call.u32()?);
        let (_version, procedure) = (call.u32()?, call.u32()?);
        let (_flavour, _credentials) = (call.u32()?, call.opaque()?);
        let (_flavour, _verifier) = (call.u32()?, call.opaque()?);
        Ok(Incoming {
            xid,
            program,
            procedure,
            arguments: call.0.to_vec(),
        })
    }

    /// Answers a call of the server: accepted, with no verifier, and executed.
    pub fn answer(&mut self, xid: u32, results: &Xdr) -> Result<()> {
        let message = Xdr::new().u32s(&[xid, REPLY, 0, 0, 0, 0]).append(results);
        let length = u32::try_from(message.0.len())?;
        let record = Xdr::new().u32(0x8000_0000 | length).append(&message);
        self.stream.write_all(&record.0).context("answering a call")
    }

    fn record(&mut self) -> Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes(head) & 0x7fff_ffff;
        let mut record = vec![0; length as usize];
        self.stream
            .read_exact(&mut record)
            .context("reading a message")?;
        Ok(record)
    }

    /// Sends a call and waits for its reply.
    pub fn call(&mut self, call: &Call) -> Result<Reply> {
        self.send(call)?;
        self.receive()
    }
}

/// File handle of an exported directory, from the MOUNT protocol.
pub fn root_handle(path: &str) -> Result<Vec<u8>> {
    let ask = |port: u16, program, version, procedure, body| -> Result<Vec<u8>> {
        let call = Call {
            program,
            ..Call::nfs(version, procedure, body)
        };
        Ok(Connection::open(port)?.call(&call)?.body()?.to_vec())
    };
    let tcp = 6;
    let body = Xdr::new().u32s(&[MOUNT, 3, tcp, 0]);
    let port = Cursor(&ask(111, PORTMAPPER, 2, 3, body)?).u32()?;
    let port = u16::try_from(port).context("the port of mountd")?;
    let answer = ask(port, MOUNT, 3, 1, Xdr::new().opaque(path.as_bytes()))?;
    let mut answer = Cursor(&answer);
    match answer.u32()? {
        0 => Ok(answer.opaque()?.to_vec()),
        status => bail!("mounting {path} over the MOUNT protocol: status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Plays a server that drops one call, and one that is only late: its second reply answers no call.
    #[test]
    fn a_call_without_a_reply_is_sent_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = Connection::open(port).unwrap();
        client.last = (7, b"dropped".to_vec());
        let (mut server, _) = listener.accept().unwrap();
        client
            .stream
            .set_read_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        let server = std::thread::spawn(move || {
            let mut sent = [0; 7];
            server.read_exact(&mut sent).unwrap();
            let reply = |xid: u32| {
                Xdr::new()
                    .u32s(&[0x8000_0000 | 24, xid, REPLY, 0, 0, 0, 0])
                    .0
            };
            server
                .write_all(&[reply(7), reply(7), reply(8)].concat())
                .unwrap();
            sent
        });
        client.wait_for_bytes().unwrap();
        assert_eq!(&server.join().unwrap(), b"dropped");
        assert_eq!(client.receive().unwrap(), Reply::Success(Vec::new()));
        client.last = (8, b"next".to_vec());
        assert_eq!(client.receive().unwrap(), Reply::Success(Vec::new()));
        assert!(client.again.iter().all(|xid| *xid == 7));
    }
}
