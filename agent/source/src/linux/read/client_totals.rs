//! Counts of a client's mounts, and the names under which they are published. A limited number of mounts and procedures have series of
//! their own, in the order in which they were first seen, so that no counter ever moves from one name to another.

use nfscope_model::family as f;
use nfscope_model::{Histogram, Scheme, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// Mounts with series of their own; all others are [`OTHER`].
const MOST_MOUNTS: usize = 15;
/// Pairs of mount and procedure with series of their own. With the others they stay below 2,000 samples.
const MOST_OPS: usize = 120;

const OTHER: &str = "other";

/// A mount, as its series name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MountKey {
    /// `server:/export`, or an address.
    pub mount: String,
    /// `3`, `4.2`.
    pub version: String,
}

/// A procedure of a mount. Times are seconds.
#[derive(Debug, Clone)]
pub struct OpTotals {
    pub rpcs: u64,
    pub backlog: f64,
    pub round_trip: f64,
    pub execute: f64,
    /// Times of single RPCs; empty if only sums are known.
    pub durations: Histogram,
}

impl Default for OpTotals {
    fn default() -> Self {
        OpTotals {
            rpcs: 0,
            backlog: 0.0,
            round_trip: 0.0,
            execute: 0.0,
            durations: Histogram::new(Scheme::TIME),
        }
    }
}

impl OpTotals {
    pub fn add(&mut self, other: &OpTotals) {
        self.rpcs += other.rpcs;
        self.backlog += other.backlog;
        self.round_trip += other.round_trip;
        self.execute += other.execute;
        self.durations.merge(&other.durations);
    }
}

/// Counts of a mount as a whole.
#[derive(Debug, Clone)]
pub struct MountTotals {
    pub backlog: Histogram,
    pub round_trip: Histogram,
    pub slot_wait: Histogram,
    /// Lowest round-trip time of its connections.
    pub network: Option<f64>,
    pub retransmits: u64,
    pub timeouts: u64,
    pub errors: u64,
    pub sent: u64,
    pub received: u64,
    pub recalls: u64,
}

impl Default for MountTotals {
    fn default() -> Self {
        let empty = || Histogram::new(Scheme::TIME);
        MountTotals {
            backlog: empty(),
            round_trip: empty(),
            slot_wait: empty(),
            network: None,
            retransmits: 0,
            timeouts: 0,
            errors: 0,
            sent: 0,
            received: 0,
            recalls: 0,
        }
    }
}

impl MountTotals {
    fn add(&mut self, other: &MountTotals) {
        self.backlog.merge(&other.backlog);
        self.round_trip.merge(&other.round_trip);
        self.slot_wait.merge(&other.slot_wait);
        self.network = match (self.network, other.network) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.errors += other.errors;
        self.sent += other.sent;
        self.received += other.received;
        self.recalls += other.recalls;
    }
}

/// All mounts.
#[derive(Debug, Default)]
pub struct Totals {
    pub mounts: BTreeMap<MountKey, MountTotals>,
    pub ops: BTreeMap<(MountKey, String), OpTotals>,
    /// Recalls of files that belong to no mount; `None` where recalls are not counted.
    pub recalls: Option<u64>,
}

/// Mounts and procedures with series of their own.
#[derive(Debug, Default)]
pub struct Names {
    mounts: BTreeSet<MountKey>,
    ops: BTreeSet<(MountKey, String)>,
}

impl Names {
    fn mount(&mut self, key: &MountKey) -> MountKey {
        if self.mounts.len() < MOST_MOUNTS {
            self.mounts.insert(key.clone());
        }
        match self.mounts.contains(key) {
            true => key.clone(),
            false => MountKey {
                mount: OTHER.to_owned(),
                version: OTHER.to_owned(),
            },
        }
    }

    fn op(&mut self, key: &MountKey, op: &str) -> (MountKey, String) {
        let key = self.mount(key);
        let pair = (key, op.to_owned());
        if self.ops.len() < MOST_OPS && pair.0.mount != OTHER {
            self.ops.insert(pair.clone());
        }
        match self.ops.contains(&pair) {
            true => pair,
            false => (pair.0, OTHER.to_owned()),
        }
    }
}

impl Totals {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Totals) {
        for (key, mount) in &other.mounts {
            self.mounts.entry(key.clone()).or_default().add(mount);
        }
        for (key, op) in &other.ops {
            self.ops.entry(key.clone()).or_default().add(op);
        }
        if let Some(n) = other.recalls {
            *self.recalls.get_or_insert(0) += n;
        }
    }

    /// Counts by published name: [`OTHER`] for mounts and procedures without series of their own.
    fn named(&self, names: &mut Names) -> Totals {
        let mut all = Totals {
            recalls: self.recalls,
            ..Totals::default()
        };
        for (key, mount) in &self.mounts {
            all.mounts.entry(names.mount(key)).or_default().add(mount);
        }
        for ((key, op), total) in &self.ops {
            all.ops.entry(names.op(key, op)).or_default().add(total);
        }
        all
    }

    /// Fills a snapshot. `each`: the times of single RPCs are known, not only sums.
    pub fn publish(&self, names: &mut Names, each: bool, s: &mut Snapshot) {
        let all = self.named(names);
        for ((key, op), total) in &all.ops {
            let labels = [key.mount.as_str(), &key.version, op];
            s.counter(&f::VIEW_RPCS, labels, total.rpcs as f64);
            let completion = (total.execute - total.backlog - total.round_trip).max(0.0);
            for (stage, seconds) in [
                ("backlog", total.backlog),
                ("round_trip", total.round_trip),
                ("completion", completion),
            ] {
                let labels = [labels[0], labels[1], labels[2], stage];
                s.counter(&f::VIEW_STAGE, labels, seconds);
            }
            if each {
                s.histogram(&f::VIEW_DURATION, labels, total.durations.clone());
            }
        }
        for (key, mount) in &all.mounts {
            let labels = [key.mount.as_str(), &key.version];
            if each {
                s.histogram(&f::VIEW_BACKLOG, labels, mount.backlog.clone());
                s.histogram(&f::VIEW_ROUND_TRIP, labels, mount.round_trip.clone());
                if key.version.starts_with('4') {
                    s.histogram(&f::VIEW_SLOT_WAIT, labels, mount.slot_wait.clone());
                }
                if let Some(rtt) = mount.network {
                    s.gauge(&f::VIEW_NETWORK, labels, rtt);
                }
            }
            s.counter(&f::VIEW_RETRANSMITS, labels, mount.retransmits as f64);
            s.counter(&f::VIEW_TIMEOUTS, labels, mount.timeouts as f64);
            s.counter(&f::VIEW_ERRORS, labels, mount.errors as f64);
            for (direction, bytes) in [("sent", mount.sent), ("received", mount.received)] {
                let labels = [labels[0], labels[1], direction];
                s.counter(&f::VIEW_BYTES, labels, bytes as f64);
            }
            if all.recalls.is_some() && key.version.starts_with('4') {
                s.counter(&f::VIEW_RECALLS, labels, mount.recalls as f64);
            }
        }
        if let Some(n) = all.recalls {
            let elsewhere = all.mounts.iter().filter(|(key, _)| key.mount == OTHER);
            let n = elsewhere.fold(n, |n, (_, mount)| n + mount.recalls);
            s.counter(&f::VIEW_RECALLS, [OTHER, OTHER], n as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(n: usize) -> MountKey {
        MountKey {
            mount: format!("server:/exp{n}"),
            version: "4.2".to_owned(),
        }
    }

    fn op(rpcs: u64) -> OpTotals {
        let mut durations = Histogram::new(Scheme::TIME);
        durations.counts[40] = rpcs;
        durations.sum = rpcs as f64 * 0.004;
        OpTotals {
            rpcs,
            backlog: rpcs as f64 * 0.001,
            round_trip: rpcs as f64 * 0.0025,
            execute: rpcs as f64 * 0.004,
            durations,
        }
    }

    /// Many mounts, each with many procedures.
    fn crowd() -> Totals {
        let mut all = Totals {
            recalls: Some(3),
            ..Totals::default()
        };
        for n in 0..40 {
            let busy = MountTotals {
                retransmits: 1,
                recalls: 2,
                network: Some(0.001 * (n + 1) as f64),
                ..MountTotals::default()
            };
            all.mounts.insert(mount(n), busy);
            for proc in 0..30 {
                all.ops.insert((mount(n), format!("op{proc}")), op(10));
            }
        }
        all
    }

    #[test]
    fn series_are_bounded_and_nothing_is_lost() {
        let mut s = Snapshot::default();
        crowd().publish(&mut Names::default(), true, &mut s);
        // Classic histograms: five edges of durations by mount, four by procedure, each with +Inf, sum and count.
        let samples = |name: &str, series: usize| match name {
            "nfscope_client_view_rpc_duration_seconds" => series * 7,
            "nfscope_client_view_backlog_seconds"
            | "nfscope_client_view_round_trip_seconds"
            | "nfscope_client_view_slot_wait_seconds" => series * 8,
            _ => series,
        };
        let all: usize = s.all().map(|(name, of)| samples(name, of.len())).sum();
        assert!((1_500..2_000).contains(&all), "{all}");
        let rpcs: f64 = s.numbers(&f::VIEW_RPCS).map(|(_, n)| n).sum();
        assert_eq!(rpcs, 40.0 * 30.0 * 10.0);
        let sent: f64 = s.numbers(&f::VIEW_RETRANSMITS).map(|(_, n)| n).sum();
        assert_eq!(sent, 40.0);
        let recalls: f64 = s.numbers(&f::VIEW_RECALLS).map(|(_, n)| n).sum();
        assert_eq!(recalls, 83.0);
        assert_eq!(s.value(&f::VIEW_RECALLS, [OTHER, OTHER]), Some(53.0));
        // The lowest time of the mounts that share a name.
        let network = s.value(&f::VIEW_NETWORK, [OTHER, OTHER]);
        assert!(network > Some(0.001), "{network:?}");
    }

    #[test]
    fn a_name_stays_whoever_comes_later() {
        let mut names = Names::default();
        let (mut a, mut b) = (Snapshot::default(), Snapshot::default());
        let mut few = Totals::default();
        few.ops.insert((mount(99), "read".into()), op(5));
        few.publish(&mut names, true, &mut a);
        let mut all = crowd();
        all.add(&few);
        all.publish(&mut names, true, &mut b);
        let labels = ["server:/exp99", "4.2", "read"];
        assert_eq!(a.value(&f::VIEW_RPCS, labels), Some(5.0));
        assert_eq!(b.value(&f::VIEW_RPCS, labels), Some(5.0));
        assert_eq!(b.hist(&f::VIEW_DURATION, labels).unwrap().count(), 5);
    }

    #[test]
    fn stages_add_up_to_the_clients_own_time() {
        let mut s = Snapshot::default();
        crowd().publish(&mut Names::default(), true, &mut s);
        let stages: f64 = s.numbers(&f::VIEW_STAGE).map(|(_, n)| n).sum();
        let all = s.histograms(&f::VIEW_DURATION).map(|(_, h)| h.sum);
        let all: f64 = all.sum();
        assert!((stages - all).abs() < 1e-6 * all, "{stages} {all}");
        // Sums alone have no histogram.
        let mut sums = Snapshot::default();
        crowd().publish(&mut Names::default(), false, &mut sums);
        assert!(sums.histograms(&f::VIEW_DURATION).next().is_none());
        assert!(
            sums.hist(&f::VIEW_BACKLOG, ["server:/exp0", "4.2"])
                .is_none()
        );
    }
}
