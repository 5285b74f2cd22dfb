//! The loads of this command: threads that make one system call after the other, each with files of its own.
//!
//! Files are opened before counting begins and closed after it ends, so that the counts belong to the calls.

use crate::versions::kind::Kind;
use crate::workload::fio::Stop;
use anyhow::Context;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a read or a write.
const BLOCK: usize = 4096;
/// Blocks of each thread's file: client and server both have them in memory.
const BLOCKS: u64 = 256;
/// Distance of consecutive calls in blocks, so that nothing is read ahead.
const STRIDE: u64 = 7919;

/// Calls that the threads made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    /// Calls of all threads.
    pub count: u64,
    /// Seconds from the start of the first call to the end of the last.
    pub seconds: f64,
    /// Time of each call in seconds, in no order.
    pub times: Vec<f64>,
}

/// The files of a load on one mount.
#[derive(Debug)]
pub struct Files {
    kind: Kind,
    directories: Vec<PathBuf>,
    /// Number of directory names that have been used.
    used: u64,
}

impl Files {
    /// Makes the files in this directory, for this number of threads.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn make(kind: Kind, dir: &Path, threads: u32) -> anyhow::Result<Files> {
        let directories: Vec<_> = (0..threads).map(|n| dir.join(format!("t{n}"))).collect();
        for directory in &directories {
            let wrong = || format!("cannot make files in {}", directory.display());
            fs::create_dir_all(directory).with_context(wrong)?;
            if matches!(kind, Kind::Reads | Kind::Writes) {
                let file = directory.join("file");
                if !file.exists() {
                    let mut file = File::create(file).with_context(wrong)?;
                    for _ in 0..BLOCKS {
                        file.write_all(&[0x5a; BLOCK]).with_context(wrong)?;
                    }
                    file.sync_all().with_context(wrong)?;
                }
            }
        }
        Ok(Files {
            kind,
            directories,
            used: 0,
        })
    }

    /// Opens the files that the threads use.
    ///
    /// # Errors
    /// When a file cannot be opened.
    pub fn open(&mut self, threads: u32) -> anyhow::Result<Opened> {
        let mut workers = Vec::new();
        for directory in self.directories.iter().take(threads as usize) {
            let path = directory.join("file");
            let file = match self.kind {
                Kind::Reads => Some(
                    OpenOptions::new()
                        .read(true)
                        .custom_flags(flags::DIRECT)
                        .open(&path),
                ),
                Kind::Writes => Some(
                    OpenOptions::new()
                        .write(true)
                        .custom_flags(flags::SYNC)
                        .open(&path),
                ),
                _ => None,
            };
            workers.push(Worker {
                kind: self.kind,
                file: file
                    .transpose()
                    .with_context(|| format!("cannot open {}", path.display()))?,
                directory: directory.clone(),
                next: self.used,
                buffer: vec![0x5a; 2 * BLOCK],
                times: Vec::new(),
            });
        }
        Ok(Opened(workers))
    }

    /// Closes the files.
    pub fn close(&mut self, opened: Opened) {
        let next = opened.0.iter().map(|w| w.next).max();
        self.used = next.unwrap_or(0).max(self.used);
    }
}

/// Threads with their files.
#[derive(Debug)]
pub struct Opened(Vec<Worker>);

impl Opened {
    /// Makes calls for this long.
    ///
    /// # Errors
    /// [`Stopped`](crate::workload::fio::Stopped), or when a call fails.
    pub fn run(&mut self, length: Duration, stop: &Stop) -> anyhow::Result<Calls> {
        let began = Instant::now();
        let until = began + length;
        let ended: Vec<io::Result<()>> = thread::scope(|scope| {
            let threads: Vec<_> = self
                .0
                .iter_mut()
                .map(|w| scope.spawn(move || w.run(until, stop)))
                .collect();
            let join = |t: thread::ScopedJoinHandle<'_, _>| {
                t.join()
                    .unwrap_or_else(|_| Err(io::Error::other("a thread of the load died")))
            };
            threads.into_iter().map(join).collect()
        });
        let seconds = began.elapsed().as_secs_f64();
        stop.check()?;
        for (end, worker) in ended.into_iter().zip(&self.0) {
            end.with_context(|| format!("a call in {} failed", worker.directory.display()))?;
        }
        let times: Vec<f64> = self.0.iter_mut().flat_map(|w| w.times.drain(..)).collect();
        Ok(Calls {
            count: times.len() as u64,
            seconds,
            times,
        })
    }
}

impl Calls {
    /// Mean time of a call; `None` without one.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.times.iter().sum::<f64>() / self.count as f64)
    }

    /// Time that this part of the calls does not exceed; `None` without a call.
    pub fn quantile(&mut self, part: f64) -> Option<f64> {
        self.times.sort_unstable_by(f64::total_cmp);
        let place = (part * self.times.len() as f64).ceil() as usize;
        self.times.get(place.saturating_sub(1)).copied()
    }
}

#[derive(Debug)]
struct Worker {
    kind: Kind,
    file: Option<File>,
    directory: PathBuf,
    /// Number of the next block or directory.
    next: u64,
    /// Buffer of a block that begins at a multiple of its size, which O_DIRECT needs.
    buffer: Vec<u8>,
    times: Vec<f64>,
}

impl Worker {
    fn run(&mut self, until: Instant, stop: &Stop) -> io::Result<()> {
        while Instant::now() < until && stop.check().is_ok() {
            let n = self.next;
            self.next += 1;
            match self.file.take() {
                Some(file) => {
                    let done = self.block(&file, n);
                    self.file = Some(file);
                    done?;
                }
                None => self.directory(n)?,
            }
        }
        Ok(())
    }

    /// Reads or writes one block.
    fn block(&mut self, file: &File, n: u64) -> io::Result<()> {
        let offset = n * STRIDE % BLOCKS * BLOCK as u64;
        let start = self.buffer.as_ptr().align_offset(BLOCK).min(BLOCK);
        let buffer = &mut self.buffer[start..start + BLOCK];
        let began = Instant::now();
        match self.kind {
            Kind::Reads => file.read_exact_at(buffer, offset)?,
            _ => file.write_all_at(buffer, offset)?,
        }
        self.times.push(began.elapsed().as_secs_f64());
        Ok(())
    }

    /// Makes, uses and removes a directory with a file: eleven calls.
    fn directory(&mut self, n: u64) -> io::Result<()> {
        let dir = self.directory.join(format!("d{n}"));
        let (file, other) = (dir.join("f"), dir.join("g"));
        let mut buffer = [0u8; 100];
        let times = &mut self.times;
        timed(times, || fs::create_dir(&dir))?;
        let create = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&file)
        };
        let mut created = timed(times, create)?;
        timed(times, || created.write_all(&buffer))?;
        timed(times, || closed(created))?;
        let mut opened = timed(times, || File::open(&file))?;
        timed(times, || opened.read(&mut buffer))?;
        timed(times, || closed(opened))?;
        timed(times, || fs::metadata(&file))?;
        timed(times, || fs::rename(&file, &other))?;
        timed(times, || fs::remove_file(&other))?;
        timed(times, || remove_directory(&dir))
    }
}

/// Removes a directory, with retries. A client of NFSv3 or NFSv4.0 holds a file until the end of its last read has been processed. If the
/// file is removed before, the client renames it (`.nfs...`) and removes it a moment later.
fn remove_directory(dir: &Path) -> io::Result<()> {
    for _ in 0..1000 {
        match fs::remove_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {
                thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
    fs::remove_dir(dir)
}

fn closed(file: File) -> io::Result<()> {
    drop(file);
    Ok(())
}

fn timed<T>(times: &mut Vec<f64>, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    let done = call()?;
    times.push(began.elapsed().as_secs_f64());
    Ok(done)
}

/// Flags of open(2), as numbers.
#[cfg(target_os = "linux")]
mod flags {
    use rustix::fs::OFlags;

    pub(super) const DIRECT: i32 = OFlags::DIRECT.bits() as i32;
    pub(super) const SYNC: i32 = OFlags::SYNC.bits() as i32;
}

/// Placeholders elsewhere: the command runs on Linux only, and says so before it needs them.
#[cfg(not(target_os = "linux"))]
mod flags {
    pub(super) const DIRECT: i32 = 0;
    pub(super) const SYNC: i32 = 0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        for (kind, of) in [(Kind::Writes, 1), (Kind::Metadata, 11)] {
            let mut files = Files::make(kind, dir.path(), 2).unwrap();
            let mut opened = files.open(2).unwrap();
            let mut length = Duration::from_millis(20);
            let mut calls = opened.run(length, &stop).unwrap();
            // A busy host may give the threads no CPU time for a while, so the length is doubled until there is a call.
            while calls.count == 0 {
                length *= 2;
                calls = opened.run(length, &stop).unwrap();
            }
            assert!(calls.count.is_multiple_of(of), "{calls:?}");
            assert_eq!(calls.count as usize, calls.times.len());
            assert!(calls.quantile(0.99) >= calls.quantile(0.5));
            let done: u64 = opened.0.iter().map(|w| w.next).sum();
            assert_eq!(calls.count, done * of);
            files.close(opened);
            assert!(files.used > 0);
        }
        // The directories that the load made are gone, and the file of the writes is there.
        let left = fs::read_dir(dir.path().join("t0")).unwrap().count();
        assert_eq!(left, 1);
    }

    #[test]
    fn no_calls_have_no_times() {
        let mut none = Calls::default();
        assert_eq!((none.mean(), none.quantile(0.99)), (None, None));
    }
}
