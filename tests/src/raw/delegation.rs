//! `lab delegation`: a client that holds a delegation of a file for reading, renews its lease, answers each recall, and never returns
//! it. It frees the delegation's id once the server has revoked it. Its own count of recalls is a reference for nfscope's.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::callback;
use super::hold::tell;
use super::lab_server::NFS_PORT;
use super::rpc::{Connection, Cursor, Xdr};
use super::v4::{self, Session, op};
use super::wire::Wire;

const MINOR: u32 = 2;
/// For reading, with a delegation (RFC 8881, 18.16: OPEN4_SHARE_ACCESS_WANT_READ_DELEG).
const ACCESS: u32 = 1 | 0x100;
/// OPEN_DELEGATE_READ.
const READ: u32 = 1;
/// SEQ4_STATUS_RECALLABLE_STATE_REVOKED (RFC 8881, 18.46.3): the server revoked a state, and waits for FREE_STATEID.
const REVOKED: u32 = 0x40;
/// Interval at which the client renews its lease and answers the recalls that came meanwhile. The server waits for a tenth of the
/// lease, and for a second at least (fs/nfsd/nfs4callback.c, max_cb_time).
const EVERY: Duration = Duration::from_millis(100);

/// Options of the delegation to hold.
#[derive(Clone, Debug, clap::Args)]
pub struct Keep {
    /// File that lies directly in the export
    pub file: String,
    /// File for the recalls and their outcome as JSON, written anew after each change
    #[arg(long)]
    pub report: PathBuf,
}

/// Recalls of the delegation, and their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Recalls that the client answered.
    pub asked: u64,
    /// The server has revoked the delegation, and knows that the client has heard it.
    pub lost: bool,
}

/// Holds the delegation until killed.
///
/// # Errors
/// When the server gives no delegation, and when a call fails.
pub fn run(keep: &Keep) -> Result<()> {
    let mut wire = Wire {
        connection: Some(Connection::open(NFS_PORT)?),
        ..Wire::default()
    };
    let mut session = Session::open_with(&mut wire, MINOR, callback::ON_THIS_CONNECTION)?;
    let (handle, delegation) = open(&mut session, &mut wire, &keep.file)?;
    let mut kept = Kept::default();
    tell(&keep.report, &kept)?;
    loop {
        thread::sleep(EVERY);
        let before = kept;
        let flags = renew(&mut session, &mut wire)?;
        while wire.connection()?.has_call() {
            let asked = callback::answer(wire.connection()?, callback::NFS4_OK)?;
            kept.asked += u64::from(asked == Some(callback::CB_RECALL));
        }
        if flags & REVOKED != 0 && !kept.lost {
            let free = op("free_stateid", Xdr::new().fixed(&delegation));
            session.call(&mut wire, "free_stateid", &[handle.clone(), free])?;
            kept.lost = true;
        }
        if kept != before {
            tell(&keep.report, &kept)?;
        }
    }
}

/// Opens the file; returns its handle and the delegation that came with the OPEN.
fn open(session: &mut Session, wire: &mut Wire, name: &str) -> Result<(v4::Op, [u8; 16])> {
    let handle = session.look_up(wire, name)?;
    // There is no sequence number in 4.1 and later; nothing is denied to others; the file is not created; it is opened by its name.
    let how = Xdr::new()
        .u32s(&[0, ACCESS, 0])
        .u64(session.client())
        .opaque(b"lab")
        .u32s(&[0, 0])
        .opaque(name.as_bytes());
    let answer = session.call(wire, "open", &[v4::put_root(), op("open", how)])?;
    let mut answer = Cursor(&answer);
    // Skips PUTROOTFH; the head of OPEN, its state, the change of the directory, and flags.
    answer.fixed(8 + 8 + 16 + 20 + 4)?;
    for _ in 0..answer.u32()? {
        answer.u32()?; // attributes that were set
    }
    let given = answer.u32()?;
    ensure!(given == READ, "a delegation of type {given}");
    let delegation = answer.fixed(16)?.try_into().context("a state")?;
    Ok((handle, delegation))
}

/// Sends a SEQUENCE, and returns its flags.
fn renew(session: &mut Session, wire: &mut Wire) -> Result<u32> {
    let answer = wire.compound("sequence", MINOR, &[session.next(false)])?;
    ensure!(answer.status == 0, "sequence: status {}", answer.status);
    let mut answer = Cursor(&answer.rest);
    answer.fixed(8 + 32)?; // number, status; session, sequence, slot and two highest ones
    answer.u32()
}
