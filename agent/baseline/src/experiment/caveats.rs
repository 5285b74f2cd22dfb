//! Caveats of an analysis.

use crate::experiment::result::RunData;

/// Factor from which on rates of runs count as different loads.
const LOAD: f64 = 1.2;
/// Share of failed operations from which on there is a caveat.
const FAILURES: f64 = 0.01;

/// Checks of the runs, and their caveats.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Checks {
    pub equal_load: bool,
    pub few_failures: bool,
    pub trend: Option<f64>,
    pub drifts: bool,
    pub caveats: Vec<String>,
}

/// The noise of runs as an analysis knows it.
pub(super) struct Noise<'a> {
    /// True if the noise is estimated from the effects.
    pub by_effects: bool,
    pub deviation: Option<f64>,
    pub residuals: &'a [f64],
}

/// Checks the runs. `data` are in the order of the runs.
pub(super) fn checks(noise: &Noise, data: &[RunData]) -> Checks {
    let residuals = noise.residuals;
    let mut all = Vec::new();
    if noise.by_effects {
        all.push(
            "each combination was run once: the noise is estimated from the effects themselves (Lenth 1989), which takes most of them \
             to be none"
                .to_owned(),
        );
    } else if noise.deviation.is_none() {
        all.push("too few runs: effects cannot be told from noise".to_owned());
    }
    let rates = data.iter().map(|d| d.rate);
    let (low, high) = rates.fold((f64::INFINITY, 0.0f64), |(l, h), r| (l.min(r), h.max(r)));
    let equal_load = high <= LOAD * low;
    if !equal_load {
        all.push(format!(
            "the load differs between runs: {low:.1} to {high:.1} operations per second"
        ));
    }
    let hidden = data.iter().map(|d| d.hidden).fold(0.0, f64::max);
    if hidden > 0.0 {
        all.push(format!(
            "the response is known to {:.1} % only, the half of a bucket of its histogram, which no repetition narrows: smaller effects \
             cannot be seen. A mean has no such limit",
            hidden * 100.0
        ));
    }
    let failed = data.iter().filter(|d| d.failed > FAILURES).count();
    if failed > 0 {
        all.push(format!(
            "operations failed in {failed} of {} runs, and durations include failures",
            data.len()
        ));
    }
    // A trend shows that something else changes with time, in spite of the random order.
    let n = residuals.len() as f64;
    let trend = match noise.deviation {
        Some(_) if n >= 10.0 => correlation_with_order(residuals),
        _ => None,
    };
    let drifts = trend.is_some_and(|r| r.abs() > 2.6 / n.sqrt());
    if let (Some(r), true) = (trend, drifts) {
        all.push(format!(
            "residuals follow the order of the runs (correlation {r:.2}): something else changed meanwhile"
        ));
    }
    Checks {
        equal_load,
        few_failures: failed == 0,
        trend,
        drifts,
        caveats: all,
    }
}

/// Correlation of the residuals with the order of the runs; `None` without residuals.
fn correlation_with_order(residuals: &[f64]) -> Option<f64> {
    let middle = (residuals.len() as f64 - 1.0) / 2.0;
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (i, r) in residuals.iter().enumerate() {
        let x = i as f64 - middle;
        xy += x * r;
        xx += x * x;
        yy += r * r;
    }
    let r = xy / (xx * yy).sqrt();
    r.is_finite().then_some(r)
}
