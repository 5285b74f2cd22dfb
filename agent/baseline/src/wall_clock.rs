//! The time of day of windows that were measured by another clock.

use nfscope_model::Window;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Gives windows their time of day, by the clock of whoever measures them.
pub struct Clock {
    /// Our time of day at the beginning, in milliseconds since 1970.
    pub began_ms: i64,
    /// That clock at the end of the last window.
    at: Duration,
    /// When that window came.
    came: Instant,
    /// Our time of day then, in milliseconds.
    now_ms: f64,
    /// Time between windows that none covers.
    pub missing: Duration,
}

impl Clock {
    /// At a moment of that clock, which is now.
    pub fn new(at: Duration) -> Self {
        let now_ms = wall_ms();
        Clock {
            began_ms: now_ms.round() as i64,
            at,
            came: Instant::now(),
            now_ms,
            missing: Duration::ZERO,
        }
    }

    /// When a window began that has just come. Windows without a gap follow each other exactly, and none begins before
    /// the last has ended, even where the time of day is set.
    pub fn began(&mut self, window: &Window, came: Instant) -> i64 {
        if window.delta.at.checked_sub(window.length) != Some(self.at) {
            let since = came.saturating_duration_since(self.came);
            let gap = since.saturating_sub(window.length);
            self.missing += gap;
            self.now_ms += gap.as_secs_f64() * 1e3;
        }
        let began = self.now_ms;
        self.now_ms += window.length.as_secs_f64() * 1e3;
        self.at = window.delta.at;
        self.came = came;
        began.round() as i64
    }

    /// Time since the last window ended.
    pub fn since(&self) -> Duration {
        self.came.elapsed()
    }
}

fn wall_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::Snapshot;

    #[test]
    fn a_gap_is_from_the_end_of_one_window_to_the_begin_of_the_next() {
        let second = Duration::from_secs(1);
        let window = |at: u32, length: u32| Window {
            length: length * second,
            delta: Snapshot::new(at * second),
        };
        let mut c = Clock::new(100 * second);
        let (began, came) = (c.began_ms, c.came);
        let mut after = |at, length, seconds| {
            let ms = c.began(&window(at, length), came + seconds * second) - began;
            (ms as f64 / 1e3, c.missing.as_secs())
        };
        assert_eq!(after(102, 2, 2), (0.0, 0));
        // What comes late, and follows all the same.
        assert_eq!(after(104, 2, 5), (2.0, 0));
        assert_eq!(after(114, 2, 14), (11.0, 7));
        // Another boot; then what cannot be, which overlaps nothing.
        assert_eq!(after(5, 2, 20), (17.0, 11));
        assert_eq!(after(50, 9, 21), (19.0, 11));
    }
}
