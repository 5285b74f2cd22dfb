//! Cost of the distance to the server for a call: round trips, one after the other.
//!
//! An open of a file waits for one request after the other: Irtegov et al., On one source of latency in NFSv4 client, 2017. Over a long
//! distance its time is the number of these round trips times the time of each.

use crate::versions::block::{Block, Metric};
use nfscope_text::units::seconds;
use serde::Serialize;

/// Cost of the distance for a version's call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distance {
    /// Version of the call.
    pub version: String,
    /// Round trips that a call waits for, on average.
    pub round_trips: f64,
    /// Time of a TCP handshake with the server.
    pub round_trip_seconds: f64,
    /// Residence of the call's requests on the server; `None` without its agent.
    pub server_seconds: Option<f64>,
    /// Round trips times their time, and the server's time where it is known.
    pub predicted_seconds: f64,
    /// Measured time of the call.
    pub measured_seconds: f64,
}

impl Distance {
    /// Cost of the distance from the blocks of one version; `None` if calls were not measured one by one.
    pub(super) fn of<'a>(
        version: &str,
        round_trip: f64,
        blocks: impl Iterator<Item = &'a Block> + Clone,
    ) -> Option<Distance> {
        let mean = |of: &dyn Fn(&Block) -> Option<f64>| {
            let all: Vec<f64> = blocks.clone().filter_map(of).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        };
        let round_trips = mean(&|b| Some(b.waited_rpcs? as f64))?;
        let server = mean(&|b| Metric::ServerTime.of(b));
        Some(Distance {
            version: version.to_owned(),
            round_trips,
            round_trip_seconds: round_trip,
            server_seconds: server,
            predicted_seconds: round_trips * round_trip + server.unwrap_or(0.0),
            measured_seconds: mean(&|b| Metric::Latency.of(b))?,
        })
    }

    /// Sentence such as `NFS 4.2: each call waits for 9.0 round trips of 13.9 ms = 125 ms, and 0.4 ms on the server; measured 126 ms.`
    pub fn sentence(&self) -> String {
        let server = self.server_seconds.map_or(String::new(), |s| {
            format!(", and {} on the server", seconds(s))
        });
        format!(
            "NFS {}: each open waits for {:.1} round trips of {} = {}{server}; measured {}.",
            self.version,
            self.round_trips,
            seconds(self.round_trip_seconds),
            seconds(self.round_trips * self.round_trip_seconds),
            seconds(self.measured_seconds)
        )
    }

    /// Returns true if most of the measured time is the distance.
    pub fn is_distance(&self) -> bool {
        self.round_trips * self.round_trip_seconds > self.measured_seconds / 2.0
    }
}

/// Advice on a time that is mostly distance.
pub const ADVICE: &str = "Most of this time is distance, and a faster server does not change it. What does: fewer levels of \
     directories, files that stay open, longer attribute caching (actimeo=), or a server nearby.";

#[cfg(test)]
mod tests {
    use super::*;

    fn block(waited: Option<u64>, server: Option<f64>) -> Block {
        Block {
            host_ops: 1,
            seconds: 0.126,
            latency_seconds: Some(0.126),
            waited_rpcs: waited,
            server_seconds: server,
            ..Block::default()
        }
    }

    #[test]
    fn round_trips_times_their_time() {
        let blocks = [block(Some(9), Some(0.4e-3)), block(Some(9), Some(0.4e-3))];
        let d = Distance::of("4.2", 13.9e-3, blocks.iter()).unwrap();
        assert_eq!(
            d.sentence(),
            "NFS 4.2: each open waits for 9.0 round trips of 13.9 ms = 125 ms, and 400 µs on the server; measured 126 ms."
        );
        assert!(d.is_distance() && (d.predicted_seconds - 0.1255).abs() < 1e-9);
        let near = Distance::of("3", 50e-6, [block(Some(9), None)].iter()).unwrap();
        assert!(!near.is_distance() && near.sentence().ends_with("= 450 µs; measured 126 ms."));
        assert_eq!(Distance::of("3", 1.0, [block(None, None)].iter()), None);
        assert_eq!(Distance::of("3", 1.0, [].iter()), None);
    }
}
