//! Bytes that nfsd threads caused to be read from block devices, and bytes that they changed in memory: the kernel accounts I/O to the
//! thread that causes it.
//!
//! Read-ahead belongs to the thread that asked for it (task_io_account_read() in submit_bio(), block/blk-core.c). A write counts when a
//! page becomes dirty, and not for the thread that writes it to the device later (task_io_account_write(), mm/page-writeback.c).

use crate::linux::load::object::Loaded;
use nfscope_model::{Snapshot, family as f};
use std::collections::HashMap;

/// Bytes read and changed.
type Bytes = [u64; 2];

/// Accounts since the source's first reading.
#[derive(Debug, Default)]
pub struct ThreadIo {
    /// Account of each thread at the last reading, by the thread's number and start. A number alone may be another thread's later.
    last: Option<HashMap<(u64, u64), Bytes>>,
    total: Bytes,
}

impl ThreadIo {
    /// Adds the sum over all threads, with the counts of ended ones until the last reading. Adds nothing if the kernel does not account, or
    /// no nfsd thread is seen: the agent may run in a container with process numbers of its own.
    pub fn read(&mut self, l: &Loaded, s: &mut Snapshot) {
        // A failed reading is not a reading without threads.
        if let Ok(words) = l.iterate("block_thread_io") {
            let (threads, _) = words.as_chunks();
            self.update(threads);
        }
        if self.last.is_none() {
            return;
        }
        for (op, bytes) in ["read", "write"].into_iter().zip(self.total) {
            s.counter(&f::THREAD_IO, [op], bytes as f64);
        }
    }

    /// Updates the sums from the number, start, bytes read and bytes changed of each thread.
    fn update(&mut self, threads: &[[u64; 4]]) {
        if threads.is_empty() && self.last.is_none() {
            return;
        }
        let mut now = HashMap::with_capacity(threads.len());
        for &[number, start, read, changed] in threads {
            let (thread, bytes) = ((number, start), [read, changed]);
            now.insert(thread, bytes);
            let Some(last) = &self.last else { continue };
            // A thread that was not in the last reading began with zero.
            let before = last.get(&thread).copied().unwrap_or_default();
            for ((total, before), now) in self.total.iter_mut().zip(before).zip(bytes) {
                *total += now.saturating_sub(before);
            }
        }
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_and_go_and_numbers_are_used_again() {
        let mut io = ThreadIo::default();
        io.update(&[]);
        assert!(io.last.is_none());
        // Bytes before the first reading are not counted.
        io.update(&[[70, 1, 1000, 2000]]);
        assert_eq!(io.total, [0, 0]);
        io.update(&[[70, 1, 1100, 2010], [72, 5, 30, 40]]);
        assert_eq!(io.total, [130, 50]);
        // The first thread ends, and another one has its number.
        io.update(&[[70, 9, 1200, 0], [72, 5, 30, 40]]);
        assert_eq!(io.total, [1330, 50]);
        // All end, and others begin.
        io.update(&[]);
        io.update(&[[80, 12, 1, 1]]);
        assert_eq!(io.total, [1331, 51]);
    }
}
