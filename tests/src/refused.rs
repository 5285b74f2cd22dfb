//! Calls that a server answers without executing them, and calls that it refuses: one case for each status of NFSv4 that ends a
//! COMPOUND before its operations are done (RFC 8881, 15.1). The kernel counts what it executed; this client only knows the answers.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::raw::rpc::{Call, Connection, Cursor, Xdr};

const PORT: u16 = 2049;

const CREATE: u32 = 6;
const REMOVE: u32 = 28;
const OPEN: u32 = 18;
const GETATTR: u32 = 9;
const LOOKUP: u32 = 15;
const OPEN_CONFIRM: u32 = 20;
const PUTROOTFH: u32 = 24;
const SETCLIENTID: u32 = 35;
const SETCLIENTID_CONFIRM: u32 = 36;
const EXCHANGE_ID: u32 = 42;
const CREATE_SESSION: u32 = 43;
const DESTROY_SESSION: u32 = 44;
const SEQUENCE: u32 = 53;
const TEST_STATEID: u32 = 55;
const DESTROY_CLIENTID: u32 = 57;
const RECLAIM_COMPLETE: u32 = 58;

const OK: u32 = 0;
const DELAY: u32 = 10_008;
const RESOURCE: u32 = 10_018;
const MINOR_VERS_MISMATCH: u32 = 10_021;
const BAD_SEQID: u32 = 10_026;
const BADXDR: u32 = 10_036;
const OP_ILLEGAL: u32 = 10_044;
const BADSESSION: u32 = 10_052;
const BADSLOT: u32 = 10_053;
const SEQ_MISORDERED: u32 = 10_063;
const SEQUENCE_POS: u32 = 10_064;
const REQ_TOO_BIG: u32 = 10_065;
const REP_TOO_BIG: u32 = 10_066;
const REP_TOO_BIG_TO_CACHE: u32 = 10_067;
const RETRY_UNCACHED_REP: u32 = 10_068;
const TOO_MANY_OPS: u32 = 10_070;
const OP_NOT_IN_SESSION: u32 = 10_071;
const SEQ_FALSE_RETRY: u32 = 10_076;
const NOT_ONLY_OP: u32 = 10_081;

/// Case: a call that provokes a status, or an answer from a slot.
type Case = fn(&mut Caller) -> Result<()>;

/// The cases.
const CASES: [(&str, Case); 23] = [
    ("replay-sequence-alone", |c| c.replay(true, &[], OK)),
    ("replay-without-handle", |c| {
        c.replay(true, &[test_stateid()], OK)
    }),
    ("replay-reclaim-complete", |c| {
        c.replay(true, &[op(RECLAIM_COMPLETE).u32(0)], OK)
    }),
    ("replay-with-handle", |c| {
        c.replay(true, &[op(PUTROOTFH), getattr()], OK)
    }),
    ("retry-uncached-without-handle", |c| {
        c.replay(false, &[test_stateid()], RETRY_UNCACHED_REP)
    }),
    ("retry-uncached-with-handle", |c| {
        c.replay(false, &[op(PUTROOTFH), getattr()], RETRY_UNCACHED_REP)
    }),
    ("false-retry", false_retry),
    ("misordered", |c| {
        c.sequence_gives(SEQ_MISORDERED, |s| s.sequence_at(9, 0, true))
    }),
    ("misordered-unused-slot", |c| {
        c.sequence_gives(SEQ_MISORDERED, |s| s.sequence_at(0, 1, true))
    }),
    ("bad-slot", |c| {
        c.sequence_gives(BADSLOT, |s| s.sequence_at(1, 60, true))
    }),
    ("bad-session", |c| {
        let unknown = |_: &Session| op(SEQUENCE).fixed(&[9; 16]).u32s(&[1, 0, 0, 0]);
        c.sequence_gives(BADSESSION, unknown)
    }),
    ("too-many-ops", |c| {
        let session = c.session(Channel { ops: 2, ..USUAL })?;
        let sequence = session.sequence_at(1, 0, false);
        c.compound(TOO_MANY_OPS, &[sequence, op(PUTROOTFH), getattr()])?;
        c.close(session)
    }),
    ("request-too-big", |c| {
        let session = c.session(Channel {
            request: 400,
            ..USUAL
        })?;
        let many = Xdr::new().u32(40).fixed(&[9; 16 * 40]);
        let test = op(TEST_STATEID).append(&many);
        c.compound(REQ_TOO_BIG, &[session.sequence_at(1, 0, false), test])?;
        c.close(session)
    }),
    ("reply-too-big", |c| reply_too_big(c, false, REP_TOO_BIG)),
    ("reply-too-big-to-cache", |c| {
        reply_too_big(c, true, REP_TOO_BIG_TO_CACHE)
    }),
    ("sequence-twice", |c| {
        let session = c.session(USUAL)?;
        let twice = [
            session.sequence_at(1, 0, true),
            session.sequence_at(1, 1, true),
        ];
        c.compound(SEQUENCE_POS, &twice)?;
        c.close(session)
    }),
    ("no-sequence", |c| {
        c.compound(OP_NOT_IN_SESSION, &[op(PUTROOTFH), getattr()])
            .map(drop)
    }),
    ("not-only-op", |c| {
        let who = exchange_id("not-only");
        c.compound(NOT_ONLY_OP, &[who, op(PUTROOTFH)]).map(drop)
    }),
    ("create-session-again", create_session_again),
    ("illegal-and-garbage", |c| {
        c.compound_of(0, OP_ILLEGAL, &[op(10_043)])?;
        c.compound_of(0, BADXDR, &[op(PUTROOTFH), op(LOOKUP).u32(200)])?;
        c.compound_of(7, MINOR_VERS_MISMATCH, &[op(PUTROOTFH)])?;
        c.compound_of(0, OK, &[]).map(drop)
    }),
    ("more-ops-than-served", |c| {
        let many: Vec<Xdr> = std::iter::repeat_with(|| op(PUTROOTFH)).take(300).collect();
        c.compound_of(0, RESOURCE, &many).map(drop)
    }),
    ("owner-replay", owner_replay),
    ("slot-in-use", slot_in_use),
];

/// Names of the cases.
pub fn cases() -> Vec<&'static str> {
    CASES.iter().map(|(name, _)| *name).collect()
}

/// Calls and their answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// COMPOUNDs that were sent.
    pub compounds: u64,
    /// Calls among them that had been answered from this slot before.
    pub replays: u64,
    /// Statuses that came, in order.
    pub statuses: Vec<u32>,
}

/// The case of messages that are no calls at all.
pub const NO_CALLS: &str = "no-calls";

/// Messages that are too short for a call, at each of which the server closes the connection.
fn no_calls() -> Result<Answers> {
    use std::io::{Read, Write};
    for n in 0..20_u32 {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", PORT))?;
        let short = [0x8000_0008, n, 0].map(u32::to_be_bytes).concat();
        stream.write_all(&short)?;
        stream.read_to_end(&mut Vec::new())?;
    }
    Ok(Answers::default())
}

/// The case of calls whose Kerberos context the server does not know.
pub const NO_CONTEXT: &str = "no-kerberos-context";
/// Number of such calls.
pub const NO_CONTEXT_CALLS: u32 = 7;

/// NULL of NFSv3 with credentials of RPCSEC_GSS (RFC 2203, 5.3.1): a context that no server has given out.
fn no_context() -> Result<Answers> {
    use std::io::Write;
    const CREDPROBLEM: u32 = 13; // RFC 2203, 5.1
    let mut answers = Answers::default();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", PORT))?;
    for n in 0..NO_CONTEXT_CALLS {
        let (version, data, no_service) = (1, 0, 1);
        let context = [7, 7];
        let credentials = [
            6, 28, version, data, n, no_service, 8, context[0], context[1],
        ];
        let verifier = [6, 8, 9, 9];
        let call = [&[n, 0, 2, 100_003, 3, 0][..], &credentials, &verifier].concat();
        let length = u32::try_from(4 * call.len())?;
        let record = [&[0x8000_0000 | length], &call[..]].concat();
        stream.write_all(
            &record
                .into_iter()
                .flat_map(u32::to_be_bytes)
                .collect::<Vec<_>>(),
        )?;
        let denied = read_record(&mut stream)?;
        let mut reply = Cursor(&denied);
        let head: Vec<u32> = (0..4).map(|_| reply.u32()).collect::<Result<_>>()?;
        ensure!(head == [n, 1, 1, 1], "{head:?} is no refused credential");
        answers.statuses.push(reply.u32()?);
    }
    ensure!(
        answers.statuses == [CREDPROBLEM; NO_CONTEXT_CALLS as usize],
        "{answers:?}"
    );
    Ok(answers)
}

/// Reads one RPC message.
fn read_record(stream: &mut std::net::TcpStream) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; (u32::from_be_bytes(length) & 0x7fff_ffff) as usize];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// Runs one case against the server on this machine.
pub fn run(case: &str) -> Result<Answers> {
    if case == NO_CALLS {
        return no_calls();
    }
    if case == NO_CONTEXT {
        return no_context();
    }
    let Some((_, run)) = CASES.iter().find(|(name, _)| *name == case) else {
        bail!(
            "no case is called '{case}'; there are {}",
            cases().join(", ")
        )
    };
    let mut caller = Caller {
        connection: Connection::open(PORT)?,
        answers: Answers::default(),
    };
    run(&mut caller)?;
    Ok(caller.answers)
}

struct Caller {
    connection: Connection,
    answers: Answers,
}

/// Limits that a client asks for its session: bytes of requests, of replies and of cached replies, and operations.
#[derive(Clone, Copy)]
struct Channel {
    request: u32,
    reply: u32,
    cached: u32,
    ops: u32,
}

const USUAL: Channel = Channel {
    request: 8192,
    reply: 8192,
    cached: 4096,
    ops: 16,
};

struct Session {
    id: Vec<u8>,
    client: u64,
}

impl Session {
    fn sequence_at(&self, sequence: u32, slot: u32, cache: bool) -> Xdr {
        let head = op(SEQUENCE).fixed(&self.id);
        head.u32s(&[sequence, slot, slot, u32::from(cache)])
    }
}

fn op(number: u32) -> Xdr {
    Xdr::new().u32(number)
}

fn getattr() -> Xdr {
    op(GETATTR).u32s(&[1, 0b1_1010])
}

/// TEST_STATEID of a state that no client has.
fn test_stateid() -> Xdr {
    op(TEST_STATEID).u32(1).fixed(&[9; 16])
}

fn exchange_id(owner: &str) -> Xdr {
    static OWNERS: AtomicU32 = AtomicU32::new(0);
    let n = OWNERS.fetch_add(1, Ordering::Relaxed);
    let owner = format!("{owner}-{}-{n}", std::process::id());
    let who = op(EXCHANGE_ID).u64(u64::from(std::process::id()));
    who.opaque(owner.as_bytes()).u32s(&[0, 0, 0])
}

fn create_session(client: u64, sequence: u32, channel: Channel) -> Xdr {
    let Channel {
        request,
        reply,
        cached,
        ops,
    } = channel;
    let fore = Xdr::new().u32s(&[0, request, reply, cached, ops, 4, 0]);
    let back = Xdr::new().u32s(&[0, 8192, 8192, 4096, 16, 4, 0]);
    let head = op(CREATE_SESSION).u64(client).u32s(&[sequence, 0]);
    let head = head.append(&fore).append(&back);
    head.u32s(&[0x4000_0000, 1, 0]) // called without credentials
}

/// Sends one call over two connections while the file system is frozen: the second to arrive finds the slot in use.
fn slot_in_use(c: &mut Caller) -> Result<()> {
    let session = c.session(USUAL)?;
    let (directory, no_attributes) = (2, [0, 0]);
    let name = format!("slot-in-use-{}", std::process::id());
    let make = op(CREATE).u32(directory).opaque(name.as_bytes());
    let ops = [
        session.sequence_at(1, 0, true),
        op(PUTROOTFH),
        make.u32s(&no_attributes),
    ];
    freeze("-f")?;
    let (tell, told) = mpsc::channel();
    for _ in 0..2 {
        let mut connection = Connection::open(PORT)?;
        let call = compound(2, &ops)?;
        c.answers.compounds += 1;
        let tell = tell.clone();
        std::thread::spawn(move || {
            let answer = connection
                .send(&call)
                .and_then(|_| connection.receive_any());
            let _ = tell.send(answer.map(|(_, reply)| reply));
        });
    }
    let mut status = || {
        let reply = told.recv()??;
        let status = Cursor(reply.body()?).u32()?;
        c.answers.statuses.push(status);
        Ok::<_, anyhow::Error>(status)
    };
    let first = status();
    freeze("-u")?;
    let (first, second) = (first?, status()?);
    ensure!(
        [first, second] == [DELAY, OK],
        "statuses {first} and {second} where {DELAY} and {OK} were to come"
    );
    let remove = op(REMOVE).opaque(name.as_bytes());
    let sequence = session.sequence_at(2, 0, true);
    c.compound(OK, &[sequence, op(PUTROOTFH), remove])?;
    c.close(session)
}

/// Freezes or thaws the exported file system: fsfreeze(8).
fn freeze(how: &str) -> Result<()> {
    let ended = Command::new("fsfreeze").args([how, "/run/exp"]).status()?;
    ensure!(ended.success(), "fsfreeze {how}: {ended}");
    Ok(())
}

/// A COMPOUND of this minor version.
fn compound(minor: u32, ops: &[Xdr]) -> Result<Call> {
    let n = u32::try_from(ops.len())?;
    let head = Xdr::new().opaque(b"lab").u32s(&[minor, n]);
    Ok(Call::nfs(4, 1, ops.iter().fold(head, Xdr::append)))
}

impl Caller {
    /// Sends a COMPOUND of NFSv4.2, and returns its results.
    fn compound(&mut self, expected: u32, ops: &[Xdr]) -> Result<Vec<u8>> {
        self.compound_of(2, expected, ops)
    }

    /// Sends a COMPOUND that has to end with this status, and returns its results.
    fn compound_of(&mut self, minor: u32, expected: u32, ops: &[Xdr]) -> Result<Vec<u8>> {
        self.answers.compounds += 1;
        let reply = self.connection.call(&compound(minor, ops)?)?;
        let mut answer = Cursor(reply.body()?);
        let (status, _tag, _executed) = (answer.u32()?, answer.opaque()?, answer.u32()?);
        self.answers.statuses.push(status);
        ensure!(
            status == expected,
            "status {status} where {expected} was to come, after {:?}",
            self.answers
        );
        Ok(answer.0.to_vec())
    }

    fn client(&mut self) -> Result<(u64, u32)> {
        let answer = self.compound(OK, &[exchange_id("refused")])?;
        let mut answer = Cursor(&answer);
        answer.fixed(8)?;
        Ok((answer.u64()?, answer.u32()?))
    }

    fn session(&mut self, channel: Channel) -> Result<Session> {
        let (client, sequence) = self.client()?;
        let answer = self.compound(OK, &[create_session(client, sequence, channel)])?;
        let id = answer.get(8..24).context("no session in the answer")?;
        let id = id.to_vec();
        Ok(Session { id, client })
    }

    fn close(&mut self, session: Session) -> Result<()> {
        self.compound(OK, &[op(DESTROY_SESSION).fixed(&session.id)])?;
        self.compound(OK, &[op(DESTROY_CLIENTID).u64(session.client)])?;
        Ok(())
    }

    /// Sends a call with these operations behind SEQUENCE, and repeats it twice: the slot answers.
    fn replay(&mut self, cache: bool, behind: &[Xdr], expected: u32) -> Result<()> {
        let session = self.session(USUAL)?;
        let sequence = session.sequence_at(1, 0, cache);
        let ops = [std::slice::from_ref(&sequence), behind].concat();
        self.compound(OK, &ops)?;
        for _ in 0..2 {
            self.answers.replays += 1;
            self.compound(expected, &ops)?;
        }
        self.close(session)
    }

    fn sequence_gives(&mut self, expected: u32, make: fn(&Session) -> Xdr) -> Result<()> {
        let session = self.session(USUAL)?;
        let ops = [make(&session), op(PUTROOTFH), getattr()];
        self.compound(expected, &ops)?;
        let alone = [make(&session)];
        self.compound(expected, &alone)?;
        self.close(session)
    }
}

/// Repeats a slot's sequence number with other operations than it has answered.
fn false_retry(c: &mut Caller) -> Result<()> {
    let session = c.session(USUAL)?;
    for (slot, cache) in [(0, true), (1, false)] {
        let sequence = || session.sequence_at(1, slot, cache);
        c.compound(OK, &[sequence(), op(PUTROOTFH), getattr()])?;
        let more = [sequence(), op(PUTROOTFH), getattr(), getattr()];
        c.compound(SEQ_FALSE_RETRY, &more)?;
        c.compound(SEQ_FALSE_RETRY, &[sequence()])?;
    }
    c.close(session)
}

/// Asks for more results of TEST_STATEID than fit into the reply.
fn reply_too_big(c: &mut Caller, cache: bool, expected: u32) -> Result<()> {
    let mut channel = USUAL;
    match cache {
        true => channel.cached = 512,
        false => channel.reply = 512,
    }
    let session = c.session(channel)?;
    let test = op(TEST_STATEID).u32(200).fixed(&[9; 16 * 200]);
    let ops = [session.sequence_at(1, 0, cache), test];
    c.compound(expected, &ops)?;
    c.close(session)
}

/// CREATE_SESSION has a slot of its own, and the kernel counts what is answered from it.
fn create_session_again(c: &mut Caller) -> Result<()> {
    let (client, sequence) = c.client()?;
    let first = c.compound(OK, &[create_session(client, sequence, USUAL)])?;
    let again = c.compound(OK, &[create_session(client, sequence, USUAL)])?;
    let id = first.get(8..24).context("no session in the answer")?;
    ensure!(again.get(8..24) == Some(id), "another session was made");
    c.compound(
        SEQ_MISORDERED,
        &[create_session(client, sequence + 5, USUAL)],
    )?;
    let id = id.to_vec();
    c.close(Session { id, client })
}

/// NFSv4.0 answers an OPEN with the owner's last sequence number from the owner, and counts it.
fn owner_replay(c: &mut Caller) -> Result<()> {
    let name = format!("owner-replay-{}", std::process::id());
    let who = op(SETCLIENTID).fixed(&[7; 8]).opaque(name.as_bytes());
    let who = who.u32(0x4000_0000).opaque(b"tcp").opaque(b"127.0.0.1.0.0");
    let answer = c.compound_of(0, OK, &[who.u32(1)])?;
    let mut answer = Cursor(&answer);
    answer.fixed(8)?;
    let client = answer.u64()?;
    let confirm = op(SETCLIENTID_CONFIRM).u64(client);
    let confirm = confirm.fixed(answer.fixed(8)?);
    c.compound_of(0, OK, &[confirm])?;
    let open = |sequence: u32| {
        let (read, deny_nothing, create, unchecked) = (1, 0, 1, 0);
        let owner = op(OPEN).u32s(&[sequence, read, deny_nothing]);
        let owner = owner.u64(client).opaque(name.as_bytes());
        let how = owner.u32s(&[create, unchecked, 0, 0]);
        let by_name = how.u32(0);
        [op(PUTROOTFH), by_name.opaque(name.as_bytes())]
    };
    let opened = c.compound_of(0, OK, &open(1))?;
    let state = opened.get(16..32).context("no state in the answer")?;
    let look_up = op(LOOKUP).opaque(name.as_bytes());
    let confirm = op(OPEN_CONFIRM).fixed(state).u32(2);
    c.compound_of(0, OK, &[op(PUTROOTFH), look_up, confirm])?;
    for _ in 0..3 {
        c.compound_of(0, OK, &open(3))?;
    }
    c.compound_of(0, BAD_SEQID, &open(9))?;
    let remove = op(REMOVE).opaque(name.as_bytes());
    c.compound_of(0, OK, &[op(PUTROOTFH), remove]).map(drop)
}
