//! Hands sockets and the configuration from the agent to the process that serves HTTP.

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Most descriptors in one message; the kernel takes 253 at most (SCM_MAX_FD).
const MOST: usize = 64;
const SPACE: usize = rustix::cmsg_space!(ScmRights(MOST));
/// Longest configuration: the certificates of many authorities take a tenth of it.
const MAX_CONFIGURATION: usize = 4 << 20;

/// Bit that marks a byte of [`taken`].
const TAKEN: u8 = 0x80;

/// Numbers of the descriptors of each kind, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Sockets to serve on.
    pub listeners: u16,
    /// Lanes (sockets) for questions.
    pub lanes: u16,
    /// Lanes for streams of operations.
    pub streams: u16,
}

impl Counts {
    fn all(self) -> usize {
        usize::from(self.listeners) + usize::from(self.lanes) + usize::from(self.streams)
    }
}

/// Encodes a configuration for sending: its length, and its text.
///
/// # Errors
/// When it is too long.
pub fn framed(text: &[u8]) -> io::Result<Vec<u8>> {
    if text.len() > MAX_CONFIGURATION {
        let why = format!(
            "the web configuration and its certificates have {} bytes",
            text.len()
        );
        return Err(io::Error::other(why));
    }
    let mut out = (text.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(text);
    Ok(out)
}

/// Length of a configuration, from its first bytes.
///
/// # Errors
/// When it is too long.
pub fn length(head: [u8; 4]) -> io::Result<usize> {
    match u32::from_le_bytes(head) as usize {
        n if n <= MAX_CONFIGURATION => Ok(n),
        n => Err(io::Error::other(format!("a configuration of {n} bytes"))),
    }
}

/// Byte that says that a configuration is in effect, and how the process is confined: a bit for each part, from the lowest on.
pub fn taken(holds: u8) -> u8 {
    TAKEN | holds
}

/// Confinement of the process that has sent this byte; `None` for a byte that says something else.
pub fn holds(byte: u8) -> Option<u8> {
    (byte & TAKEN != 0).then_some(byte & !TAKEN)
}

/// Sends descriptors and a configuration.
///
/// # Errors
/// When the other side has gone.
pub fn send(
    mut socket: &UnixStream,
    counts: Counts,
    descriptors: &[BorrowedFd<'_>],
    configuration: &[u8],
) -> io::Result<()> {
    let numbers = [counts.listeners, counts.lanes, counts.streams];
    socket.write_all(&numbers.map(u16::to_le_bytes).concat())?;
    for some in descriptors.chunks(MOST) {
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(some));
        // Descriptors need a byte of data to be sent with.
        let byte = [IoSlice::new(&[0])];
        sendmsg(socket, &byte, &mut control, SendFlags::empty())?;
    }
    socket.write_all(&framed(configuration)?)
}

/// Receives descriptors and a configuration.
///
/// # Errors
/// When something is missing.
pub fn receive(mut socket: &UnixStream) -> io::Result<(Counts, Vec<OwnedFd>, Vec<u8>)> {
    let mut number = || {
        let mut n = [0; 2];
        socket.read_exact(&mut n)?;
        Ok::<_, io::Error>(u16::from_le_bytes(n))
    };
    let counts = Counts {
        listeners: number()?,
        lanes: number()?,
        streams: number()?,
    };
    let mut descriptors = Vec::new();
    while descriptors.len() < counts.all() {
        let wanted = (counts.all() - descriptors.len()).min(MOST);
        let some = some_descriptors(socket)?;
        if some.len() != wanted {
            // The kernel drops descriptors beyond this process's limit of open files.
            return Err(io::Error::other(format!(
                "{} of {wanted} descriptors arrived; raise the limit of open files",
                some.len()
            )));
        }
        descriptors.extend(some);
    }
    let mut head = [0; 4];
    socket.read_exact(&mut head)?;
    let mut configuration = vec![0; length(head)?];
    socket.read_exact(&mut configuration)?;
    Ok((counts, descriptors, configuration))
}

fn some_descriptors(socket: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    loop {
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut room = [IoSliceMut::new(&mut byte)];
        match recvmsg(socket.as_fd(), &mut room, &mut control, RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
            Ok(message) if message.bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                let mut all = Vec::new();
                for message in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(some) = message {
                        all.extend(some);
                    }
                }
                return Ok(all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_and_the_configuration_arrive_in_their_order() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pairs: Vec<_> = (0..70).map(|_| UnixStream::pair().unwrap()).collect();
        let all: Vec<_> = pairs.iter().map(|(a, _)| a.as_fd()).collect();
        let counts = Counts {
            listeners: 1,
            lanes: 64,
            streams: 5,
        };
        send(&ours, counts, &all, b"{}").unwrap();
        let (got, descriptors, configuration) = receive(&theirs).unwrap();
        assert_eq!((got, configuration.as_slice()), (counts, &b"{}"[..]));
        for (fd, (_, other)) in descriptors.into_iter().zip(&pairs) {
            UnixStream::from(fd).write_all(b"x").unwrap();
            let mut byte = [0];
            (&mut &*other).read_exact(&mut byte).unwrap();
        }
        drop(ours);
        assert!(receive(&theirs).is_err());
    }
}
