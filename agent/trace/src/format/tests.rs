use super::columns::COLUMNS;
use super::read::GroupColumn;
use super::{Error, Reader, Writer};
use crate::example;
use crate::header::{Header, Host};
use crate::operation::{Op, Operation, Stability, Version};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::serialized_reader::SerializedPageReader;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

fn header() -> Header {
    let mut header = Header::new(Host::Server, "nfscope test");
    header.clients = (0..example::CLIENTS).map(|i| format!("c{i}")).collect();
    header
}

/// A file with these operations.
fn written(operations: impl Iterator<Item = Operation>, header: Header) -> File {
    let mut writer = Writer::new(tempfile::tempfile().unwrap(), header).unwrap();
    operations.for_each(|o| writer.push(o).unwrap());
    writer.finish().unwrap()
}

fn reader(file: File) -> Result<Reader, Error> {
    Reader::new(file, Path::new("a.trace"))
}

#[test]
fn every_field_comes_back_as_it_was_written() {
    let mut first = Operation::new(5, 1, Version::V4_2, Op::named("open").unwrap());
    first.duration = Some(u64::MAX);
    first.file = Some(u64::MAX);
    first.other = Some(0);
    first.offset = Some(1 << 63);
    first.length = Some(u32::MAX);
    first.stability = Some(Stability::DataSync);
    first.status = Some(10_008);
    first.size = Some(0);
    first.compound = Some(7);
    let second = Operation::new(5, 0, Version::V3, Op::named("unheard_of").unwrap());
    let mut header = header();
    header.sampled_one_in = 10;
    header.count_dropped("buffer_full", Some("write"), 3);
    header.count_dropped("buffer_full", Some("write"), 4);
    let file = written([first.clone(), second.clone()].into_iter(), header.clone());
    let mut reader = reader(file).unwrap();
    assert_eq!(reader.header(), &header);
    assert_eq!(reader.header().total_dropped(), 7);
    assert_eq!(reader.operations(), 2);
    assert_eq!(reader.next().unwrap().unwrap(), first);
    assert_eq!(reader.next().unwrap().unwrap(), second);
    assert!(reader.next().is_none());
}

#[test]
fn a_trace_without_operations_is_a_trace() {
    let mut reader = reader(written([].into_iter(), header())).unwrap();
    assert_eq!(reader.operations(), 0);
    assert!(reader.next().is_none());
}

#[test]
fn an_operation_takes_at_most_16_bytes() {
    const COUNT: usize = 1_000_000;
    let file = written(example::mixed(1).take(COUNT), header());
    let each = file.metadata().unwrap().len() as f64 / COUNT as f64;
    println!("{each:.2} bytes an operation");
    if std::env::var("SHOW_COLUMNS").is_ok() {
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&file)
            .unwrap();
        for i in 0..metadata.row_group(0).num_columns() {
            let bytes: i64 = (metadata.row_groups().iter())
                .map(|g| g.column(i).compressed_size())
                .sum();
            let c = metadata.row_group(0).column(i);
            println!(
                "{:10} {:.2} {:?}",
                c.column_path().string(),
                bytes as f64 / COUNT as f64,
                c.encodings().collect::<Vec<_>>()
            );
        }
    }
    assert!(each <= 16.0, "{each}");
    let reader = reader(file).unwrap();
    assert_eq!(reader.operations(), COUNT as u64);
    let mut sorted: Vec<_> = example::mixed(1).take(COUNT).collect();
    sorted.sort_by_key(|o| o.arrival);
    assert!(reader.map(Result::unwrap).eq(sorted));
}

#[test]
fn operations_that_come_late_are_sorted_and_those_that_come_too_late_are_counted() {
    let at = |arrival| Operation::new(arrival, 0, Version::V3, Op::READ);
    let late = (0..super::ROW_GROUP as u64).map(|i| at(i ^ 1023));
    let mut reader = reader(written(late, header())).unwrap();
    assert_eq!(reader.header().out_of_order, 0);
    assert!((0..).zip(&mut reader).all(|(i, o)| o.unwrap().arrival == i));
    let too_late = (0..2 * super::ROW_GROUP as u64).map(|i| at(i + 1));
    let reader = self::reader(written(too_late.chain([at(0)]), header())).unwrap();
    assert_eq!(reader.header().out_of_order, 1);
}

/// Writes bytes into a file and reads them as a trace: the number of operations, or the error.
fn read(bytes: &[u8]) -> Result<usize, String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let mut reader = reader(file).map_err(|e| e.to_string())?;
    let mut count = 0;
    for operation in &mut reader {
        operation.map_err(|e| e.to_string())?;
        count += 1;
    }
    assert!(reader.next().is_none());
    Ok(count)
}

fn bytes_of(count: usize) -> Vec<u8> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = written(example::mixed(2).take(count), header());
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_trace_that_was_cut_is_refused_at_every_length() {
    let bytes = bytes_of(300);
    for len in 0..bytes.len() {
        let error = read(&bytes[..len]).unwrap_err();
        assert!(
            error.contains("a.trace") && error.contains("fix:"),
            "{error}"
        );
    }
    assert_eq!(read(&bytes), Ok(300));
}

#[test]
fn a_changed_byte_is_an_error_or_changes_no_operation_count() {
    let bytes = bytes_of(300);
    for at in 0..bytes.len() {
        for bit in [0, 3, 7] {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            match read(&changed) {
                Ok(count) => assert_eq!(count, 300, "byte {at}"),
                Err(error) => assert!(error.contains("a.trace"), "{error}"),
            }
        }
    }
}

/// Pages as they were read, with changed contents.
struct Changed(Vec<Page>);

impl PageReader for Changed {
    fn get_next_page(&mut self) -> parquet::errors::Result<Option<Page>> {
        Ok(self.0.pop())
    }

    fn peek_next_page(&mut self) -> parquet::errors::Result<Option<PageMetadata>> {
        Ok(None)
    }

    fn skip_next_page(&mut self) -> parquet::errors::Result<()> {
        Ok(())
    }
}

impl Iterator for Changed {
    type Item = parquet::errors::Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// A page with other bytes in it, and sometimes with other claims about them.
fn changed(page: &Page, random: &mut impl Rng) -> Page {
    let mut page = page.clone();
    let claims = random.random_range(0..4) == 0;
    let (Page::DataPage { buf, .. }
    | Page::DataPageV2 { buf, .. }
    | Page::DictionaryPage { buf, .. }) = &mut page;
    let mut bytes = buf.to_vec();
    for _ in 0..random.random_range(0..4) {
        if bytes.is_empty() {
            break;
        }
        // Levels and heads of encodings are at the beginning.
        let end = if random.random() {
            bytes.len()
        } else {
            bytes.len().min(24)
        };
        let at = random.random_range(0..end);
        match random.random_range(0..3) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            _ => bytes.truncate(at),
        }
    }
    *buf = bytes.into();
    if claims {
        match &mut page {
            Page::DataPage { num_values, .. } | Page::DictionaryPage { num_values, .. } => {
                *num_values = random.random_range(0..2000);
            }
            Page::DataPageV2 {
                num_values,
                num_nulls,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let which = random.random_range(0..4);
                let value = random.random_range(0..2000);
                *[
                    num_values,
                    num_nulls,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                ][which] = value;
            }
        }
    }
    page
}

#[test]
fn contents_of_pages_that_were_changed_end_in_an_error_and_not_in_a_panic() {
    const ROWS: usize = 1000;
    let file = Arc::new(written(example::mixed(3).take(ROWS), header()));
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&*file)
        .unwrap();
    let times = std::env::var("FUZZ_TIMES").map_or(1, |n| n.parse().unwrap());
    let mut errors = 0;
    for number in 0..COLUMNS.len() {
        let chunk = metadata.row_group(0).column(number);
        let pages = SerializedPageReader::new(Arc::clone(&file), chunk, ROWS, None).unwrap();
        let mut pages: Vec<Page> = pages.map(Result::unwrap).collect();
        pages.reverse();
        for seed in 0..2000 * times {
            let mut random = SmallRng::seed_from_u64(seed);
            let pages = pages.iter().map(|p| changed(p, &mut random)).collect();
            let mut column =
                GroupColumn::new(number, chunk.column_descr_ptr(), Box::new(Changed(pages)));
            let mut batch = vec![Operation::new(0, 0, Version::V3, Op::READ); ROWS];
            errors += u32::from(column.read(&mut batch).is_err());
        }
    }
    assert!(errors > 5000, "{errors}");
}
