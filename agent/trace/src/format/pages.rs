//! Check of a column's pages before the library decodes them.
//!
//! The library reserves memory for the counts and sizes that a page's header claims, and a damaged or hostile header can claim gigabytes.
//! [`check`] reads the headers alone, and holds them against the file and against [`LARGEST_PAGE`]. Headers are structs of Thrift's compact
//! protocol (parquet.thrift in apache/parquet-format, `PageHeader`). The library's decoders also panic on some contents. [`Checked`] refuses
//! these between decompression and decoding.

use super::LARGEST_PAGE;
use super::columns::Kind;
use super::encodings;
use parquet::basic::Encoding;
use parquet::column::page::{Page as Content, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Largest header of a page; ours have 30 bytes.
const LARGEST_HEADER: u64 = 16 * 1024;
/// Deepest struct of a header, which has three levels.
const DEEPEST: u32 = 8;

/// Types of Thrift's compact protocol.
mod wire {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const STRUCT: u8 = 12;
}

/// Checks the pages of a column of a row group: `len` bytes from `start`, with a value (or none) for each of `rows`, of at least `width`
/// bytes each in a dictionary.
///
/// # Errors
/// The reason why the pages must not be decoded.
pub fn check(file: &File, start: u64, len: u64, rows: u64, width: u64) -> Result<(), String> {
    let (mut at, end) = (start, start + len);
    let mut values = 0_u64;
    let mut reader = file;
    let mut buffer = Vec::new();
    while at < end {
        buffer.clear();
        (reader.seek(SeekFrom::Start(at))).map_err(|e| e.to_string())?;
        let head = (end - at).min(LARGEST_HEADER);
        (reader.take(head).read_to_end(&mut buffer)).map_err(|e| e.to_string())?;
        let mut thrift = Thrift {
            bytes: &buffer,
            at: 0,
        };
        let page = Page::read(&mut thrift).ok_or_else(|| format!("header of the page at {at}"))?;
        at += thrift.at as u64;
        if page.compressed > end - at {
            return Err(format!("the page before {at} is longer than its column"));
        }
        if page.uncompressed > LARGEST_PAGE {
            return Err(format!(
                "the page before {at} has more than {LARGEST_PAGE} bytes"
            ));
        }
        if page.is_dictionary {
            if page.values.saturating_mul(width) > page.uncompressed {
                return Err(format!("values of the dictionary before {at}"));
            }
        } else {
            values = values.saturating_add(page.values);
        }
        at += page.compressed;
    }
    match values == rows {
        true => Ok(()),
        false => Err(format!("{values} values for {rows} operations")),
    }
}

/// Claims of a page's header.
#[derive(Default)]
struct Page {
    uncompressed: u64,
    compressed: u64,
    is_dictionary: bool,
    values: u64,
}

impl Page {
    /// `None` where it is no header, or a number is negative.
    fn read(thrift: &mut Thrift<'_>) -> Option<Page> {
        const DICTIONARY: i64 = 2;
        let mut page = Page::default();
        let (mut has_sizes, mut has_values) = (0, false);
        let mut id = 0;
        while let Some(kind) = thrift.field(&mut id)? {
            match (id, kind) {
                (1, wire::I32) => page.is_dictionary = thrift.integer()? == DICTIONARY,
                (2, wire::I32) => {
                    page.uncompressed = u64::try_from(thrift.integer()?).ok()?;
                    has_sizes |= 1;
                }
                (3, wire::I32) => {
                    page.compressed = u64::try_from(thrift.integer()?).ok()?;
                    has_sizes |= 2;
                }
                // Headers of a data page, a dictionary and a data page of version 2 begin with the number of values.
                (5 | 7 | 8, wire::STRUCT) => {
                    let mut inner = 0;
                    while let Some(kind) = thrift.field(&mut inner)? {
                        if (inner, kind) == (1, wire::I32) {
                            page.values = u64::try_from(thrift.integer()?).ok()?;
                            has_values = true;
                        } else {
                            thrift.skip(kind, DEEPEST)?;
                        }
                    }
                }
                _ => thrift.skip(kind, DEEPEST)?,
            }
        }
        (has_sizes == 3 && has_values).then_some(page)
    }
}

struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// An integer in zigzag form.
    fn integer(&mut self) -> Option<i64> {
        let n = self.unsigned()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// Type of the next field, whose number is put into `id`; `Some(None)` at the end of the struct.
    fn field(&mut self, id: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *id = match byte >> 4 {
            0 => self.integer()?,
            delta => id.checked_add(i64::from(delta))?,
        };
        Some(Some(byte & 0x0f))
    }

    /// Skips a value. Lists, sets and maps are in no header.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            wire::TRUE | wire::FALSE => {}
            wire::BYTE => drop(self.byte()?),
            wire::I16 | wire::I32 | wire::I64 => drop(self.unsigned()?),
            wire::DOUBLE => self.advance(8)?,
            wire::BINARY => {
                let len = self.unsigned()?;
                self.advance(len)?;
            }
            wire::STRUCT => {
                let (depth, mut id) = (depth.checked_sub(1)?, 0);
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn advance(&mut self, len: u64) -> Option<()> {
        let at = self.at.checked_add(usize::try_from(len).ok()?)?;
        (at <= self.bytes.len()).then(|| self.at = at)
    }
}

/// Pages of a column whose contents the library's decoders take without a panic.
pub struct Checked {
    pages: Box<dyn PageReader>,
    kind: Kind,
    has_levels: bool,
    /// Values of the dictionary, once it was read.
    dictionary: Option<u32>,
}

impl Checked {
    /// Checks the pages of a column of this kind. With `has_levels` a row may have no value.
    pub fn new(pages: Box<dyn PageReader>, kind: Kind, has_levels: bool) -> Checked {
        Checked {
            pages,
            kind,
            has_levels,
            dictionary: None,
        }
    }

    fn check(&mut self, page: &Content) -> Result<(), &'static str> {
        match page {
            Content::DictionaryPage {
                buf,
                num_values,
                encoding,
                ..
            } => {
                if self.dictionary.is_some() {
                    return Err("two dictionaries");
                }
                if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                    return Err("encoding of the dictionary");
                }
                self.dictionary = Some(*num_values);
                match holds(self.kind, buf, *num_values) {
                    true => Ok(()),
                    false => Err("the dictionary is too short"),
                }
            }
            Content::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                ..
            } => {
                if !self.has_levels {
                    return self.check_values(*encoding, buf, *num_values);
                }
                let (len, rest) = buf.split_first_chunk::<4>().ok_or("levels")?;
                let len = usize::try_from(u32::from_le_bytes(*len)).map_err(|_| "levels")?;
                let (levels, values) = rest.split_at_checked(len).ok_or("levels")?;
                if *def_level_encoding != Encoding::RLE {
                    return Err("encoding of levels");
                }
                let present = encodings::rle(levels, 1, *num_values, 2).ok_or("levels")?;
                self.check_values(*encoding, values, present)
            }
            Content::DataPageV2 {
                buf,
                num_values,
                num_nulls,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let len = usize::try_from(*def_levels_byte_len).map_err(|_| "levels")?;
                let (levels, values) = buf.split_at_checked(len).ok_or("levels")?;
                let present = match self.has_levels {
                    true => encodings::rle(levels, 1, *num_values, 2).ok_or("levels")?,
                    false => *num_values,
                };
                if *rep_levels_byte_len != 0 || num_values.checked_sub(present) != Some(*num_nulls)
                {
                    return Err("levels");
                }
                self.check_values(*encoding, values, present)
            }
        }
    }

    fn check_values(
        &self,
        encoding: Encoding,
        bytes: &[u8],
        values: u32,
    ) -> Result<(), &'static str> {
        let is_valid = match encoding {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let distinct = self.dictionary.ok_or("no dictionary")?;
                match bytes.split_first() {
                    Some((width, bytes)) => {
                        *width <= 32 && encodings::rle(bytes, *width, values, distinct).is_some()
                    }
                    None => false,
                }
            }
            Encoding::PLAIN if self.kind != Kind::Text => holds(self.kind, bytes, values),
            Encoding::BYTE_STREAM_SPLIT if self.kind != Kind::Text => {
                bytes.len() as u64 == self.kind.width() * u64::from(values)
            }
            Encoding::DELTA_BINARY_PACKED if self.kind != Kind::Text => {
                encodings::delta(bytes, values, self.kind.width() as u8 * 8)
            }
            _ => return Err("encoding of a page"),
        };
        match is_valid {
            true => Ok(()),
            false => Err("values of a page"),
        }
    }
}

/// True if a dictionary of this kind, or a page of plain values, holds this number of values.
fn holds(kind: Kind, mut bytes: &[u8], values: u32) -> bool {
    if kind != Kind::Text {
        return u64::from(values) * kind.width() <= bytes.len() as u64;
    }
    (0..values).all(|_| {
        let Some((len, rest)) = bytes.split_first_chunk::<4>() else {
            return false;
        };
        let len = usize::try_from(u32::from_le_bytes(*len)).ok();
        let rest = len.and_then(|len| rest.get(len..));
        rest.map(|rest| bytes = rest).is_some()
    })
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> ParquetResult<Option<Content>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)
                .map_err(|e| ParquetError::General(e.to_owned()))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for Checked {
    type Item = ParquetResult<Content>;

    fn next(&mut self) -> Option<ParquetResult<Content>> {
        self.get_next_page().transpose()
    }
}
