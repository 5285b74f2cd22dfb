//! The trend of a wait over a window: steady, in bursts, growing or falling.
//!
//! The window is cut into slices of equal length. Waits count in the slice in which they ended.

use crate::attribution::{deferred_seconds, upcall_seconds};
use crate::breakdown::{Breakdown, mean, part, sum};
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::{
    BURST, MAX_BURST_SLICES, MIN_IN_BURSTS, MIN_SLICES, STEADY, TREND, TREND_SCORE,
};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind};
use nfscope_text::units::seconds;

/// Trend of a quantity over a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Course {
    /// About the same in all slices.
    Steady,
    /// Most of the quantity in few slices.
    Bursts {
        /// Number of bursts.
        count: usize,
        /// Length of the longest burst, in seconds: a number of slices. Its waits ended in these, and may have begun long before.
        length: f64,
        /// Mean time from the beginning of one burst to the next, in seconds; `None` for a single one.
        every: Option<f64>,
        /// Part of the quantity that is in bursts, 0 to 1.
        part: f64,
    },
    /// Growing or falling: the last third over the first.
    Trend(f64),
    /// A course of no other kind.
    Uneven,
}

impl Course {
    /// Trend of values in slices of `slice` seconds each; `None` for too few slices, and if all are zero.
    pub fn of(each: &[f64], slice: f64) -> Option<Course> {
        let n = each.len();
        let total = sum(each.iter().copied());
        if (n as f64) < MIN_SLICES || total <= 0.0 || slice <= 0.0 {
            return None;
        }
        let mean = total / n as f64;
        if let Some(bursts) = bursts(each, slice, mean) {
            return Some(bursts);
        }
        let third = n / 3;
        let first = sum(each[..third].iter().copied());
        let last = sum(each[n - third..].iter().copied());
        let ratio = if first > 0.0 {
            last / first
        } else {
            f64::INFINITY
        };
        let score = mann_kendall(each);
        if (score >= TREND_SCORE && ratio >= TREND)
            || (score <= -TREND_SCORE && ratio <= 1.0 / TREND)
        {
            return Some(Course::Trend(ratio));
        }
        let variance = sum(each.iter().map(|v| (v - mean) * (v - mean))) / n as f64;
        Some(match variance.sqrt() <= STEADY * mean {
            true => Course::Steady,
            false => Course::Uneven,
        })
    }

    fn words(self) -> String {
        match self {
            Course::Steady => "steady".into(),
            Course::Uneven => "uneven".into(),
            Course::Trend(ratio) if ratio.is_infinite() => "growing from nothing".into(),
            Course::Trend(ratio) if ratio >= 1.0 => format!(
                "growing: the last third of the window has {ratio:.1} times the waiting of the first"
            ),
            Course::Trend(ratio) => format!(
                "falling: the last third of the window has {} of the waiting of the first",
                percent(ratio)
            ),
            Course::Bursts {
                count,
                length,
                every,
                part,
            } => match every {
                Some(every) => format!(
                    "{} of the waiting ended in {count} bursts of {} or less, one every {} on average",
                    percent(part),
                    seconds(length),
                    seconds(every)
                ),
                None => format!(
                    "{} of the waiting ended in one burst of {} or less",
                    percent(part),
                    seconds(length)
                ),
            },
        }
    }
}

fn bursts(each: &[f64], slice: f64, mean: f64) -> Option<Course> {
    let is_burst = |v: &f64| *v > BURST * mean;
    let number = each.iter().filter(|v| is_burst(v)).count();
    let inside = part(
        sum(each.iter().filter(|v| is_burst(v)).copied()),
        mean * each.len() as f64,
    );
    if inside < MIN_IN_BURSTS || number as f64 > MAX_BURST_SLICES * each.len() as f64 {
        return None;
    }
    // Consecutive slices are one burst.
    let begins: Vec<usize> = (0..each.len())
        .filter(|i| is_burst(&each[*i]) && (*i == 0 || !is_burst(&each[i - 1])))
        .collect();
    let count = begins.len();
    let (first, last) = (begins.first()?, begins.last()?);
    let longest = (begins.iter())
        .map(|i| each[*i..].iter().take_while(|v| is_burst(v)).count())
        .max()?;
    Some(Course::Bursts {
        count,
        length: longest as f64 * slice,
        every: (count > 1).then(|| (last - first) as f64 / (count - 1) as f64 * slice),
        part: inside,
    })
}

/// Standard score of a monotonic trend: H. B. Mann, Nonparametric tests against trend, Econometrica 13, 1945, and M. G. Kendall, Rank
/// Correlation Methods, 1975.
fn mann_kendall(each: &[f64]) -> f64 {
    let n = each.len() as f64;
    let mut s = 0.0;
    for (i, earlier) in each.iter().enumerate() {
        for later in &each[i + 1..] {
            s += match later.total_cmp(earlier) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Less => -1.0,
                std::cmp::Ordering::Equal => 0.0,
            };
        }
    }
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    (s - f64::signum(s)) / variance.sqrt()
}

/// Seconds of waiting for a cause; `None` for a kind that is no wait.
fn waiting(kind: Kind, b: &Breakdown) -> Option<f64> {
    let p = b.phases?;
    Some(match kind {
        Kind::ThreadStarvation => b.queue,
        Kind::SlowIntentLog => p.log?,
        Kind::SlowDisk => p.disk,
        Kind::WriteThrottle => p.throttle,
        Kind::SlowUpcall => upcall_seconds(b) + deferred_seconds(b),
        Kind::DelegationRecalls => p.recall,
        Kind::MemoryReclaim => p.reclaim,
        Kind::CpuSaturation => p.runqueue?,
        Kind::LockContention | Kind::UnknownWaits => p.lock,
        Kind::SlowReply => b.reply,
        Kind::StuckRequests
        | Kind::RetryLater
        | Kind::UnacknowledgedReplies
        | Kind::UnsafeWrites
        | Kind::SlotStarvation
        | Kind::StateRecoveryStorm
        | Kind::PnfsFallback
        | Kind::ConnectionLimit
        | Kind::BadRpcs
        | Kind::ChattyClient
        | Kind::SmallSyncWrites
        | Kind::SlowMount => {
            return None;
        }
    })
}

/// A slice of a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slice {
    length: f64,
    /// Seconds of waiting by kind, in the order of [`Kind::ALL`]; `None` for a kind that is no wait.
    waiting: Vec<Option<f64>>,
}

impl Slice {
    /// A slice with this breakdown.
    pub fn of(b: &Breakdown) -> Slice {
        Slice {
            length: b.length,
            waiting: Kind::ALL.iter().map(|kind| waiting(*kind, b)).collect(),
        }
    }
}

/// Trend of a finding's waiting over the slices of its window.
pub fn course<'a>(
    kind: Kind,
    slices: impl ExactSizeIterator<Item = &'a Slice>,
) -> Option<Evidence> {
    let place = Kind::ALL.iter().position(|k| *k == kind)?;
    let number = slices.len();
    let each: Vec<(f64, f64)> = slices
        .map(|s| Some((s.length, (*s.waiting.get(place)?)?)))
        .collect::<Option<_>>()?;
    let all = sum(each.iter().map(|(length, _)| *length));
    let slice = mean(all, number as f64);
    // A reading can be late: its slice is longer than the others, and the next one shorter.
    let each: Vec<f64> = (each.iter())
        .map(|(length, waited)| mean(*waited, *length) * slice)
        .collect();
    let course = Course::of(&each, slice)?;
    let text = format!(
        "over {} in slices of {}: {}",
        seconds(all),
        seconds(slice),
        course.words()
    );
    let family = match kind {
        Kind::ThreadStarvation | Kind::SlowReply => &f::RPC_PHASE.info,
        Kind::SlowUpcall => &f::UPCALL_WAIT.info,
        _ => &f::OP_PHASE.info,
    };
    // The value is the waiting of the whole window, in seconds.
    Some(evidence(family, sum(each.into_iter()), None, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(each: impl Fn(usize) -> f64) -> Course {
        let each: Vec<_> = (0..60).map(each).collect();
        Course::of(&each, 1.0).unwrap()
    }

    #[test]
    fn each_course_is_told() {
        assert_eq!(of(|i| 1.0 + 0.2 * (i % 3) as f64), Course::Steady);
        // Stalls of half a second every five seconds.
        let stalls = of(|i| if i % 5 == 2 { 4.0 } else { 0.02 });
        let Course::Bursts {
            count,
            length,
            every,
            part,
        } = stalls
        else {
            panic!("{stalls:?}");
        };
        assert_eq!((count, length, every), (12, 1.0, Some(5.0)));
        assert!(part > 0.97, "{part}");
        let one = of(|i| if (20..24).contains(&i) { 9.0 } else { 0.1 });
        assert!(
            matches!(one, Course::Bursts { count: 1, every: None, length, .. } if length == 4.0),
            "{one:?}"
        );
        let grows = of(|i| 1.0 + i as f64 / 20.0);
        assert!(matches!(grows, Course::Trend(r) if r > 2.0), "{grows:?}");
        let falls = of(|i| 4.0 - i as f64 / 20.0);
        assert!(matches!(falls, Course::Trend(r) if r < 0.5), "{falls:?}");
        // Half of the slices: no bursts, and not steady.
        assert_eq!(of(|i| (i / 3 % 2) as f64), Course::Uneven);
        assert_eq!(Course::of(&[1.0; 9], 1.0), None);
        assert_eq!(Course::of(&[0.0; 60], 1.0), None);
    }

    /// Independent slices of a thousand servers are hardly ever taken for a trend.
    #[test]
    fn chance_is_no_trend() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let trends = (0..1000).filter(|_| {
            let each: Vec<f64> = (0..60).map(|_| 1.0 + random()).collect();
            matches!(Course::of(&each, 1.0), Some(Course::Trend(_)))
        });
        assert!(trends.count() <= 5);
    }

    #[test]
    fn the_words_have_the_figures() {
        let bursts = Course::Bursts {
            count: 12,
            length: 1.0,
            every: Some(5.0),
            part: 0.94,
        };
        assert_eq!(
            bursts.words(),
            "94 % of the waiting ended in 12 bursts of 1.00 s or less, one every 5.00 s on average"
        );
        assert!(Course::Trend(2.34).words().contains("2.3 times"));
        assert!(Course::Trend(0.25).words().contains("25 %"));
    }
}
