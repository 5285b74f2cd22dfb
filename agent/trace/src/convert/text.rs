//! Text of this program: a line for each operation, with its fields in columns.

use super::lines::Lines;
use super::{ImportError, Imported};
use crate::format::{Error, Writer};
use crate::header::Header;
use crate::operation::{Op, Operation, Stability, Version};
use std::fmt::Display;
use std::io::{self, BufRead, Write};

const FIRST: &str = "# nfscope trace 1";
const COLUMNS: &str = "arrival\tduration\tclient\tversion\top\tfile\tother\toffset\tlength\tstability\tstatus\tsize\tcompound";
const UNKNOWN: &str = "-";

/// Writes a trace as text: the form's name, the header as JSON, the names of the columns, and a line for each operation. A field that is
/// not known is `-`.
///
/// # Errors
/// If an operation cannot be read, or the text cannot be written.
pub fn export(
    header: &Header,
    operations: impl Iterator<Item = Result<Operation, Error>>,
    out: &mut impl Write,
) -> Result<(), ImportError> {
    let json = serde_json::to_string(header).map_err(io::Error::from)?;
    writeln!(out, "{FIRST}\n# {json}\n{COLUMNS}")?;
    for operation in operations {
        let o = operation?;
        let cells = [
            o.arrival.to_string(),
            cell(o.duration),
            o.client.to_string(),
            o.version.name().to_owned(),
            o.op.name().to_owned(),
            cell(o.file),
            cell(o.other),
            cell(o.offset),
            cell(o.length),
            cell(o.stability.map(Stability::name)),
            cell(o.status),
            cell(o.size),
            cell(o.compound),
        ];
        writeln!(out, "{}", cells.join("\t"))?;
    }
    Ok(())
}

fn cell(value: Option<impl Display>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |v| v.to_string())
}

/// Reads that text.
pub fn import<W: Write + Send>(
    lines: &mut Lines<impl BufRead>,
    writer: &mut Writer<W>,
) -> Result<Imported, ImportError> {
    let form = |what: &str| {
        ImportError::Form(format!(
            "the text begins with {FIRST:?}, a line with the header and the names of the columns: {what}"
        ))
    };
    let mut imported = Imported::default();
    for number in 0..3 {
        let (_, line) = lines.next()?.ok_or_else(|| form("it ends too early"))?;
        let line = line.map_err(form)?;
        match number {
            0 if line == FIRST => {}
            1 => {
                let json = line.strip_prefix("# ").ok_or_else(|| form("no header"))?;
                let header: Header =
                    serde_json::from_str(json).map_err(|e| form(&e.to_string()))?;
                *writer.header_mut() = header;
            }
            2 if line == COLUMNS => {}
            _ => return Err(form(&format!("line {}", number + 1))),
        }
    }
    // The writer counts again.
    writer.header_mut().out_of_order = 0;
    let clients = writer.header_mut().clients.len();
    while let Some((line_number, line)) = lines.next()? {
        let operation = line.map_err(str::to_owned).and_then(operation);
        let operation = operation.and_then(|o| match (o.client as usize) < clients {
            true => Ok(o),
            false => Err(format!("client {} of {clients}", o.client)),
        });
        match operation {
            Ok(operation) => {
                imported.operations += 1;
                writer.push(operation)?;
            }
            Err(reason) => imported.count_unreadable(line_number, &reason),
        }
    }
    Ok(imported)
}

fn operation(line: &str) -> Result<Operation, String> {
    let cells: Vec<&str> = line.split('\t').collect();
    let count = cells.len();
    let Ok(cells) = <[&str; 13]>::try_from(cells) else {
        return Err(format!("{count} columns instead of 13"));
    };
    let [arrival, duration, client, version, op, rest @ ..] = cells;
    let [
        file,
        other,
        offset,
        length,
        stability,
        status,
        size,
        compound,
    ] = rest;
    let wrong = |name: &str, text: &str| format!("{name} {text:?}");
    let number = |name: &str, text: &str| match text {
        UNKNOWN => Ok(None),
        _ => (text.parse::<u64>().map(Some)).map_err(|_| wrong(name, text)),
    };
    let small = |name: &str, text: &str| match text {
        UNKNOWN => Ok(None),
        _ => (text.parse::<u32>().map(Some)).map_err(|_| wrong(name, text)),
    };
    let missing = |name: &'static str| move || format!("no {name}");
    Ok(Operation {
        arrival: number("arrival", arrival)?.ok_or_else(missing("arrival"))?,
        duration: number("duration", duration)?,
        client: small("client", client)?.ok_or_else(missing("client"))?,
        version: Version::named(version).ok_or_else(|| wrong("version", version))?,
        op: Op::named(op).ok_or_else(|| wrong("op", op))?,
        file: number("file", file)?,
        other: number("other", other)?,
        offset: number("offset", offset)?,
        length: small("length", length)?,
        stability: match stability {
            UNKNOWN => None,
            _ => Some(Stability::named(stability).ok_or_else(|| wrong("stability", stability))?),
        },
        status: small("status", status)?,
        size: number("size", size)?,
        compound: number("compound", compound)?,
    })
}
