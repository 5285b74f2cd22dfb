//! `lab at-once`: many calls at the same time, on 32 connections. Each waits for the log of an export with `sync`. All threads of a
//! server take some of them if there are enough.

use anyhow::{Context, Result, ensure};

use super::lab_server::{EXPORT, NFS_PORT};
use super::rpc::{Call, Connection, Cursor, Xdr, root_handle};

const SETATTR: u32 = 2;
/// Servers close connections beyond a limit (net/sunrpc/svc_xprt.c, XPT_MAX_TMP_CONN: 64 from clients that have not identified
/// themselves).
const CONNECTIONS: u32 = 32;

/// Sets the modification time of the export's directory to the server's time, by `calls` NFSv3 SETATTRs (RFC 1813, 3.3.2). All are
/// sent before the first reply is read.
pub fn run(calls: u32) -> Result<()> {
    let root = root_handle(EXPORT)?;
    // Mode, owner, group, size and access time are not set; the modification time is the server's; there is no guard.
    let body = Xdr::new().opaque(&root).u32s(&[0, 0, 0, 0, 0, 1, 0]);
    let call = Call::nfs(3, SETATTR, body);
    let open = (0..calls.min(CONNECTIONS)).map(|_| Connection::open(NFS_PORT));
    let mut open = open.collect::<Result<Vec<_>>>()?;
    let connections = open.len();
    let of_calls = || (0..calls as usize).map(|n| n % connections);
    for n in of_calls() {
        open[n].send(&call)?;
    }
    for n in of_calls() {
        let (_, reply) = open[n].receive_any().context("SETATTR")?;
        let status = Cursor(reply.body()?).u32()?;
        ensure!(status == 0, "SETATTR: status {status}");
    }
    Ok(())
}
