//! What nfsd threads had read from block devices and have changed in memory: the kernel accounts I/O to the thread that causes it.
//!
//! Read-ahead is the thread's that asked for it (task_io_account_read() in submit_bio(), block/blk-core.c). A write counts when a
//! page becomes dirty, whoever writes it to the device later (task_io_account_write(), mm/page-writeback.c).

use crate::linux::load::object::Loaded;
use nfscope_model::{Snapshot, family as f};
use std::collections::HashMap;

/// Bytes read and changed.
type Bytes = [u64; 2];

/// Accounts, from when the source first looked.
#[derive(Debug, Default)]
pub struct ThreadIo {
    /// The account of each thread by then. A number alone may be another thread's later; with its start it is not.
    last: Option<HashMap<(u64, u64), Bytes>>,
    total: Bytes,
}

impl ThreadIo {
    /// Adds the sum over all threads, what ended ones did until the last reading included. Nothing where the kernel does not account, and where no
    /// nfsd thread is seen: the agent may run in a container with process numbers of its own.
    pub fn read(&mut self, l: &Loaded, s: &mut Snapshot) {
        // A reading that fails is no reading without threads.
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

    /// Number, start, bytes read and bytes changed of each.
    fn update(&mut self, threads: &[[u64; 4]]) {
        if threads.is_empty() && self.last.is_none() {
            return;
        }
        let mut now = HashMap::with_capacity(threads.len());
        for &[number, start, read, changed] in threads {
            let (thread, bytes) = ((number, start), [read, changed]);
            now.insert(thread, bytes);
            let Some(last) = &self.last else { continue };
            // One that was not there has done nothing yet.
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
        // What was before is nobody's.
        io.update(&[[70, 1, 1000, 2000]]);
        assert_eq!(io.total, [0, 0]);
        io.update(&[[70, 1, 1100, 2010], [72, 5, 30, 40]]);
        assert_eq!(io.total, [130, 50]);
        // The first ends, and another one has its number.
        io.update(&[[70, 9, 1200, 0], [72, 5, 30, 40]]);
        assert_eq!(io.total, [1330, 50]);
        // All end, and others begin.
        io.update(&[]);
        io.update(&[[80, 12, 1, 1]]);
        assert_eq!(io.total, [1331, 51]);
    }
}
