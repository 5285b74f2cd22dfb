//! Wall-clock times of windows that the agent measured with its own monotonic clock.

use nfscope_model::Window;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Derives the wall-clock time of each window from the monotonic clock of the agent.
pub struct WallClock {
    /// Local wall-clock time at the start, in milliseconds since 1970 (UTC).
    pub began_ms: i64,
    /// The agent's clock at the end of the last window.
    agent_time: Duration,
    /// Begin of the agent's counters: while it stays the same, there is one clock.
    agent_began: Option<Duration>,
    /// Arrival of the last window.
    arrived: Instant,
    /// Wall-clock time at the end of the last window, in milliseconds.
    now_ms: f64,
    /// Time that no window covers.
    pub missing: Duration,
}

impl WallClock {
    /// Starts now, at this time of the agent's clock.
    pub fn new(agent_time: Duration) -> Self {
        let now_ms = wall_ms();
        WallClock {
            began_ms: now_ms.round() as i64,
            agent_time,
            agent_began: None,
            arrived: Instant::now(),
            now_ms,
            missing: Duration::ZERO,
        }
    }

    /// Start of a window that has just arrived. Windows without a gap follow each other exactly. No window begins before the end of the
    /// last one, even if the system clock is set.
    pub fn began(&mut self, window: &Window, arrived: Instant) -> i64 {
        let begin = window.delta.at.checked_sub(window.length);
        if begin != Some(self.agent_time) {
            // Both readings have times of one clock. If the agent is another one, or does not report its begin, the arrivals are used.
            let one_clock =
                !window.delta.began.is_zero() && self.agent_began == Some(window.delta.began);
            let by_agent = begin.and_then(|begin| begin.checked_sub(self.agent_time));
            let gap = by_agent.filter(|_| one_clock).unwrap_or_else(|| {
                let elapsed = arrived.saturating_duration_since(self.arrived);
                elapsed.saturating_sub(window.length)
            });
            self.missing += gap;
            self.now_ms += gap.as_secs_f64() * 1e3;
        }
        let began = self.now_ms;
        self.now_ms += window.length.as_secs_f64() * 1e3;
        self.agent_time = window.delta.at;
        self.agent_began = Some(window.delta.began);
        self.arrived = arrived;
        began.round() as i64
    }

    /// Time since the last window arrived.
    pub fn since(&self) -> Duration {
        self.arrived.elapsed()
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
        let mut c = WallClock::new(100 * second);
        let (began, arrived) = (c.began_ms, c.arrived);
        let mut after = |at, length, seconds| {
            let ms = c.began(&window(at, length), arrived + seconds * second) - began;
            (ms as f64 / 1e3, c.missing.as_secs())
        };
        assert_eq!(after(102, 2, 2), (0.0, 0));
        // The window arrives late, but without a gap.
        assert_eq!(after(104, 2, 5), (2.0, 0));
        assert_eq!(after(114, 2, 14), (11.0, 7));
        // The agent's host has rebooted; then there is an impossible time, which must not cause an overlap.
        assert_eq!(after(5, 2, 20), (17.0, 11));
        assert_eq!(after(50, 9, 21), (19.0, 11));
    }

    #[test]
    fn a_gap_of_one_agent_is_as_long_as_between_its_readings_however_late_they_arrive() {
        let second = Duration::from_secs(1);
        let window = |at: u32, began: u32| {
            let mut delta = Snapshot::new(at * second);
            delta.began = began * second;
            let length = 2 * second;
            Window { length, delta }
        };
        let mut c = WallClock::new(100 * second);
        let (begin, arrived) = (c.began_ms, c.arrived);
        let mut after = |at, began, seconds| {
            let ms = c.began(&window(at, began), arrived + seconds * second) - begin;
            (ms as f64 / 1e3, c.missing.as_secs())
        };
        assert_eq!(after(102, 50, 9), (0.0, 0));
        // Six seconds are missing between the readings, and the recorder was delayed before the first and after the second.
        assert_eq!(after(110, 50, 31), (8.0, 6));
        assert_eq!(after(112, 50, 32), (10.0, 6));
        // The agent was restarted: its window arrives 13 s later.
        assert_eq!(after(120, 115, 45), (23.0, 17));
    }
}
