//! Columns of the table: names, types, encodings, and their values for the rows of a row group.

use crate::operation::{Op, Operation, Stability, Version};
use parquet::basic::{
    Compression, Encoding, GzipLevel, LogicalType, Repetition, Type as PhysicalType,
};
use parquet::data_type::ByteArray;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, Type};
use std::sync::Arc;

/// A column.
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// True where an operation may have no value.
    pub optional: bool,
    /// How values are packed before they are compressed.
    packing: Packing,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned integer of 64 bits.
    U64,
    /// Unsigned integer of 32 bits.
    U32,
    /// Text.
    Text,
}

impl Kind {
    /// Bytes of a plain value, or of its length.
    pub fn width(self) -> u64 {
        match self {
            Kind::U64 => 8,
            Kind::U32 | Kind::Text => 4,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    /// Differences of consecutive values, in as few bits as they need: times and numbers that grow.
    Differences,
    /// Numbers of distinct values: few values, or few in a row group.
    Dictionary,
    /// First bytes of all values, then second bytes: values that differ, of similar size.
    Bytes,
}

const fn column(name: &'static str, kind: Kind, optional: bool, packing: Packing) -> Column {
    Column {
        name,
        kind,
        optional,
        packing,
    }
}

/// Columns in the order of the file.
pub const COLUMNS: [Column; 13] = [
    column("arrival", Kind::U64, false, Packing::Differences),
    column("duration", Kind::U64, true, Packing::Bytes),
    column("client", Kind::U32, false, Packing::Dictionary),
    column("version", Kind::Text, false, Packing::Dictionary),
    column("op", Kind::Text, false, Packing::Dictionary),
    column("file", Kind::U64, true, Packing::Dictionary),
    column("other", Kind::U64, true, Packing::Dictionary),
    column("offset", Kind::U64, true, Packing::Dictionary),
    column("length", Kind::U32, true, Packing::Dictionary),
    column("stability", Kind::Text, true, Packing::Dictionary),
    column("status", Kind::U32, true, Packing::Dictionary),
    column("size", Kind::U64, true, Packing::Dictionary),
    column("compound", Kind::U64, true, Packing::Differences),
];

/// Level of deflate: higher ones take twice the time for 2 % less.
const LEVEL: u32 = 4;
/// Bytes of distinct values of a column in a row group, above which they are written as they are.
const DICTIONARY_BYTES: usize = 1 << 20;

impl Column {
    fn schema(&self) -> Result<Type, parquet::errors::ParquetError> {
        let (physical, logical) = match self.kind {
            Kind::U64 => (PhysicalType::INT64, LogicalType::integer(64, false)),
            Kind::U32 => (PhysicalType::INT32, LogicalType::integer(32, false)),
            Kind::Text => (PhysicalType::BYTE_ARRAY, LogicalType::String),
        };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(match self.optional {
                true => Repetition::OPTIONAL,
                false => Repetition::REQUIRED,
            })
            .with_logical_type(Some(logical))
            .build()
    }

    /// Physical type in the file.
    pub fn physical(&self) -> PhysicalType {
        match self.kind {
            Kind::U64 => PhysicalType::INT64,
            Kind::U32 => PhysicalType::INT32,
            Kind::Text => PhysicalType::BYTE_ARRAY,
        }
    }
}

/// Schema of the file.
pub fn schema() -> Result<Arc<Type>, parquet::errors::ParquetError> {
    let fields: Result<Vec<_>, _> = COLUMNS.iter().map(|c| c.schema().map(Arc::new)).collect();
    Ok(Arc::new(
        Type::group_type_builder("operation")
            .with_fields(fields?)
            .build()?,
    ))
}

/// How the file is written.
pub fn properties(program: &str) -> Result<WriterProperties, parquet::errors::ParquetError> {
    let mut properties = WriterProperties::builder()
        // Pages of version 1 have levels inside of the compressed bytes, which have a checksum. The library writes none of its own.
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::GZIP(GzipLevel::try_new(LEVEL)?))
        .set_created_by(program.to_owned())
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for column in &COLUMNS {
        let path = ColumnPath::from(column.name);
        let encoding = match column.packing {
            Packing::Dictionary => continue,
            Packing::Differences => Encoding::DELTA_BINARY_PACKED,
            Packing::Bytes => Encoding::BYTE_STREAM_SPLIT,
        };
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, encoding);
    }
    Ok(properties.build())
}

/// Values of a column, as Parquet wants them: those that are there, and for each row 1 if it has one.
pub struct Values<T> {
    /// Values that are there.
    pub values: Vec<T>,
    /// 1 for each row with a value, 0 for each without.
    pub levels: Vec<i16>,
}

impl<T> Values<T> {
    fn new() -> Values<T> {
        Values {
            values: Vec::new(),
            levels: Vec::new(),
        }
    }

    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

/// Values of one column for the rows of a row group.
pub enum Chunk {
    /// Values of [`Kind::U64`], as signed integers of the same bits.
    U64(Values<i64>),
    /// Values of [`Kind::U32`], as signed integers of the same bits.
    U32(Values<i32>),
    /// Values of [`Kind::Text`].
    Text(Values<ByteArray>),
}

/// Values of the column with this number for these operations.
pub fn chunk(column: usize, operations: &[Operation]) -> Chunk {
    let u64s = |value: fn(&Operation) -> Option<u64>| {
        let mut chunk = Values::new();
        operations
            .iter()
            .for_each(|o| chunk.push(value(o).map(|v| v as i64)));
        Chunk::U64(chunk)
    };
    let u32s = |value: fn(&Operation) -> Option<u32>| {
        let mut chunk = Values::new();
        operations
            .iter()
            .for_each(|o| chunk.push(value(o).map(|v| v as i32)));
        Chunk::U32(chunk)
    };
    let texts = |value: fn(&Operation) -> Option<&str>| {
        let mut chunk = Values::new();
        operations
            .iter()
            .for_each(|o| chunk.push(value(o).map(ByteArray::from)));
        Chunk::Text(chunk)
    };
    match COLUMNS[column].name {
        "arrival" => u64s(|o| Some(o.arrival)),
        "duration" => u64s(|o| o.duration),
        "client" => u32s(|o| Some(o.client)),
        "version" => texts(|o| Some(o.version.name())),
        "op" => texts(|o| Some(o.op.name())),
        "file" => u64s(|o| o.file),
        "other" => u64s(|o| o.other),
        "offset" => u64s(|o| o.offset),
        "length" => u32s(|o| o.length),
        "stability" => texts(|o| o.stability.map(Stability::name)),
        "status" => u32s(|o| o.status),
        "size" => u64s(|o| o.size),
        _ => u64s(|o| o.compound),
    }
}

/// A value of a row, as it was read.
pub enum Value<'a> {
    /// A value of [`Kind::U64`].
    U64(u64),
    /// A value of [`Kind::U32`].
    U32(u32),
    /// A value of [`Kind::Text`].
    Text(&'a str),
}

/// Puts a value of the column with this number into an operation.
///
/// # Errors
/// If it is no value of this column.
pub fn set(operation: &mut Operation, column: usize, value: Value<'_>) -> Result<(), String> {
    let name = COLUMNS[column].name;
    match (name, value) {
        ("arrival", Value::U64(v)) => operation.arrival = v,
        ("duration", Value::U64(v)) => operation.duration = Some(v),
        ("client", Value::U32(v)) => operation.client = v,
        ("version", Value::Text(v)) => {
            operation.version = Version::named(v).ok_or_else(|| format!("no version: {v:?}"))?;
        }
        ("op", Value::Text(v)) => {
            operation.op = Op::named(v).ok_or_else(|| format!("no name of an operation: {v:?}"))?;
        }
        ("file", Value::U64(v)) => operation.file = Some(v),
        ("other", Value::U64(v)) => operation.other = Some(v),
        ("offset", Value::U64(v)) => operation.offset = Some(v),
        ("length", Value::U32(v)) => operation.length = Some(v),
        ("stability", Value::Text(v)) => {
            let stability = Stability::named(v).ok_or_else(|| format!("no stability: {v:?}"))?;
            operation.stability = Some(stability);
        }
        ("status", Value::U32(v)) => operation.status = Some(v),
        ("size", Value::U64(v)) => operation.size = Some(v),
        ("compound", Value::U64(v)) => operation.compound = Some(v),
        _ => return Err(format!("column {name} has another type")),
    }
    Ok(())
}
