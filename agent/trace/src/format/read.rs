//! Reading a trace.

use super::columns::{self, COLUMNS, Value};
use super::pages::Checked;
use super::{
    BATCH, Error, HEADER_KEY, LARGEST_FOOTER, LARGEST_ROW_GROUP, VERSION, VERSION_KEY, pages,
};
use crate::header::Header;
use crate::operation::{Op, Operation, Version};
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a trace from its beginning to its end: an iterator of operations. Memory is bounded: a page of each column, and its dictionary.
///
/// The iterator ends after its first error.
pub struct Reader {
    path: PathBuf,
    file: Arc<File>,
    len: u64,
    header: Header,
    metadata: ParquetMetaData,
    /// Number in the file of each of [`COLUMNS`]; `None` where the file does not have it.
    places: [Option<usize>; COLUMNS.len()],
    operations: u64,
    next_group: usize,
    group: Option<Group>,
    /// Operations that are decoded, the next one last.
    batch: Vec<Operation>,
    failed: bool,
}

/// Row group that is being read.
struct Group {
    columns: Vec<GroupColumn>,
    left: usize,
}

pub(super) struct GroupColumn {
    /// Index into [`COLUMNS`].
    number: usize,
    reader: ColumnReader,
    has_levels: bool,
}

impl Reader {
    /// Opens a trace, and checks its header.
    ///
    /// # Errors
    /// If it is no trace, is damaged, or is of a later format.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let io = |error| Error::Io {
            path: path.to_owned(),
            error,
        };
        let file = File::open(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(io(std::io::Error::other(
                "not a regular file: a trace is read from its end",
            )));
        }
        Reader::new(file, path)
    }

    /// Reads a file that is open; `path` is for messages.
    ///
    /// # Errors
    /// As of [`open`](Reader::open).
    pub fn new(mut file: File, path: &Path) -> Result<Reader, Error> {
        let io = |error| Error::Io {
            path: path.to_owned(),
            error,
        };
        let damaged = |reason: String| Error::Damaged {
            path: path.to_owned(),
            reason,
        };
        let foreign = |reason: &str| Error::Foreign {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let len = file.seek(SeekFrom::End(0)).map_err(io)?;
        check_ends(&mut file, len)
            .map_err(io)?
            .ok_or_else(|| Error::NoTrace {
                path: path.to_owned(),
            })?
            .map_err(damaged)?;
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Skip)
            .parse_and_finish(&file)
            .map_err(|e| damaged(reason(&e)))?;

        let schema = metadata.file_metadata().schema_descr();
        let pairs = metadata.file_metadata().key_value_metadata();
        let value = |key: &str| {
            let mut pairs = pairs.into_iter().flatten();
            pairs
                .find(|p| p.key == key)
                .and_then(|p| p.value.as_deref())
        };
        let version =
            value(VERSION_KEY).ok_or_else(|| foreign(&format!("no key {VERSION_KEY}")))?;
        match version.parse() {
            Ok(VERSION) => {}
            Ok(version) if version > VERSION => {
                return Err(Error::Newer {
                    path: path.to_owned(),
                    version,
                });
            }
            _ => return Err(damaged(format!("{VERSION_KEY} is {version:?}"))),
        }
        let header = value(HEADER_KEY).ok_or_else(|| foreign(&format!("no key {HEADER_KEY}")))?;
        let header = serde_json::from_str(header).map_err(|e| damaged(e.to_string()))?;

        let mut places = [None; COLUMNS.len()];
        for (column, place) in COLUMNS.iter().zip(&mut places) {
            *place = (0..schema.num_columns()).find(|i| schema.column(*i).name() == column.name);
            let Some(place) = place else {
                match column.optional {
                    true => continue,
                    false => return Err(foreign(&format!("no column {}", column.name))),
                }
            };
            let found = schema.column(*place);
            let is_flat = found.path().parts().len() == 1 && found.max_rep_level() == 0;
            if found.physical_type() != column.physical() || !is_flat {
                return Err(foreign(&format!("column {} has another type", column.name)));
            }
        }
        let mut operations = 0_u64;
        for group in metadata.row_groups() {
            let rows = group.num_rows();
            if !(0..=LARGEST_ROW_GROUP).contains(&rows) {
                return Err(damaged(format!("a row group of {rows} operations")));
            }
            operations += rows as u64;
        }
        if u64::try_from(metadata.file_metadata().num_rows()) != Ok(operations) {
            return Err(damaged("the number of operations".to_owned()));
        }
        Ok(Reader {
            path: path.to_owned(),
            file: Arc::new(file),
            len,
            header,
            metadata,
            places,
            operations,
            next_group: 0,
            group: None,
            batch: Vec::new(),
            failed: false,
        })
    }

    /// Facts about the whole trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Operations in the file.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    fn fill(&mut self) -> Result<(), String> {
        while self.batch.is_empty() {
            let Some(group) = &mut self.group else {
                if self.next_group == self.metadata.num_row_groups() {
                    return Ok(());
                }
                self.group = Some(self.open_group(self.next_group)?);
                self.next_group += 1;
                continue;
            };
            if group.left == 0 {
                self.group = None;
                continue;
            }
            let rows = group.left.min(BATCH);
            let nothing = Operation::new(0, 0, Version::V3, Op::READ);
            self.batch.resize(rows, nothing);
            for column in &mut group.columns {
                column.read(&mut self.batch)?;
            }
            group.left -= rows;
            let clients = self.header.clients.len();
            if let Some(o) = self.batch.iter().find(|o| o.client as usize >= clients) {
                return Err(format!("client {} of {clients}", o.client));
            }
            self.batch.reverse();
        }
        Ok(())
    }

    fn open_group(&self, number: usize) -> Result<Group, String> {
        let group = self.metadata.row_group(number);
        let rows = group.num_rows() as usize;
        let mut columns = Vec::new();
        for (number, place) in self.places.iter().enumerate() {
            let Some(place) = *place else { continue };
            let chunk = group.columns().get(place);
            let chunk = chunk.ok_or("a column is missing")?;
            let name = COLUMNS[number].name;
            (self.check(chunk, number, rows)).map_err(|e| format!("column {name}: {e}"))?;
            let pages = SerializedPageReader::new(Arc::clone(&self.file), chunk, rows, None)
                .map_err(|e| reason(&e))?;
            columns.push(GroupColumn::new(
                number,
                chunk.column_descr_ptr(),
                Box::new(pages),
            ));
        }
        Ok(Group {
            columns,
            left: rows,
        })
    }

    /// Checks that a column of a row group lies in the file, and its pages in it.
    fn check(&self, chunk: &ColumnChunkMetaData, number: usize, rows: usize) -> Result<(), String> {
        let start = (chunk.dictionary_page_offset()).unwrap_or_else(|| chunk.data_page_offset());
        let (start, len) = (u64::try_from(start), u64::try_from(chunk.compressed_size()));
        let (Ok(start), Ok(len)) = (start, len) else {
            return Err("negative offset".to_owned());
        };
        if start.checked_add(len).is_none_or(|end| end > self.len) {
            return Err("outside of the file".to_owned());
        }
        if u64::try_from(chunk.num_values()) != Ok(rows as u64) {
            return Err("number of values".to_owned());
        }
        let width = COLUMNS[number].kind.width();
        pages::check(&self.file, start, len, rows as u64, width)
    }
}

impl Iterator for Reader {
    type Item = Result<Operation, Error>;

    fn next(&mut self) -> Option<Result<Operation, Error>> {
        if self.failed {
            return None;
        }
        if self.batch.is_empty()
            && let Err(reason) = self.fill()
        {
            self.failed = true;
            return Some(Err(Error::Damaged {
                path: self.path.clone(),
                reason,
            }));
        }
        self.batch.pop().map(Ok)
    }
}

impl GroupColumn {
    /// Column with this index into [`COLUMNS`].
    pub(super) fn new(
        number: usize,
        description: ColumnDescPtr,
        pages: Box<dyn PageReader>,
    ) -> GroupColumn {
        let has_levels = description.max_def_level() > 0;
        let pages = Checked::new(pages, COLUMNS[number].kind, has_levels);
        GroupColumn {
            number,
            reader: get_column_reader(description, Box::new(pages)),
            has_levels,
        }
    }

    /// Reads this column's values of the next operations.
    pub(super) fn read(&mut self, batch: &mut [Operation]) -> Result<(), String> {
        self.read_values(batch)
            .map_err(|e| format!("column {}: {e}", COLUMNS[self.number].name))
    }

    fn read_values(&mut self, batch: &mut [Operation]) -> Result<(), String> {
        let (rows, number) = (batch.len(), self.number);
        let mut levels = Vec::new();
        let with_levels = self.has_levels.then_some(&mut levels);
        match &mut self.reader {
            ColumnReader::Int64ColumnReader(reader) => {
                let mut values = Vec::with_capacity(rows);
                let read = reader.read_records(rows, with_levels, None, &mut values);
                let read = read.map_err(|e| reason(&e))?;
                place(batch, number, read.0, &levels, &values, |v| {
                    Ok(Value::U64(*v as u64))
                })
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let mut values = Vec::with_capacity(rows);
                let read = reader.read_records(rows, with_levels, None, &mut values);
                let read = read.map_err(|e| reason(&e))?;
                place(batch, number, read.0, &levels, &values, |v| {
                    Ok(Value::U32(*v as u32))
                })
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let mut values = Vec::with_capacity(rows);
                let read = reader.read_records(rows, with_levels, None, &mut values);
                let read = read.map_err(|e| reason(&e))?;
                place(batch, number, read.0, &levels, &values, text)
            }
            _ => Err("another type".to_owned()),
        }
    }
}

fn text(value: &ByteArray) -> Result<Value<'_>, String> {
    let text = value.as_utf8().map_err(|e| reason(&e))?;
    Ok(Value::Text(text))
}

/// Puts values into operations: the values in turn, into those whose level is not 0, or into all without levels.
fn place<'v, T>(
    batch: &mut [Operation],
    number: usize,
    read: usize,
    levels: &[i16],
    values: &'v [T],
    value: fn(&'v T) -> Result<Value<'v>, String>,
) -> Result<(), String> {
    if read != batch.len() {
        return Err("ends too early".to_owned());
    }
    let mut values = values.iter();
    for (row, operation) in batch.iter_mut().enumerate() {
        if levels.get(row).is_some_and(|level| *level == 0) {
            match COLUMNS[number].optional {
                true => continue,
                false => return Err("a value is missing".to_owned()),
            }
        }
        let next = values.next().ok_or("a value is missing")?;
        columns::set(operation, number, value(next)?)?;
    }
    Ok(())
}

/// Magic numbers at both ends, and the length of the footer. `None` if it is no whole Parquet file.
fn check_ends(file: &mut File, len: u64) -> io::Result<Option<Result<(), String>>> {
    const MAGIC: [u8; 4] = *b"PAR1";
    const TAIL: u64 = 8;
    if len < MAGIC.len() as u64 + TAIL {
        return Ok(None);
    }
    let (mut head, mut tail) = ([0; 4], [0; 8]);
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut head)?;
    file.seek(SeekFrom::End(-(TAIL as i64)))?;
    file.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    if head != MAGIC || magic != MAGIC {
        return Ok(None);
    }
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    let room = len - MAGIC.len() as u64 - TAIL;
    Ok(Some(if footer > room {
        Err("the footer is longer than the file".to_owned())
    } else if footer > LARGEST_FOOTER {
        Err(format!("the footer has more than {LARGEST_FOOTER} bytes"))
    } else {
        Ok(())
    }))
}

/// The library's error without its type's name.
fn reason(error: &ParquetError) -> String {
    match error {
        ParquetError::General(reason) | ParquetError::EOF(reason) => reason.clone(),
        other => other.to_string(),
    }
}
