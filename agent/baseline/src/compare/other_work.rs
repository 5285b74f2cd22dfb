//! Other work of one operation: READs and WRITEs of other sizes, WRITEs of other stabilities.

use crate::compare::mix::{Explained, Mix, NOTHING, Op, exceeded, is_nothing, moved};
use crate::compare::result::{Caveat, Quantity};
use nfscope_model::Histogram;
use std::collections::BTreeMap;

/// Least number of sizes.
const MIN_SIZES: u64 = 10;
/// Share of the WRITEs that moved from one stable kind to another, from which on nothing is known of their durations.
const STABLE_MOVED: f64 = 0.1;

/// A range of factors that contains 1.
struct Range([f64; 2]);

impl Range {
    fn add(&mut self, factor: f64) {
        self.0 = [self.0[0].min(factor), self.0[1].max(factor)];
    }
}

impl Mix {
    /// Explains a change of one operation by its sizes and stabilities.
    pub(super) fn other_work(
        &self,
        version: &str,
        op: &str,
        quantity: &Quantity,
    ) -> Option<Explained> {
        let key = (version.to_owned(), op.to_owned());
        let both = [self.stability(&key, quantity), self.size(&key, quantity)];
        both.into_iter().flatten().reduce(|a, b| Explained {
            factors: [a.factors[0] * b.factors[0], a.factors[1] * b.factors[1]],
            causes: [a.causes, b.causes].concat(),
        })
    }

    /// Explains a change by sizes. A duration grows at most as its size does, and a quantile of durations at most as the same quantile of
    /// the sizes, or their mean.
    fn size(&self, key: &Op, quantity: &Quantity) -> Option<Explained> {
        let of = |side: usize| self.0[side].sizes.get(key);
        let (b, a) = (of(0)?, of(1)?);
        if b.count().min(a.count()) < MIN_SIZES {
            return None;
        }
        let whole = [b.mean()?, a.mean()?];
        let mut range = Range([1.0; 2]);
        range.add(whole[1] / whole[0]);
        let (mut what, mut values) = ("mean".to_owned(), whole);
        if let Quantity::Quantile { percent } = quantity {
            let q = f64::from(*percent) / 100.0;
            let at = [b.quantile(q)?, a.quantile(q)?];
            range.add(at[1] / at[0]);
            if (at[1] / at[0]).ln().abs() > (whole[1] / whole[0]).ln().abs() {
                (what, values) = (format!("p{percent}"), at);
            }
        }
        let text = format!(
            "the {what} size of {}s changed: {:.0} bytes before, {:.0} after",
            key.1.to_uppercase(),
            values[0],
            values[1]
        );
        let causes = vec![Caveat { kind: "size", text }];
        (!is_nothing(range.0, NOTHING)).then_some(Explained {
            factors: range.0,
            causes,
        })
    }

    /// Explains a change by stabilities. Stable WRITEs wait for a log and others do not, so a few of them may have most of the time. No
    /// histogram has them alone. Their share explains the largest change if all of them are slower than all others, or faster.
    fn stability(&self, key: &Op, quantity: &Quantity) -> Option<Explained> {
        if key.1 != "write" {
            return None;
        }
        let kinds = |side: usize| -> Option<BTreeMap<&str, f64>> {
            let all = self.0[side].stability.iter();
            let all: Vec<_> = all.filter(|((version, _), _)| *version == key.0).collect();
            let sum: f64 = all.iter().map(|(_, n)| **n).sum();
            let each = all.into_iter().map(|((_, how), n)| (how.as_str(), n / sum));
            (sum > 0.0).then(|| each.collect())
        };
        let (b, a) = (kinds(0)?, kinds(1)?);
        let stable = [&b, &a].map(|of| 1.0 - of.get("unstable").copied().unwrap_or(0.0));
        let named = |how: &&str| format!("{} was", how.replace('_', " "));
        let (distance, text) = moved(&b, &a, 0.0, named, "WRITEs")?;
        let among_stable = distance - (stable[1] - stable[0]).abs();
        let factors = match (among_stable > STABLE_MOVED, quantity) {
            (true, _) => Some([0.0, f64::INFINITY]),
            (false, Quantity::Phase { .. }) => Some(of_phase(stable)),
            (false, _) => self.of_histograms(key, quantity, stable),
        }?;
        (!is_nothing(factors, NOTHING)).then(|| Explained {
            factors,
            causes: vec![Caveat {
                kind: "stability",
                text: format!("the stability of WRITEs changed: {text}"),
            }],
        })
    }

    /// Range of factors by which another share of stable WRITEs alone changes a mean or quantile. A side with WRITEs of only one kind does
    /// not show the times of the other kind.
    fn of_histograms(&self, key: &Op, quantity: &Quantity, stable: [f64; 2]) -> Option<[f64; 2]> {
        let mut range = Range([1.0; 2]);
        let mut is_known = stable[0] == stable[1];
        for side in [0, 1] {
            let (share, other) = (stable[side], stable[1 - side]);
            let times = self.0[side].ops.get(key);
            let Some(h) = times.and_then(|t| t.histogram.as_ref()) else {
                continue;
            };
            if share <= 0.0 || share >= 1.0 || h.count() == 0 {
                continue;
            }
            is_known = true;
            let h = h.undivided();
            let now = value(&h, quantity, share, share)?;
            for (slowest, then) in [(share, other), (1.0 - share, 1.0 - other)] {
                let then = value(&h, quantity, slowest, then)?;
                range.add(if side == 0 { then / now } else { now / then });
            }
        }
        Some(if is_known {
            range.0
        } else {
            [0.0, f64::INFINITY]
        })
    }
}

/// Range for a time that each kind of WRITE has separately: it changes at most as the shares of the kinds do.
fn of_phase(stable: [f64; 2]) -> [f64; 2] {
    let mut range = Range([1.0; 2]);
    for [before, after] in [stable, stable.map(|share| 1.0 - share)] {
        match before > 0.0 {
            true => range.add(after / before),
            false if after > 0.0 => range.add(f64::INFINITY),
            false => {}
        }
    }
    range.0
}

/// Mean or quantile of durations if the share of the slowest were changed from `slowest` to `then`.
fn value(h: &Histogram, quantity: &Quantity, slowest: f64, then: f64) -> Option<f64> {
    let all = h.count() as f64;
    let mut left = slowest * all;
    let mut weights = vec![0.0; h.counts.len()];
    for (weight, n) in weights.iter_mut().zip(&h.counts).rev() {
        let n = *n as f64;
        let slow = n.min(left);
        left -= slow;
        *weight = slow * then / slowest + (n - slow) * (1.0 - then) / (1.0 - slowest);
    }
    if let Quantity::Quantile { percent } = quantity {
        return exceeded(
            &weights,
            h.scheme,
            (1.0 - f64::from(*percent) / 100.0) * all,
        );
    }
    let each = weights.iter().enumerate();
    let sum: f64 = each.map(|(i, w)| w * h.scheme.middle(i)).sum();
    Some(sum / all)
}
