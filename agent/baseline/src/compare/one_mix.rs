//! The mean of requests at one mix of operations, the same for all recordings: direct standardisation (E. M. Kitagawa, 1955).

use crate::series::SeriesSet;
use nfscope_model::family as f;
use std::collections::BTreeMap;

/// Share of the time up to which operations may be missing in a recording. If more is missing, the mean at one mix is not known.
const MISSING: f64 = 0.005;

/// A mix of the operations of one version.
#[derive(Debug)]
pub(super) struct OneMix {
    pub version: String,
    /// Operations of each name per request, and about how many seconds they take.
    pub per_request: BTreeMap<String, [f64; 2]>,
}

impl OneMix {
    /// Per window of a recording: seconds that its requests would have taken with this mix, and their number. `None` if the recording lacks
    /// an operation that matters.
    ///
    /// The ratio of both sums is the mean over all windows of each operation, weighted with the mix, beside what requests take outside
    /// their operations. The residual of a window is that of the ratio of each operation, weighted alike (delta method).
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
