//! Protocol of host and machine: one TCP connection per command, closed to kill it.
//!
//! The machine greets, the host sends one line of JSON (a [`Request`]), then frames flow: one byte of kind, four of length (big
//! endian), and the data.

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// First line of the machine: any other greeting at that port is not the lab's.
pub const GREETING: &str = "nfscope lab 1\n";
/// The port of the machine's command server.
pub const CONTROL_PORT: u16 = 9900;
/// Ports inside the machine for agents: each agent takes the first free one.
pub const AGENT_PORTS: [u16; 3] = [9943, 9944, 9945];

/// Shell command to run, or time to let pass.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// Script for `bash -c`.
    pub script: String,
    /// Time by the machine's clock after which the answer comes, in place of a command. A shell that sleeps costs an emulator more.
    pub pass: Option<Duration>,
    /// True for a terminal, fed by the host's input frames.
    pub terminal: bool,
    /// Client whose network and host name the command runs with; the server's own if absent.
    pub client: Option<usize>,
}

/// Message about a running command.
#[derive(Debug)]
pub enum Frame {
    /// From the machine: standard output.
    Out(Vec<u8>),
    /// From the machine: standard error.
    Err(Vec<u8>),
    /// From the machine: the command ended, with this exit code (128 + n for signal n).
    Exit(i32),
    /// To the machine: a signal for the command.
    Signal(i32),
    /// To the machine: standard input, for a command with a terminal.
    In(Vec<u8>),
}

impl Frame {
    /// Writes the frame whole.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let number;
        let (kind, data): (u8, &[u8]) = match self {
            Frame::Out(data) => (1, data),
            Frame::Err(data) => (2, data),
            Frame::In(data) => (5, data),
            Frame::Exit(code) => {
                number = code.to_be_bytes();
                (3, &number)
            }
            Frame::Signal(signal) => {
                number = signal.to_be_bytes();
                (4, &number)
            }
        };
        let length = u32::try_from(data.len()).map_err(io::Error::other)?;
        let mut frame = Vec::with_capacity(5 + data.len());
        frame.push(kind);
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(data);
        to.write_all(&frame)
    }

    /// Reads the next frame.
    pub fn read(from: &mut impl Read) -> io::Result<Frame> {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut data = Vec::new();
        from.take(u64::from(length)).read_to_end(&mut data)?;
        if data.len() != length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let number = || -> io::Result<i32> {
            let bytes = data.as_slice().try_into().map_err(io::Error::other)?;
            Ok(i32::from_be_bytes(bytes))
        };
        match head[0] {
            1 => Ok(Frame::Out(data)),
            2 => Ok(Frame::Err(data)),
            3 => Ok(Frame::Exit(number()?)),
            4 => Ok(Frame::Signal(number()?)),
            5 => Ok(Frame::In(data)),
            kind => Err(io::Error::other(format!("unknown frame kind {kind}"))),
        }
    }
}
