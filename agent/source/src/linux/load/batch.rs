//! Reads rows of a table that has many shards, in runs: one system call for a run costs less than mapping its pages, and much less than one
//! for each row.

use super::maps::Map;
use super::pod;
use libbpf_rs::libbpf_sys;
use nfscope_probes::Counters;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr;

/// Number of unwanted rows up to which a run reads them, rather than ending for another call.
const GAP: u32 = 4;

impl Map {
    /// Rows of a table of `rows`, each added up over its shards, in the order of `wanted`, which ascends. All zero if the table cannot be
    /// read.
    pub fn totals<T: Counters>(&self, rows: u32, wanted: &[u32]) -> Vec<T> {
        let mut sums: Vec<T> = wanted.iter().map(|_| pod::zero()).collect();
        let runs = runs(wanted);
        let longest = runs.iter().map(|run| span(&wanted[run.clone()])).max();
        let mut values = Vec::new();
        values.resize_with(longest.unwrap_or(0) as usize, pod::zero::<T>);
        for shard in self.shards(rows, 0) {
            for run in &runs {
                let some = &wanted[run.clone()];
                let (from, len) = (some[0], span(some) as usize);
                let values = &mut values[..len];
                let all_at_once = self.read_run(shard + from, values);
                for (sum, row) in sums[run.clone()].iter_mut().zip(some) {
                    let mut one = match all_at_once {
                        true => values.get((row - from) as usize).copied(),
                        false => self.value::<T>(&(shard + row)),
                    };
                    let Some(value) = &mut one else { continue };
                    for (sum, word) in pod::words_of(sum).iter_mut().zip(pod::words_of(value)) {
                        *sum = sum.wrapping_add(*word);
                    }
                }
            }
        }
        sums
    }

    /// Reads values of an array from `first` on. Returns false if the kernel has no such call (before 5.6), or denies it to this process.
    fn read_run<T: Counters>(&self, first: u32, values: &mut [T]) -> bool {
        if self.value_size() != size_of::<T>() {
            return false;
        }
        let wanted = values.len() as u32;
        let (mut last, mut count) = (0u32, wanted);
        // Keys that are no entries, to recognise those that the kernel has written.
        let mut keys = vec![u32::MAX; values.len()];
        // The call goes on behind the entry that it gets.
        let mut before = first.wrapping_sub(1);
        let behind: *mut u32 = match first {
            0 => ptr::null_mut(),
            _ => &raw mut before,
        };
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as _,
            ..Default::default()
        };
        // SAFETY: keys and values have room for `count` entries of the map's sizes, which T has by its header, and all
        // pointers outlive the call.
        unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                self.descriptor().as_raw_fd(),
                behind.cast(),
                (&raw mut last).cast(),
                keys.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
                &raw mut count,
                &raw const options,
            );
        }
        // Behind the last entry of the array the call reports an error, although it has read all values.
        count == wanted && keys.first() == Some(&first)
    }
}

/// Number of rows from the first to the last of a run.
fn span(run: &[u32]) -> u32 {
    match run {
        [] => 0,
        [first, ..] => run[run.len() - 1] - first + 1,
    }
}

/// Splits ascending rows into runs, as ranges of places.
fn runs(rows: &[u32]) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        match all.last_mut() {
            Some(run) if row - rows[run.end - 1] <= GAP + 1 => run.end = place + 1,
            _ => all.push(place..place + 1),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_run() {
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[7]).len(), 1);
        assert_eq!(runs(&[0, 1, 6, 12, 13]), [0..3, 3..5]);
        assert_eq!(span(&[]), 0);
        assert_eq!(span(&[3]), 1);
        assert_eq!(span(&[3, 9]), 7);
    }
}
