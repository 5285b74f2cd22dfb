//! Stories of files: sequence, sharing, commits. Files are followed until they are too many; then half of them, by their pseudonym's hash.

use super::sketch::{Distribution, mix};
use crate::operation::{Operation, Stability};
use serde::Serialize;
use std::collections::HashMap;

/// Files that are followed at once: 130 bytes each.
const MOST: usize = 262_144;
/// Distance from the last end within which an operation still counts as near: reordered, or a small hole.
const NEAR: u64 = 1 << 20;

/// Place of an operation after the one before it, of the same direction in the same file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Places {
    /// It begins where the one before ended.
    pub sequential: u64,
    /// It begins within 1 MiB of that place: reordered, or with a small hole.
    pub near: u64,
    /// It begins elsewhere.
    pub random: u64,
}

impl Places {
    fn total(self) -> u64 {
        self.sequential + self.near + self.random
    }

    /// Part that is sequential or near; `None` without operations that have one before them.
    pub fn sequential_part(self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| (self.sequential + self.near) as f64 / total as f64)
    }
}

/// Numbers of files by the clients that read and write them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sharing {
    /// Read and written by a single client.
    pub one_client: f64,
    /// Read by several clients, written by none.
    pub read_by_several: f64,
    /// Written by a single client and read by another.
    pub written_by_one_read_by_others: f64,
    /// Written by several clients.
    pub written_by_several: f64,
}

/// Writes and the COMMITs that make them durable.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Commits {
    /// Unstable WRITEs before each COMMIT, of the same file.
    pub writes: Distribution,
    /// Bytes of these.
    pub bytes: Distribution,
    /// COMMITs without an unstable WRITE before them.
    pub without_writes: u64,
    /// Unstable WRITEs without a COMMIT behind them.
    pub writes_left: u64,
}

/// Stories of files.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Files {
    /// 1 of how many files was followed.
    pub followed_one_in: u64,
    /// READs, by their place.
    pub reads: Places,
    /// WRITEs, by their place.
    pub writes: Places,
    /// Files by their clients; estimates if not all are followed.
    pub sharing: Sharing,
    /// Writes and COMMITs.
    pub commits: Commits,
    /// Sizes of files, as known last.
    pub sizes: Distribution,
}

#[derive(Default)]
struct File {
    read_end: Option<u64>,
    write_end: Option<u64>,
    reader: Users,
    writer: Users,
    unstable: u64,
    unstable_bytes: u64,
    size: Option<u64>,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Users {
    #[default]
    None,
    One(u32),
    Several,
}

impl Users {
    fn add(&mut self, client: u32) {
        *self = match *self {
            Users::None => Users::One(client),
            Users::One(before) if before == client => return,
            _ => Users::Several,
        };
    }
}

/// Follows files.
#[derive(Default)]
pub struct Follow {
    files: HashMap<u64, File>,
    /// Files are followed whose hash has this number of zeros at its end.
    zeros: u32,
    found: Files,
}

impl Follow {
    /// Adds an operation.
    pub fn add(&mut self, o: &Operation) {
        let Some(id) = o.file.filter(|file| self.follows(*file)) else {
            return;
        };
        if !o.succeeded() {
            return;
        }
        let file = self.files.entry(id).or_default();
        file.size = o.size.or(file.size);
        let length = u64::from(o.length.unwrap_or(0));
        if o.op.is_read() {
            file.reader.add(o.client);
            place(&mut file.read_end, o, &mut self.found.reads);
        } else if o.op.is_write() {
            file.writer.add(o.client);
            place(&mut file.write_end, o, &mut self.found.writes);
            if o.stability == Some(Stability::Unstable) {
                file.unstable += 1;
                file.unstable_bytes += length;
            }
        } else if o.op.name() == "commit" {
            let commits = &mut self.found.commits;
            match file.unstable {
                0 => commits.without_writes += 1,
                writes => {
                    commits.writes.add(writes);
                    commits.bytes.add(file.unstable_bytes);
                }
            }
            (file.unstable, file.unstable_bytes) = (0, 0);
        }
        if self.files.len() > MOST {
            self.zeros += 1;
            let zeros = self.zeros;
            self.files.retain(|file, _| is_followed(*file, zeros));
        }
    }

    fn follows(&self, file: u64) -> bool {
        is_followed(file, self.zeros)
    }

    /// Result.
    pub fn finish(mut self) -> Files {
        let found = &mut self.found;
        found.followed_one_in = 1 << self.zeros;
        let each = found.followed_one_in as f64;
        for file in self.files.values() {
            let sharing = &mut found.sharing;
            let count = match (file.reader, file.writer) {
                (Users::None, Users::None) => None,
                (_, Users::Several) => Some(&mut sharing.written_by_several),
                (Users::Several, Users::None) => Some(&mut sharing.read_by_several),
                (Users::None, Users::One(_)) | (Users::One(_), Users::None) => {
                    Some(&mut sharing.one_client)
                }
                (reader, writer) if reader == writer => Some(&mut sharing.one_client),
                _ => Some(&mut sharing.written_by_one_read_by_others),
            };
            if let Some(count) = count {
                *count += each;
            }
            found.commits.writes_left += file.unstable;
            if let Some(size) = file.size {
                found.sizes.add(size);
            }
        }
        self.found
    }
}

fn is_followed(file: u64, zeros: u32) -> bool {
    mix(file).trailing_zeros() >= zeros
}

fn place(end: &mut Option<u64>, o: &Operation, places: &mut Places) {
    let Some((offset, next)) = o.offset.zip(o.end()) else {
        return;
    };
    if let Some(end) = *end {
        match offset.abs_diff(end) {
            0 => places.sequential += 1,
            d if d <= NEAR => places.near += 1,
            _ => places.random += 1,
        }
    }
    *end = Some(next);
}
