//! Paths of files by their handles, for a break-down by file.
//!
//! A thread of its own asks the kernel, because a file system may have to read its disk for an answer. The reading of the probes only
//! collects finished answers. The thread has the right to read and no other, and ends with the break-down.

use crate::bounded;
use crate::linux::host::capabilities;
use crate::linux::host::file_id::FileId;
use crate::linux::load::by_handle::{file_by_handle, handle_of};
use crate::lossless;
use nfscope_model::breakdown::{FileKey, FilePath};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

/// Files that wait for the thread. Requests come once a second, so that no more files are looked up in a second.
const MOST_WAITING: usize = 256;
/// Files whose paths are kept, and bytes of a path.
const MOST_KNOWN: usize = 4096;
const MOST_BYTES: usize = 1024;
/// Time after which a path is looked up again, because files are renamed. After twice that time without operations the path is forgotten.
const FRESH: Duration = Duration::from_secs(10);

const TOO_MANY: &str = "more files are in use than paths are looked up for";
const NO_NAME: &str = "the kernel has it without a name: nobody has looked it up by name lately";

/// A file as its file system's handle names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    kind: u8,
    id: Vec<u8>,
    /// Inode number of the file, if the layout of the handle is known.
    inode: Option<u64>,
}

impl Handle {
    /// Makes the handle of a file. `inode` is its inode number, if the layout of the handle is known. `None` if a part of the handle is
    /// missing.
    pub fn new(file: &FileId, inode: Option<u64>) -> Option<Handle> {
        // On btrfs a handle with the directory is longer than the kept part. It begins with the handle of the file (fs/btrfs/export.h).
        let (kind, id) = match (file.kind, file.id.get(..20)) {
            (0x4e | 0x4f, Some(alone)) if inode.is_some() => (0x4d, alone),
            (kind, _) => (kind, Some(file.id).filter(|id| id.len() == file.size)?),
        };
        Some(Handle {
            kind,
            id: id.to_vec(),
            inode,
        })
    }
}

struct Known {
    handle: Handle,
    path: FilePath,
    /// Time of the request; later than `told` while the path is looked up.
    asked: Instant,
    told: Option<Instant>,
    used: Instant,
}

type Told = (FileKey, FilePath);

/// Known paths, and the channels to the thread that finds them.
pub struct FilePaths {
    ask: SyncSender<(FileKey, Handle)>,
    told: Receiver<Told>,
    known: HashMap<FileKey, Known>,
}

impl FilePaths {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the system gives no thread.
    pub fn start() -> io::Result<FilePaths> {
        let (ask, asked) = sync_channel(MOST_WAITING);
        let (tell, told) = channel();
        std::thread::Builder::new()
            .name("file-paths".to_owned())
            .spawn(move || run(&asked, &tell))?;
        Ok(FilePaths {
            ask,
            told,
            known: HashMap::new(),
        })
    }

    /// Paths that were found since the last call.
    pub fn news(&mut self) -> Vec<Told> {
        let now = Instant::now();
        let news: Vec<_> = self.told.try_iter().collect();
        for (key, path) in &news {
            if let Some(known) = self.known.get_mut(key) {
                known.path = path.clone();
                known.told = Some(now);
            }
        }
        self.known.retain(|_, k| now - k.used < 2 * FRESH);
        news
    }

    /// The path of a file; never waits.
    pub fn path(&mut self, key: &FileKey, handle: Handle) -> FilePath {
        let now = Instant::now();
        if let Some(known) = self.known.get_mut(key) {
            known.used = now;
            let waits = known.told.is_none_or(|told| told < known.asked);
            // The inode number may belong to another file by now.
            let other = known.handle != handle;
            let old = other || now - known.asked >= FRESH;
            if !waits && old && self.ask.try_send((key.clone(), handle.clone())).is_ok() {
                known.asked = now;
                known.handle = handle;
            }
            if other {
                known.path = FilePath::Coming;
            }
            return known.path.clone();
        }
        if self.known.len() >= MOST_KNOWN
            || self.ask.try_send((key.clone(), handle.clone())).is_err()
        {
            return FilePath::Unknown(TOO_MANY.into());
        }
        let known = Known {
            handle,
            path: FilePath::Coming,
            asked: now,
            told: None,
            used: now,
        };
        self.known.insert(key.clone(), known);
        FilePath::Coming
    }
}

/// Answers requests until the channel closes.
fn run(asked: &Receiver<(FileKey, Handle)>, tell: &Sender<Told>) {
    let confined = capabilities::keep_reading();
    for (key, handle) in asked {
        let path = match &confined {
            Ok(()) => look_up_within(&key.0, handle),
            // The thread refuses to work with rights that it does not need.
            Err(why) => Err(format!("{why:#}")),
        };
        let path = path.map_or_else(
            |why| FilePath::Unknown(why.into()),
            |path| FilePath::Is(path.into()),
        );
        if tell.send((key, path)).is_err() {
            return;
        }
    }
}

/// Looks up a path in a thread of its own, which has the rights of this one: an export that does not answer delays files of the others only
/// once.
fn look_up_within(export: &str, handle: Handle) -> Result<String, String> {
    let (path, name) = (lossless::path(export), export.to_owned());
    let ask = move || Ok(look_up(&name, &handle));
    bounded::within(&path, bounded::PATIENCE, ask).unwrap_or_else(|why| Err(why.to_string()))
}

fn look_up(export: &str, handle: &Handle) -> Result<String, String> {
    let root = File::options()
        .read(true)
        .custom_flags(libc::O_DIRECTORY)
        .open(lossless::path(export))
        .map_err(|why| format!("the agent cannot open its export: {why}"))?;
    let file =
        file_by_handle(&root, handle.kind, &handle.id).map_err(|why| match why.raw_os_error() {
            Some(libc::ESTALE) => "it is gone".to_owned(),
            Some(libc::EPERM) => "the agent lacks CAP_DAC_READ_SEARCH".to_owned(),
            _ => format!("the kernel does not find it by its handle: {why}"),
        })?;
    let file = File::from(file);
    let known = |why: io::Error| format!("the kernel does not name it: {why}");
    let is = file.metadata().map_err(known)?;
    let right = match handle.inode {
        Some(inode) => is.ino() == inode,
        // Another file system would have made another handle of the file.
        None => {
            let same = |(kind, id)| (kind, id) == (handle.kind, handle.id.clone());
            handle_of(&file).is_ok_and(same)
        }
    };
    if !right {
        return Err("another file system has the path of its export here".to_owned());
    }
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(known)?;
    // The kernel gives `/` for a file without a name, adds words behind the name of a removed file, and for a file below another mount
    // gives the path of another file.
    let there = fs::symlink_metadata(&path).ok();
    if there.is_none_or(|there| (there.dev(), there.ino()) != (is.dev(), is.ino())) {
        return Err(no_path(is.nlink(), &path).to_owned());
    }
    if path.as_os_str().len() > MOST_BYTES {
        return Err(format!("its path has more than {MOST_BYTES} bytes"));
    }
    Ok(lossless::of_path(&path))
}

/// Reason why the kernel's path is none of the file, from the number of links and the path.
fn no_path(links: u64, said: &Path) -> &'static str {
    match (links, said == Path::new("/")) {
        (0, _) => "it is in use, and has been removed",
        // fs/dcache.c, d_alloc_anon(): a file found by its handle alone is its own root.
        (_, true) => NO_NAME,
        _ => "its path leads to another file here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(path: &Path) -> Handle {
        let (kind, id) = handle_of(&File::open(path).unwrap()).unwrap();
        let inode = fs::symlink_metadata(path).unwrap().ino();
        Handle::new(&FileId::whole(kind, &id), Some(inode)).unwrap()
    }

    fn may_look_up() -> bool {
        let right = caps::Capability::CAP_DAC_READ_SEARCH;
        let may = caps::has_cap(None, caps::CapSet::Effective, right).unwrap();
        if !may {
            println!("SKIPPED: finding files by their handles: needs root");
        }
        may
    }

    /// A FIFO without a writer would wait in open(2).
    #[test]
    fn an_export_that_is_no_directory_is_refused_at_once() {
        let own = std::env::temp_dir().join(format!("nfscope-no-export-{}", std::process::id()));
        fs::create_dir_all(&own).unwrap();
        let fifo = own.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let why = look_up(fifo.to_str().unwrap(), &handle(&own)).unwrap_err();
        fs::remove_dir_all(&own).unwrap();
        assert!(
            why.contains("the agent cannot open its export: Not a directory"),
            "{why}"
        );
    }

    /// Waits until the path is found.
    fn told(paths: &mut FilePaths, key: &FileKey, handle: &Handle) -> FilePath {
        loop {
            let path = paths.path(key, handle.clone());
            if path != FilePath::Coming {
                return path;
            }
            std::thread::sleep(Duration::from_millis(5));
            paths.news();
        }
    }

    #[test]
    fn files_are_found_by_their_handles_wherever_they_are() {
        if !may_look_up() {
            return;
        }
        let root = std::env::temp_dir().join(format!("nfscope-paths-{}", std::process::id()));
        fs::create_dir_all(root.join("a")).unwrap();
        let file = root.join("a/\u{202e}evil\u{1b}[2J\n");
        fs::write(&file, "").unwrap();
        let export = root.to_str().unwrap();
        let [of_file, of_directory] = [&file, &root.join("a")].map(|p| handle(p));
        let found = |path: &Path| Ok(lossless::of_path(path));
        assert_eq!(look_up(export, &of_file), found(&file));
        assert_eq!(look_up(export, &of_directory), found(&root.join("a")));
        let moved = root.join("moved");
        fs::rename(&file, &moved).unwrap();
        assert_eq!(look_up(export, &of_file), found(&moved));
        let other = Handle {
            inode: of_file.inode.map(|inode| inode + 1),
            ..of_file.clone()
        };
        assert!(
            look_up(export, &other)
                .unwrap_err()
                .contains("another file system")
        );
        // A handle whose layout is not known leads to its file: the file's own handle is the same.
        let unread = Handle {
            inode: None,
            ..of_file.clone()
        };
        assert_eq!(look_up(export, &unread), found(&moved));
        // Paths are found by the thread, which reports each once.
        let mut paths = FilePaths::start().unwrap();
        let key: FileKey = (export.to_owned(), of_file.inode.unwrap().to_string());
        assert_eq!(paths.path(&key, of_file.clone()), FilePath::Coming);
        let path = told(&mut paths, &key, &of_file);
        assert_eq!(path, FilePath::Is(moved.to_str().unwrap().into()));
        let opened = File::open(&moved).unwrap();
        fs::remove_file(&moved).unwrap();
        assert!(look_up(export, &of_file).unwrap_err().contains("removed"));
        drop(opened);
        assert_eq!(look_up(export, &of_file), Err("it is gone".to_owned()));
        assert_eq!(no_path(1, Path::new("/")), NO_NAME);
        assert!(no_path(1, &moved).contains("another file"));
        // The export and the name are in another encoding.
        let odd = root.join(lossless::path("caf\\xe9/\\x5cxff \\xff"));
        fs::create_dir(odd.parent().unwrap()).unwrap();
        fs::write(&odd, "").unwrap();
        let odd_export = lossless::of_path(odd.parent().unwrap());
        let path = look_up(&odd_export, &handle(&odd)).unwrap();
        assert_eq!(lossless::path(&path), odd);
        fs::remove_dir_all(&root).unwrap();
        assert!(
            look_up(export, &of_file)
                .unwrap_err()
                .starts_with("the agent cannot open")
        );
    }

    #[test]
    fn no_more_files_are_asked_for_than_there_is_room() {
        // The test has no thread that looks files up.
        let (ask, asked) = sync_channel(MOST_WAITING);
        let (tell, told) = channel();
        let mut paths = FilePaths {
            ask,
            told,
            known: HashMap::new(),
        };
        let key = |n: usize| ("/a".to_owned(), n.to_string());
        let of = |id| Handle::new(&FileId::whole(1, id), Some(1)).unwrap();
        let handle = of(&[1; 8]);
        for n in 0..MOST_WAITING {
            assert_eq!(paths.path(&key(n), handle.clone()), FilePath::Coming);
        }
        assert_eq!(
            paths.path(&key(MOST_WAITING), handle.clone()),
            FilePath::Unknown(TOO_MANY.into())
        );
        assert_eq!(asked.try_iter().count(), MOST_WAITING);
        tell.send((key(3), FilePath::Is("/a/3".into()))).unwrap();
        assert_eq!(paths.news(), [(key(3), FilePath::Is("/a/3".into()))]);
        assert_eq!(
            paths.path(&key(3), handle.clone()),
            FilePath::Is("/a/3".into())
        );
        // A file is not requested again while its path is known or being looked up; another file with the same number is.
        paths.path(&key(4), handle);
        assert_eq!(asked.try_iter().count(), 0);
        let another = of(&[2; 8]);
        assert_eq!(paths.path(&key(3), another.clone()), FilePath::Coming);
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), [(key(3), another)]);
    }

    #[test]
    fn handles_of_btrfs_are_those_of_the_file_alone() {
        let kept = |kind, size| FileId {
            size,
            ..FileId::whole(kind, &[7; 24])
        };
        let with_parent = Handle::new(&kept(0x4e, 32), Some(1)).unwrap();
        assert_eq!((with_parent.kind, with_parent.id.len()), (0x4d, 20));
        assert_eq!(Handle::new(&kept(0x82, 24), Some(1)).unwrap().id.len(), 24);
        // CephFS has a type of btrfs for files of snapshots; other handles are longer than the kept part.
        assert_eq!(Handle::new(&kept(0x4e, 28), None), None);
        assert_eq!(Handle::new(&kept(0xf8, 52), None), None);
    }
}
