//! The back channel of a session, on the connection that made it: calls of the server, and answers of its client.

use anyhow::{Result, ensure};

use super::rpc::{Connection, Cursor, Xdr};

/// Program number that CREATE_SESSION names for the back channel, from the range for temporary use (RFC 5531, 8.2).
pub(super) const PROGRAM: u32 = 0x4000_0000;
/// CREATE_SESSION4_FLAG_CONN_BACK_CHAN (RFC 8881, 18.36).
pub(super) const ON_THIS_CONNECTION: u32 = 2;
pub(super) const CB_RECALL: u32 = 4;
pub(super) const CB_LAYOUTRECALL: u32 = 5;
const CB_SEQUENCE: u32 = 11;
/// Status of a recall whose layout will be returned.
pub(super) const NFS4_OK: u32 = 0;
/// Status of an operation that fails.
pub(super) const NFS4ERR_SERVERFAULT: u32 = 10_006;
/// Status of a recall whose layout is not held (any more).
pub(super) const NFS4ERR_NOMATCHING_LAYOUT: u32 = 10_060;

/// Answers the server's next call: CB_NULL and CB_SEQUENCE succeed, and any other operation gets this status. Returns the number of
/// that operation.
pub(super) fn answer(connection: &mut Connection, status: u32) -> Result<Option<u32>> {
    let call = connection.next_call()?;
    ensure!(call.program == PROGRAM, "a call of {}", call.program);
    // CB_NULL has no arguments and no results (RFC 8881, 19.1).
    let (results, asked) = match call.procedure {
        0 => (Xdr::new(), None),
        _ => compound(&mut Cursor(&call.arguments), status)?,
    };
    connection.answer(call.xid, &results)?;
    Ok(asked)
}

/// Answers a CB_COMPOUND (RFC 8881, 19.2): CB_SEQUENCE succeeds, and the operation behind it, if there is one, gets this status.
/// Returns the results, and the number of that operation.
fn compound(arguments: &mut Cursor, status: u32) -> Result<(Xdr, Option<u32>)> {
    let tag = arguments.opaque()?;
    let (_minor, _ident, operations) = (arguments.u32()?, arguments.u32()?, arguments.u32()?);
    let first = arguments.u32()?;
    ensure!(first == CB_SEQUENCE, "operation {first} comes first");
    let sequence = sequence(arguments)?;
    let asked = match operations {
        1 => None,
        _ => Some(arguments.u32()?),
    };
    let status = asked.map_or(NFS4_OK, |_| status);
    let executed = 1 + u32::from(asked.is_some());
    let results = Xdr::new()
        .u32(status)
        .opaque(tag)
        .u32s(&[executed, CB_SEQUENCE, 0])
        .append(&sequence);
    let results = match asked {
        None => results,
        Some(operation) => results.u32s(&[operation, status]),
    };
    Ok((results, asked))
}

/// Results of CB_SEQUENCE (RFC 8881, 20.9): session, sequence and slot as they came, and the highest slots.
fn sequence(arguments: &mut Cursor) -> Result<Xdr> {
    let session = arguments.fixed(16)?;
    let (number, slot, highest) = (arguments.u32()?, arguments.u32()?, arguments.u32()?);
    let _cached = arguments.u32()?;
    // Referring calls: for each session, their sequence numbers and slots.
    for _ in 0..arguments.u32()? {
        arguments.fixed(16)?;
        let calls = arguments.u32()? as usize;
        arguments.fixed(calls * 8)?;
    }
    let results = Xdr::new().fixed(session);
    Ok(results.u32s(&[number, slot, highest, highest]))
}
