//! `lab at-once`: so many calls at the same time, on 32 connections. Each waits for the log of an export with `sync`, so
//! that all threads of a server take some of many.

use anyhow::{Context, Result, ensure};

use super::lab_server::{EXPORT, NFS_PORT};
use super::rpc::{Call, Connection, Cursor, Xdr, root_handle};

const SETATTR: u32 = 2;
/// Servers close some of more connections (net/sunrpc/svc_xprt.c, XPT_MAX_TMP_CONN: 64 that have not said who they are).
const CONNECTIONS: u32 = 32;

/// Gives the export's directory the server's time, by so many NFSv3 SETATTRs (RFC 1813, 3.3.2) that are all sent before any reply is
/// waited for.
pub fn run(calls: u32) -> Result<()> {
    let root = root_handle(EXPORT)?;
    // No mode, owner, group, size and access time; the server's time as mtime; no guard.
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
