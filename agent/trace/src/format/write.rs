//! Writing a trace.

use super::columns::{self, COLUMNS, Chunk};
use super::{Error, HEADER_KEY, LOOKAHEAD, ROW_GROUP, VERSION, VERSION_KEY};
use crate::header::Header;
use crate::operation::Operation;
use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;
use std::sync::Arc;

/// Writes a trace. Memory is bounded: the operations of a row group, and the columns that are made of them (about 50 MiB).
///
/// The file can be read once [`finish`](Writer::finish) has written its end. A file without it is refused by the reader.
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    header: Header,
    /// Operations that are not written yet.
    waiting: Vec<Operation>,
    /// Arrival of the last operation that was written.
    last: u64,
    operations: u64,
}

impl<W: Write + Send> Writer<W> {
    /// Begins a trace in this file, which is written from its beginning to its end.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(file: W, header: Header) -> Result<Writer<W>, Error> {
        let properties = columns::properties(&header.program).map_err(failed)?;
        let schema = columns::schema().map_err(failed)?;
        Ok(Writer {
            file: SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(failed)?,
            header,
            waiting: Vec::new(),
            last: 0,
            operations: 0,
        })
    }

    /// The header, which is written at the end: clients that come later, operations that were dropped.
    pub fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Operations that were given to [`push`](Writer::push).
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Adds an operation. Operations may come in another order than they arrived, by up to 32768 of them; later ones are counted in
    /// [`Header::out_of_order`].
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, operation: Operation) -> Result<(), Error> {
        self.operations += 1;
        self.waiting.push(operation);
        match self.waiting.len() >= ROW_GROUP + LOOKAHEAD {
            true => self.write(ROW_GROUP),
            false => Ok(()),
        }
    }

    /// Writes the rest and the end of the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<W, Error> {
        while !self.waiting.is_empty() {
            self.write(self.waiting.len().min(ROW_GROUP))?;
        }
        let header =
            serde_json::to_string(&self.header).map_err(|e| Error::Write(e.to_string()))?;
        for (key, value) in [(VERSION_KEY, VERSION.to_string()), (HEADER_KEY, header)] {
            self.file
                .append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        self.file.into_inner().map_err(failed)
    }

    /// Writes the earliest operations as a row group.
    fn write(&mut self, count: usize) -> Result<(), Error> {
        self.waiting.sort_by_key(|o| o.arrival);
        let operations = &self.waiting[..count];
        for operation in operations {
            self.header.out_of_order += u64::from(operation.arrival < self.last);
            self.last = operation.arrival;
        }
        write_row_group(&mut self.file, operations).map_err(failed)?;
        self.waiting.drain(..count);
        Ok(())
    }
}

fn write_row_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    operations: &[Operation],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for (number, column) in COLUMNS.iter().enumerate() {
        let Some(mut writer) = group.next_column()? else {
            break;
        };
        // A single column is in memory beside the operations.
        match columns::chunk(number, operations) {
            Chunk::U64(c) => {
                let levels = column.optional.then_some(&c.levels[..]);
                writer
                    .typed::<Int64Type>()
                    .write_batch(&c.values, levels, None)?;
            }
            Chunk::U32(c) => {
                let levels = column.optional.then_some(&c.levels[..]);
                writer
                    .typed::<Int32Type>()
                    .write_batch(&c.values, levels, None)?;
            }
            Chunk::Text(c) => {
                let levels = column.optional.then_some(&c.levels[..]);
                writer
                    .typed::<ByteArrayType>()
                    .write_batch(&c.values, levels, None)?;
            }
        }
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

fn failed(error: ParquetError) -> Error {
    Error::Write(error.to_string())
}
