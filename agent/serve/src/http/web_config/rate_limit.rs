//! The section `rate_limit`: a token bucket that all peers share. It holds `burst` requests, and gets one more per `interval`.

use anyhow::{anyhow, ensure};
use nfscope_text::parse;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Section {
    interval: String,
    burst: u32,
}

/// A bucket that holds `burst` requests, and gets another one in each interval.
#[derive(Debug)]
pub struct RateLimit {
    interval: Duration,
    burst: f64,
    /// Requests in the bucket, and the time of that count.
    left: Mutex<(f64, Instant)>,
}

impl RateLimit {
    pub(super) fn new(section: &Section) -> anyhow::Result<RateLimit> {
        let bounds = Duration::from_millis(1)..=Duration::from_secs(3600);
        let interval = parse::duration(&section.interval, bounds)
            .map_err(|why| anyhow!("interval: `{}`: {why}", section.interval))?;
        ensure!(
            section.burst > 0,
            "burst: give the requests that may come at once, 1 or more"
        );
        let burst = f64::from(section.burst);
        Ok(RateLimit {
            interval,
            burst,
            left: Mutex::new((burst, Instant::now())),
        })
    }

    /// Returns true if a request at this time is answered.
    pub(in crate::http) fn admits(&self, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(left.1);
        let more = since.as_secs_f64() / self.interval.as_secs_f64();
        *left = ((left.0 + more).min(self.burst), now.max(left.1));
        let admits = left.0 >= 1.0;
        if admits {
            left.0 -= 1.0;
        }
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_then_one_in_each_interval() {
        let limit = RateLimit::new(&Section {
            interval: "100ms".to_owned(),
            burst: 3,
        })
        .unwrap();
        let start = limit.left.lock().unwrap().1;
        let at = |ms| limit.admits(start + Duration::from_millis(ms));
        assert_eq!([at(0), at(0), at(0), at(0)], [true, true, true, false]);
        assert_eq!(
            [at(50), at(101), at(102), at(201)],
            [false, true, false, true]
        );
        // The bucket holds no more than `burst`, however long the pause was.
        assert_eq!(
            [at(9000), at(9000), at(9000), at(9000)],
            [true, true, true, false]
        );
    }
}
