//! Windows that wait for the disk. A disk that is behind, or refuses windows for a while, causes a longer window and no gap.

use nfscope_model::{Sample, Series, Snapshot, Window, family as f};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime};

/// Most windows that wait. Consecutive windows are joined, so only a clock that is set again and again makes more.
const MOST: usize = 8;
/// Largest distance of consecutive windows: beyond it the clock was set in between.
const NEAR: Duration = Duration::from_millis(1);
const FINDINGS: [&str; 2] = [
    f::BOTTLENECK_ACTIVE.info.name,
    f::BOTTLENECK_SCORE.info.name,
];

/// Windows with their ends, the earliest first.
#[derive(Debug, Default)]
pub(super) struct LateWindows(VecDeque<(Window, SystemTime)>);

impl LateWindows {
    /// Adds a window that ended after the others. Returns false if the earliest one is dropped for it.
    pub(super) fn add(&mut self, window: Window, ended: SystemTime) -> bool {
        match self.0.back_mut() {
            Some((last, end)) if follows(*end, &window, ended) => {
                *last = joined(last, window);
                *end = ended;
            }
            _ => self.0.push_back((window, ended)),
        }
        let fits = self.0.len() <= MOST;
        if !fits {
            self.0.pop_front();
        }
        fits
    }

    /// Hands windows over until one is refused, which stays with those after it.
    ///
    /// # Errors
    /// With the reason of the refusal.
    pub(super) fn hand_over<E>(
        &mut self,
        mut to: impl FnMut(&Window, SystemTime) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((window, ended)) = self.0.front() {
            to(window, *ended)?;
            self.0.pop_front();
        }
        Ok(())
    }
}

/// Returns true if a window begins with the end of another one.
fn follows(end: SystemTime, window: &Window, ended: SystemTime) -> bool {
    let began = ended.checked_sub(window.length).unwrap_or(ended);
    let apart = began.duration_since(end).unwrap_or_else(|e| e.duration());
    apart < NEAR
}

/// Joins two windows: counts are added up, and a gauge has its later value. A finding that was active in either of them is active.
pub fn joined(earlier: &Window, mut later: Window) -> Window {
    later.length += earlier.length;
    let now = std::mem::take(&mut later.delta);
    let mut delta = Snapshot::new(now.at);
    for info in f::ALL {
        let is_finding = FINDINGS.contains(&info.name);
        let before = earlier.delta.series(info);
        let mut ended: HashMap<_, _> = before.iter().map(|s| (&s.labels, &s.sample)).collect();
        for series in now.series(info) {
            let sample = match (ended.remove(&series.labels), &series.sample) {
                (Some(Sample::Counter(a)), Sample::Counter(b)) => Sample::Counter(a + b),
                (Some(Sample::Gauge(a)), Sample::Gauge(b)) if is_finding => {
                    Sample::Gauge(a.max(*b))
                }
                (Some(Sample::Histogram(a)), Sample::Histogram(b)) => {
                    let mut sum = a.clone();
                    sum.merge(b);
                    Sample::Histogram(sum)
                }
                (_, now) => now.clone(),
            };
            let labels = series.labels.clone();
            delta.add(info, Series { labels, sample });
        }
        // Series that ended between the two windows count, too.
        for series in before.iter().filter(|s| ended.contains_key(&s.labels)) {
            if is_finding || !matches!(series.sample, Sample::Gauge(_)) {
                delta.add(info, series.clone());
            }
        }
    }
    (delta.wall, delta.began) = (now.wall, now.began);
    (delta.host, delta.kernel) = (now.host, now.kernel);
    (delta.probes, delta.held) = (now.probes, now.held);
    later.delta = delta;
    later
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{Histogram, Scheme};

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
    }

    fn window(calls: u64, client: &str, active: f64) -> Window {
        let mut delta = Snapshot::new(Duration::from_secs(calls));
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[40] = calls;
        delta.histogram(&f::OP_DURATION, ["3", "write"], h);
        delta.counter(&f::CLIENT_OPS, [client], calls as f64);
        delta.gauge(&f::BOTTLENECK_ACTIVE, ["slow_disk"], active);
        delta.gauge(&f::CPUS, [], calls as f64);
        let length = Duration::from_secs(10);
        Window { length, delta }
    }

    #[test]
    fn windows_that_follow_each_other_wait_as_one_with_all_counts() {
        let mut late = LateWindows::default();
        let clients = ["192.0.2.1", "192.0.2.2", "192.0.2.1"];
        for ((n, client), active) in (1..).zip(clients).zip([0.0, 1.0, 0.0]) {
            assert!(late.add(window(n, client, active), at(10 * n)));
        }
        let mut told = Vec::new();
        late.hand_over(|w, ended| {
            told.push((w.clone(), ended));
            Ok::<_, ()>(())
        })
        .unwrap();
        let [(all, ended)] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!((all.length.as_secs(), *ended), (30, at(30)));
        let d = &all.delta;
        assert_eq!(d.hist(&f::OP_DURATION, ["3", "write"]).unwrap().count(), 6);
        assert_eq!(d.value(&f::CLIENT_OPS, ["192.0.2.1"]), Some(4.0));
        assert_eq!(d.value(&f::CLIENT_OPS, ["192.0.2.2"]), Some(2.0));
        assert_eq!(d.value(&f::BOTTLENECK_ACTIVE, ["slow_disk"]), Some(1.0));
        assert_eq!(d.value(&f::CPUS, []), Some(3.0));
        assert_eq!(d.at, Duration::from_secs(3));
    }

    #[test]
    fn one_that_is_refused_waits_on_and_a_clock_that_was_set_keeps_two_apart() {
        let mut late = LateWindows::default();
        for (n, end) in [(1, 10), (2, 20), (3, 3630), (4, 3640)] {
            assert!(late.add(window(n, "192.0.2.1", 0.0), at(end)));
        }
        let mut room = 1;
        let mut told = Vec::new();
        let mut give = |late: &mut LateWindows, more| {
            room += more;
            late.hand_over(|w, ended| {
                if room == 0 {
                    return Err("full");
                }
                room -= 1;
                told.push((w.length.as_secs(), ended));
                Ok(())
            })
        };
        assert_eq!(give(&mut late, 0), Err("full"));
        assert_eq!(give(&mut late, 1), Ok(()));
        assert_eq!(told, [(20, at(20)), (20, at(3640))]);
        // If there are more windows than a host's clock is ever set for, the earliest ones are dropped, which is reported.
        let lost = |n: u64| !late.add(window(1, "192.0.2.1", 0.0), at(100 * n));
        assert_eq!((100..110).map(lost).filter(|lost| *lost).count(), 2);
    }
}
