//! NFSv4 COMPOUNDs: sessions, replays, and their errors.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

use super::callback;
use super::rpc::{Call, Cursor, Reply, Xdr};
use super::sent::count;
use super::wire::Wire;
use crate::names::OP4;

/// Component operation: its number and its arguments.
#[derive(Clone, Debug)]
pub(super) struct Op(u32, Xdr);

pub(super) fn op(name: &str, arguments: Xdr) -> Op {
    let number = OP4.iter().position(|n| *n == name).unwrap_or(0);
    Op(u32::try_from(number).unwrap_or(0), arguments)
}

pub(super) fn compound(minor: u32, ops: &[Op]) -> Xdr {
    let count = u32::try_from(ops.len()).unwrap_or(u32::MAX);
    let head = Xdr::new().opaque(b"lab").u32s(&[minor, count]);
    ops.iter()
        .fold(head, |xdr, Op(number, body)| xdr.u32(*number).append(body))
}

/// Reply to a COMPOUND: its status, the number of executed operations, and their results.
pub(super) struct Results {
    pub(super) status: u32,
    executed: usize,
    pub(super) rest: Vec<u8>,
}

fn results(reply: &Reply) -> Result<Results> {
    let mut body = Cursor(reply.body()?);
    let (status, _tag) = (body.u32()?, body.opaque()?);
    let executed = body.u32()? as usize;
    Ok(Results {
        status,
        executed,
        rest: body.0.to_vec(),
    })
}

impl Wire {
    pub(super) fn compound(&mut self, what: &str, minor: u32, ops: &[Op]) -> Result<Results> {
        self.sent.compounds += 1;
        let reply = self.exchange(what, &Call::nfs(4, 1, compound(minor, ops)))?;
        let results = results(&reply)?;
        if let Some(Op(53, sequence)) = ops.first() {
            self.slots(sequence, &results)?;
        }
        // A COMPOUND ends with its failed operation, and has that operation's status.
        let last = results.executed.checked_sub(1).and_then(|n| ops.get(n));
        if results.status != 0 && matches!(last, Some(Op(53, _))) {
            *self.sent.sequence_errors.entry(results.status).or_default() += 1;
        }
        for Op(number, _) in ops.iter().take(results.executed) {
            // The last operation of version 4.0 is release_lockowner; later numbers do not exist for it.
            let known = minor > 0 || *number <= 39;
            match OP4.get(*number as usize) {
                Some(name) if known && !name.is_empty() => count(&mut self.sent.ops4, name),
                _ => self.sent.illegal_ops += 1,
            }
        }
        Ok(results)
    }

    /// Counts the slots in use of a SEQUENCE that succeeded, and the slots that the server granted.
    fn slots(&mut self, asked: &Xdr, results: &Results) -> Result<()> {
        let mut answer = Cursor(&results.rest);
        if results.executed == 0 || (answer.u32()?, answer.u32()?) != (53, 0) {
            return Ok(());
        }
        // The session is followed by sequence and slot, and the highest slot in use.
        let mut asked = Cursor(&asked.0);
        asked.fixed(16)?;
        let (_sequence, _slot, highest) = (asked.u32()?, asked.u32()?, asked.u32()?);
        answer.fixed(16)?;
        let (_sequence, _slot, _highest) = (answer.u32()?, answer.u32()?, answer.u32()?);
        let highest_granted = answer.u32()?;
        *self.sent.slots_used.entry(highest + 1).or_default() += 1;
        self.sent.slots_full += u64::from(highest >= highest_granted);
        self.sent.slots_granted = highest_granted + 1;
        Ok(())
    }

    /// Repeats a COMPOUND that its slot has answered already: the server executes nothing.
    fn replayed(&mut self, what: &str, minor: u32, ops: &[Op]) -> Result<()> {
        self.sent.compounds += 1;
        self.sent.slot_replays += 1;
        self.exchange(what, &Call::nfs(4, 1, compound(minor, ops)))?;
        Ok(())
    }
}

pub(super) fn put_root() -> Op {
    op("putrootfh", Xdr::new())
}

/// GETATTR of the type, change attribute and size.
pub(super) fn get_attributes() -> Op {
    op("getattr", Xdr::new().u32s(&[1, 0b1_1010]))
}

fn make_directory(name: &str) -> Op {
    let directory = 2;
    let no_attributes = [0, 0];
    let xdr = Xdr::new().u32(directory).opaque(name.as_bytes());
    op("create", xdr.u32s(&no_attributes))
}

fn remove(name: &str) -> Op {
    op("remove", Xdr::new().opaque(name.as_bytes()))
}

fn own_name(what: &str, minor: u32) -> String {
    format!("{what}-{minor}-{}", std::process::id())
}

pub(super) fn without_session(wire: &mut Wire) -> Result<()> {
    wire.sent.null4 += 1;
    wire.exchange("null", &Call::nfs(4, 0, Xdr::new()))?;
    let name = own_name("raw", 0);
    let read_directory = op(
        "readdir",
        Xdr::new().u64(0).fixed(&[0; 8]).u32s(&[4096, 8192, 1, 2]),
    );
    let look_up = op("lookup", Xdr::new().opaque(name.as_bytes()));
    let get_handle = || op("getfh", Xdr::new());
    let access = op("access", Xdr::new().u32(0x3f));
    wire.compound(
        "root",
        0,
        &[put_root(), get_handle(), get_attributes(), access],
    )?;
    wire.compound(
        "mkdir",
        0,
        &[put_root(), make_directory(&name), get_handle()],
    )?;
    wire.compound(
        "lookup twice",
        0,
        &[
            put_root(),
            op("savefh", Xdr::new()),
            look_up.clone(),
            op("lookupp", Xdr::new()),
            op("restorefh", Xdr::new()),
            get_attributes(),
        ],
    )?;
    wire.compound("readdir", 0, &[put_root(), read_directory])?;
    wire.compound("rmdir", 0, &[put_root(), remove(&name)])?;
    wire.compound(
        "a lookup that fails, and what comes after it",
        0,
        &[put_root(), look_up, get_handle()],
    )?;

    // SETCLIENTID has a verifier and a name, a callback to nowhere, and an identifier.
    let id = Xdr::new()
        .fixed(&[7; 8])
        .opaque(own_name("client", 0).as_bytes())
        .u32(callback::PROGRAM)
        .opaque(b"tcp")
        .opaque(b"127.0.0.1.0.0")
        .u32(1);
    let answer = wire.compound("setclientid", 0, &[op("setclientid", id)])?;
    let mut answer = Cursor(&answer.rest);
    let (_op, status) = (answer.u32()?, answer.u32()?);
    ensure!(status == 0, "SETCLIENTID gave {status}");
    let client = answer.u64()?;
    let confirm = Xdr::new().u64(client).fixed(answer.fixed(8)?);
    wire.compound(
        "setclientid_confirm",
        0,
        &[op("setclientid_confirm", confirm)],
    )?;
    wire.compound("renew", 0, &[op("renew", Xdr::new().u64(client))])?;
    Ok(())
}

/// Operations from the root to a file in it, and GETFH of its handle.
pub(super) fn walk(name: &str) -> [Op; 3] {
    let look_up = op("lookup", Xdr::new().opaque(name.as_bytes()));
    [put_root(), look_up, op("getfh", Xdr::new())]
}

/// Client id, and a session with one slot in use.
pub(super) struct Session {
    minor: u32,
    client: u64,
    pub(super) id: [u8; 16],
    pub(super) sequence: u32,
}

impl Session {
    pub(super) fn open(wire: &mut Wire, minor: u32) -> Result<Session> {
        Session::open_with(wire, minor, 0)
    }

    /// Opens a session with these flags of CREATE_SESSION.
    pub(super) fn open_with(wire: &mut Wire, minor: u32, flags: u32) -> Result<Session> {
        static OWNERS: AtomicU32 = AtomicU32::new(0);
        let n = OWNERS.fetch_add(1, Ordering::Relaxed);
        let owner = format!("{}-{n}", own_name("owner", minor));
        let verifier = u64::from(std::process::id());
        let who = Xdr::new()
            .u64(verifier)
            .opaque(owner.as_bytes())
            .u32s(&[0, 0, 0]);
        let answer = wire.compound("exchange_id", minor, &[op("exchange_id", who)])?;
        let mut answer = Cursor(&answer.rest);
        let (_op, status) = (answer.u32()?, answer.u32()?);
        ensure!(status == 0, "EXCHANGE_ID gave {status}");
        let (client, sequence) = (answer.u64()?, answer.u32()?);

        // A channel's limits: padding, request and reply sizes, cached size, operations, requests, no RDMA.
        let channel = Xdr::new().u32s(&[0, 8192, 8192, 4096, 16, 4, 0]);
        let session = Xdr::new()
            .u64(client)
            .u32s(&[sequence, flags])
            .append(&channel)
            .append(&channel)
            .u32s(&[callback::PROGRAM, 1, 0]); // called without credentials
        let answer = wire.compound("create_session", minor, &[op("create_session", session)])?;
        let mut answer = Cursor(&answer.rest);
        let (_op, status) = (answer.u32()?, answer.u32()?);
        ensure!(status == 0, "CREATE_SESSION gave {status}");
        let id = answer.fixed(16)?.try_into().context("a session id")?;
        let mut session = Session {
            minor,
            client,
            id,
            sequence: 0,
        };
        let done = op("reclaim_complete", Xdr::new().u32(0));
        let first = session.next(true);
        wire.compound("reclaim_complete", minor, &[first, done])?;
        Ok(session)
    }

    /// SEQUENCE with no higher slot in use.
    fn sequence(&self, sequence: u32, slot: u32, cache: bool) -> Op {
        self.sequence_up_to(sequence, slot, slot, cache)
    }

    fn sequence_up_to(&self, sequence: u32, slot: u32, highest: u32, cache: bool) -> Op {
        let xdr = Xdr::new().fixed(&self.id);
        op(
            "sequence",
            xdr.u32s(&[sequence, slot, highest, u32::from(cache)]),
        )
    }

    /// SEQUENCE for the next request on slot 0.
    pub(super) fn next(&mut self, cache: bool) -> Op {
        self.sequence += 1;
        self.sequence(self.sequence, 0, cache)
    }

    /// Sends a COMPOUND on slot 0 that has to succeed; returns its results behind that of SEQUENCE.
    pub(super) fn call(&mut self, wire: &mut Wire, what: &str, ops: &[Op]) -> Result<Vec<u8>> {
        let sequence = [self.next(false)];
        let answer = wire.compound(what, self.minor, &[sequence.as_slice(), ops].concat())?;
        ensure!(answer.status == 0, "{what}: status {}", answer.status);
        let mut rest = Cursor(&answer.rest);
        rest.fixed(8 + 36)?; // number, status; session, slot and flags
        Ok(rest.0.to_vec())
    }

    /// PUTFH of a file in the export's root.
    pub(super) fn look_up(&mut self, wire: &mut Wire, name: &str) -> Result<Op> {
        let answer = self.call(wire, "lookup", &walk(name))?;
        let mut answer = Cursor(&answer);
        answer.fixed(8 + 8 + 8)?; // PUTROOTFH, LOOKUP, and the head of GETFH
        Ok(op("putfh", Xdr::new().opaque(answer.opaque()?)))
    }

    pub(super) fn client(&self) -> u64 {
        self.client
    }

    pub(super) fn close(self, wire: &mut Wire) -> Result<()> {
        let session = op("destroy_session", Xdr::new().fixed(&self.id));
        wire.compound("destroy_session", self.minor, &[session])?;
        let client = op("destroy_clientid", Xdr::new().u64(self.client));
        wire.compound("destroy_clientid", self.minor, &[client])?;
        Ok(())
    }
}

pub(super) fn sessions(wire: &mut Wire) -> Result<()> {
    for minor in [1, 2] {
        let mut session = Session::open(wire, minor)?;
        let name = own_name("session", minor);

        let made = [session.next(true), put_root(), make_directory(&name)];
        wire.compound("mkdir, cached", minor, &made)?;
        wire.replayed("mkdir, slot replayed", minor, &made)?;
        wire.replayed("mkdir, slot replayed again", minor, &made)?;

        let looked = [session.next(false), put_root(), get_attributes()];
        wire.compound("getattr, not cached", minor, &looked)?;
        wire.replayed("getattr, replayed but not cached", minor, &looked)?;

        let removed = [session.next(true), put_root(), remove(&name)];
        wire.compound("rmdir", minor, &removed)?;
        session.close(wire)?;
    }
    Ok(())
}

/// Sends SEQUENCEs with every number of slots in use that the server grants.
pub(super) fn slots(wire: &mut Wire) -> Result<()> {
    for minor in [1, 2] {
        let session = Session::open(wire, minor)?;
        // The last sequence number of each slot: RECLAIM_COMPLETE took the first of slot 0.
        let mut last = [1, 0, 0];
        for (round, (slot, highest)) in [(1, 1), (2, 3), (1, 2), (2, 2), (1, 3), (0, 3), (0, 0)]
            .into_iter()
            .enumerate()
        {
            for more in 0..=round {
                last[slot as usize] += 1;
                let sequence = last[slot as usize];
                let first = session.sequence_up_to(sequence, slot, highest, false);
                let what = format!("slot {slot} of {highest}, {more}");
                wire.compound(&what, minor, &[first, put_root(), get_attributes()])?;
            }
        }
        // Twelve operations are more than the server keeps in its arguments: these are in another place.
        let mut many = vec![session.sequence_up_to(last[0] + 1, 0, 2, false), put_root()];
        many.resize_with(12, get_attributes);
        wire.compound("twelve ops", minor, &many)?;
        // This COMPOUND has only a SEQUENCE.
        let alone = [session.sequence(last[0] + 2, 0, true)];
        wire.compound("SEQUENCE alone", minor, &alone)?;
        session.close(wire)?;
    }
    Ok(())
}

pub(super) fn errors(wire: &mut Wire) -> Result<()> {
    let mut session = Session::open(wire, 1)?;
    let good = |sequence: Op| [sequence, put_root(), get_attributes()];

    let misordered = session.sequence(session.sequence + 7, 0, true);
    wire.compound("misordered sequence", 1, &good(misordered))?;
    let bad_slot = session.sequence(1, 60, true);
    wire.compound("slot 60", 1, &good(bad_slot))?;
    let mut unknown = session.sequence(1, 0, true);
    unknown.1 = Xdr::new().fixed(&[9; 16]).u32s(&[1, 0, 0, 0]);
    wire.compound("unknown session", 1, &good(unknown))?;
    let twice = [session.next(true), session.sequence(1, 1, true), put_root()];
    wire.compound("SEQUENCE in second place", 1, &twice)?;
    let in_the_middle = [
        session.next(true),
        put_root(),
        Op(99, Xdr::new()),
        get_attributes(),
    ];
    wire.compound("illegal op in the middle", 1, &in_the_middle)?;
    session.close(wire)?;

    wire.compound("no SEQUENCE first", 1, &[put_root(), get_attributes()])?;
    for minor in [0, 1] {
        wire.compound("illegal op first", minor, &[Op(10_043, Xdr::new())])?;
        wire.compound("op 2", minor, &[Op(2, Xdr::new())])?;
        wire.compound("empty", minor, &[])?;
    }
    // An operation of a later minor version, and a minor version that does not exist.
    wire.compound("seek in 4.0", 0, &[put_root(), op("seek", Xdr::new())])?;
    wire.compound("minor version 7", 7, &[put_root(), get_attributes()])?;
    // The length of this name is larger than the message.
    let cut_short = [put_root(), op("lookup", Xdr::new().u32(200)), put_root()];
    wire.compound("an op cut short", 0, &cut_short)?;
    wire.sent.compounds += 1;
    let garbage = Call::nfs(4, 1, Xdr::new().u32(0xffff_fff0));
    wire.exchange("a compound that is garbage", &garbage)?;
    Ok(())
}
