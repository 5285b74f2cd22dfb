//! The inode number in a file handle. Each file system has its own layout of its part of a handle: the type in the head says little, and
//! the same type and length mean different things on ext4, ZFS, tmpfs and CephFS.
//!
//! A number is read from a handle only where the layout of its file system is known, and only if type and length are exactly those
//! of the layout. A file of any other handle is named by the handle. Two files never have the same name.

use crate::mounts::Mount;
use std::fmt;

/// A file as its file system names it in a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId<'a> {
    /// `enum fid_type` of include/linux/exportfs.h, or the file system's own.
    pub kind: u8,
    /// Number of bytes of the id.
    pub size: usize,
    /// Bytes of the id: all, or the first ones, which the probes keep for a break-down.
    pub id: &'a [u8],
    /// Hash of all bytes of the id.
    pub hash: u64,
}

/// A file system that exports lie on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSystem {
    /// Its type as the mount table has it.
    pub kind: String,
    /// Device or other source that it is mounted from.
    pub source: String,
    /// The subvolume that is mounted, on btrfs (mount option `subvolid`).
    pub subvolume: Option<u64>,
}

impl FileSystem {
    /// File system of this mount.
    pub fn of(mount: &Mount) -> FileSystem {
        let subvolume = mount.option("subvolid").and_then(|id| id.parse().ok());
        FileSystem {
            kind: mount.fs.clone(),
            source: mount.source.clone(),
            subvolume,
        }
    }
}

/// Name of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileName {
    /// Inode number of the file, which no other file of its export has.
    Inode(u64),
    /// Subvolume of the file (btrfs), and its inode number, which is unique in that subvolume alone.
    Subvolume(u64, u64),
    /// Hash of the file's handle.
    Handle(u64),
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Inode(inode) => write!(f, "{inode}"),
            FileName::Subvolume(subvolume, inode) => write!(f, "{subvolume}/{inode}"),
            FileName::Handle(hash) => write!(f, "handle-{hash:016x}"),
        }
    }
}

impl FileName {
    /// Inode number, if the handle has it.
    pub fn number(self) -> Option<u64> {
        match self {
            FileName::Inode(inode) | FileName::Subvolume(_, inode) => Some(inode),
            FileName::Handle(_) => None,
        }
    }

    /// Inode number, if it names one file of the export.
    pub fn inode(self) -> Option<u64> {
        match self {
            FileName::Inode(inode) => Some(inode),
            FileName::Subvolume(..) | FileName::Handle(_) => None,
        }
    }
}

impl<'a> FileId<'a> {
    /// Makes the id of a file from all of its bytes.
    pub fn whole(kind: u8, id: &'a [u8]) -> Self {
        FileId {
            kind,
            size: id.len(),
            id,
            hash: hash(kind, id),
        }
    }

    /// Returns the file's name on this file system; a hash of its handle if the file system is not known.
    pub fn name(&self, file_system: Option<&FileSystem>) -> FileName {
        let known = |fs: &FileSystem| {
            let (root, inode) = self.inode(&fs.kind)?;
            Some(match root {
                Some(root) if fs.subvolume != Some(root) => FileName::Subvolume(root, inode),
                _ => FileName::Inode(inode),
            })
        };
        let name = file_system.and_then(known);
        name.unwrap_or(FileName::Handle(self.hash))
    }

    /// Subvolume, if the file system has subvolumes, and the inode number.
    fn inode(&self, fs: &str) -> Option<(Option<u64>, u64)> {
        let word = |i: usize| -> Option<[u8; 4]> { self.id.get(i * 4..i * 4 + 4)?.try_into().ok() };
        let low = |i| Some(u64::from(u32::from_ne_bytes(word(i)?)));
        let little = |i| Some(u64::from(u32::from_le_bytes(word(i)?)));
        let long = |i: usize| Some(u64::from_ne_bytes(self.id.get(i..i + 8)?.try_into().ok()?));
        let inode = match (fs, self.kind, self.size) {
            // FILEID_INO32_GEN and _PARENT (fs/libfs.c, generic_encode_ino32_fh()): their inode numbers have 32 bits.
            ("ext2" | "ext3" | "ext4" | "f2fs" | "jfs" | "squashfs", 1, 8)
            | ("ext2" | "ext3" | "ext4" | "f2fs" | "jfs" | "squashfs", 2, 16) => low(0)?,
            // fs/xfs/xfs_export.c, xfs_fs_encode_fh(): the same, or with inode numbers of 64 bits.
            ("xfs", 1, 8) | ("xfs", 2, 16) => low(0)?,
            ("xfs", 0x81, 12) | ("xfs", 0x82, 24) => long(0)?,
            // fs/btrfs/export.c, btrfs_encode_fh(): object and root, alone or with the directory.
            ("btrfs", 0x4d, 20) | ("btrfs", 0x4e, 32) | ("btrfs", 0x4f, 40) => {
                return Some((Some(long(8)?), long(0)?));
            }
            // OpenZFS, module/os/linux/zfs/zpl_export.c, zpl_encode_fh(): a length, six bytes of the object and four of its generation,
            // alone or with the directory. Longer ones are of snapshots, in which an object has the number of its original.
            ("zfs", 1, 12) | ("zfs", 2, 24) if self.id.get(..2)? == 10u16.to_ne_bytes() => {
                long(0)? >> 16
            }
            // mm/shmem.c, shmem_encode_fh(): generation, inode number.
            ("tmpfs", 1, 12) => low(1)? | low(2)? << 32,
            // fs/ceph/export.c, ceph_encode_fh(): the type of 32 bits, and 64.
            ("ceph", 1, 8) | ("ceph", 2, 16) => long(0)?,
            // fs/ocfs2/export.c, ocfs2_encode_fh(): block number of the inode, high word first.
            ("ocfs2", 1, 12) | ("ocfs2", 2, 24) => little(0)? << 32 | little(1)?,
            // fs/gfs2/export.c, gfs2_encode_fh(): behind the formal number the block, which is the inode number, all of it big-endian.
            ("gfs2", 4, 16) | ("gfs2", 8, 32) => u64::from_be(long(8)?),
            // fs/nfs/export.c, nfs_encode_fh(): the file id, high word first, before the other server's handle; the type is the length.
            ("nfs" | "nfs4", words, size) if size == usize::from(words) * 4 && size > 12 => {
                low(0)? << 32 | low(1)?
            }
            _ => return None,
        };
        Some((None, inode))
    }
}

/// Hash of an id: `id_hash()` in probes/bpf/nfsd/breakdown.h does the same.
pub fn hash(kind: u8, id: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut h = u64::from(kind) << 32 | id.len() as u64;
    // nfsd makes handles of whole words.
    for word in id.as_chunks().0 {
        h = (h ^ u64::from(u32::from_ne_bytes(*word))).wrapping_mul(K);
        h ^= h >> 32;
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::load::by_handle::handle_of;
    use crate::mounts::Mounts;
    use std::collections::BTreeSet;
    use std::os::unix::fs::MetadataExt;

    fn words(v: &[u32]) -> Vec<u8> {
        v.iter().flat_map(|x| x.to_ne_bytes()).collect()
    }

    fn on(fs: &str) -> FileSystem {
        FileSystem {
            kind: fs.into(),
            subvolume: Some(5),
            ..FileSystem::default()
        }
    }

    /// Id of OpenZFS: six bytes of the object, four of the generation.
    fn zfs(object: u64, generation: u32) -> Vec<u8> {
        let length = 10u16.to_ne_bytes();
        let number = object.to_le_bytes();
        [&length[..], &number[..6], &generation.to_le_bytes()].concat()
    }

    #[test]
    fn a_number_is_read_as_the_file_system_laid_it_out() {
        use FileName::{Inode, Subvolume};
        let is = |fs: &str, kind, id: &[u8], name| {
            assert_eq!(FileId::whole(kind, id).name(Some(&on(fs))), name, "{fs}");
        };
        let wide = 12 | 1 << 32;
        is("ext4", 1, &words(&[12, 9]), Inode(12));
        is("ext4", 2, &words(&[12, 9, 2, 1]), Inode(12));
        is("xfs", 1, &words(&[12, 9]), Inode(12));
        is("xfs", 0x81, &words(&[12, 1, 9]), Inode(wide));
        is("xfs", 0x82, &words(&[12, 1, 9, 2, 0, 1]), Inode(wide));
        is("tmpfs", 1, &words(&[9, 12, 1]), Inode(wide));
        is("ceph", 1, &words(&[12, 1]), Inode(wide));
        is("ocfs2", 1, &words(&[1, 12, 9]), Inode(wide));
        let gfs2: Vec<u8> = [7u64, wide].iter().flat_map(|n| n.to_be_bytes()).collect();
        is("gfs2", 4, &gfs2, Inode(wide));
        is("nfs4", 5, &words(&[1, 12, 0x8000, 4, 7]), Inode(wide));
        is("btrfs", 0x4d, &words(&[257, 0, 5, 0, 9]), Inode(257));
        is(
            "btrfs",
            0x4d,
            &words(&[257, 0, 258, 0, 9]),
            Subvolume(258, 257),
        );
        is("zfs", 1, &zfs(wide, 77), Inode(wide));
        let with_directory = [zfs(12, 77), zfs(2, 3)].concat();
        is("zfs", 2, &with_directory, Inode(12));
        assert_eq!(Subvolume(258, 257).to_string(), "258/257");
        assert_eq!(
            (Subvolume(258, 257).number(), Subvolume(258, 257).inode()),
            (Some(257), None)
        );
    }

    #[test]
    fn of_an_unknown_layout_no_number_is_read_and_no_two_files_are_one() {
        let mut names = BTreeSet::new();
        let handles = [
            // Snapshots have the numbers of their originals; FUSE has numbers of its own.
            (
                "zfs",
                1,
                [&20u16.to_ne_bytes()[..], &zfs(12, 77)[2..], &[0; 12]].concat(),
            ),
            ("fuse", 0x81, words(&[0, 12, 9])),
            ("fuse", 0x81, words(&[0, 13, 9])),
            ("overlay", 0xf8, words(&[1, 2, 3, 4, 5, 6, 7, 8, 12])),
            ("overlay", 0xf8, words(&[1, 2, 3, 4, 5, 6, 7, 8, 13])),
            ("erofs", 1, words(&[12, 9])),
            // Handles with another length or type than those of the layout.
            ("ext4", 1, words(&[12, 9, 1])),
            ("ext4", 0x81, words(&[12, 1, 9])),
            ("xfs", 0x81, words(&[12, 1])),
            ("tmpfs", 1, words(&[9, 12])),
            ("nfs", 1, words(&[1])),
            ("nfs", 0, vec![]),
        ];
        for (fs, kind, id) in &handles {
            let name = FileId::whole(*kind, id).name(Some(&on(fs)));
            assert_eq!(name.number(), None, "{fs} {kind} {id:?}");
            names.insert(name.to_string());
        }
        assert_eq!(names.len(), handles.len(), "{names:?}");
        let unknown = FileId::whole(1, &words(&[12, 9])).name(None);
        assert!(unknown.to_string().starts_with("handle-"), "{unknown}");
        let cut = FileId {
            size: 40,
            hash: 7,
            ..FileId::whole(0xf8, &[1; 24])
        };
        assert_eq!(cut.name(None).to_string(), "handle-0000000000000007");
    }

    /// Six files with the same generation: read with the layout of tmpfs, they would all be the file of the generation.
    #[test]
    fn six_files_of_zfs_are_six() {
        let name = |object| FileId::whole(1, &zfs(object, 9)).name(Some(&on("zfs")));
        let names: Vec<_> = (2..8).map(name).collect();
        assert_eq!(names, (2..8).map(FileName::Inode).collect::<Vec<_>>());
    }

    /// Compares with stat(2) on every file system of this host that is writable and gives handles.
    #[test]
    fn numbers_are_those_of_stat() {
        let mounts = Mounts::read();
        let mut known = BTreeSet::new();
        for directory in [
            "/dev/shm",
            "/tmp",
            "/var/tmp",
            env!("CARGO_MANIFEST_DIR"),
            "/run",
        ] {
            let name = format!("{directory}/nfscope-id-{}", std::process::id());
            if std::fs::write(&name, "").is_err() {
                continue;
            }
            let number = std::fs::symlink_metadata(&name).unwrap().ino();
            let handle = handle_of(&std::fs::File::open(&name).unwrap());
            std::fs::remove_file(&name).unwrap();
            let Ok((kind, id)) = handle else { continue };
            let mount = mounts.on(&name).unwrap();
            let fs = FileSystem::of(mount);
            let found = FileId::whole(kind, &id).name(Some(&fs));
            println!("{name}: {} {kind:#x} {id:?}: {found}", fs.kind);
            if let Some(found) = found.number() {
                assert_eq!(found, number, "{}", fs.kind);
                known.insert(fs.kind);
            }
        }
        println!("numbers are right on {known:?}");
    }
}
