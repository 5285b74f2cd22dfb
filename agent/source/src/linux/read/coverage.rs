//! Counts of the probes beside the kernel's own counts.

use super::nfsd::Timed;
use crate::linux::host::procfs::KernelCounts;
use crate::linux::load::object::Loaded;
use nfscope_model::Snapshot;
use nfscope_model::family as f;

/// Values from one reading to the next. A probe that attaches again gets new ones.
#[derive(Debug, Default)]
pub struct Coverage {
    figures: [Figure; FIGURES],
}

/// NFSv3 procedures, NFSv4 operations, RPC calls, bytes read, bytes written.
const FIGURES: usize = 5;

/// A count of the kernel.
#[derive(Debug, Default, Clone, Copy)]
struct Figure {
    /// Value of the last reading; `None` before the first reading.
    read: Option<u64>,
    /// Growth since the probes attached.
    grown: u64,
    /// Value that was published last. It never falls.
    published: u64,
    /// True if the count includes requests to servers of other network namespaces; `None` as long as that is not known.
    of_all: Option<bool>,
}

/// Number of requests elsewhere from which on a count shows if it includes them.
const TELLING: u64 = 1000;

/// Growth of a counter that may have 32 bits: `unsigned int` of struct svc_stat (include/linux/sunrpc/stats.h), and other counters on
/// 32-bit machines and old kernels.
fn gone(from: u64, to: u64) -> u64 {
    const WRAP: u64 = 1 << 32;
    match to.checked_sub(from) {
        Some(n) => n,
        None if from < WRAP => to + WRAP - from,
        None => 0,
    }
}

impl Figure {
    /// Returns the kernel's count, as near to `timed` as the readings before and after it allow: the kernel serves requests meanwhile.
    fn counted(&mut self, start: u64, around: [u64; 2], timed: u64, elsewhere: u64) -> u64 {
        self.grown += gone(self.read.unwrap_or(start), around[0]);
        self.read = Some(around[0]);
        let (least, most) = (self.grown, self.grown + gone(around[0], around[1]));
        let here = timed.clamp(least, most);
        let beside = |n: u64| n.saturating_sub(elsewhere);
        let all = timed.clamp(beside(least), beside(most));
        if self.of_all.is_none() && elsewhere >= TELLING {
            self.of_all = Some(all.abs_diff(timed) < here.abs_diff(timed));
        }
        let counted = match self.of_all {
            Some(false) => here,
            Some(true) => all,
            // The value nearest to `timed` with or without the requests elsewhere.
            None => timed.clamp(beside(least), most),
        };
        self.published = self.published.max(counted);
        self.published
    }
}

impl Coverage {
    /// Fills the counters of the kernel and of the probes. `timed` was read between the two readings `around` of the kernel's
    /// counts.
    pub fn read(&mut self, l: &Loaded, timed: Timed, around: [&KernelCounts; 2], s: &mut Snapshot) {
        let Some(start) = &l.counted else { return };
        let count = |figure: &mut Figure, timed, elsewhere, of: &dyn Fn(&KernelCounts) -> u64| {
            figure.counted(of(start), around.map(of), timed, elsewhere)
        };
        let [v3, v4, rpcs, io @ ..] = &mut self.figures;
        // The kernel has a single count of NFSv3 procedures for all network namespaces (net/sunrpc/svc.c, vs_count), and of RPC calls
        // before 6.9.
        let v3 = count(v3, timed.v3, timed.elsewhere_v3, &KernelCounts::v3);
        let v4 = count(v4, timed.v4, 0, &KernelCounts::v4);
        for (version, timed, counted) in [("3", timed.v3, v3), ("4", timed.v4, v4)] {
            s.counter(&f::KERNEL_OPS, [version], counted as f64);
            s.counter(&f::TIMED_OPS, [version], timed as f64);
            // A server without operations has no coverage.
            if counted > 0 {
                s.gauge(&f::COVERAGE, [version], timed as f64 / counted as f64);
            }
        }
        let rpcs = count(rpcs, timed.rpcs, timed.elsewhere, &KernelCounts::calls);
        s.counter(&f::KERNEL_RPCS, [], rpcs as f64);
        s.counter(&f::TIMED_RPCS, [], timed.rpcs as f64);
        for (i, (figure, op)) in io.iter_mut().zip(["read", "write"]).enumerate() {
            let bytes = count(figure, timed.io[i], 0, &|k| k.io[i]);
            s.counter(&f::KERNEL_IO_BYTES, [op], bytes as f64);
            s.counter(&f::TIMED_IO_BYTES, [op], timed.io[i] as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_between_two_readings_is_exact() {
        let mut figure = Figure::default();
        assert_eq!(figure.counted(100, [150, 160], 55, 0), 55);
        assert_eq!(figure.counted(100, [200, 200], 70, 0), 100);
        // The published count never falls.
        assert_eq!(figure.counted(100, [200, 200], 40, 0), 100);
    }

    #[test]
    fn a_count_of_32_bits_begins_anew() {
        let mut figure = Figure::default();
        let top = u64::from(u32::MAX);
        assert_eq!(figure.counted(top - 9, [top, top], 9, 0), 9);
        assert_eq!(figure.counted(top - 9, [5, 5], 15, 0), 15);
    }

    #[test]
    fn requests_elsewhere_are_in_a_count_or_not() {
        // A kernel with one count for all.
        let mut all = Figure::default();
        assert_eq!(all.counted(0, [150, 150], 100, 50), 100);
        assert_eq!(all.counted(0, [5200, 5200], 200, 5000), 200);
        assert_eq!(all.of_all, Some(true));
        // The probes miss ten requests from here on.
        assert_eq!(all.counted(0, [5310, 5310], 300, 5000), 310);
        // A kernel with a count for each network namespace.
        let mut own = Figure::default();
        assert_eq!(own.counted(0, [210, 210], 200, 5000), 210);
        assert_eq!(own.of_all, Some(false));
        assert_eq!(own.counted(0, [300, 300], 290, 9000), 300);
    }
}
