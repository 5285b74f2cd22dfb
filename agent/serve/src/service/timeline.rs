//! Wall-clock times of readings.
//!
//! A reading has its time on CLOCK_MONOTONIC. One mapping of that clock to the wall clock holds until the wall clock is set. Therefore
//! windows between readings follow each other without gap and overlap, however late a reading is processed.

use nfscope_model::Snapshot;
use nfscope_text::console::warn;
use nfscope_text::units;
use std::time::{Duration, SystemTime};

/// Least difference that counts as a set wall clock. Time servers correct by less, and windows go on as they were.
const STEP: Duration = Duration::from_millis(500);

/// The mapping of the clocks.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// Nanoseconds between the zeros of both clocks.
    offset: Option<i128>,
}

fn nanoseconds(d: Duration) -> i128 {
    i128::try_from(d.as_nanos()).unwrap_or(i128::MAX)
}

impl Timeline {
    /// Wall-clock time of the reading. If the wall clock was set since the last reading, another mapping holds from here on, and the log
    /// says so.
    pub(super) fn place(&mut self, reading: &Snapshot) -> SystemTime {
        let at = nanoseconds(reading.at);
        let told = reading.wall.map(|wall| nanoseconds(wall) - at);
        let offset = match (self.offset, told) {
            (Some(kept), Some(told)) => {
                let by =
                    u64::try_from(kept.abs_diff(told)).map_or(Duration::MAX, Duration::from_nanos);
                match by < STEP {
                    true => kept,
                    false => {
                        warn(&set(told > kept, by));
                        told
                    }
                }
            }
            (Some(kept), None) => kept,
            (None, Some(told)) => told,
            (None, None) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                nanoseconds(now.unwrap_or_default()) - at
            }
        };
        self.offset = Some(offset);
        let since = u64::try_from(at + offset).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_nanos(since)
    }
}

/// Text about a clock that was set.
fn set(forward: bool, by: Duration) -> String {
    let by = units::length(by);
    match forward {
        true => format!(
            "the system clock went forward by {by}: it was set, or the host was suspended; windows have a gap of that length, and no count \
             is lost"
        ),
        false => format!(
            "the system clock was set back by {by}; that time has windows twice, and no count is lost"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: f64, wall: Option<f64>) -> Snapshot {
        let mut s = Snapshot::new(Duration::from_secs_f64(at));
        s.wall = wall.map(Duration::from_secs_f64);
        s
    }

    fn seconds(t: SystemTime) -> f64 {
        t.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_secs_f64()
    }

    #[test]
    fn small_errors_of_the_wall_clock_move_no_window() {
        let mut t = Timeline::default();
        let off = [0.0, 0.2, -0.3, 0.4, -0.4];
        for (i, off) in (0u8..).zip(off) {
            let at = 10.0 * f64::from(i);
            let placed = t.place(&reading(at, Some(1_800_000_000.0 + at + off)));
            assert_eq!(seconds(placed), 1_800_000_000.0 + at);
        }
    }

    #[test]
    fn a_clock_that_is_set_moves_windows_from_there_on() {
        let mut t = Timeline::default();
        let steps = [0.0, 0.0, 3600.0, 3600.0, -3600.0, -3601.0];
        let placed = (0u8..).zip(steps).map(|(i, step)| {
            let at = 10.0 * f64::from(i);
            seconds(t.place(&reading(at, Some(1_800_000_000.0 + at + step)))) - 1_800_000_000.0
        });
        let placed: Vec<_> = placed.collect();
        assert_eq!(placed, [0.0, 10.0, 3620.0, 3630.0, -3560.0, -3551.0]);
    }

    #[test]
    fn a_source_without_a_wall_clock_is_anchored_once() {
        let mut t = Timeline::default();
        let first = t.place(&reading(5.0, None));
        let later = t.place(&reading(17.5, None));
        let apart = later.duration_since(first).unwrap();
        assert_eq!(apart, Duration::from_millis(12_500));
    }

    #[test]
    fn the_log_says_which_way_a_clock_was_set() {
        let hour = Duration::from_secs(3600);
        assert!(set(false, hour).starts_with("the system clock was set back by 1h"));
        assert!(set(true, hour).starts_with("the system clock went forward by 1h"));
    }
}
