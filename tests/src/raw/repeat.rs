//! A right call, repeated on one connection: exactly one RPC per step, and nearly no cost of the client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::lab_server::{EXPORT, NFS_PORT};
use super::rpc::{Call, Connection, Cursor, Xdr, root_handle};
use super::v4::{self, Op, Session, op};
use super::wire::Wire;

/// Bytes of each WRITE.
pub const WRITE_SIZE: usize = 4096;
const FILE_SYNC: u32 = 2;

/// The call to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A WRITE of 4 KiB, FILE_SYNC, at the beginning of the file.
    Write,
    /// A GETATTR of the file.
    Getattr,
    /// A LOOKUP of the file; over version 4 with GETFH and GETATTR.
    Lookup,
}

/// A connection, and the record that it sends each time.
#[derive(Debug)]
pub struct Repeat {
    stream: TcpStream,
    record: Vec<u8>,
    xid: u32,
    /// Version 4: offset of the slot's sequence number in the record, and the last one used.
    sequence: Option<(usize, u32)>,
    reply: Vec<u8>,
}

impl Repeat {
    /// Prepares the call over version 3 or 4 (4.2), on a file that lies directly in the export.
    pub fn new(version: u32, what: What, file: &str) -> Result<Repeat> {
        let mut wire = Wire {
            connection: Some(Connection::open(NFS_PORT)?),
            ..Wire::default()
        };
        let (call, session) = if version == 3 {
            (v3_call(&mut wire, what, file)?, None)
        } else {
            let (call, id, sequence) = v4_call(&mut wire, what, file)?;
            (call, Some((id, sequence)))
        };
        // The transaction ids differ from those that the duplicate request cache may have from an earlier run.
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let xid = now.subsec_nanos() ^ (now.as_secs() as u32).rotate_left(20);
        let record = call.record(xid)?;
        let sequence = match session {
            None => None,
            Some((id, last)) => {
                let at = record.windows(id.len()).position(|bytes| bytes == id);
                Some((at.context("the record has no session")? + id.len(), last))
            }
        };
        let stream = wire.connection.context("no connection")?.into_stream();
        Ok(Repeat {
            stream,
            record,
            xid,
            sequence,
            reply: vec![0; 4096],
        })
    }

    /// Sends the call once more and checks that it succeeded.
    pub fn step(&mut self) -> Result<()> {
        self.xid = self.xid.wrapping_add(1);
        self.record[4..8].copy_from_slice(&self.xid.to_be_bytes());
        if let Some((at, last)) = &mut self.sequence {
            *last += 1;
            self.record[*at..*at + 4].copy_from_slice(&last.to_be_bytes());
        }
        self.stream.write_all(&self.record)?;
        let mut have = 0;
        loop {
            let n = self.stream.read(&mut self.reply[have..])?;
            ensure!(n > 0, "the server closed the connection");
            have += n;
            let head = u32::from_be_bytes(self.reply[..4].try_into()?) & 0x7fff_ffff;
            if have >= 4 + head as usize {
                break;
            }
        }
        // The head of a good reply: transaction id, reply, accepted, no verifier, success; then the status of NFS.
        let good = [[0, 0, 0, 1].as_slice(), &[0; 20]].concat();
        ensure!(
            have >= 32 && self.reply[4..8] == self.xid.to_be_bytes() && self.reply[8..32] == *good,
            "the call failed: {:02x?}",
            &self.reply[..have.min(64)]
        );
        Ok(())
    }
}

fn v3_call(wire: &mut Wire, what: What, file: &str) -> Result<Call> {
    let look_up = Xdr::new()
        .opaque(&root_handle(EXPORT)?)
        .opaque(file.as_bytes());
    let look_up = Call::nfs(3, 3, look_up);
    let answer = wire.exchange("lookup", &look_up)?;
    let mut answer = Cursor(answer.body()?);
    let status = answer.u32()?;
    ensure!(status == 0, "looking up {file} over v3: status {status}");
    let handle = Xdr::new().opaque(answer.opaque()?);
    Ok(match what {
        What::Getattr => Call::nfs(3, 1, handle),
        What::Lookup => look_up,
        What::Write => {
            let size = u32::try_from(WRITE_SIZE)?;
            let body = handle.u64(0).u32s(&[size, FILE_SYNC]);
            Call::nfs(3, 7, body.opaque(&[b'x'; WRITE_SIZE]))
        }
    })
}

fn v4_call(wire: &mut Wire, what: What, file: &str) -> Result<(Call, [u8; 16], u32)> {
    let mut session = Session::open(wire, 2)?;
    let handle = session.look_up(wire, file)?;
    let operations: Vec<Op> = match what {
        What::Getattr => vec![handle, v4::get_attributes()],
        What::Lookup => [v4::walk(file).as_slice(), &[v4::get_attributes()]].concat(),
        What::Write => {
            // The anonymous state needs no OPEN.
            let head = Xdr::new().fixed(&[0; 16]).u64(0).u32(FILE_SYNC);
            vec![handle, op("write", head.opaque(&[b'x'; WRITE_SIZE]))]
        }
    };
    let sequence = [session.next(false)];
    let last = session.sequence - 1;
    let body = v4::compound(2, &[sequence.as_slice(), &operations].concat());
    Ok((Call::nfs(4, 1, body), session.id, last))
}
