//! Fields of packets that tshark prints. Names of fields are those of Wireshark 4.0 (`tshark -G fields`).

use super::calls::{Calls, Clients, Clock};
use super::lines::Lines;
use super::{ImportError, Imported, Pseudonyms, nanoseconds};
use crate::format::Writer;
use crate::operation::{Op, Operation, Stability, Version};
use nfscope_model::op::{V3_PROCS, v4_op};
use std::io::{BufRead, Write};

/// Command whose output is read; PCAP is the file of packets.
pub const COMMAND: &str = "\
tshark -r PCAP -Y nfs -T fields \\
  -E separator=/t -E occurrence=a -E aggregator=, \\
  -e frame.time_epoch -e ip.src -e ip.dst -e ipv6.src -e ipv6.dst \\
  -e rpc.xid -e rpc.msgtyp -e rpc.programversion -e nfs.minorversion \\
  -e nfs.procedure_v3 -e nfs.opcode -e nfs.fh.hash \\
  -e nfs.offset3 -e nfs.count3 -e nfs.write.stable \\
  -e nfs.status3 -e nfs.fattr3.size -e nfs.offset4 -e nfs.count4 \\
  -e nfs.write.data_length -e nfs.read.data_length \\
  -e nfs.stable_how4 -e nfs.nfsstat4 -e nfs.fattr4.size";

/// Fields of a line.
pub const FIELDS: usize = 24;

/// Fields of a packet, each with its values.
struct Packet<'a>([&'a str; FIELDS]);

impl<'a> Packet<'a> {
    fn all(&self, field: usize) -> impl Iterator<Item = &'a str> + use<'a> {
        self.0[field].split(',').filter(|value| !value.is_empty())
    }

    fn numbers(&self, field: usize) -> Vec<u64> {
        self.all(field).filter_map(number).collect()
    }

    fn first(&self, field: usize) -> Option<u64> {
        self.all(field).next().and_then(number)
    }

    /// Address in one of two fields, of IPv4 and IPv6.
    fn address(&self, v4: usize, v6: usize) -> Option<&'a str> {
        self.all(v4).next().or_else(|| self.all(v6).next())
    }
}

/// Columns of the command.
mod field {
    pub const TIME: usize = 0;
    pub const SOURCE: (usize, usize) = (1, 3);
    pub const DESTINATION: (usize, usize) = (2, 4);
    pub const XID: usize = 5;
    pub const TYPE: usize = 6;
    pub const VERSION: usize = 7;
    pub const MINOR: usize = 8;
    pub const PROCEDURE3: usize = 9;
    pub const OPCODE: usize = 10;
    pub const HANDLE: usize = 11;
    pub const OFFSET3: usize = 12;
    pub const COUNT3: usize = 13;
    pub const STABLE3: usize = 14;
    pub const STATUS3: usize = 15;
    pub const SIZE3: usize = 16;
    pub const OFFSET4: usize = 17;
    pub const COUNT4: usize = 18;
    pub const WRITTEN: usize = 19;
    pub const READ: usize = 20;
    pub const STABLE4: usize = 21;
    pub const STATUS4: usize = 22;
    pub const SIZE4: usize = 23;
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

pub fn import<W: Write + Send>(
    lines: &mut Lines<impl BufRead>,
    writer: &mut Writer<W>,
    pseudonyms: &Pseudonyms,
) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    let (mut calls, mut clients) = (Calls::new(), Clients::new());
    let (mut clock, mut compound) = (Clock::default(), 0);
    while let Some((line_number, line)) = lines.next()? {
        let (packet, at, is_call) = match line.and_then(parse) {
            Ok(Some(packet)) => packet,
            Ok(None) => continue,
            Err(reason) => {
                imported.count_unreadable(line_number, reason);
                continue;
            }
        };
        let (v4, v6) = if is_call {
            field::SOURCE
        } else {
            field::DESTINATION
        };
        let xid = packet.first(field::XID);
        let (Some(address), Some(xid)) = (packet.address(v4, v6), xid) else {
            imported.count_unreadable(line_number, "address or rpc.xid");
            continue;
        };
        let client = clients.number(address, writer);
        let at = clock.since(at, writer);
        if is_call {
            match call(&packet, at, client, pseudonyms, &mut compound) {
                Ok(operations) => {
                    calls.call((client, xid), operations, &mut imported, writer)?;
                }
                Err(reason) => imported.count_unreadable(line_number, reason),
            }
        } else if let Some(mut operations) = calls.reply((client, xid), &mut imported) {
            for operation in &mut operations {
                operation.duration = at.checked_sub(operation.arrival);
            }
            match operations.first().is_some_and(|o| o.version == Version::V3) {
                true => reply3(&packet, &mut operations, pseudonyms),
                false => reply4(&packet, &mut operations),
            }
            for operation in operations {
                imported.operations += 1;
                writer.push(operation)?;
            }
        }
    }
    calls.finish(&mut imported, writer)?;
    Ok(imported)
}

/// Packet, its time, and whether it is a call.
fn parse(line: &str) -> Result<Option<(Packet<'_>, u64, bool)>, &'static str> {
    if line.is_empty() {
        return Ok(None);
    }
    let cells: Vec<_> = line.split('\t').collect();
    let cells = <[&str; FIELDS]>::try_from(cells).map_err(|_| "another number of fields")?;
    let packet = Packet(cells);
    let at = packet.all(field::TIME).next().and_then(nanoseconds);
    let at = at.ok_or("frame.time_epoch")?;
    // Fields do not tell which of several messages they are part of.
    if packet.all(field::XID).count() > 1 {
        return Err("several RPC messages in one packet");
    }
    match packet.first(field::TYPE) {
        Some(0) => Ok(Some((packet, at, true))),
        Some(1) => Ok(Some((packet, at, false))),
        _ => Err("rpc.msgtyp"),
    }
}

fn file(packet: &Packet<'_>, nth: usize, pseudonyms: &Pseudonyms) -> Option<u64> {
    packet
        .all(field::HANDLE)
        .nth(nth)
        .map(|fh| pseudonyms.file(fh))
}

fn stability(number: Option<u64>) -> Option<Stability> {
    Stability::EACH.get(usize::try_from(number?).ok()?).copied()
}

fn small(number: Option<u64>) -> Option<u32> {
    number.and_then(|n| u32::try_from(n).ok())
}

fn call(
    packet: &Packet<'_>,
    at: u64,
    client: u32,
    pseudonyms: &Pseudonyms,
    compound: &mut u64,
) -> Result<Vec<Operation>, &'static str> {
    match packet.first(field::VERSION) {
        Some(3) => {
            let procedure = packet.first(field::PROCEDURE3).ok_or("nfs.procedure_v3")?;
            let name = usize::try_from(procedure)
                .ok()
                .and_then(|p| V3_PROCS.get(p));
            let op = name.and_then(|name| Op::named(name));
            let mut o = Operation::new(at, client, Version::V3, op.ok_or("nfs.procedure_v3")?);
            o.file = file(packet, 0, pseudonyms);
            o.other = file(packet, 1, pseudonyms);
            if matches!(o.op.name(), "read" | "write" | "commit") {
                o.offset = packet.first(field::OFFSET3);
                o.length = small(packet.first(field::COUNT3));
            }
            if o.op.is_write() {
                o.stability = stability(packet.first(field::STABLE3));
            }
            Ok(vec![o])
        }
        Some(4) => {
            *compound += 1;
            call4(packet, at, client, pseudonyms, *compound)
        }
        _ => Err("rpc.programversion"),
    }
}

/// Operations of a COMPOUND. Handles, offsets and counts come in the order of the operations that have them.
fn call4(
    packet: &Packet<'_>,
    at: u64,
    client: u32,
    pseudonyms: &Pseudonyms,
    compound: u64,
) -> Result<Vec<Operation>, &'static str> {
    let version = match packet.first(field::MINOR) {
        Some(0) => Version::V4_0,
        Some(1) => Version::V4_1,
        Some(2) => Version::V4_2,
        _ => Version::V4,
    };
    let mut handles = packet.all(field::HANDLE);
    let (mut offsets, mut counts) = (
        packet.numbers(field::OFFSET4).into_iter(),
        packet.numbers(field::COUNT4).into_iter(),
    );
    let mut written = packet.numbers(field::WRITTEN).into_iter();
    let mut stable = packet.numbers(field::STABLE4).into_iter();
    let (mut current, mut are_in_order) = (None, true);
    let mut operations = Vec::new();
    for opcode in packet.numbers(field::OPCODE) {
        let name = usize::try_from(opcode).ok().and_then(v4_op);
        let op = name.and_then(Op::named).ok_or("nfs.opcode")?;
        let mut o = Operation::new(at, client, version, op);
        o.compound = Some(compound);
        match o.op.name() {
            "putfh" => current = handles.next().map(|fh| pseudonyms.file(fh)),
            // Handles of their results are in the reply, if GETFH is there.
            "lookup" | "lookupp" | "open" | "create" | "putrootfh" | "putpubfh" | "restorefh" => {
                o.file = current.take();
            }
            "read" | "commit" if are_in_order => {
                (o.offset, o.length) = (offsets.next(), small(counts.next()));
            }
            "write" if are_in_order => {
                (o.offset, o.length) = (offsets.next(), small(written.next()));
                o.stability = stability(stable.next());
            }
            // Operations with offsets and counts of their own number.
            "allocate" | "deallocate" | "copy" | "clone" | "seek" | "read_plus" | "lock"
            | "lockt" | "locku" | "io_advise" | "write_same" => are_in_order = false,
            _ => {}
        }
        o.file = o.file.or(current);
        operations.push(o);
    }
    match operations.is_empty() {
        true => Err("nfs.opcode"),
        false => Ok(operations),
    }
}

fn reply3(packet: &Packet<'_>, operations: &mut [Operation], pseudonyms: &Pseudonyms) {
    for o in operations {
        o.status = small(packet.first(field::STATUS3));
        o.size = packet.first(field::SIZE3);
        if o.op.is_read() {
            o.length = small(packet.first(field::COUNT3)).or(o.length);
        }
        let name = o.op.name();
        if matches!(name, "lookup" | "create" | "mkdir" | "symlink" | "mknod") {
            o.other = file(packet, 0, pseudonyms);
        }
    }
}

fn reply4(packet: &Packet<'_>, operations: &mut [Operation]) {
    let statuses = packet.numbers(field::STATUS4);
    let done = packet.numbers(field::OPCODE).len().min(operations.len());
    // The first status is that of the COMPOUND, which is that of its last operation.
    if statuses.len() == done + 1 {
        for (o, status) in operations.iter_mut().zip(&statuses[1..]) {
            o.status = small(Some(*status));
        }
    }
    let mut lengths = packet.numbers(field::READ).into_iter();
    for o in operations.iter_mut().filter(|o| o.op.is_read()) {
        if o.status == Some(0) {
            o.length = small(lengths.next()).or(o.length);
        }
    }
    let sizes = packet.numbers(field::SIZE4);
    let mut getattrs = operations.iter_mut().filter(|o| o.op.name() == "getattr");
    if let ([size], Some(o), None) = (&sizes[..], getattrs.next(), getattrs.next()) {
        o.size = Some(*size);
    }
}
