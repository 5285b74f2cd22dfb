//! Part of a change of the wait for a thread that other work explains.
//!
//! Longer operations keep threads busy for longer, and the wait grows faster than the work. By how much follows from the utilization of the
//! threads, as in a queue with random arrivals and as many servers (M/M/c).

use crate::compare::mix::{Explained, Mix, Work, is_nothing};
use nfscope_stats::waiting;

/// Difference of work below which it counts as the same: half of the default of the least change.
const SAME: f64 = 0.01;

impl Mix {
    /// Factors by which another mix of operations alone changes the wait for a thread; any factor if the utilization is not known.
    pub(super) fn of_thread_waits(&self) -> Option<Explained> {
        let (factors, cause) = self.of_mean_work()?;
        if is_nothing(factors, SAME) {
            return None;
        }
        // Wait before with the mix after, and wait after with the mix before.
        let [there, back] = [0, 1].map(|side| {
            let factor = factors[side];
            let (of, by) = (&self.0[side], if side == 0 { factor } else { 1.0 / factor });
            longer(of, by).map(|f| if side == 0 { f } else { 1.0 / f })
        });
        let both = there
            .zip(back)
            .map(|(a, b)| [a.min(b).min(1.0), a.max(b).max(1.0)]);
        Some(Explained {
            factors: both.unwrap_or([0.0, f64::INFINITY]),
            causes: vec![cause],
        })
    }
}

/// Factor of this side's waits if each request kept its thread `by` times as long. Infinite from the limit on; `None` if the utilization is
/// not known.
fn longer(of: &Work, by: f64) -> Option<f64> {
    let utilization = (of.busy / of.thread_seconds).min(0.999);
    let servers = of.thread_seconds / of.seconds;
    if !(utilization.is_finite() && servers >= 1.0 && utilization > 0.0) {
        return None;
    }
    if utilization * by >= 1.0 {
        return Some(f64::INFINITY);
    }
    let longer = by * waiting(servers, utilization * by) / waiting(servers, utilization);
    // With very many threads both waits are too short for a number.
    longer.is_finite().then_some(longer)
}
