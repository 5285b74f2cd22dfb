//! File handles as nfsd makes them: they name an export and a file.

use super::file_id::{FileId, FileName, FileSystem};
use crate::host_table;
use crate::mounts::{Mounts, unescape};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Bytes of fsid behind the head of a handle, by fsid type (fs/nfsd/nfsfh.h, enum fsid_source and key_len()).
fn fsid_len(kind: u8) -> Option<usize> {
    match kind {
        1 => Some(4),
        0 | 3 | 4 | 5 => Some(8),
        2 => Some(12),
        6 => Some(16),
        7 => Some(24),
        _ => None,
    }
}

/// Number of the export for requests without a file handle.
pub const NO_EXPORT: u64 = 1 << CLIENT_ROW_BITS;
/// Bits of an export's number that its row replaces: `CLIENT_ROW_BITS` in nfsd/client_accounting.h.
pub const CLIENT_ROW_BITS: u32 = 14;

/// Number by which the probes know an export: `export_of()` in probes/bpf/nfsd/client_accounting.h does the same.
pub fn export_key(kind: u8, fsid: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let word = |i: usize| {
        let mut w = [0u8; 8];
        let part = fsid.get(i * 8..).unwrap_or_default();
        let n = part.len().min(8);
        w[..n].copy_from_slice(&part[..n]);
        u64::from_ne_bytes(w)
    };
    let mut a = (word(0) ^ (u64::from(kind) + 1)).wrapping_mul(K);
    a = (a ^ (a >> 32) ^ word(1)).wrapping_mul(K);
    a = (a ^ (a >> 32) ^ word(2)).wrapping_mul(K);
    if a >> CLIENT_ROW_BITS > 1 {
        a
    } else {
        2 << CLIENT_ROW_BITS
    }
}

/// Content of a file handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle<'a> {
    /// See [`export_key`].
    pub export: u64,
    /// The file; `None` for the root of the export (FILEID_ROOT).
    pub file: Option<FileId<'a>>,
}

impl Handle<'_> {
    /// Reads version 1 of nfsd's handles, the only one that it makes since 2.5.
    pub fn parse(raw: &[u8]) -> Option<Handle<'_>> {
        let [1, _, kind, id, rest @ ..] = raw else {
            return None;
        };
        let (fsid, file) = rest.split_at_checked(fsid_len(*kind)?)?;
        Some(Handle {
            export: export_key(*kind, fsid),
            file: (*id != 0).then(|| FileId::whole(*id, file)),
        })
    }
}

/// Path of the kernel's list of exports by fsid, of this network namespace. Its mode is 0400.
pub const LIST: &str = "/proc/net/rpc/nfsd.fh/content";

/// Interval at which the list is read in any case, because a known number may be exported anew.
const READ_AGAIN: Duration = Duration::from_secs(300);
/// Least time until the list is read again: for a number that is asked for the first time, and for one that the list did not have.
const REST: Duration = Duration::from_millis(200);
const LONG_REST: Duration = Duration::from_secs(30);
/// Limit of numbers that are kept as known or missing: clients can make numbers up.
const MOST: usize = 10_000;

/// Time for which the mount table is kept: mounts change seldom.
const MOUNTS_FRESH: Duration = Duration::from_secs(5);

/// Paths of exports by the number that the probes have for them, and their file systems.
#[derive(Debug, Default)]
pub struct Exports {
    paths: HashMap<u64, String>,
    missing: HashSet<u64>,
    read: Option<Instant>,
    mounts: Mounts,
    mounts_read: Option<Instant>,
    /// File systems of exports that were asked for since the mounts changed.
    file_systems: HashMap<u64, Option<FileSystem>>,
}

impl Exports {
    /// Path of an export; `None` if the kernel's list does not have it, now or at the last reading.
    pub fn path(&mut self, key: u64) -> Option<&str> {
        let known = self.paths.contains_key(&key);
        let rest = match (known, self.missing.contains(&key)) {
            (true, _) => READ_AGAIN,
            (false, true) => LONG_REST,
            (false, false) => REST,
        };
        if self.read.is_none_or(|r| r.elapsed() >= rest) {
            self.read();
            if !self.paths.contains_key(&key) && self.missing.len() < MOST {
                self.missing.insert(key);
            }
        }
        self.paths.get(&key).map(String::as_str)
    }

    /// File system of an export; `None` if that is not known.
    pub fn file_system(&mut self, key: u64) -> Option<&FileSystem> {
        self.path(key)?;
        if (self.mounts_read).is_none_or(|r| r.elapsed() >= MOUNTS_FRESH) {
            self.mounts_read = Some(Instant::now());
            let mounts = Mounts::read();
            if mounts != self.mounts {
                self.file_systems.clear();
                self.mounts = mounts;
            }
        }
        let (paths, mounts) = (&self.paths, &self.mounts);
        let find = || mounts.on(paths.get(&key)?).map(FileSystem::of);
        self.file_systems.entry(key).or_insert_with(find).as_ref()
    }

    /// Returns the name of a file of this export.
    pub fn file_name(&mut self, export: u64, file: &FileId) -> FileName {
        file.name(self.file_system(export))
    }

    /// Reads the kernel's list. Exports that have left the list stay known: the kernel forgets entries that are not used.
    fn read(&mut self) {
        self.read = Some(Instant::now());
        self.missing.clear();
        if self.paths.len() >= MOST {
            self.paths.clear();
        }
        if let Some(text) = host_table::read(LIST) {
            self.paths.extend(parse_list(&text));
            self.file_systems.clear();
        }
    }
}

/// Parses lines of `domain type 0xfsid path`, with the fsid as words of eight digits (fs/nfsd/export.c, expkey_show()).
pub(crate) fn parse_list(text: &str) -> impl Iterator<Item = (u64, String)> {
    text.lines().filter_map(|line| {
        if line.starts_with('#') {
            return None;
        }
        let mut words = line.split(' ');
        let (_, kind, fsid, path) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let digits = fsid.strip_prefix("0x")?;
        let mut bytes = Vec::new();
        for i in (0..digits.len()).step_by(8) {
            let word = u32::from_str_radix(digits.get(i..i + 8)?, 16).ok()?;
            bytes.extend(word.to_ne_bytes());
        }
        Some((export_key(kind.parse().ok()?, &bytes), unescape(path)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lossless;

    #[test]
    fn an_export_has_one_key_in_its_handles_and_in_the_kernels_list() {
        let uuid: Vec<u8> = (1..=16).collect();
        let words: String = uuid
            .chunks(4)
            .map(|c| format!("{:08x}", u32::from_ne_bytes(c.try_into().unwrap())))
            .collect();
        let list = format!(
            "#domain fsidtype fsid [path]\n# expiry=9 refcnt=2 flags=1\n* 6 0x{words} /srv/a\\040b\n* 1 0x00000000 /\n# * 6 0x0 /gone\n* 6 0x{words}\n"
        );
        let known: HashMap<u64, String> = parse_list(&list).collect();
        let mut raw = vec![1, 0, 6, 1];
        raw.extend(&uuid);
        raw.extend(77u32.to_ne_bytes());
        raw.extend(5u32.to_ne_bytes());
        let h = Handle::parse(&raw).unwrap();
        assert_eq!(known[&h.export], "/srv/a b");
        assert_eq!(h.file, Some(FileId::whole(1, &raw[20..])));
        let root = Handle::parse(&[1, 0, 1, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(known[&root.export], "/");
        assert_eq!(root.file, None);
        assert_eq!(known.len(), 2);
    }

    /// The kernel escapes blanks, new lines and backslashes in its list, and leaves other encodings as they are.
    #[test]
    fn a_name_in_another_encoding_makes_no_other_export_unknown() {
        let list = b"* 1 0x00000001 /srv/caf\xe9\n* 1 0x00000002 /srv/a\\012\\134\xff\n\xff\xff\n* 1 0x00000003 /srv/plain\n";
        let known: HashMap<u64, String> = parse_list(&lossless::text(list)).collect();
        let path = |fsid: u32| lossless::bytes(&known[&export_key(1, &fsid.to_ne_bytes())]);
        assert_eq!(path(1), b"/srv/caf\xe9");
        assert_eq!(path(2), b"/srv/a\n\\\xff");
        assert_eq!(path(3), b"/srv/plain");
        assert_eq!(known.len(), 3);
    }

    #[test]
    fn what_is_no_handle_of_nfsd_says_nothing() {
        assert_eq!(Handle::parse(&[1, 0, 9, 1, 0, 0, 0, 0]), None);
        assert_eq!(Handle::parse(&[1, 0, 6, 1, 0, 0, 0, 0]), None);
        assert_eq!(Handle::parse(&[2, 0, 1, 1, 0, 0, 0, 0]), None);
        assert_eq!(Handle::parse(&[1, 0]), None);
    }
}
