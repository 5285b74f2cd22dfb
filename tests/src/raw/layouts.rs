//! `lab layouts`: a client that asks for pNFS layouts of files, but reads through the server. Its own count of granted layouts is a
//! reference for nfscope's. It can stay, and refuse to return the layouts that the server recalls.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::callback;
use super::hold::tell;
use super::lab_server::NFS_PORT;
use super::rpc::{Connection, Cursor, Xdr};
use super::sent::Sent;
use super::v4::{self, Op, Session, op};
use super::wire::Wire;

const MINOR: u32 = 2;
/// LAYOUT4_BLOCK_VOLUME (RFC 5663).
const BLOCK_VOLUME: u32 = 3;
/// LAYOUTIOMODE4_RW.
const READ_WRITE: u32 = 2;
/// LAYOUTRETURN4_FILE.
const OF_FILE: u32 = 1;
const BLOCK: u32 = 4096;
/// Access for reading and writing, without a delegation (OPEN4_SHARE_ACCESS_WANT_NO_DELEG).
const ACCESS: u32 = 3 | 0x400;

/// Calls of the client.
#[derive(Clone, Debug, clap::Args)]
pub struct Ask {
    /// Files that lie directly in the export, and have a block at least
    #[arg(required = true)]
    pub files: Vec<String>,
    /// Number of layouts to ask for, of the first files
    #[arg(long, default_value_t = 0)]
    pub layouts: usize,
    /// Number of layouts to return, of the first files; the others, and the open files, are kept
    #[arg(long, default_value_t = 0)]
    pub returned: usize,
    /// READs of each file through the server
    #[arg(long, default_value_t = 0)]
    pub reads: u32,
    /// Stay until killed, and return the layouts when one is recalled. After each recall, write the outcome to REPORT as JSON
    #[arg(long, value_name = "REPORT")]
    pub stay: Option<PathBuf>,
    /// Refuse each recall instead of returning the layouts
    #[arg(long, requires = "stay")]
    pub refuse: bool,
}

/// Outcome of the calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// Layouts that the server granted.
    pub granted: u64,
    /// Layouts among these that were returned.
    pub returned: u64,
    /// Recalls that the client refused.
    pub refused: u64,
    /// All calls sent.
    pub sent: Sent,
}

/// Asks for layouts, and then ends or stays. Only layouts that are to be returned are given back.
pub fn run(ask: &Ask) -> Result<Asked> {
    let mut wire = Wire {
        connection: Some(Connection::open(NFS_PORT)?),
        ..Wire::default()
    };
    wire.sent.connections += 1;
    let back_channel = match ask.stay {
        Some(_) => callback::ON_THIS_CONNECTION,
        None => 0,
    };
    let mut client = Client {
        session: Session::open_with(&mut wire, MINOR, back_channel)?,
        wire,
    };
    let (mut granted, mut returned, mut held) = (0, 0, Vec::new());
    for (n, name) in ask.files.iter().enumerate() {
        let file = client.open(name)?;
        let layout = match n < ask.layouts {
            true => Some(client.layout(&file)?),
            false => None,
        };
        granted += u64::from(layout.is_some());
        for _ in 0..ask.reads {
            client.read(&file)?;
        }
        match layout {
            Some(layout) if n < ask.returned => {
                client.give_back(&file, &layout)?;
                returned += 1;
            }
            Some(layout) => held.push((file, layout)),
            None => {}
        }
    }
    let mut asked = Asked {
        granted,
        returned,
        refused: 0,
        sent: client.wire.sent.clone(),
    };
    let Some(report) = &ask.stay else {
        return Ok(asked);
    };
    tell(report, &asked)?;
    loop {
        let status = match (ask.refuse, held.is_empty()) {
            (true, _) => callback::NFS4ERR_SERVERFAULT,
            (false, false) => callback::NFS4_OK,
            // The kernel repeats the recall until it gets this status.
            (false, true) => callback::NFS4ERR_NOMATCHING_LAYOUT,
        };
        let asked_for = callback::answer(client.wire.connection()?, status)?;
        if asked_for != Some(callback::CB_LAYOUTRECALL) {
            continue;
        }
        if ask.refuse {
            asked.refused += 1;
        } else {
            for (file, layout) in held.drain(..) {
                client.give_back(&file, &layout)?;
                asked.returned += 1;
            }
        }
        asked.sent = client.wire.sent.clone();
        tell(report, &asked)?;
    }
}

type StateId = [u8; 16];

struct File {
    handle: Op,
    state: StateId,
}

struct Client {
    wire: Wire,
    session: Session,
}

impl Client {
    fn call(&mut self, what: &str, ops: &[Op]) -> Result<Vec<u8>> {
        self.session.call(&mut self.wire, what, ops)
    }

    fn open(&mut self, name: &str) -> Result<File> {
        let handle = self.session.look_up(&mut self.wire, name)?;
        // There is no sequence number in 4.1 and later; nothing is denied to others; the file is not created; it is opened by its
        // name.
        let how = Xdr::new()
            .u32s(&[0, ACCESS, 0])
            .u64(self.session.client())
            .opaque(b"lab")
            .u32s(&[0, 0])
            .opaque(name.as_bytes());
        let answer = self.call("open", &[v4::put_root(), op("open", how)])?;
        let mut answer = Cursor(&answer);
        answer.fixed(8 + 8)?;
        let state = answer.fixed(16)?.try_into().context("a state")?;
        Ok(File { handle, state })
    }

    fn layout(&mut self, file: &File) -> Result<StateId> {
        let what = Xdr::new()
            .u32s(&[0, BLOCK_VOLUME, READ_WRITE])
            .u64(0)
            .u64(BLOCK.into())
            .u64(BLOCK.into())
            .fixed(&file.state)
            .u32(BLOCK);
        let answer = self.call("layoutget", &[file.handle.clone(), op("layoutget", what)])?;
        let mut answer = Cursor(&answer);
        answer.fixed(8 + 8 + 4)?; // PUTFH; the head of LAYOUTGET, and whether to return it on close
        answer.fixed(16)?.try_into().context("a state")
    }

    fn read(&mut self, file: &File) -> Result<()> {
        let what = Xdr::new().fixed(&file.state).u64(0).u32(BLOCK);
        self.call("read", &[file.handle.clone(), op("read", what)])?;
        Ok(())
    }

    fn give_back(&mut self, file: &File, layout: &StateId) -> Result<()> {
        let what = Xdr::new()
            .u32s(&[0, BLOCK_VOLUME, READ_WRITE, OF_FILE])
            .u64(0)
            .u64(u64::MAX)
            .fixed(layout)
            .opaque(&[]);
        let ops = [file.handle.clone(), op("layoutreturn", what)];
        self.call("layoutreturn", &ops)?;
        Ok(())
    }
}
