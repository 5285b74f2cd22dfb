//! Break-down on demand: asks the probes for it, and reads its tables.
//!
//! There are two tables. One belongs to the probes, the other is being read; they change places at every reading. The result of a reading
//! is therefore complete, and no operation is in two of them.

use super::decode::time;
use super::file_paths::{FilePaths, Handle};
use super::nfsd::op_name;
use super::slow_ops::{self, WORDS};
use super::top_k::client_name;
use crate::linux::host::file_handle::{Exports, NO_EXPORT};
use crate::linux::host::file_id::FileId;
use crate::linux::load::hash_table::HashTable;
use crate::linux::load::object::Loaded;
use crate::linux::load::program::Build;
use anyhow::{Context, ensure};
use nfscope_model::breakdown::{FileKey, FilePath, Keys, Moved};
use nfscope_model::{BreakdownBatch, BreakdownRow, BreakdownWant, Dimension, Histogram, Scheme};
use nfscope_probes::types as t;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Rows of each table, unless a test wants fewer: 4 MB.
const ROWS: u32 = 4096;
const MAP: &str = "nfsd_breakdown";
const WANT: &str = ".data.nfsd_breakdown_want";
/// Files with the most time whose paths are looked up: as many as an answer has rows.
const MOST_PATHS: usize = 1000;
const NO_EXPORT_KNOWN: &str = "its export is not in the kernel's list now";
const NO_HANDLE_KNOWN: &str = "its handle has no file";
const LONG_HANDLE: &str =
    "the probes keep a part of its handle, and the layout of its file system is not known";
/// `BREAKDOWN_OTHER` and `BREAKDOWN_NO_USER` of nfsd.h.
const OTHER: u32 = u32::MAX;
const NO_USER: u32 = u32::MAX;

type Table = HashTable<t::breakdown_key, t::breakdown_row>;

/// Subscription to a break-down, with its tables.
pub struct Looking {
    tables: [Table; 2],
    /// Index of the table that the probes have.
    active: usize,
    by: BTreeSet<Dimension>,
    shards: u32,
    before: t::breakdown_count,
    /// Search for paths, while they are wanted.
    paths: Option<FilePaths>,
}

/// Content of the tables.
#[derive(Default)]
struct Came {
    rows: HashMap<Keys, (Histogram, Moved)>,
    /// Files by their handles; empty if no paths are wanted.
    files: HashMap<FileKey, Handle>,
}

/// Request to the probes for a break-down.
///
/// # Errors
/// Fails for an operation that is in no table, and for a dimension that this build cannot give.
fn wanted(want: &BreakdownWant, l: &Loaded) -> anyhow::Result<t::breakdown_want> {
    use t::breakdown_by as B;
    if l.build == Build::Raw {
        for d in [Dimension::Export, Dimension::File] {
            ensure!(
                !want.by.contains(&d),
                "without BTF of module nfsd operations cannot be told apart by {}; a kernel of 5.11 or later built with \
                 CONFIG_DEBUG_INFO_BTF_MODULES=y has it",
                d.name()
            );
        }
    }
    let bits = want.by.iter().map(|d| match d {
        Dimension::Client => B::BY_CLIENT.0,
        Dimension::Export => B::BY_EXPORT.0,
        Dimension::Op | Dimension::Version => B::BY_OP.0,
        Dimension::User => B::BY_USER.0,
        Dimension::File => B::BY_FILE.0 | B::BY_EXPORT.0,
    });
    Ok(t::breakdown_want {
        client: want.client.map_or([0; 2], slow_ops::key),
        by: B(bits.fold(B::BY_NOTHING.0, |all, bit| all | bit)),
        rows: slow_ops::rows(want.ops.iter(), l.build)?,
        unused: 0,
    })
}

impl Looking {
    /// Makes the tables, gives one to the probes and sets the request. `rows` is the size of a table; 0 for the usual size.
    ///
    /// # Errors
    /// Fails if the kernel refuses a map, or if a requested dimension cannot be measured.
    pub fn start(l: &Loaded, want: &BreakdownWant, rows: u32) -> anyhow::Result<Self> {
        let asked = wanted(want, l)?;
        let rows = if rows == 0 { ROWS } else { rows };
        let table = || {
            Table::create(rows).context(
                "cannot make a table for a break-down; an agent with --no-late-attach has given up the right to",
            )
        };
        let shape: t::table_shape = l.get(".rodata.nfsd_shape").unwrap_or_default();
        let looking = Looking {
            tables: [table()?, table()?],
            active: 0,
            by: want.by.clone(),
            shards: shape.shared_mask + 1,
            before: count(l),
            paths: paths(want)?,
        };
        looking.tables.iter().try_for_each(|t| looking.prepare(t))?;
        l.put_table(MAP, &looking.tables[0])?;
        if let Err(why) = l.set(WANT, &asked) {
            l.close_ring(MAP);
            return Err(why);
        }
        Ok(looking)
    }

    /// Adds the rows for operations without a row of their own to an empty table.
    fn prepare(&self, table: &Table) -> anyhow::Result<()> {
        for shard in 0..self.shards {
            let key = t::breakdown_key {
                row: OTHER,
                shard,
                ..Default::default()
            };
            (table.put(&key, &t::breakdown_row::default())).context("a table without any room")?;
        }
        Ok(())
    }

    /// Changes the request. Returns the operations up to then.
    ///
    /// # Errors
    /// Fails as [`Looking::start`]; the old request then stays.
    pub fn change(
        &mut self,
        l: &Loaded,
        want: &BreakdownWant,
        exports: &mut Exports,
    ) -> anyhow::Result<BreakdownBatch> {
        let asked = wanted(want, l)?;
        let (mut came, mut batch) = (Came::default(), BreakdownBatch::default());
        match (want.paths, &self.paths) {
            (true, None) => self.paths = paths(want)?,
            (false, Some(_)) => self.paths = None,
            _ => {}
        }
        l.set(WANT, &asked)?;
        // A program that had read the old request may have found the new table. With the second change no such program is left.
        for _ in 0..2 {
            self.turn(l, exports, &mut came, &mut batch);
        }
        self.by.clone_from(&want.by);
        Ok(self.finish(l, came, batch))
    }

    /// Ends the break-down. Returns the last operations.
    pub fn stop(mut self, l: &Loaded, exports: &mut Exports) -> BreakdownBatch {
        let none = t::breakdown_want::default();
        // A failed write does no harm: the section exists as long as the probe does.
        let _ = l.set(WANT, &none);
        let last = self.take(l, exports);
        l.close_ring(MAP);
        last
    }

    /// Operations since the last call.
    pub fn take(&mut self, l: &Loaded, exports: &mut Exports) -> BreakdownBatch {
        let (mut came, mut batch) = (Came::default(), BreakdownBatch::default());
        self.turn(l, exports, &mut came, &mut batch);
        self.finish(l, came, batch)
    }

    /// Gives the probes the other table, and reads the one that they had.
    fn turn(
        &mut self,
        l: &Loaded,
        exports: &mut Exports,
        came: &mut Came,
        batch: &mut BreakdownBatch,
    ) {
        // If it cannot be given, the probes go on filling theirs.
        if l.put_table(MAP, &self.tables[1 - self.active]).is_err() {
            return;
        }
        let read = &self.tables[self.active];
        for (key, row) in read.drain() {
            let times = time(&row.times);
            if times.count() == 0 {
                continue;
            }
            let bytes = Moved {
                read: row.read_bytes,
                written: row.write_bytes,
            };
            match key.row {
                OTHER => {
                    batch.unplaced.merge(&times);
                    batch.unplaced_moved += bytes;
                }
                _ => {
                    let keys = keys(&key, &self.by, l.build, exports);
                    if self.paths.is_some()
                        && let Some(handle) = handle(&key, exports)
                    {
                        came.files.insert(file_key(&keys), handle);
                    }
                    let new = || (Histogram::new(Scheme::TIME), Moved::default());
                    let (all_times, moved) = came.rows.entry(keys).or_insert_with(new);
                    all_times.merge(&times);
                    *moved += bytes;
                }
            }
        }
        // The table was emptied just now, so that there is room.
        let _ = self.prepare(read);
        self.active = 1 - self.active;
    }

    fn finish(&mut self, l: &Loaded, came: Came, mut batch: BreakdownBatch) -> BreakdownBatch {
        let rows = came.rows.into_iter();
        batch.rows = rows
            .map(|(keys, (times, moved))| BreakdownRow { keys, times, moved })
            .collect();
        if let Some(paths) = &mut self.paths {
            name_files(paths, came.files, &mut batch);
        }
        let now = count(l);
        let before = std::mem::replace(&mut self.before, now);
        batch.lost = now.lost.saturating_sub(before.lost);
        batch.cost = Duration::from_nanos(now.cost_ns.saturating_sub(before.cost_ns));
        batch.kernel_bytes = self.kernel_bytes();
        batch
    }

    /// Kernel memory of both tables.
    pub fn kernel_bytes(&self) -> u64 {
        self.tables.iter().map(Table::kernel_memory).sum()
    }
}

/// Search for paths, if they are wanted.
fn paths(want: &BreakdownWant) -> anyhow::Result<Option<FilePaths>> {
    let start = || FilePaths::start().context("cannot start the thread that finds paths");
    want.paths.then(start).transpose()
}

/// Looks up the files that took the most time first.
fn name_files(
    paths: &mut FilePaths,
    mut files: HashMap<FileKey, Handle>,
    batch: &mut BreakdownBatch,
) {
    batch.paths.extend(paths.news());
    let mut rows: Vec<_> = batch.rows.iter().collect();
    rows.sort_unstable_by(|a, b| b.times.sum.total_cmp(&a.times.sum));
    let mut asked = 0;
    for row in rows {
        let key = file_key(&row.keys);
        let path = match (key.0.as_str(), key.1.as_str()) {
            (_, "none") => continue,
            (export, _) if !export.starts_with('/') => FilePath::Unknown(NO_EXPORT_KNOWN.into()),
            (export, "/") => FilePath::Is(export.into()),
            (_, "unknown") => FilePath::Unknown(NO_HANDLE_KNOWN.into()),
            _ => match files.remove(&key) {
                Some(handle) if asked < MOST_PATHS => {
                    asked += 1;
                    paths.path(&key, handle)
                }
                None if key.1.starts_with("handle-") => FilePath::Unknown(LONG_HANDLE.into()),
                _ => continue,
            },
        };
        batch.paths.insert(key, path);
    }
}

/// Name of a row's file and of its export.
fn file_key(keys: &Keys) -> FileKey {
    let of = |d: Dimension| keys[d as usize].clone();
    (of(Dimension::Export), of(Dimension::File))
}

/// File that operations of this key have in common; `None` without a handle, and for a handle that names no file.
fn file_id(key: &t::breakdown_key) -> Option<FileId<'_>> {
    let size = usize::from(key.file_size);
    let named = key.file_known == 1 && key.file_kind != 0 && size > 0;
    named.then(|| match key.file.get(..size) {
        Some(id) => FileId::whole(key.file_kind, id),
        None => FileId {
            kind: key.file_kind,
            size,
            id: &key.file,
            hash: key.file_hash,
        },
    })
}

/// Handle of a file below an export that is known now.
fn handle(key: &t::breakdown_key, exports: &mut Exports) -> Option<Handle> {
    let file = file_id(key).filter(|_| key.export != NO_EXPORT)?;
    Handle::new(&file, exports.file_name(key.export, &file).number())
}

fn count(l: &Loaded) -> t::breakdown_count {
    l.get(".data.nfsd_breakdown_count").unwrap_or_default()
}

/// Values of a row's dimensions, as users know them.
fn keys(
    key: &t::breakdown_key,
    by: &BTreeSet<Dimension>,
    build: Build,
    exports: &mut Exports,
) -> Keys {
    let mut keys = Keys::default();
    let (version, op) = op_name(key.row, build).unwrap_or(("unknown", "unknown"));
    for d in by {
        keys[*d as usize] = match d {
            Dimension::Client => client_name(key.client),
            Dimension::Export => match key.export {
                NO_EXPORT => "none".to_owned(),
                k => exports.path(k).unwrap_or("unknown").to_owned(),
            },
            Dimension::Op => op.to_owned(),
            Dimension::Version => version.to_owned(),
            Dimension::User => match key.user {
                NO_USER => "unknown".to_owned(),
                user => user.to_string(),
            },
            Dimension::File => file(key, exports),
        };
    }
    keys
}

fn file(key: &t::breakdown_key, exports: &mut Exports) -> String {
    match (key.file_known, key.file_kind) {
        (0, _) => "none".to_owned(),
        // FILEID_ROOT: a handle without a file's id names the root of its export.
        (_, 0) => "/".to_owned(),
        _ => match file_id(key) {
            Some(file) => exports.file_name(key.export, &file).to_string(),
            None => "unknown".to_owned(),
        },
    }
}

/// A set of rows has a bit for each row of the operation table.
const _: () = assert!(WORDS * 64 >= t::op_row::OP_ROWS.0 as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_handle_where_its_file_system_is_not_known() {
        let mut exports = Exports::default();
        let mut name = |key: &t::breakdown_key| file(key, &mut exports);
        let mut key = t::breakdown_key::default();
        assert_eq!(name(&key), "none");
        key.file_known = 1;
        assert_eq!(name(&key), "/");
        (key.file_kind, key.file_size) = (1, 8);
        key.file[..4].copy_from_slice(&77u32.to_ne_bytes());
        let short = name(&key);
        assert_eq!(
            short,
            format!(
                "handle-{:016x}",
                crate::linux::host::file_id::hash(1, &key.file[..8])
            )
        );
        // Two files have the same bytes in the part that the probes keep, and differ in the rest.
        (key.file_kind, key.file_size) = (0xf8, 52);
        key.file_hash = 1;
        let one = name(&key);
        key.file_hash = 2;
        assert_ne!(one, name(&key));
        key.file_size = 0;
        assert_eq!(name(&key), "unknown");
    }

    #[test]
    fn only_what_is_asked_for_is_told() {
        let mut key = t::breakdown_key {
            row: 7,
            user: 1000,
            ..Default::default()
        };
        key.client = slow_ops::key("10.0.0.9".parse().unwrap());
        let mut exports = Exports::default();
        let by = |dims: &[Dimension]| dims.iter().copied().collect();
        let mut told = |dims: &[Dimension]| keys(&key, &by(dims), Build::Btf, &mut exports);
        let none = String::new;
        assert_eq!(told(&[]), Keys::default());
        assert_eq!(
            told(&[Dimension::Client, Dimension::Op, Dimension::User]),
            [
                "10.0.0.9".into(),
                none(),
                "write".into(),
                none(),
                "1000".into(),
                none()
            ]
        );
        assert_eq!(told(&[Dimension::Version])[3], "3");
    }
}
