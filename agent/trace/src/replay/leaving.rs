//! Files that a directory loses. A trace has no names, so it does not say which file a REMOVE removed: the replayer takes the file of that
//! directory that was used last, among those that no later operation of the trace uses.

use super::nfs3::Procedure;
use super::plan::{File, Kind, NO_FILE};
use std::collections::HashMap;

#[derive(Debug, Default)]
struct Directory {
    /// Number of the last operation that uses each file, and its index, in this order.
    files: Vec<(u64, u32)>,
    next: usize,
    /// Files that are not used any more, the one that was used last at the end.
    unused: Vec<u32>,
}

/// Files of each directory by their last use.
#[derive(Debug, Default)]
pub(super) struct Leaving(HashMap<u32, Directory>);

impl Leaving {
    pub(super) fn new(files: &[File]) -> Leaving {
        let mut all = HashMap::<u32, Directory>::new();
        for (at, file) in files.iter().enumerate() {
            if file.parent != NO_FILE {
                let directory = all.entry(file.parent).or_default();
                directory.files.push((file.last_use, at as u32));
            }
        }
        for directory in all.values_mut() {
            directory.files.sort_unstable();
        }
        Leaving(all)
    }

    /// File that operation number `operation` takes out of a directory; `None` if no file there is known to be unused. Called in the order
    /// of the operations.
    pub(super) fn take(
        &mut self,
        files: &[File],
        directory: u32,
        operation: u64,
        procedure: Procedure,
    ) -> Option<u32> {
        let d = self.0.get_mut(&directory)?;
        while let Some((_, file)) = d.files.get(d.next).filter(|(last, _)| *last < operation) {
            d.unused.push(*file);
            d.next += 1;
        }
        let at = d.unused.iter().rposition(|file| {
            let is_directory = files[*file as usize].kind == Kind::Directory;
            match procedure {
                Procedure::RmDir => is_directory,
                Procedure::Remove => !is_directory,
                _ => true,
            }
        })?;
        Some(d.unused.remove(at))
    }
}
