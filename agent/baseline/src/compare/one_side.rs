//! Trends of one side alone: a warm-up, a ramp or a step that the recordings of the other side do not have. A recording that is not steady
//! does not show that the server became another one.

use crate::compare::course::{DAY, Line, latency};
use crate::compare::sides::Sides;
use crate::series::SeriesSet;
use nfscope_model::family as f;
use std::collections::BTreeMap;

/// An operation whose latency has a trend on one side alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OneSided {
    /// Version and name.
    pub op: [String; 2],
    /// Text that names the side and its trend.
    pub why: String,
}

/// Operations whose latency has a trend on one side alone, among those with the most time on each side. Most recordings of that side have
/// the trend, and at least half of the other side are known to have none.
pub(super) fn find(sides: &Sides) -> Vec<OneSided> {
    let (before, after) = (sides.before, sides.after);
    let mut ops: Vec<_> = [before, after].into_iter().filter_map(longest).collect();
    ops.dedup();
    let one = |op: [String; 2]| {
        let of = [("before", before, after), ("after", after, before)];
        let why = of.into_iter().find_map(|(side, own, other)| {
            let course = course(own, &op)?;
            let why = format!("{side} alone it has {course}: see the caveats");
            is_steady(other, &op, course).then_some(why)
        })?;
        Some(OneSided { op, why })
    };
    ops.into_iter().filter_map(one).collect()
}

/// The operation with the most time in all recordings of a side.
fn longest(side: &[SeriesSet]) -> Option<[String; 2]> {
    let mut times: BTreeMap<[String; 2], f64> = BTreeMap::new();
    for (op, h) in side.iter().flat_map(|c| c.totals(&f::OP_DURATION)) {
        *times.entry(op.map(str::to_owned)).or_default() += h.sum;
    }
    let most = times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(most.0)
}

/// Trend of an operation if most recordings of a side have one: that of the first of these recordings.
fn course(side: &[SeriesSet], op: &[String; 2]) -> Option<&'static str> {
    let unsteady = |c| judge(c, op, |line| line.unsteady()).flatten();
    let unsteady: Vec<_> = side.iter().filter_map(unsteady).collect();
    let is_most = 2 * unsteady.len() > side.len();
    unsteady.into_iter().next().filter(|_| is_most)
}

/// Returns true if at least half of the recordings of a side have enough windows to show this trend of an operation, and have no trend.
fn is_steady(side: &[SeriesSet], op: &[String; 2], course: &str) -> bool {
    let steady = side.iter().filter(|c| {
        judge(c, op, |line| {
            line.unsteady().is_none() && line.shows(course)
        }) == Some(true)
    });
    2 * steady.count() >= side.len()
}

/// Judges the latency of an operation in a recording. `None` without one, or if the recording has the wave of the day.
fn judge<T>(c: &SeriesSet, op: &[String; 2], by: impl FnOnce(&Line<'_>) -> T) -> Option<T> {
    let op = op.each_ref().map(String::as_str);
    let one = c.histograms(&f::OP_DURATION, |l| l == op)?;
    (c.seconds() < DAY).then(|| by(&latency(op, &one)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Metadata, RecordedWindow, Sample, SeriesKey};
    use nfscope_model::Scheme;
    use std::time::Duration;

    /// Level of a window by its number.
    type Level<'a> = &'a dyn Fn(usize) -> f64;

    const STEADY: Level<'static> = &|_: usize| 1.0;
    const RAMP: Level<'static> = &|i: usize| f64::exp2(i as f64 / 180.0);
    const WARM_UP: Level<'static> = &|i: usize| if i < 40 { 3.0 } else { 1.0 };

    /// A recording of WRITEs and READs, whose levels are multiplied by these factors.
    fn side(windows: usize, write: (f64, Level), read: (f64, Level)) -> Vec<SeriesSet> {
        let series = ["write", "read"].into_iter().zip(0..);
        let series = series.map(|(op, id)| SeriesKey {
            id,
            family: f::OP_DURATION.info.name.into(),
            labels: vec!["3".into(), op.into()],
        });
        let each = (0..windows).map(|i| {
            let noise = 1.0 + (i * 7919 % 101) as f64 / 1010.0;
            let of = |(factor, level): (f64, Level)| Sample::Histogram {
                scheme: Scheme::TIME,
                counts: vec![(40, 100)],
                sum: 0.1 * factor * level(i) * noise,
            };
            Ok(RecordedWindow {
                began_ms: 10_000 * i as i64,
                length: Duration::from_secs(10),
                samples: vec![(0, of(write)), (1, of(read))],
            })
        });
        let metadata = Metadata {
            name: "x".into(),
            began_ms: 0,
            host: "nfs1".into(),
            kernel: None,
            agent: "0.1.0".into(),
            interval: Duration::from_secs(10),
            labels: Default::default(),
        };
        vec![SeriesSet::from_windows(metadata, series.collect(), windows, each).unwrap()]
    }

    fn found(before: &[SeriesSet], after: &[SeriesSet]) -> Vec<[String; 2]> {
        let earlier = &[];
        let all = find(&Sides {
            before,
            after,
            earlier,
        });
        all.into_iter().map(|o| [o.op[1].clone(), o.why]).collect()
    }

    fn said(op: &str, side: &str, course: &str) -> [String; 2] {
        let why = format!("{side} alone it has {course}: see the caveats");
        [op.to_owned(), why]
    }

    /// The operation with the most time differs, because another mix came. Both sides are judged by both operations.
    #[test]
    fn each_operation_is_judged_on_both_sides() {
        let [most, least] = [9.0, 1.0];
        let before = side(180, (most, RAMP), (least, STEADY));
        let after = side(180, (least, RAMP), (most, STEADY));
        assert!(found(&before, &after).is_empty());
        let after = side(180, (least, RAMP), (most, RAMP));
        let before = side(180, (most, RAMP), (least, RAMP));
        assert!(found(&before, &after).is_empty());
        let before = side(180, (most, RAMP), (least, STEADY));
        let after = side(180, (least, STEADY), (most, RAMP));
        let expected = [
            said("write", "before", "a ramp"),
            said("read", "after", "a ramp"),
        ];
        assert_eq!(found(&before, &after), expected);
    }

    /// A short recording has no warm-up that a test could find.
    #[test]
    fn a_side_with_too_few_windows_is_not_known_to_be_steady() {
        let [other, steady] = [(1.0, STEADY), (9.0, STEADY)];
        let warm = side(180, (9.0, WARM_UP), other);
        let ramp = side(180, (9.0, RAMP), other);
        for long in [&warm, &ramp] {
            let short = side(15, steady, other);
            assert!(found(long, &short).is_empty());
            assert!(found(&short, long).is_empty());
        }
        let enough = side(60, steady, other);
        let expected = [said("write", "before", "a warm-up")];
        assert_eq!(found(&warm, &enough), expected);
        assert_eq!(found(&enough, &ramp), [said("write", "after", "a ramp")]);
    }
}
