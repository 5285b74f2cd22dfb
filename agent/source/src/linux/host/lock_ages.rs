//! How many locks of files clients wait for, and for how long the oldest of them has been waited for.
//!
//! Kernels list such a wait where the lock is asked for once and granted later. From Linux 6.7 to 6.12, lockd and nfsd list none for most
//! file systems: they tell the client to wait and forget it (fs/lockd/svclock.c, `async_block`), so that it has to ask again. An empty
//! list says nothing. Waits for locks of NFSv3 are known by what lockd answers, too.

use crate::lock_waits::{self, LockWait};
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the list is read: the kernel holds locks of its own while it writes the list.
const READ_AGAIN: Duration = Duration::from_secs(5);
const VERSIONS: [&str; 2] = ["3", "4"];

/// Locks that are waited for, since when they were first seen.
#[derive(Debug, Default)]
pub struct LockAges {
    read: Option<Instant>,
    /// `None` where the list cannot be read.
    since: Option<HashMap<LockWait, Instant>>,
}

impl LockAges {
    /// Adds the series. `of_lockd` has the ages of waits by what lockd answers; `None` where that is not seen.
    pub fn read(&mut self, of_lockd: Option<&[Duration]>, s: &mut Snapshot) {
        let now = Instant::now();
        if self.read.is_none_or(|at| now - at >= READ_AGAIN) {
            self.read = Some(now);
            self.note(lock_waits::read(Path::new("/proc")), now);
        }
        self.fill(of_lockd, now, s);
    }

    fn note(&mut self, waits: Option<Vec<LockWait>>, now: Instant) {
        let before = self.since.take().unwrap_or_default();
        self.since = waits.map(|all| {
            let since = |wait: LockWait| (before.get(&wait).copied().unwrap_or(now), wait);
            all.into_iter().map(since).map(|(at, w)| (w, at)).collect()
        });
    }

    fn fill(&self, of_lockd: Option<&[Duration]>, now: Instant, s: &mut Snapshot) {
        for version in VERSIONS {
            let of_it = (self.since.iter().flatten())
                .filter(|(w, _)| w.waiter.version() == Some(version))
                .map(|(_, at)| now.saturating_duration_since(*at));
            let listed: Vec<_> = of_it.collect();
            let answered = of_lockd.filter(|_| version == "3");
            if listed.is_empty() && answered.is_none() {
                continue;
            }
            let answered = answered.unwrap_or_default();
            let oldest = listed.iter().chain(answered).max().copied();
            // A wait that both know counts once.
            let waits = listed.len().max(answered.len());
            s.gauge(&f::LOCK_WAITS, [version], waits as f64);
            let oldest = oldest.unwrap_or_default().as_secs_f64();
            s.gauge(&f::LOCK_WAIT_OLDEST, [version], oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock_waits::Owner;

    fn wait(command: &str, range: &str) -> LockWait {
        LockWait {
            waiter: Owner {
                pid: 812,
                command: Some(command.to_owned()),
            },
            holder: None,
            file: "fd:01:395".to_owned(),
            range: range.to_owned(),
        }
    }

    #[test]
    fn a_wait_is_as_old_as_it_has_been_seen_without_a_break() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut ages = LockAges::default();
        let told = |ages: &LockAges, of_lockd: Option<&[Duration]>, seconds| {
            let mut s = Snapshot::default();
            ages.fill(of_lockd, at(seconds), &mut s);
            VERSIONS.map(|v| [&f::LOCK_WAITS, &f::LOCK_WAIT_OLDEST].map(|f| s.value(f, [v])))
        };
        const UNKNOWN: [Option<f64>; 2] = [None, None];
        assert_eq!(told(&ages, None, 0), [UNKNOWN, UNKNOWN]);
        ages.note(Some(vec![wait("lockd", "0 to 9")]), at(0));
        let more = ["10 to 19", "0 to 9"].map(|range| wait("lockd", range));
        ages.note(
            Some([&more[..], &[wait("nfsd", "0 to 9")]].concat()),
            at(10),
        );
        let [v3, v4] = told(&ages, None, 12);
        assert_eq!((v3, v4), ([Some(2.0), Some(12.0)], [Some(1.0), Some(2.0)]));
        // Granted, and waited for again.
        ages.note(Some(vec![wait("lockd", "10 to 19")]), at(20));
        ages.note(Some(vec![wait("lockd", "0 to 9")]), at(30));
        assert_eq!(told(&ages, None, 31), [[Some(1.0), Some(1.0)], UNKNOWN]);
        // An empty list says nothing; what lockd answers does.
        ages.note(Some(Vec::new()), at(40));
        assert_eq!(told(&ages, None, 41), [UNKNOWN, UNKNOWN]);
        assert_eq!(told(&ages, Some(&[]), 41)[0], [Some(0.0), Some(0.0)]);
        let answered = [Duration::from_secs(7), Duration::from_secs(3)];
        assert_eq!(
            told(&ages, Some(&answered), 41),
            [[Some(2.0), Some(7.0)], UNKNOWN]
        );
    }
}
