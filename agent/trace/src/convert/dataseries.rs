//! Text that ds2txt prints of NFS traces in DataSeries (E. Anderson, Capture, conversion, and analysis of an intense NFS workload, FAST 2009).
//!
//! A line `# Extent, type='Trace::NFS::common'`, a line with the names of the fields, and a line for each record. Names of types and fields
//! are those of version 2, as src/process/nettrace2ds.C of DataSeries defines them. An operation is its request and response in the extent
//! common, and what attr-ops and read-write have under its request_id. Names of files are in attr-ops, and are not read.

use super::calls::{Calls, Clients, Clock};
use super::lines::Lines;
use super::{ImportError, Imported, Pseudonyms};
use crate::format::Writer;
use crate::operation::{Op, Operation, Version};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};

/// Operations that wait for their records in other extents, which come later in the file.
const WAITING: usize = 262_144;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Common,
    AttrOps,
    ReadWrite,
    Other,
}

/// Known parts of an operation, by the number of its request.
#[derive(Default)]
struct Parts {
    operation: Option<Operation>,
    file: Option<u64>,
    other: Option<u64>,
    size: Option<u64>,
    offset: Option<u64>,
    length: Option<u32>,
}

struct Row<'a> {
    names: &'a [String],
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// Value of a field; `None` where it is null or the extent has no such field.
    fn get(&self, name: &str) -> Option<&'a str> {
        let at = self.names.iter().position(|n| n == name)?;
        self.cells.get(at).copied().filter(|cell| *cell != "null")
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }
}

pub fn import<W: Write + Send>(
    lines: &mut Lines<impl BufRead>,
    writer: &mut Writer<W>,
    pseudonyms: &Pseudonyms,
) -> Result<Imported, ImportError> {
    let mut import = Import {
        imported: Imported::default(),
        calls: Calls::new(),
        clients: Clients::new(),
        clock: Clock::default(),
        requests: BTreeMap::new(),
        parts: BTreeMap::new(),
        pseudonyms,
    };
    let (mut extent, mut names) = (Extent::Other, Vec::new());
    let mut is_named = true;
    while let Some((number, text)) = lines.next()? {
        let text = match text {
            Ok(text) => text.trim(),
            Err(reason) => {
                import.imported.count_unreadable(number, reason);
                continue;
            }
        };
        if let Some(rest) = text.strip_prefix("# Extent, type='") {
            extent = match rest.split('\'').next() {
                Some("Trace::NFS::common") => Extent::Common,
                Some("Trace::NFS::attr-ops") => Extent::AttrOps,
                Some("Trace::NFS::read-write") => Extent::ReadWrite,
                _ => Extent::Other,
            };
            is_named = false;
        } else if text.is_empty() || text.starts_with('#') {
        } else if !is_named {
            names = text.split_whitespace().map(str::to_owned).collect();
            is_named = true;
        } else if extent != Extent::Other {
            let cells: Vec<_> = text.split_whitespace().collect();
            let row = Row {
                names: &names,
                cells,
            };
            if let Err(reason) = import.row(extent, &row, writer)? {
                import.imported.count_unreadable(number, reason);
            }
        }
    }
    import.finish(writer)
}

struct Import<'a> {
    imported: Imported,
    calls: Calls,
    clients: Clients,
    clock: Clock,
    /// Number of the record of each call that waits for its reply.
    requests: BTreeMap<(u32, u64), u64>,
    parts: BTreeMap<u64, Parts>,
    pseudonyms: &'a Pseudonyms,
}

impl Import<'_> {
    fn row<W: Write + Send>(
        &mut self,
        extent: Extent,
        row: &Row<'_>,
        writer: &mut Writer<W>,
    ) -> Result<Result<(), &'static str>, ImportError> {
        if row.cells.len() != row.names.len() {
            return Ok(Err("another number of fields than names"));
        }
        if extent == Extent::Common {
            return self.common(row, writer);
        }
        let Some(request) = row.number("request_id") else {
            return Ok(Err("request_id"));
        };
        let handle = |name| row.get(name).map(|fh| self.pseudonyms.file(fh));
        let (file, directory) = (handle("filehandle"), handle("lookup_dir_filehandle"));
        let parts = self.parts.entry(request).or_default();
        if extent == Extent::AttrOps {
            // A lookup has the directory as its file, and its result as the other file.
            (parts.file, parts.other) = match directory {
                Some(directory) => (Some(directory), file),
                None => (file, parts.other),
            };
            parts.size = row.number("file_size");
        } else {
            parts.file = file;
            parts.offset = row.number("offset");
            parts.length = row.number("bytes");
        }
        self.bound(writer)?;
        Ok(Ok(()))
    }

    fn common<W: Write + Send>(
        &mut self,
        row: &Row<'_>,
        writer: &mut Writer<W>,
    ) -> Result<Result<(), &'static str>, ImportError> {
        let version = match row.get("nfs_version") {
            Some("V2") => Version::V2,
            Some("V3") => Version::V3,
            _ => return Ok(Err("nfs_version")),
        };
        let is_request = row.get("is_request") == Some("request");
        let address = row.get(if is_request { "source" } else { "dest" });
        let transaction = row.get("transaction_id");
        let transaction = transaction.and_then(|text| u64::from_str_radix(text, 16).ok());
        let record: Option<u64> = row.number("record_id");
        let op = row.get("operation").and_then(Op::named);
        let at = row.number("packet_at").and_then(packet_time);
        let (Some(address), Some(transaction), Some(record), Some(op), Some(at)) =
            (address, transaction, record, op, at)
        else {
            return Ok(Err("a field of common"));
        };
        let at = self.clock.since(at, writer);
        let client = self.clients.number(address, writer);
        let key = (client, transaction);
        if is_request {
            let operation = Operation::new(at, client, version, op);
            self.requests.insert(key, record);
            // Requests that are never answered must not grow without end.
            if self.requests.len() > WAITING {
                self.requests.pop_first();
            }
            self.calls
                .call(key, vec![operation], &mut self.imported, writer)?;
            return Ok(Ok(()));
        }
        let request = self.requests.remove(&key);
        let status = row.number::<u32>("rpc_status");
        for mut operation in self
            .calls
            .reply(key, &mut self.imported)
            .unwrap_or_default()
        {
            operation.duration = at.checked_sub(operation.arrival);
            // rpc_status is that of the RPC. The status of NFS is in no extent that is read.
            if status.is_some_and(|status| status != 0) {
                operation.duration = None;
            }
            match request {
                Some(request) => {
                    self.parts.entry(request).or_default().operation = Some(operation);
                }
                None => {
                    self.imported.operations += 1;
                    writer.push(operation)?;
                }
            }
        }
        self.bound(writer)?;
        Ok(Ok(()))
    }

    fn bound<W: Write + Send>(&mut self, writer: &mut Writer<W>) -> Result<(), ImportError> {
        while self.parts.len() > WAITING {
            let Some((_, parts)) = self.parts.pop_first() else {
                break;
            };
            self.write(parts, writer)?;
        }
        Ok(())
    }

    fn write<W: Write + Send>(
        &mut self,
        parts: Parts,
        writer: &mut Writer<W>,
    ) -> Result<(), ImportError> {
        let Some(mut operation) = parts.operation else {
            self.imported.without_call += 1;
            return Ok(());
        };
        operation.file = parts.file;
        operation.other = parts.other;
        operation.size = parts.size;
        operation.offset = parts.offset;
        operation.length = parts.length;
        self.imported.operations += 1;
        writer.push(operation)?;
        Ok(())
    }

    fn finish<W: Write + Send>(mut self, writer: &mut Writer<W>) -> Result<Imported, ImportError> {
        while let Some((_, parts)) = self.parts.pop_first() {
            self.write(parts, writer)?;
        }
        self.calls.finish(&mut self.imported, writer)?;
        Ok(self.imported)
    }
}

/// ds2txt prints packet_at, which counts 2^-32 seconds, divided by 4295: about microseconds.
fn packet_time(printed: u64) -> Option<u64> {
    let nanoseconds = u128::from(printed) * 4295 * 1_000_000_000 >> 32;
    u64::try_from(nanoseconds).ok()
}
