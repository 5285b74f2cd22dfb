//! Finds a file by the id that its file system has given it: open_by_handle_at(2).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Bytes of an id that the probes keep; they need fewer.
const MOST_BYTES: usize = 128;

/// `struct file_handle` of include/linux/fs.h.
#[repr(C)]
struct FileHandle {
    bytes: u32,
    kind: i32,
    id: [u8; MOST_BYTES],
}

/// File with this id, without opening it: the result names the file and neither reads nor writes it. `file_system` is an open directory of
/// the file system.
///
/// # Errors
/// EPERM without CAP_DAC_READ_SEARCH, ESTALE where the file is gone, EINVAL for an id that is too long.
pub fn file_by_handle(file_system: &File, kind: u8, id: &[u8]) -> io::Result<OwnedFd> {
    let mut handle = FileHandle {
        bytes: id.len() as u32,
        kind: kind.into(),
        id: [0; MOST_BYTES],
    };
    let place = handle.id.get_mut(..id.len());
    place
        .ok_or(io::ErrorKind::InvalidInput)?
        .copy_from_slice(id);
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the handle has the kernel's layout and as many bytes as it says, and is only read; the descriptor is open.
    let fd = unsafe {
        libc::open_by_handle_at(
            file_system.as_raw_fd(),
            std::ptr::from_mut(&mut handle).cast(),
            flags,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Id that its file system gives an open file, and the kind of the id: name_to_handle_at(2).
///
/// # Errors
/// EOPNOTSUPP on a file system whose files have no ids, EOVERFLOW for an id that is too long.
pub fn handle_of(file: &File) -> io::Result<(u8, Vec<u8>)> {
    let mut handle = FileHandle {
        bytes: MOST_BYTES as u32,
        kind: 0,
        id: [0; MOST_BYTES],
    };
    let mut mount = 0;
    // SAFETY: the kernel writes at most the bytes that the handle says, and one number; the path is empty and ends with NUL.
    let done = unsafe {
        libc::name_to_handle_at(
            file.as_raw_fd(),
            c"".as_ptr(),
            std::ptr::from_mut(&mut handle).cast(),
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let id = handle.id.get(..handle.bytes as usize);
    let id = id.ok_or(io::ErrorKind::InvalidData)?.to_vec();
    Ok((handle.kind as u8, id))
}
