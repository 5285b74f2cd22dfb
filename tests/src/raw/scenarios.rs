//! Scenarios of calls that are wrong on purpose, by name.

use anyhow::{Result, bail};

use super::lab_server::NFS_PORT;
use super::rpc::Connection;
use super::sent::Sent;
use super::wire::Wire;
use super::{v3, v4};

/// Names of the scenarios, and their calls.
pub const SCENARIOS: [(&str, &str); 7] = [
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
        "v4-slots",
        "requests that say that one slot is in use, or two, three or all",
    ),
    (
        "v4-errors",
        "misordered and bad slots, illegal ops, no SEQUENCE, minor version 7, empty and garbage compounds",
    ),
];

/// Runs a scenario (or `all`) against the server on this machine.
pub fn run(scenario: &str) -> Result<Sent> {
    let mut wire = Wire::default();
    match scenario {
        "all" => {
            for (name, _) in SCENARIOS {
                run_one(&mut wire, name)?;
            }
        }
        name => run_one(&mut wire, name)?,
    }
    Ok(wire.sent)
}

fn run_one(wire: &mut Wire, scenario: &str) -> Result<()> {
    wire.connection = Some(Connection::open(NFS_PORT)?);
    wire.sent.connections += 1;
    match scenario {
        "v3" => v3::calls(wire),
        "v3-replay" => v3::replay(wire),
        "rpc-errors" => v3::rpc_errors(wire),
        "v4.0" => v4::without_session(wire),
        "v4-session" => v4::sessions(wire),
        "v4-slots" => v4::slots(wire),
        "v4-errors" => v4::errors(wire),
        _ => {
            let names = SCENARIOS.map(|(name, _)| name).join(", ");
            bail!("no scenario is called '{scenario}'; there are {names} and all")
        }
    }
}
