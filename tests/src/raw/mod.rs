//! A small NFS client that speaks wrongly on purpose: replays, garbage, illegal operations, broken sessions - what no
//! kernel client sends and every server gets. It knows what it sent, so that a test can check who counted it right.

pub mod clients;
mod operation;
pub mod pipeline;
pub mod repeat;
pub mod rpc;
mod v3;
mod v4;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use rpc::{Call, Connection, Reply};

/// The port of every NFS server.
const NFS_PORT: u16 = 2049;
/// What the lab's server exports.
const EXPORT: &str = "/run/exp";

/// The scenarios, by name, with what they send.
pub const SCENARIOS: [(&str, &str); 6] = [
    (
        "v3",
        "one call of each harmless v3 procedure, NULL included",
    ),
    (
        "v3-replay",
        "MKDIR with one transaction id twice: the duplicate request cache answers the second",
    ),
    (
        "rpc-errors",
        "garbage arguments; unknown procedure, version, program, RPC version and credentials",
    ),
    ("v4.0", "NULL, and compounds without sessions"),
    (
        "v4-session",
        "a session's whole life in minor versions 1 and 2, with slot replays",
    ),
    (
        "v4-errors",
        "misordered and bad slots, illegal ops, no SEQUENCE, minor version 7, empty and garbage compounds",
    ),
];

/// What was sent, as the server is to count it by the kernel's own rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// RPC messages to the NFS server.
    pub calls: u64,
    /// Connections to the NFS server.
    pub connections: u64,
    /// Calls that the duplicate request cache must answer.
    pub cache_hits: u64,
    /// Calls that never become a procedure because of their format, program, version or procedure number.
    pub bad_format: u64,
    /// Calls that never become a procedure because of their credentials.
    pub bad_auth: u64,
    /// NFSv3 procedures by name, those with garbage arguments included.
    pub proc3: BTreeMap<String, u64>,
    /// NFSv4 NULL procedures.
    pub null4: u64,
    /// NFSv4 COMPOUND procedures, whatever is in them.
    pub compounds: u64,
    /// NFSv4 component operations that the server must have executed. A replayed slot's are not executed again.
    pub ops4: BTreeMap<String, u64>,
    /// Compounds answered from a slot's cache.
    pub slot_replays: u64,
    /// Component operations with a number that does not exist.
    pub illegal_ops: u64,
    /// What was tried, and the status that came back.
    pub replies: Vec<(String, String)>,
}

impl Sent {
    /// NFSv3 procedures and NFSv4 component operations, as the kernel counts them.
    pub fn operations(&self) -> u64 {
        self.proc3.values().sum::<u64>() + self.ops4.values().sum::<u64>()
    }
}

/// Plays a scenario (or `all`) against the server on this machine.
pub fn play(scenario: &str) -> Result<Sent> {
    let mut wire = Wire::default();
    match scenario {
        "all" => {
            for (name, _) in SCENARIOS {
                wire.play(name)?;
            }
        }
        name => wire.play(name)?,
    }
    Ok(wire.sent)
}

/// The connection in use, and the account of what went through it.
#[derive(Debug, Default)]
struct Wire {
    connection: Option<Connection>,
    sent: Sent,
    /// Before a reply is read.
    stall: Duration,
    /// For replies.
    waited: Duration,
}

impl Wire {
    fn play(&mut self, scenario: &str) -> Result<()> {
        self.connection = Some(Connection::open(NFS_PORT)?);
        self.sent.connections += 1;
        match scenario {
            "v3" => v3::calls(self),
            "v3-replay" => v3::replay(self),
            "rpc-errors" => v3::rpc_errors(self),
            "v4.0" => v4::without_session(self),
            "v4-session" => v4::sessions(self),
            "v4-errors" => v4::errors(self),
            _ => {
                let names = SCENARIOS.map(|(name, _)| name).join(", ");
                bail!("no scenario is called '{scenario}'; there are {names} and all")
            }
        }
    }

    fn connection(&mut self) -> Result<&mut Connection> {
        match self.connection.as_mut() {
            Some(connection) => Ok(connection),
            None => bail!("no connection"),
        }
    }

    /// Sends a call that the server counts as a call and nothing more; the caller adds the rest.
    fn exchange(&mut self, what: &str, call: &Call) -> Result<Reply> {
        self.sent.calls += 1;
        let stall = self.stall;
        let begin = Instant::now();
        let connection = self.connection()?;
        connection.send(call)?;
        std::thread::sleep(stall);
        let reply = connection.receive()?;
        self.waited += begin.elapsed();
        self.note(what, &reply);
        Ok(reply)
    }

    fn note(&mut self, what: &str, reply: &Reply) {
        let status = match reply {
            Reply::Success(body) => match body.get(..4).and_then(|b| b.try_into().ok()) {
                Some(status) => u32::from_be_bytes(status).to_string(),
                None => "void".to_owned(),
            },
            Reply::Refused(why) | Reply::Denied(why) => (*why).to_owned(),
        };
        self.sent.replies.push((what.to_owned(), status));
    }
}

fn count(into: &mut BTreeMap<String, u64>, name: &str) {
    *into.entry(name.to_owned()).or_default() += 1;
}
