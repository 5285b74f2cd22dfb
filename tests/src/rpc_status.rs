//! `lab rpc-status`: requests that nfsd's threads have in hand, from the kernel itself over netlink (rpc-status-get of the family
//! `nfsd`, Linux 6.7 and later): a reference for nfscope's own.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A request that a thread has in hand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RpcStatus {
    /// Time at which the thread took it, by CLOCK_MONOTONIC.
    pub since_us: i64,
    /// Transaction id.
    pub xid: u32,
    /// Program, of which NFS is 100003.
    pub program: u32,
    /// 3 or 4.
    pub version: u8,
    /// Procedure; 1 is COMPOUND in version 4.
    pub procedure: u32,
    /// Address of the client.
    pub client: Option<Ipv4Addr>,
    /// Operations of a COMPOUND, by number.
    pub ops: Vec<u32>,
}

/// All requests in hand, and the time of the reading.
#[derive(Debug, Serialize, Deserialize)]
pub struct RpcStatuses {
    /// Time before the reading, by CLOCK_MONOTONIC.
    pub at_us: i64,
    /// The requests, the oldest first.
    pub requests: Vec<RpcStatus>,
}

// linux/netlink.h, linux/genetlink.h
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
// linux/nfsd_netlink.h
const RPC_STATUS_GET: u8 = 1;
const XID: u16 = 1;
const PROGRAM: u16 = 3;
const VERSION: u16 = 4;
const PROCEDURE: u16 = 5;
const SERVICE_TIME: u16 = 6;
const SOURCE_V4: u16 = 8;
const COMPOUND_OPS: u16 = 14;

/// Reads all requests in hand from the kernel.
pub fn read() -> Result<RpcStatuses> {
    let at = clock_gettime(ClockId::Monotonic);
    let name = attribute(FAMILY_NAME, b"nfsd\0");
    let family = ask(CONTROL, REQUEST, GET_FAMILY, &name)?;
    let family = family.first().context("no answer about the family nfsd")?;
    let id = attributes(family).find(|(kind, _)| *kind == FAMILY_ID);
    let (_, id) = id.context("the family nfsd has no number")?;
    let family = u16::from_ne_bytes(id.try_into()?);
    let answers = ask(family, REQUEST | DUMP, RPC_STATUS_GET, &[])?;
    let requests: Result<Vec<_>> = answers.iter().map(|m| request(m)).collect();
    let mut requests = requests?;
    requests.sort();
    Ok(RpcStatuses {
        at_us: at.tv_sec * 1_000_000 + at.tv_nsec / 1000,
        requests,
    })
}

fn request(message: &[u8]) -> Result<RpcStatus> {
    let mut out = RpcStatus {
        since_us: 0,
        xid: 0,
        program: 0,
        version: 0,
        procedure: 0,
        client: None,
        ops: Vec::new(),
    };
    for (kind, value) in attributes(message) {
        let word = || anyhow::Ok(u32::from_ne_bytes(value.try_into()?));
        match kind {
            XID => out.xid = u32::from_be(word()?),
            PROGRAM => out.program = word()?,
            VERSION => out.version = *value.first().context("an empty version")?,
            PROCEDURE => out.procedure = word()?,
            SERVICE_TIME => out.since_us = i64::from_ne_bytes(value.try_into()?),
            SOURCE_V4 => out.client = Some(<[u8; 4]>::try_from(value)?.into()),
            COMPOUND_OPS => out.ops.push(word()?),
            _ => {}
        }
    }
    Ok(out)
}

/// Sends one message of a family of generic netlink; returns the payload of each answer, behind its header.
fn ask(family: u16, flags: u16, command: u8, attributes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let socket = socket(AddressFamily::NETLINK, SocketType::RAW, Some(GENERIC))?;
    let mut message = Vec::new();
    let length = u32::try_from(20 + attributes.len())?;
    message.extend(length.to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Sequence number and port do not matter for a single request.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &message, SendFlags::empty(), &kernel)?;
    let mut out = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..length];
        while rest.len() >= 16 {
            let length = u32::from_ne_bytes(rest[..4].try_into()?) as usize;
            ensure!((16..=rest.len()).contains(&length), "a message of {length}");
            match u16::from_ne_bytes(rest[4..6].try_into()?) {
                DONE => return Ok(out),
                ERROR => bail!(
                    "the kernel refuses: {}",
                    std::io::Error::from_raw_os_error(-i32::from_ne_bytes(
                        rest[16..20].try_into()?
                    ))
                ),
                _ => out.push(rest[20.min(length)..length].to_vec()),
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
        if flags & DUMP == 0 {
            return Ok(out);
        }
    }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len() as u16;
    let mut out = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// Type and value of each attribute that is complete.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_are_written() {
        let mut message = attribute(VERSION, &[4]);
        message.extend(attribute(COMPOUND_OPS, &53u32.to_ne_bytes()));
        message.extend(attribute(COMPOUND_OPS, &22u32.to_ne_bytes()));
        message.extend(attribute(SOURCE_V4, &[10, 9, 1, 2]));
        let read = request(&message).unwrap();
        assert_eq!((read.version, &*read.ops), (4, &[53, 22][..]));
        assert_eq!(read.client, Some(Ipv4Addr::new(10, 9, 1, 2)));
        assert_eq!(attributes(&message[..3]).count(), 0);
    }
}
