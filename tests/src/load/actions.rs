//! Single actions of the load. Each is a few system calls on the worker's own files.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, XattrFlags};
use rustix::io::Errno;

use super::kind::Kind;

/// Files per worker, used again and again.
const FILES: u64 = 6;
const BLOCK: usize = 4096;

type Action = fn(&mut Worker) -> std::io::Result<()>;

/// Every action with its weight. Writes and reads dominate, as they do on real servers.
const MIX: [(&str, u32, Action); 19] = [
    ("sync write", 8, Worker::sync_write),
    ("write and fsync", 6, Worker::write_fsync),
    ("async write", 8, Worker::async_write),
    ("direct write", 4, Worker::direct_write),
    ("read", 10, Worker::read),
    ("create and remove", 5, Worker::create_remove),
    ("mkdir and rmdir", 3, Worker::mkdir_rmdir),
    ("rename", 3, Worker::rename),
    ("link", 3, Worker::link),
    ("symlink", 3, Worker::symlink),
    ("readdir", 3, Worker::readdir),
    ("stat", 6, Worker::stat),
    ("setattr", 4, Worker::setattr),
    ("statfs", 2, Worker::statfs),
    ("xattr", 3, Worker::xattr),
    ("allocate and seek", 3, Worker::allocate_seek),
    ("copy", 2, Worker::copy),
    ("clone", 2, Worker::clone_file),
    ("lock", 3, Worker::lock),
];

/// Thread of the load.
pub(super) struct Worker {
    dir: PathBuf,
    random: u64,
    pub done: BTreeMap<&'static str, u64>,
    pub unsupported: BTreeMap<&'static str, u64>,
}

impl Worker {
    pub fn new(mount: &Path, number: u64, seed: u64) -> Result<Worker> {
        let dir = mount.join(format!("worker{number}"));
        match fs::create_dir(&dir) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(e).with_context(|| format!("creating {}", dir.display()));
            }
            _ => {}
        }
        Ok(Worker {
            dir,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number + 1),
            done: BTreeMap::new(),
            unsupported: BTreeMap::new(),
        })
    }

    /// Does each action of the mix once.
    pub fn every_action(&mut self) -> Result<()> {
        MIX.into_iter()
            .try_for_each(|(name, _, action)| self.act(name, action))
    }

    /// Does one action.
    pub fn step(&mut self, kind: Kind) -> Result<()> {
        let (name, _, action) = match kind {
            Kind::SyncWrites => MIX[0],
            Kind::Mixed => {
                let total: u32 = MIX.iter().map(|(_, weight, _)| weight).sum();
                let mut ticket = self.below(u64::from(total)) as u32;
                let mut chosen = MIX[0];
                for entry in MIX {
                    chosen = entry;
                    if ticket < entry.1 {
                        break;
                    }
                    ticket -= entry.1;
                }
                chosen
            }
        };
        self.act(name, action)
    }

    fn act(&mut self, name: &'static str, action: Action) -> Result<()> {
        match action(self) {
            Ok(()) => *self.done.entry(name).or_default() += 1,
            Err(e) if unsupported(&e) => *self.unsupported.entry(name).or_default() += 1,
            Err(e) => {
                return Err(e).with_context(|| format!("{name} in {}", self.dir.display()));
            }
        }
        Ok(())
    }

    /// xorshift: the same seed gives the same load.
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    fn path(&mut self) -> PathBuf {
        let n = self.below(FILES);
        self.dir.join(format!("file{n}"))
    }

    /// Name that no killed load has left behind, with the same seed or not.
    fn temporary(&mut self) -> PathBuf {
        let (process, n) = (std::process::id(), self.below(1 << 30));
        self.dir.join(format!("temporary{process}-{n}"))
    }

    fn open(&mut self, flags: OFlags) -> std::io::Result<File> {
        let path = self.path();
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags.bits() as i32)
            .open(path)
    }

    /// Opens a file with contents.
    fn filled(&mut self) -> std::io::Result<File> {
        let mut file = self.open(OFlags::empty())?;
        if file.metadata()?.len() < 4 * BLOCK as u64 {
            file.write_all(&vec![b'd'; 8 * BLOCK])?;
            file.sync_all()?;
        }
        Ok(file)
    }

    fn sync_write(&mut self) -> std::io::Result<()> {
        let file = self.open(OFlags::SYNC)?;
        for _ in 0..4 {
            let at = self.below(16) * BLOCK as u64;
            file.write_all_at(&[b's'; BLOCK], at)?;
        }
        Ok(())
    }

    fn write_fsync(&mut self) -> std::io::Result<()> {
        let file = self.open(OFlags::empty())?;
        let blocks = 1 + self.below(8) as usize;
        file.write_all_at(&vec![b'f'; blocks * BLOCK], 0)?;
        match self.below(2) {
            0 => file.sync_data(),
            _ => file.sync_all(),
        }
    }

    fn async_write(&mut self) -> std::io::Result<()> {
        let mut file = self.open(OFlags::empty())?;
        let length = 1 + self.below(128 * 1024) as usize;
        file.write_all(&vec![b'a'; length])
    }

    fn direct_write(&mut self) -> std::io::Result<()> {
        let file = self.open(OFlags::DIRECT)?;
        // NFS needs no alignment of memory.
        file.write_all_at(&[b'D'; BLOCK], self.below(16) * BLOCK as u64)
    }

    fn read(&mut self) -> std::io::Result<()> {
        drop(self.filled()?);
        // The read is direct, or the client's cache would answer.
        let mut file = self.open(OFlags::DIRECT)?;
        let mut buffer = vec![0; (1 + self.below(4) as usize) * BLOCK];
        file.seek(SeekFrom::Start(self.below(4) * BLOCK as u64))?;
        while file.read(&mut buffer)? == buffer.len() {}
        Ok(())
    }

    fn create_remove(&mut self) -> std::io::Result<()> {
        let path = self.temporary();
        drop(File::create_new(&path)?);
        fs::remove_file(path)
    }

    fn mkdir_rmdir(&mut self) -> std::io::Result<()> {
        let path = self.temporary();
        fs::create_dir(&path)?;
        fs::remove_dir(path)
    }

    fn rename(&mut self) -> std::io::Result<()> {
        drop(self.open(OFlags::empty())?);
        let (from, to) = (self.temporary(), self.path());
        fs::write(&from, b"to be renamed")?;
        fs::rename(from, to)
    }

    fn link(&mut self) -> std::io::Result<()> {
        let (from, to) = (self.temporary(), self.temporary());
        fs::write(&from, b"")?;
        fs::hard_link(&from, &to)?;
        fs::remove_file(from)?;
        fs::remove_file(to)
    }

    fn symlink(&mut self) -> std::io::Result<()> {
        let path = self.temporary();
        symlink("../somewhere", &path)?;
        fs::read_link(&path)?;
        fs::remove_file(path)
    }

    fn readdir(&mut self) -> std::io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            match entry?.metadata() {
                // A removed file that is still open has another name for a moment (fs/nfs/unlink.c), and disappears by itself.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                other => {
                    other?;
                }
            }
        }
        Ok(())
    }

    fn stat(&mut self) -> std::io::Result<()> {
        // Opening revalidates, whatever the state of the attribute cache. A missing name is a LOOKUP.
        self.open(OFlags::empty())?.metadata()?;
        match fs::metadata(self.temporary()) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        }
    }

    fn setattr(&mut self) -> std::io::Result<()> {
        let file = self.filled()?;
        file.set_permissions(fs::Permissions::from_mode(0o600 + self.below(64) as u32))?;
        file.set_len(5 * BLOCK as u64 + self.below(100))
    }

    fn statfs(&mut self) -> std::io::Result<()> {
        rustix::fs::statfs(&self.dir)?;
        Ok(())
    }

    fn xattr(&mut self) -> std::io::Result<()> {
        let path = self.path();
        drop(OpenOptions::new().append(true).create(true).open(&path)?);
        let name = "user.lab";
        rustix::fs::setxattr(&path, name, b"a value", XattrFlags::empty())?;
        let mut buffer = [0; 256];
        rustix::fs::getxattr(&path, name, &mut buffer)?;
        rustix::fs::listxattr(&path, &mut buffer)?;
        rustix::fs::removexattr(&path, name)?;
        Ok(())
    }

    fn allocate_seek(&mut self) -> std::io::Result<()> {
        let file = self.filled()?;
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 8 * BLOCK as u64)?;
        rustix::fs::fallocate(&file, punch, BLOCK as u64, BLOCK as u64)?;
        rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(0))?;
        // Blocks that fallocate() reserved and no write filled are no data: there may be none behind the hole (ENXIO).
        match rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(BLOCK as u64)) {
            Ok(_) | Err(rustix::io::Errno::NXIO) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn copy(&mut self) -> std::io::Result<()> {
        let from = self.filled()?;
        let path = self.temporary();
        let to = File::create_new(&path)?;
        let copied = rustix::fs::copy_file_range(&from, None, &to, None, 3 * BLOCK);
        fs::remove_file(path)?;
        copied?;
        Ok(())
    }

    fn clone_file(&mut self) -> std::io::Result<()> {
        let from = self.filled()?;
        let path = self.temporary();
        let to = File::create_new(&path)?;
        let cloned = rustix::fs::ioctl_ficlone(&to, &from);
        drop(to);
        fs::remove_file(path)?;
        Ok(cloned?)
    }

    fn lock(&mut self) -> std::io::Result<()> {
        let file = self.filled()?;
        rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all_at(b"mine", 0)?;
        rustix::fs::fcntl_lock(&file, FlockOperation::Unlock)?;
        Ok(())
    }
}

/// True for errors of actions that a version or a file system does not support; the load tries all of them anyway.
fn unsupported(e: &std::io::Error) -> bool {
    let Some(errno) = Errno::from_io_error(e) else {
        return false;
    };
    [Errno::OPNOTSUPP, Errno::NOTTY, Errno::XDEV, Errno::NOSYS].contains(&errno)
}
