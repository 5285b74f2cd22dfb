//! The mean of requests at one mix of operations, the same for all recordings: direct standardisation (E. M. Kitagawa, 1955).

use crate::series::SeriesSet;
use nfscope_model::family as f;
use std::collections::BTreeMap;

/// Largest share of the time of operations that may belong to operations without a measurement in a recording. Beyond it the mean at one
/// mix is not known.
const MISSING: f64 = 0.005;

/// A mix of the operations of one version.
#[derive(Debug)]
pub(super) struct OneMix {
    pub version: String,
    /// Operations of each name per request, and their approximate seconds per request.
    pub per_request: BTreeMap<String, [f64; 2]>,
}

impl OneMix {
    /// Returns for each window of a recording the seconds that its requests would have taken with this mix, and the number of requests.
    /// `None` if the recording lacks an operation that matters.
    ///
    /// The ratio of both sums is the mean of a request at this mix: the mean time of each operation, weighted with the mix, and the time
    /// outside operations. The residual of a window is the sum of the residuals of the operations' means with the same weights (delta
    /// method).
    pub(super) fn of(&self, c: &SeriesSet) -> Option<(Vec<f64>, Vec<f64>)> {
        let requests = c.histograms(&f::RPC_DURATION, |[v]| v == self.version)?;
        let n = requests.count();
        let inside = c.histograms(&f::OP_DURATION, |[v, _]| v == self.version)?;
        let both = requests.sums.iter().zip(&inside.sums);
        let mut seconds: Vec<f64> = both.map(|(all, inside)| all - inside).collect();
        let mut missing = 0.0;
        for (op, [per_request, about]) in &self.per_request {
            let times = c.histograms(&f::OP_DURATION, |l| l == [&self.version, op]);
            let Some((times, mean)) = times.and_then(|t| t.mean().map(|mean| (t, mean))) else {
                missing += about;
                continue;
            };
            let weight = per_request * n / times.count();
            let windows = requests.counts.iter().zip(&times.counts).zip(&times.sums);
            for (sum, ((requests, count), time)) in seconds.iter_mut().zip(windows) {
                *sum += per_request * mean * requests + weight * (time - mean * count);
            }
        }
        let all: f64 = self.per_request.values().map(|[_, about]| about).sum();
        (missing <= MISSING * all).then_some((seconds, requests.counts))
    }
}
