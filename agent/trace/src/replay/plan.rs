//! Plan of a replay: the files and directories that existed before it, and what it counts.
//!
//! Missing history is repaired as the text-based traces of TBBT were (Zhu et al., FAST 2005): a file that is first seen by a READ of a range
//! exists with at least the size that the range needs.

use super::counterpart;
use super::leaving::Leaving;
use super::nfs3::Procedure;
use super::quantiles::Durations;
use crate::{Operation, Version};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Index of no file.
pub(super) const NO_FILE: u32 = u32::MAX;
/// Depth of directories up to which the image follows the trace.
const MAX_DEPTH: u16 = 64;

/// Type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Neither read nor used as a directory.
    Unknown,
    File,
    Directory,
    SymLink,
}

/// A file or directory that the trace names.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) kind: Kind,
    /// False where an operation of the trace makes it.
    pub(super) in_image: bool,
    /// Directory, whose index is lower; [`NO_FILE`] for the top of the replay's own directory.
    pub(super) parent: u32,
    pub(super) depth: u16,
    /// Size before the trace.
    pub(super) size: u64,
    /// Size by the operations of the trace so far; `None` before the first one that sets it.
    now: Option<u64>,
    /// Number of the last operation that uses it.
    pub(super) last_use: u64,
    /// REMOVEs, RMDIRs and RENAMEs in this directory, for which the image has a file or directory each.
    pub(super) removes: u32,
    pub(super) rmdirs: u32,
    pub(super) renames: u32,
}

/// Operations of one version and name.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorded {
    pub(super) operations: u64,
    pub(super) succeeded: u64,
    pub(super) bytes: u64,
    pub(super) errors: BTreeMap<u32, u64>,
    pub(super) durations: Durations,
}

/// Missing history that the image or the replay makes up for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Repairs {
    /// Files that the image has because an operation of the trace works on them.
    pub files: u64,
    /// Directories among them.
    pub directories: u64,
    /// Bytes of these files, by the ends of READs.
    pub bytes: u64,
    /// Files and directories that REMOVE, RMDIR and RENAME find; the trace does not say which ones they were.
    pub to_remove: u64,
    /// READs beyond the end of a file that the trace itself made: operations that wrote it are missing in the trace.
    pub reads_beyond_end: u64,
    /// Operations without a file handle, which are called on the top directory.
    pub without_file: u64,
}

/// Contents of a trace, but for the operations themselves. Memory grows with the files of the trace and those that it removes, not with its
/// other operations.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) files: Vec<File>,
    pub(super) index: HashMap<u64, u32>,
    pub(super) kinds: Vec<(Version, String, Result<Procedure, &'static str>)>,
    pub(super) recorded: Vec<Recorded>,
    pub(super) repairs: Repairs,
    pub(super) operations: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    /// Bytes that WRITEs store.
    pub(super) written: u64,
    pub(super) clients: u32,
    /// Directory and number of each REMOVE, RMDIR and RENAME.
    leaving: Vec<(u32, u64, Procedure)>,
}

impl Plan {
    /// Index of the kind of an operation.
    ///
    /// # Errors
    /// When the trace has more kinds than any protocol.
    pub(super) fn kind(&mut self, o: &Operation) -> anyhow::Result<u16> {
        let procedure = counterpart::of(o);
        // The name is not copied for a kind that is known.
        let known = self.kinds.iter().position(|(version, name, p)| {
            *version == o.version && name == o.op.name() && p.ok() == procedure.ok()
        });
        if let Some(at) = known {
            return Ok(at as u16);
        }
        let at = self.kinds.len() as u16;
        anyhow::ensure!(
            at < 1024,
            "the trace has more than 1024 kinds of operations: it is damaged"
        );
        self.kinds
            .push((o.version, o.op.name().to_owned(), procedure));
        self.recorded.push(Recorded::default());
        Ok(at)
    }

    fn file(&mut self, pseudonym: u64, kind: Kind) -> anyhow::Result<u32> {
        let next = self.files.len() as u32;
        anyhow::ensure!(next < NO_FILE, "the trace names too many files");
        let at = *self.index.entry(pseudonym).or_insert(next);
        if at == next {
            self.files.push(File {
                kind,
                in_image: true,
                parent: NO_FILE,
                depth: 0,
                size: 0,
                now: None,
                last_use: 0,
                removes: 0,
                rmdirs: 0,
                renames: 0,
            });
        }
        let file = &mut self.files[at as usize];
        file.last_use = self.operations;
        if file.kind == Kind::Unknown {
            file.kind = kind;
        }
        Ok(at)
    }

    /// Places a file that was just seen for the first time into a directory that was seen before it, so that no directory is in itself.
    fn place(&mut self, file: u32, directory: u32) {
        let depth = self.files[directory as usize].depth + 1;
        if directory < file && depth <= MAX_DEPTH {
            let file = &mut self.files[file as usize];
            (file.parent, file.depth) = (directory, depth);
        }
    }

    /// Takes the next operation.
    ///
    /// # Errors
    /// When no trace can have such operations.
    pub(super) fn see(&mut self, o: &Operation) -> anyhow::Result<()> {
        use Procedure as P;
        if self.operations == 0 {
            self.first = o.arrival;
        }
        self.operations += 1;
        self.last = self.last.max(o.arrival);
        self.clients = self.clients.max(o.client.saturating_add(1));
        let kind = self.kind(o)?;
        let recorded = &mut self.recorded[usize::from(kind)];
        recorded.operations += 1;
        if let Some(duration) = o.duration {
            recorded.durations.add(duration);
        }
        let moved = (o.op.is_read() || o.op.is_write()) && o.succeeded();
        match o.status {
            None | Some(0) => recorded.succeeded += 1,
            Some(status) => *recorded.errors.entry(status).or_default() += 1,
        }
        if moved {
            recorded.bytes += u64::from(o.length.unwrap_or(0));
        }
        let Ok(procedure) = counterpart::of(o) else {
            return Ok(());
        };
        let Some(pseudonym) = o.file else {
            self.repairs.without_file += u64::from(procedure != P::Null);
            return Ok(());
        };
        let kind = match procedure {
            p if counterpart::in_directory(p) => Kind::Directory,
            P::Read | P::Write | P::Commit => Kind::File,
            P::ReadLink => Kind::SymLink,
            _ => Kind::Unknown,
        };
        let file = self.file(pseudonym, kind)?;
        self.second(o, procedure, file)?;
        let f = &mut self.files[file as usize];
        match procedure {
            P::Read if o.succeeded() => {
                let end = o.end().unwrap_or(0);
                match f.now {
                    None if f.in_image => f.size = f.size.max(end),
                    now if end > now.unwrap_or(0).max(if f.in_image { f.size } else { 0 }) => {
                        self.repairs.reads_beyond_end += 1;
                    }
                    _ => {}
                }
            }
            P::Write if o.succeeded() => {
                let before = f.now.unwrap_or(0);
                f.now = Some(before.max(o.end().unwrap_or(0)));
                self.written += u64::from(o.length.unwrap_or(0));
            }
            P::SetAttr if o.succeeded() && o.size.is_some() => f.now = o.size,
            P::Remove | P::RmDir | P::Rename if o.succeeded() => {
                self.leaving.push((file, self.operations, procedure));
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the second file of an operation.
    fn second(&mut self, o: &Operation, procedure: Procedure, file: u32) -> anyhow::Result<()> {
        use Procedure as P;
        let Some(other) = o.other else {
            return Ok(());
        };
        let kind = match procedure {
            P::Create => Kind::File,
            P::MkDir | P::Rename | P::Link => Kind::Directory,
            P::SymLink => Kind::SymLink,
            P::Lookup if o.op.name() == "open" => Kind::File,
            P::Lookup if o.op.name() == "lookupp" => Kind::Directory,
            P::Lookup => Kind::Unknown,
            _ => return Ok(()),
        };
        let before = self.files.len();
        let other = self.file(other, kind)?;
        let new = self.files.len() > before;
        if new && matches!(procedure, P::Create | P::MkDir | P::SymLink | P::Lookup) {
            let up = o.op.name() == "lookupp";
            if !up {
                self.place(other, file);
            }
            let made = matches!(procedure, P::Create | P::MkDir | P::SymLink) && o.succeeded();
            self.files[other as usize].in_image = !made;
        }
        if procedure == P::Create && o.succeeded() {
            let other = &mut self.files[other as usize];
            if let Some(size) = o.size {
                other.now = Some(size);
            } else if !other.in_image && other.now.is_none() {
                other.now = Some(0);
            }
        }
        Ok(())
    }

    /// Ends the plan: counts what the image has.
    pub(super) fn finish(&mut self) {
        for at in 0..self.files.len() {
            // A file whose directory the trace makes cannot be in it before.
            let f = &self.files[at];
            if f.in_image && f.parent != NO_FILE && !self.files[f.parent as usize].in_image {
                self.files[at].parent = NO_FILE;
            }
        }
        let mut leaving = Leaving::new(&self.files);
        for (directory, operation, procedure) in std::mem::take(&mut self.leaving) {
            let taken = leaving.take(&self.files, directory, operation, procedure);
            let f = &mut self.files[directory as usize];
            match procedure {
                _ if taken.is_some() => {}
                Procedure::Remove => f.removes += 1,
                Procedure::RmDir => f.rmdirs += 1,
                _ => f.renames += 1,
            }
        }
        for f in &self.files {
            if f.in_image {
                self.repairs.files += 1;
                self.repairs.directories += u64::from(f.kind == Kind::Directory);
                self.repairs.bytes = self.repairs.bytes.saturating_add(f.size);
            }
            if f.in_image {
                self.repairs.to_remove +=
                    u64::from(f.removes) + u64::from(f.rmdirs) + u64::from(f.renames);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    fn op(name: &str, file: u64) -> Operation {
        Operation {
            file: Some(file),
            status: Some(0),
            ..Operation::new(0, 0, Version::V3, Op::named(name).unwrap())
        }
    }

    fn range(name: &str, file: u64, offset: u64, length: u32) -> Operation {
        Operation {
            offset: Some(offset),
            length: Some(length),
            ..op(name, file)
        }
    }

    fn plan(operations: &[Operation]) -> Plan {
        let mut plan = Plan::default();
        for o in operations {
            plan.see(o).unwrap();
        }
        plan.finish();
        plan
    }

    #[test]
    fn a_file_that_is_read_before_it_is_written_exists_with_the_size_that_the_read_needs() {
        let plan = plan(&[
            range("read", 1, 4096, 100),
            range("write", 1, 0, 10),
            range("read", 1, 8192, 10),
            range("write", 2, 0, 10),
        ]);
        assert_eq!((plan.files[0].size, plan.files[1].size), (4196, 0));
        assert_eq!(plan.repairs.files, 2);
        assert_eq!(plan.repairs.bytes, 4196);
        assert_eq!(plan.repairs.reads_beyond_end, 1);
    }

    #[test]
    fn a_file_that_the_trace_makes_is_not_in_the_image() {
        let create = Operation {
            other: Some(7),
            ..op("create", 1)
        };
        let plan = plan(&[create, range("write", 7, 0, 10), range("read", 7, 0, 10)]);
        assert!(plan.files[0].in_image);
        assert_eq!(plan.files[0].kind, Kind::Directory);
        assert!(!plan.files[1].in_image);
        assert_eq!(plan.files[1].parent, 0);
        assert_eq!(plan.repairs.reads_beyond_end, 0);
    }

    #[test]
    fn directories_that_contain_each_other_are_placed_in_no_circle() {
        let lookup = |dir, child| Operation {
            other: Some(child),
            ..op("lookup", dir)
        };
        let plan = plan(&[lookup(1, 2), lookup(2, 1), lookup(2, 2), lookup(3, 3)]);
        for (at, f) in plan.files.iter().enumerate() {
            assert!(f.parent == NO_FILE || (f.parent as usize) < at);
        }
    }

    #[test]
    fn a_file_that_is_used_no_more_is_the_one_that_is_removed() {
        let create = |file| Operation {
            other: Some(file),
            ..op("create", 1)
        };
        let plan = plan(&[
            create(7),
            create(8),
            range("write", 8, 0, 1),
            op("remove", 1),
            op("remove", 1),
            range("write", 7, 0, 1),
        ]);
        // The second REMOVE has no file but the one that is written later, so the image has one for it.
        assert_eq!(plan.files[0].removes, 1);
        assert_eq!(plan.repairs.to_remove, 1);
    }

    #[test]
    fn a_range_beyond_every_offset_needs_no_file_of_that_size() {
        let plan = plan(&[
            range("read", 1, u64::MAX, 100),
            range("write", 1, u64::MAX, 9),
        ]);
        assert_eq!(plan.files[0].size, 0);
    }
}
