//! Many writers on one connection; each times its own calls: an independent reference for queue time.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::lab_server::{EXPORT, NFS_PORT};
use super::rpc::{Call, Connection, Cursor, Reply, Xdr, root_handle};

const WRITE: u32 = 7;
const CREATE: u32 = 8;
const FILE_SYNC: u32 = 2;
const BLOCK: u32 = 4096;

/// A call and its time, as the writer measured it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Transaction id.
    pub xid: u32,
    /// NFSv3 procedure.
    pub procedure: u32,
    /// Seconds from just before the call was sent until its reply had been read.
    pub seconds: f64,
}

/// Runs writers on one connection, each of which keeps one synchronous 4 KiB WRITE to a file of its own under way.
pub fn run(writers: u32, writes: u32) -> Result<Vec<Timed>> {
    let root = root_handle(EXPORT)?;
    let mut line = Line {
        connection: Connection::open(NFS_PORT)?,
        waiting: HashMap::new(),
        done: Vec::new(),
    };
    let mut files = Vec::new();
    for writer in 0..writers {
        let name = format!("writer-{writer}");
        // The mode is UNCHECKED, and no attributes are set.
        let body = Xdr::new().opaque(&root).opaque(name.as_bytes());
        line.send(writer, CREATE, body.u32s(&[0, 0, 0, 0, 0, 0, 0]))?;
        let (_, reply) = line.receive()?;
        let mut created = Cursor(reply.body()?);
        let (status, has_handle) = (created.u32()?, created.u32()?);
        ensure!(
            (status, has_handle) == (0, 1),
            "CREATE {name}: status {status}"
        );
        files.push(created.opaque()?.to_vec());
    }
    let mut left = vec![writes; files.len()];
    for writer in 0..writers {
        line.write(writer, &files, &mut left)?;
    }
    while !line.waiting.is_empty() {
        let (writer, reply) = line.receive()?;
        let status = Cursor(reply.body()?).u32()?;
        ensure!(status == 0, "WRITE: status {status}");
        line.write(writer, &files, &mut left)?;
    }
    Ok(line.done)
}

struct Line {
    connection: Connection,
    /// Writer, procedure and time of sending of each call, by transaction id.
    waiting: HashMap<u32, (u32, u32, Instant)>,
    done: Vec<Timed>,
}

impl Line {
    fn write(&mut self, writer: u32, files: &[Vec<u8>], left: &mut [u32]) -> Result<()> {
        let at = writer as usize;
        if left[at] == 0 {
            return Ok(());
        }
        left[at] -= 1;
        let offset = u64::from(left[at]) * u64::from(BLOCK);
        let body = Xdr::new().opaque(&files[at]).u64(offset);
        let body = body
            .u32s(&[BLOCK, FILE_SYNC])
            .opaque(&[b'w'; BLOCK as usize]);
        self.send(writer, WRITE, body)
    }

    fn send(&mut self, writer: u32, procedure: u32, body: Xdr) -> Result<()> {
        let call = Call::nfs(3, procedure, body);
        let at = Instant::now();
        let xid = self.connection.send(&call)?;
        self.waiting.insert(xid, (writer, procedure, at));
        Ok(())
    }

    fn receive(&mut self) -> Result<(u32, Reply)> {
        let (xid, reply) = self.connection.receive_any()?;
        let waiting = self.waiting.remove(&xid);
        let (writer, procedure, at) = waiting.context("a reply to a call that was not sent")?;
        self.done.push(Timed {
            xid,
            procedure,
            seconds: at.elapsed().as_secs_f64(),
        });
        Ok((writer, reply))
    }
}
