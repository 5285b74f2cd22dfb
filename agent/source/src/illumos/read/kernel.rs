//! Counts of the kernel itself: CPUs, the reply cache, and its operations beside those that were timed.

use crate::illumos::kstat::Stats;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use std::collections::VecDeque;

/// Number of sets that are remembered: frames of operations are at most a few seconds behind the newest set.
const MOST: usize = 8;

/// Names that are no operations, or operations without probes.
const NOT_TIMED: [&str; 7] = [
    "crtime", "snaptime", "class", "compound", "reserved", "illegal", "null",
];

/// Sets of statistics, and the part of their counts since the scripts began.
#[derive(Debug, Default)]
pub struct Kernel {
    sets: VecDeque<Stats>,
    /// Time at which the script for operations began first.
    began: Option<u64>,
    figures: [Figure; 2],
}

/// Operations of a version.
#[derive(Debug, Default, Clone, Copy)]
struct Figure {
    /// The kernel's counts just before and just after the script began.
    start: Option<[f64; 2]>,
    /// Count that was published last. It never falls.
    published: f64,
}

/// Operations of a version that the kernel counted since it started; NULL of version 4 is not among its operations.
fn counted(stats: &Stats, version: usize) -> Option<f64> {
    let start = ["nfs:0:rfsproccnt_v3:", "nfs:0:rfsproccnt_v4:"][version];
    let mut any = false;
    let mut sum = 0.0;
    for (name, value) in stats.under(start) {
        any = true;
        let null = name == "null" && version == 0;
        if null || !NOT_TIMED.contains(&name) {
            sum += value;
        }
    }
    any.then_some(sum)
}

impl Kernel {
    /// Takes the next set.
    pub fn add(&mut self, stats: Stats) {
        if self.sets.len() >= MOST {
            self.sets.pop_front();
        }
        self.sets.push_back(stats);
    }

    /// Notes the time at which the script for operations began.
    pub fn began(&mut self, at_ns: u64) {
        self.began.get_or_insert(at_ns);
    }

    /// The newest set.
    pub fn newest(&self) -> Option<&Stats> {
        self.sets.back()
    }

    /// CPUs and the reply cache.
    pub fn read(&self, s: &mut Snapshot) {
        let Some(stats) = self.newest() else { return };
        let idle: Vec<f64> = stats
            .all()
            .filter(|(name, _)| name.starts_with("cpu:") && name.ends_with(":sys:cpu_nsec_idle"))
            .map(|(_, ns)| ns)
            .collect();
        if !idle.is_empty() {
            s.gauge(&f::CPUS, [], idle.len() as f64);
            s.counter(&f::CPU_IDLE, [], idle.iter().sum::<f64>() / 1e9);
        }
        let both = |statistic: &str| {
            let of = ["cots", "clts"]
                .map(|t| stats.value(&format!("unix:0:rpc_{t}_server:{statistic}")));
            match of {
                [None, None] => None,
                of => Some(of.into_iter().flatten().sum::<f64>()),
            }
        };
        if let (Some(checks), Some(hits)) = (both("dupchecks"), both("dupreqs")) {
            s.counter(&f::REPLY_CACHE, ["hit"], hits);
            s.counter(&f::REPLY_CACHE, ["miss"], (checks - hits).max(0.0));
        }
        if let (Some(short), Some(malformed)) = (both("badlen"), both("xdrcall")) {
            s.counter(&f::RPC_DROPPED, ["garbage"], short + malformed);
        }
    }

    /// Adds the kernel's operations beside those that were timed up to this moment, by version.
    pub fn coverage(&mut self, at_ns: u64, timed: [u64; 2], s: &mut Snapshot) {
        let Some(began) = self.began else { return };
        for (version, label) in ["3", "4"].into_iter().enumerate() {
            let around = |at: u64| {
                let before = self.sets.iter().rev().find(|set| set.at_ns <= at);
                let after = self.sets.iter().find(|set| set.at_ns > at);
                [before, after].map(|set| set.and_then(|set| counted(set, version)))
            };
            let figure = &mut self.figures[version];
            if figure.start.is_none() {
                figure.start = match around(began) {
                    [Some(before), Some(after)] => Some([before, after]),
                    // Without an earlier set the first later one is used.
                    [None, Some(after)] => Some([after, after]),
                    // No later set has come yet.
                    [_, None] => None,
                };
            }
            let Some([least_start, most_start]) = figure.start else {
                continue;
            };
            let [before, after] = around(at_ns);
            let timed = timed[version] as f64;
            // The kernel serves requests between two sets: its count at this moment lies between both.
            let least = before.map_or(0.0, |n| n - most_start).max(0.0);
            let most = after.map_or(f64::INFINITY, |n| n - least_start).max(least);
            figure.published = figure.published.max(timed.clamp(least, most));
            s.counter(&f::KERNEL_OPS, [label], figure.published);
            s.counter(&f::TIMED_OPS, [label], timed);
            if figure.published > 0.0 {
                s.gauge(&f::COVERAGE, [label], timed / figure.published);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::illumos::child::Reader;
    use crate::illumos::kstat::Parser;

    fn set(at_ns: u64, reads: u64) -> Stats {
        let text = format!(
            "1\nnfs:0:rfsproccnt_v3:read\t{reads}\nnfs:0:rfsproccnt_v3:null\t1\nnfs:0:rfsproccnt_v3:crtime\t99.5\nnfs:0:rfsproccnt_v4:compound\t500\nnfs:0:rfsproccnt_v4:getattr\t0\ncpu:0:sys:cpu_nsec_idle\t1500000000\ncpu:1:sys:cpu_nsec_idle\t500000000\nunix:0:rpc_cots_server:dupchecks\t10\nunix:0:rpc_cots_server:dupreqs\t3\n2\n"
        );
        let mut out = None;
        Parser::default().feed(text.as_bytes(), &mut |s| out = Some(s));
        let mut out = out.unwrap();
        out.at_ns = at_ns;
        out
    }

    fn covered(k: &mut Kernel, at_ns: u64, timed: u64) -> Option<f64> {
        let mut s = Snapshot::default();
        k.coverage(at_ns, [timed, 0], &mut s);
        s.value(&f::KERNEL_OPS, ["3"])
    }

    #[test]
    fn the_kernel_counts_between_two_sets() {
        let mut k = Kernel::default();
        k.add(set(10, 100));
        k.began(15);
        assert_eq!(covered(&mut k, 16, 1), None);
        k.add(set(20, 110));
        assert_eq!(covered(&mut k, 18, 8), Some(8.0));
        k.add(set(30, 150));
        // Some operations are missing: at least 40 came after the second set.
        assert_eq!(covered(&mut k, 30, 20), Some(40.0));
        // The published count never falls.
        assert_eq!(covered(&mut k, 21, 20), Some(40.0));
    }

    #[test]
    fn what_stands_in_other_families() {
        let mut k = Kernel::default();
        let mut s = Snapshot::default();
        k.read(&mut s);
        assert_eq!(s.filled().count(), 0);
        k.add(set(10, 100));
        k.read(&mut s);
        assert_eq!(s.value(&f::CPUS, []), Some(2.0));
        assert_eq!(s.value(&f::CPU_IDLE, []), Some(2.0));
        assert_eq!(s.value(&f::REPLY_CACHE, ["miss"]), Some(7.0));
        assert_eq!(s.value(&f::RPC_DROPPED, ["garbage"]), None);
        assert_eq!(counted(k.newest().unwrap(), 0), Some(101.0));
        assert_eq!(counted(k.newest().unwrap(), 1), Some(0.0));
    }
}
