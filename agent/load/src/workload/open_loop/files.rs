//! Files of an open loop, and the actions of requests on them.

use crate::workload::open_loop::mix::{Action, Kind, Mix};
use rand::Rng;
use rand::rngs::SmallRng;
use rustix::fs::{Advice, fadvise};
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Attempts to find a file that no other request has removed meanwhile.
const TRIES: usize = 8;

/// All files of a run.
pub(super) struct Files {
    dir: PathBuf,
    directories: u64,
    /// Numbers of the files that are there, the oldest first.
    live: Mutex<VecDeque<u64>>,
    next: AtomicU64,
    /// Offset of the next record of the log.
    log_end: AtomicU64,
}

impl Files {
    /// Makes the directories; files follow by [`Files::lay_out`].
    pub fn make(dir: &Path, mix: &Mix) -> io::Result<Files> {
        let files = Files {
            dir: dir.to_owned(),
            directories: mix.directories,
            live: Mutex::default(),
            next: AtomicU64::new(0),
            log_end: AtomicU64::new(0),
        };
        for d in 0..mix.directories {
            fs::create_dir_all(files.directory(d))?;
        }
        Ok(files)
    }

    fn directory(&self, of: u64) -> PathBuf {
        self.dir.join(format!("tree/site/group/{of}"))
    }

    fn path(&self, file: u64) -> PathBuf {
        let name = format!("open.{file}");
        match self.directories {
            0 => self.dir.join(name),
            n => self.directory(file % n).join(name),
        }
    }

    fn live(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn any(&self, rng: &mut SmallRng) -> Option<u64> {
        let live = self.live();
        (!live.is_empty()).then(|| live[rng.random_range(0..live.len())])
    }

    /// Creates one more of the files that exist before the run.
    pub fn lay_out(&self, size: (u64, u64), rng: &mut SmallRng) -> io::Result<()> {
        self.create(size, false, rng).map(|_| ())
    }

    /// Makes one request; returns the bytes that it moved.
    pub fn request(&self, kind: &Kind, rng: &mut SmallRng) -> io::Result<u64> {
        match kind.action {
            Action::Create => self.create(kind.size, kind.durable, rng),
            Action::Remove => self.remove(rng),
            Action::Log => self.log(kind, rng),
            Action::Append => self.with_any(rng, |path, rng| {
                let file = OpenOptions::new().append(true).open(path)?;
                write(file, kind.size, kind.durable, rng)
            }),
            Action::Read => self.with_any(rng, |path, _| read(path)),
            Action::Stat => self.with_any(rng, |path, _| fs::metadata(path).map(|_| 0)),
            Action::Page(files) => (0..files).try_fold(0, |bytes, _| {
                let one = self.with_any(rng, |path, _| {
                    fs::metadata(path)?;
                    read(path)
                })?;
                Ok(bytes + one)
            }),
        }
    }

    /// Applies `with` to a random file, and to another one if that has been removed meanwhile.
    fn with_any(
        &self,
        rng: &mut SmallRng,
        mut with: impl FnMut(&Path, &mut SmallRng) -> io::Result<u64>,
    ) -> io::Result<u64> {
        let mut last = ErrorKind::NotFound.into();
        for _ in 0..TRIES {
            let Some(file) = self.any(rng) else {
                // All files have been removed. Removals are as many as new files, but come at random.
                self.create((0, 0), false, rng)?;
                continue;
            };
            match with(&self.path(file), rng) {
                Err(e) if e.kind() == ErrorKind::NotFound => last = e,
                done => return done,
            }
        }
        Err(last)
    }

    fn create(&self, size: (u64, u64), durable: bool, rng: &mut SmallRng) -> io::Result<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.path(number);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let bytes = write(file, size, durable, rng)?;
        self.live().push_back(number);
        Ok(bytes)
    }

    fn remove(&self, rng: &mut SmallRng) -> io::Result<u64> {
        let oldest = self.live().pop_front();
        let number = match oldest {
            Some(number) => number,
            None => {
                self.create((0, 0), false, rng)?;
                return self.remove(rng);
            }
        };
        fs::remove_file(self.path(number)).map(|()| 0)
    }

    /// Writes the next record of the log, which starts again at its beginning when it has reached its end.
    fn log(&self, kind: &Kind, rng: &mut SmallRng) -> io::Result<u64> {
        const END: u64 = 64 << 20;
        let data = data(kind.size, rng);
        let at = self.log_end.fetch_add(data.len() as u64, Ordering::Relaxed) % END;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.dir.join("open.log"))?;
        file.write_all_at(&data, at)?;
        if kind.durable {
            file.sync_data()?;
        }
        drop(file);
        Ok(data.len() as u64)
    }
}

fn data(size: (u64, u64), rng: &mut SmallRng) -> Vec<u8> {
    let length = rng.random_range(size.0..=size.1) as usize;
    let mut data = vec![0; length];
    // Random data: a server that compresses or deduplicates has to work on it.
    rng.fill(&mut data[..]);
    data
}

fn write(mut file: File, size: (u64, u64), durable: bool, rng: &mut SmallRng) -> io::Result<u64> {
    let data = data(size, rng);
    file.write_all(&data)?;
    if durable {
        file.sync_data()?;
    }
    // Over NFS, close() writes the remaining data. An error of close() is lost here, as it is with fio.
    drop(file);
    Ok(data.len() as u64)
}

/// Reads a file whole, from the server and not from the client's cache.
fn read(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    // A file system that cannot drop its cached pages answers from its cache.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes.len() as u64)
}
