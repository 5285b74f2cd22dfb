//! Text of nfsdump (D. Ellard et al., Passive NFS tracing of email and research workloads, FAST 2003), as SNIA publishes it.
//!
//! A line for each call and each reply: time, source and destination as `address.port`, T or U, C or R with the version, transaction,
//! procedure's number and name, of a reply `OK` or its status, then names and values, and `con = ... len = ...`. All numbers but times
//! are hexadecimal. Harvard's format.txt describes it, and src/process/ellardnfs2ds.cpp of DataSeries has the names that occur.

use super::calls::{Calls, Clients, Clock};
use super::lines::Lines;
use super::{ImportError, Imported, Pseudonyms, nanoseconds};
use crate::format::Writer;
use crate::operation::{Op, Operation, Stability, Version};
use std::io::{BufRead, Write};

struct Line<'a> {
    at: u64,
    client: &'a str,
    is_call: bool,
    version: Version,
    transaction: u64,
    op: &'a str,
    /// Names and values, of a reply behind its status.
    rest: Vec<&'a str>,
}

pub fn import<W: Write + Send>(
    lines: &mut Lines<impl BufRead>,
    writer: &mut Writer<W>,
    pseudonyms: &Pseudonyms,
) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    let (mut calls, mut clients) = (Calls::new(), Clients::new());
    let mut clock = Clock::default();
    while let Some((number, text)) = lines.next()? {
        let line = match text.and_then(parse) {
            Ok(Some(line)) => line,
            Ok(None) => continue,
            Err(reason) => {
                imported.count_unreadable(number, reason);
                continue;
            }
        };
        let at = clock.since(line.at, writer);
        let client = clients.number(line.client, writer);
        let key = (client, line.transaction);
        if line.is_call {
            let Some(operation) = call(&line, at, client, pseudonyms) else {
                imported.count_unreadable(number, "name of the procedure");
                continue;
            };
            calls.call(key, vec![operation], &mut imported, writer)?;
        } else if let Some(operations) = calls.reply(key, &mut imported) {
            for mut operation in operations {
                reply(&line, at, &mut operation, pseudonyms);
                imported.operations += 1;
                writer.push(operation)?;
            }
        }
    }
    calls.finish(&mut imported, writer)?;
    Ok(imported)
}

/// Words of a line; a name in quotes is a single word.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"').and_then(|rest| rest.find('"')) {
            Some(end) => end + 2,
            None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
}

fn parse(text: &str) -> Result<Option<Line<'_>>, &'static str> {
    if text.trim().is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let words = words(text);
    let (head, rest) = words.split_at_checked(8).ok_or("fewer than 8 words")?;
    let at = nanoseconds(head[0]).ok_or("time")?;
    let (is_call, version) = match head[4] {
        "C2" => (true, Version::V2),
        "C3" => (true, Version::V3),
        "R2" => (false, Version::V2),
        "R3" => (false, Version::V3),
        _ => return Err("neither C2, C3, R2 nor R3"),
    };
    let client = if is_call { head[1] } else { head[2] };
    Ok(Some(Line {
        at,
        client: client.split('.').next().unwrap_or(client),
        is_call,
        version,
        transaction: u64::from_str_radix(head[5], 16).map_err(|_| "transaction")?,
        op: head[7],
        rest: rest.to_vec(),
    }))
}

/// First value with one of these names.
fn value<'a>(rest: &[&'a str], names: &[&str]) -> Option<&'a str> {
    let mut pairs = rest.chunks_exact(2);
    pairs
        .find(|pair| names.contains(&pair[0]))
        .map(|pair| pair[1])
}

fn hex<T: TryFrom<u64>>(text: Option<&str>) -> Option<T> {
    T::try_from(u64::from_str_radix(text?, 16).ok()?).ok()
}

fn call(line: &Line<'_>, at: u64, client: u32, pseudonyms: &Pseudonyms) -> Option<Operation> {
    let name = match line.op {
        "readdirp" => "readdirplus",
        name => name,
    };
    let mut o = Operation::new(at, client, line.version, Op::named(name)?);
    // COMMIT has its file under another name.
    o.file = value(&line.rest, &["fh", "file"]).map(|fh| pseudonyms.file(fh));
    o.other = value(&line.rest, &["fh2"]).map(|fh| pseudonyms.file(fh));
    if matches!(name, "read" | "write" | "commit") {
        o.offset = hex(value(&line.rest, &["off", "offset", "begoff"]));
        o.length = hex(value(&line.rest, &["count", "tcount"]));
    }
    if name == "write" {
        o.stability = match value(&line.rest, &["stable"]) {
            Some("U") => Some(Stability::Unstable),
            Some("D") => Some(Stability::DataSync),
            Some("F") => Some(Stability::FileSync),
            _ => None,
        };
    }
    Some(o)
}

fn reply(line: &Line<'_>, at: u64, o: &mut Operation, pseudonyms: &Pseudonyms) {
    o.duration = at.checked_sub(o.arrival);
    let Some((status, rest)) = line.rest.split_first() else {
        return;
    };
    // The reply of NULL has no status.
    o.status = match *status {
        "OK" => Some(0),
        "con" => return,
        other => u32::from_str_radix(other, 16).ok(),
    };
    if o.status != Some(0) {
        return;
    }
    o.size = hex(value(rest, &["size"]));
    if o.op == Op::READ {
        o.length = hex(value(rest, &["count", "tcount"])).or(o.length);
    }
    if matches!(
        o.op.name(),
        "lookup" | "create" | "mkdir" | "symlink" | "mknod"
    ) {
        o.other = value(rest, &["fh"]).map(|fh| pseudonyms.file(fh));
    }
}
