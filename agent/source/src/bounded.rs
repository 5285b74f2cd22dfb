//! Reads files that any user of the host may have made, within a bound of size and time.
//!
//! A path can lead to a FIFO, to a device without an end, or into a file system whose server does not answer. Reading such a file takes for
//! ever, or all memory. Files of /proc and /sys are the kernel's and need no thread of their own.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest wait for a file.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// Paths whose reading has not returned yet: no second thread waits for one of them.
static HANGING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The content of a regular file, read in this thread.
///
/// # Errors
/// Fails if the file cannot be read, is no regular file, or has more than `most` bytes.
pub fn read_here(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    // A FIFO without a writer would wait in open(2).
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(no_wait)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(
            "it is no regular file; a FIFO, a device or a directory is never read",
        ));
    }
    let mut content = Vec::new();
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::other(format!(
            "it has more than {most} bytes, which no such file needs"
        )));
    }
    Ok(content)
}

/// The content of a regular file, which a thread of its own reads.
///
/// # Errors
/// Fails as [`read_here`], and where the file system does not answer within [`PATIENCE`].
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let own = path.to_owned();
    within(path, PATIENCE, move || read_here(&own, most))
}

/// The text of a regular file, which a thread of its own reads.
///
/// # Errors
/// Fails as [`read`], and where the file is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Returns the answer of `ask` about a path, from a thread of its own.
///
/// # Errors
/// Fails if the answer takes longer than `patience`, or if an earlier question about the path took longer and has no answer yet. The thread
/// stays until the file system answers, and ends with the process.
pub fn within<T: Send + 'static>(
    path: &Path,
    patience: Duration,
    ask: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let hangs = || {
        io::Error::new(
            io::ErrorKind::TimedOut,
            "its file system does not answer; end what hangs there (umount -l for a dead mount)",
        )
    };
    let hanging = || HANGING.lock().unwrap_or_else(PoisonError::into_inner);
    if hanging().contains(path) {
        return Err(hangs());
    }
    let (sender, answer) = sync_channel(1);
    let of_thread = path.to_owned();
    std::thread::Builder::new()
        .name("read-file".into())
        .spawn(move || {
            // The caller may have given up.
            let _ = sender.send(ask());
            // The path is removed after the answer was sent: the caller looks for an answer once more after it has put the path there.
            (HANGING.lock().unwrap_or_else(PoisonError::into_inner)).remove(&of_thread);
        })?;
    match answer.recv_timeout(patience) {
        Ok(said) => said,
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("its reader ended")),
        Err(RecvTimeoutError::Timeout) => {
            hanging().insert(path.to_owned());
            // The answer may have come after the timeout and before the path was put there.
            match answer.try_recv() {
                Ok(said) => {
                    hanging().remove(path);
                    said
                }
                Err(_) => Err(hangs()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_fifo_a_device_and_a_file_that_is_too_long_are_refused() {
        let directory =
            std::env::temp_dir().join(format!("nfscope-bounded-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let fifo = directory.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let file = directory.join("file");
        std::fs::write(&file, b"12\xff4").unwrap();
        let refused = |path: &Path, most| read(path, most).unwrap_err().to_string();
        assert!(refused(&fifo, 9).contains("no regular file"));
        assert!(refused(Path::new("/dev/zero"), 9).contains("no regular file"));
        assert!(refused(&directory, 9).contains("no regular file"));
        assert!(refused(&file, 3).contains("more than 3 bytes"));
        assert_eq!(read(&file, 4).unwrap(), b"12\xff4");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn one_thread_alone_waits_for_a_path_that_hangs() {
        let path = Path::new("/hangs");
        let (go, wait) = channel::<()>();
        let (gone, ended) = channel::<()>();
        let first = within(path, Duration::ZERO, move || {
            let _ = wait.recv();
            drop(gone);
            Ok(())
        });
        assert_eq!(first.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let second = within(path, PATIENCE, || -> io::Result<()> {
            unreachable!("the first one still waits")
        });
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(go);
        assert!(ended.recv().is_err());
        while HANGING.lock().unwrap().contains(path) {
            std::thread::yield_now();
        }
        assert_eq!(within(path, PATIENCE, || Ok(5)).unwrap(), 5);
    }
}
