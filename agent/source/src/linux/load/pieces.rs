//! Arrays mapped into this process's memory, a piece at a time and only while they are read.
//!
//! Mapped memory counts as resident from the moment it is mapped (`remap_vmalloc_range` in mm/vmalloc.c), and the tables of a busy server
//! are larger than the agent. A reading therefore maps small pieces, and unmaps them at its end.

use libbpf_rs::{MapInfo, MapType, libbpf_sys};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::cell::RefCell;
use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

/// Bytes from the beginning of one piece to the next.
const PIECE: usize = 32 << 10;
/// Pieces of an array that are mapped at a time: one for each shard of a table whose rows are read in order.
const MOST: usize = 32;

/// An array of the kernel and its mapped pieces.
#[derive(Debug)]
pub struct Pieces {
    /// Bytes from one value to the next.
    stride: usize,
    values: usize,
    mapped: RefCell<Mapped>,
}

/// Pieces in the order in which they were mapped. Once there are [`MOST`], a new piece replaces the oldest one.
#[derive(Debug, Default)]
struct Mapped {
    pieces: Vec<Piece>,
    /// Index of the oldest piece.
    oldest: usize,
    /// Index of the piece that was used last.
    last: usize,
}

impl Mapped {
    /// Index of the piece that holds a value. Values are read in order, of one shard or of all shards in turns: the piece is nearly always
    /// the last one, or the one behind it.
    fn find(&self, from: usize, len: usize) -> Option<usize> {
        let behind = (self.last + 1) % self.pieces.len().max(1);
        let holds = |n: &usize| self.pieces.get(*n).is_some_and(|p| p.holds(from, len));
        [self.last, behind]
            .into_iter()
            .find(holds)
            .or_else(|| (0..self.pieces.len()).find(holds))
    }

    /// Keeps a piece, and returns its index.
    fn keep(&mut self, piece: Piece) -> usize {
        if self.pieces.len() < MOST {
            self.pieces.push(piece);
            return self.pieces.len() - 1;
        }
        let place = self.oldest;
        self.pieces[place] = piece;
        self.oldest = (place + 1) % MOST;
        place
    }
}

#[derive(Debug)]
struct Piece {
    at: NonNull<c_void>,
    /// Begin in the array, and length, in bytes.
    from: usize,
    len: usize,
}

// SAFETY: the memory is mapped as long as this is there, and every access to it is by volatile words.
unsafe impl Send for Piece {}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: mapped by `Piece::map`, with this length; words of it are handed out only while it is borrowed.
        let _ = unsafe { munmap(self.at.as_ptr(), self.len) };
    }
}

impl Piece {
    fn map(map: BorrowedFd, from: usize, len: usize) -> Option<Piece> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe {
            mmap(
                ptr::null_mut(),
                len,
                protection,
                MapFlags::SHARED,
                map,
                from as u64,
            )
        };
        let at = NonNull::new(at.ok()?)?;
        Some(Piece { at, from, len })
    }

    fn holds(&self, from: usize, len: usize) -> bool {
        self.from <= from && from + len <= self.from + self.len
    }
}

impl Pieces {
    /// Makes the array of a map; `None` if the map is no array that can be mapped.
    pub fn of(map: &MapInfo) -> Option<Pieces> {
        let mappable = map.info.map_flags & libbpf_sys::BPF_F_MMAPABLE != 0;
        (mappable && map.map_type() == MapType::Array).then(|| Pieces {
            stride: (map.info.value_size as usize).next_multiple_of(8),
            values: map.info.max_entries as usize,
            mapped: RefCell::default(),
        })
    }

    /// Gives `f` the words of a value of this map; `None` behind the last value, and if it cannot be mapped.
    pub fn words<R>(
        &self,
        map: BorrowedFd,
        i: u32,
        f: impl FnOnce(&mut dyn Iterator<Item = *mut u64>) -> R,
    ) -> Option<R> {
        self.part(map, i as usize * self.stride, self.stride, f)
    }

    /// Gives `f` the words of `bytes` bytes from `at` on, both multiples of eight; `None` behind the last, and if they cannot be mapped.
    pub fn part<R>(
        &self,
        map: BorrowedFd,
        at: usize,
        bytes: usize,
        f: impl FnOnce(&mut dyn Iterator<Item = *mut u64>) -> R,
    ) -> Option<R> {
        let size = self.values * self.stride;
        if at + bytes > size {
            return None;
        }
        let mut mapped = self.mapped.borrow_mut();
        let place = match mapped.find(at, bytes) {
            Some(place) => place,
            None => {
                let page = rustix::param::page_size();
                let step = PIECE.max(page);
                let from = at / step * step;
                // A value may lie across the beginning of the next piece.
                let len = (step + bytes).next_multiple_of(page);
                let all = size.next_multiple_of(page);
                mapped.keep(Piece::map(map, from, len.min(all - from))?)
            }
        };
        mapped.last = place;
        let piece = mapped.pieces.get(place)?;
        // SAFETY: within the piece, which holds all of it.
        let first = unsafe { piece.at.as_ptr().byte_add(at - piece.from) }.cast::<u64>();
        // SAFETY: the same.
        Some(f(&mut (0..bytes / 8).map(|n| unsafe { first.add(n) })))
    }

    /// Unmaps all pieces.
    pub fn unmap(&self) {
        self.mapped.take();
    }
}
