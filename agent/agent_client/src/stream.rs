//! Connection to an agent, plain or by TLS, whose reads and writes may end at a deadline.

use crate::access;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Time limit of a single read or write.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// End of the time for a whole answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    /// Time that it ends, for the error.
    pub(crate) time: Duration,
}

impl Deadline {
    pub(crate) fn after(time: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + time,
            time,
        }
    }

    /// Time that a single read or write may take; the error is that no time is left.
    pub(crate) fn left(self) -> io::Result<Duration> {
        let left = self.at.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::Error::new(
                ErrorKind::TimedOut,
                format!("no whole answer within {} s", self.time.as_secs()),
            )),
            false => Ok(left.min(REQUEST_TIMEOUT)),
        }
    }
}

/// A socket whose reads end at a deadline. TLS reads a socket several times for one record, so a limit above TLS would not hold.
#[derive(Debug)]
pub struct Socket {
    pub(crate) stream: TcpStream,
    pub(crate) deadline: Option<Deadline>,
}

impl Read for Socket {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let Some(deadline) = self.deadline else {
            return self.stream.read(to);
        };
        self.stream.set_read_timeout(Some(deadline.left()?))?;
        self.stream.read(to).map_err(|e| match deadline.left() {
            Err(late) => late,
            Ok(_) => e,
        })
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if let Some(deadline) = self.deadline {
            self.stream.set_write_timeout(Some(deadline.left()?))?;
        }
        self.stream.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A connection to an agent.
#[derive(Debug)]
pub enum Stream {
    /// HTTP.
    Plain(Socket),
    /// HTTPS.
    Encrypted(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    pub(crate) fn encrypted(stream: Socket, name: &str) -> anyhow::Result<Stream> {
        let name = ServerName::try_from(name.to_owned())?;
        let connection = ClientConnection::new(access::tls()?, name)?;
        Ok(Stream::Encrypted(Box::new(StreamOwned::new(
            connection, stream,
        ))))
    }

    /// Sets the timeout of reads.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.stream.set_read_timeout(time),
            Stream::Encrypted(stream) => stream.sock.stream.set_read_timeout(time),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(to),
            Stream::Encrypted(stream) => stream.read(to),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(from),
            Stream::Encrypted(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Encrypted(stream) => stream.flush(),
        }
    }
}
