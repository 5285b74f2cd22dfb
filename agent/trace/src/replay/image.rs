//! The image: files and directories that a trace implies, made below a new directory of the export before the replay, and removed after it.

use super::nfs3::Handle;
use super::plan::{Kind, NO_FILE, Plan};
use super::rpc::{self, Caller, Credentials};
use anyhow::Context;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of data that cannot be compressed, from which all files are written.
pub(super) const DATA_BYTES: usize = 2 << 20;
/// Connections that make the image.
const MAKERS: usize = 8;
/// Longest WRITE of the image.
const MAX_WRITE: u32 = 1 << 20;
/// Directories in each other that the removal follows.
const MAX_REMOVE_DEPTH: usize = 128;

/// Handle of each file of the plan: `None` if it cannot be had. Files that the trace makes have none before that.
pub(super) type Slots = Vec<OnceLock<Option<Handle>>>;

/// Copy of the image.
#[derive(Debug)]
pub(super) struct ImageCopy {
    pub(super) top: Handle,
    pub(super) slots: Slots,
}

/// Data from a generator (xorshift64*), so that no file system makes it smaller.
pub(super) fn data() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut data = Vec::with_capacity(DATA_BYTES);
    while data.len() < DATA_BYTES {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        data.extend(state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    data
}

/// Name of a file of the plan. All names are the replayer's own.
pub(super) fn name(plan: &Plan, file: u32) -> String {
    let letter = match plan.files[file as usize].kind {
        Kind::Directory => 'd',
        Kind::SymLink => 's',
        Kind::File | Kind::Unknown => 'f',
    };
    format!("{letter}{file}")
}

/// Makes a copy of the image in the directory `top`.
pub(super) fn make(
    plan: &Plan,
    to: (SocketAddr, Credentials),
    top: Handle,
    write_size: u32,
    sparse: bool,
    data: &[u8],
) -> anyhow::Result<ImageCopy> {
    let mut slots = Slots::new();
    slots.resize_with(plan.files.len(), OnceLock::new);
    let copy = ImageCopy { top, slots };
    // Directories come before what is in them: a directory has a lower index.
    let mut levels: Vec<Vec<u32>> = Vec::new();
    for (at, file) in plan.files.iter().enumerate() {
        if file.in_image {
            let level = usize::from(file.depth);
            if levels.len() <= level {
                levels.resize_with(level + 1, Vec::new);
            }
            levels[level].push(at as u32);
        }
    }
    let mut makers = Vec::new();
    for _ in 0..MAKERS.min(plan.files.len()) {
        makers.push(Caller::new(rpc::connect(to.0)?, to.1));
    }
    for level in levels {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = |server: &mut Caller| -> anyhow::Result<()> {
            while let Some(file) = level.get(next.fetch_add(1, Ordering::Relaxed)) {
                if failed.load(Ordering::Relaxed) {
                    break;
                }
                let handle = make_one(plan, server, &copy, *file, write_size, sparse, data)
                    .inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
                let _ = copy.slots[*file as usize].set(Some(handle));
            }
            Ok(())
        };
        std::thread::scope(|s| {
            let work = &work;
            let threads: Vec<_> = makers
                .iter_mut()
                .take(level.len())
                .map(|server| s.spawn(move || work(server)))
                .collect();
            threads.into_iter().try_for_each(|m| {
                m.join()
                    .unwrap_or_else(|_| anyhow::bail!("a thread failed"))
            })
        })
        .context("the files of the replay cannot be made")?;
    }
    Ok(copy)
}

fn make_one(
    plan: &Plan,
    server: &mut Caller,
    copy: &ImageCopy,
    at: u32,
    write_size: u32,
    sparse: bool,
    data: &[u8],
) -> anyhow::Result<Handle> {
    let file = &plan.files[at as usize];
    let parent = match file.parent {
        NO_FILE => Some(&copy.top),
        parent => copy.slots[parent as usize].get().and_then(Option::as_ref),
    };
    let parent = parent.context("a directory is missing")?;
    let name = name(plan, at);
    match file.kind {
        Kind::SymLink => server.symlink(parent, &name),
        Kind::Directory => {
            let handle = server.mkdir(parent, &name)?;
            for n in 0..file.removes {
                server.create(&handle, &format!("r{n}"))?;
            }
            for n in 0..file.rmdirs {
                server.mkdir(&handle, &format!("k{n}"))?;
            }
            for n in 0..file.renames {
                server.create(&handle, &format!("m{n}"))?;
            }
            Ok(handle)
        }
        Kind::File | Kind::Unknown => {
            let handle = server.create(parent, &name)?;
            if sparse {
                if file.size > 0 {
                    server.set_size(&handle, file.size)?;
                }
                return Ok(handle);
            }
            let most = write_size.min(MAX_WRITE) as usize;
            let mut offset = 0;
            while offset < file.size {
                let n = most.min(usize::try_from(file.size - offset).unwrap_or(most));
                server.write(&handle, offset, &data[..n])?;
                offset += n as u64;
            }
            if file.size > 0 {
                server.commit(&handle)?;
            }
            Ok(handle)
        }
    }
}

/// Removes a directory and all that is in it. Only names that the server lists there are removed.
pub(super) fn remove(server: &mut Caller, parent: &[u8], name: &str) -> anyhow::Result<()> {
    let top = server.lookup(parent, name)?;
    empty(server, &top, 0)?;
    server.rmdir(parent, name.as_bytes())
}

fn empty(server: &mut Caller, directory: &[u8], depth: usize) -> anyhow::Result<()> {
    anyhow::ensure!(
        depth < MAX_REMOVE_DEPTH,
        "directories of the replay are too deep"
    );
    loop {
        let names = server.names(directory)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            // Directories of the replayer begin with these letters.
            let is_directory = matches!(name.first(), Some(b'c' | b'd' | b'e' | b'k'));
            if is_directory || server.remove(directory, &name).is_err() {
                let text = String::from_utf8_lossy(&name).into_owned();
                let below = server.lookup(directory, &text)?;
                empty(server, &below, depth + 1)?;
                server.rmdir(directory, &name)?;
            }
        }
    }
}
