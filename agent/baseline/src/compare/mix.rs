//! The part of a change that another mix of operations, sizes or stabilities explains alone.
//!
//! The total over operations moves when their mix does, although no operation became slower (E. H. Simpson, J. Royal Statistical
//! Society B 13, 1951). The part of the mix is found by direct standardisation: the durations of one side are weighted with the mix
//! of each side, and only what is beyond their ratio is a change of the server (E. M. Kitagawa, Components of a difference between
//! two rates, J. American Statistical Association 50, 1955).

use crate::compare::labels;
use crate::compare::one_mix::OneMix;
use crate::compare::result::{Caveat, Quantity, Subject};
use crate::series::SeriesSet;
use nfscope_model::{Histogram, Scheme, family as f};
use nfscope_stats::Interval;
use nfscope_text::units::percent;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the time below which other sizes or stabilities of an operation hardly change a total.
const PART: f64 = 0.1;

/// The beginning of a text about the mix of operations.
const CHANGED: &str = "the mix changed";

/// Version and name of an operation.
pub(super) type Op = (String, String);

/// Times of one operation on one side.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    /// Number and durations of the operations.
    pub histogram: Option<Histogram>,
    /// Seconds of the durations that were waits for a log.
    log: f64,
}

impl Times {
    fn count(&self) -> f64 {
        self.histogram.as_ref().map_or(0.0, |h| h.count() as f64)
    }

    fn mean(&self) -> Option<f64> {
        self.histogram.as_ref()?.mean()
    }
}

/// Work of one side.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub ops: BTreeMap<Op, Times>,
    /// Requests of a version, and their seconds from arrival to reply.
    requests: BTreeMap<String, (f64, f64)>,
    /// Bytes of each READ and WRITE.
    pub sizes: BTreeMap<Op, Histogram>,
    /// WRITEs by version and stability.
    pub stability: BTreeMap<Op, f64>,
    /// Seconds in which threads had a request, summed up over all threads.
    pub busy: f64,
    /// Seconds of all threads, summed up.
    pub thread_seconds: f64,
    /// Length in seconds.
    pub seconds: f64,
}

impl Work {
    fn of(side: &[SeriesSet]) -> Work {
        let mut w = Work::default();
        let key = |[a, b]: [&str; 2]| (a.to_owned(), b.to_owned());
        for c in side {
            for (labels, h) in c.totals(&f::OP_DURATION) {
                let op = w.ops.entry(key(labels)).or_default();
                match &mut op.histogram {
                    Some(all) => all.merge(&h),
                    none => *none = Some(h),
                }
            }
            for ([version, op, phase], seconds) in c.sums(&f::OP_PHASE) {
                if phase == "log" {
                    w.ops.entry(key([version, op])).or_default().log += seconds;
                }
            }
            for ([version], h) in c.totals(&f::RPC_DURATION) {
                let all = w.requests.entry(version.to_owned()).or_default();
                *all = (all.0 + h.count() as f64, all.1 + h.sum);
            }
            for (labels, h) in c.totals(&f::IO_SIZE) {
                let all = w.sizes.entry(key(labels));
                all.and_modify(|all| all.merge(&h)).or_insert(h);
            }
            w.busy += c.total(&f::THREAD_BUSY, |_| true);
            let threads = c.numbers(&f::THREADS, |_| true).unwrap_or_default();
            let each = threads.iter().zip(&c.lengths);
            w.thread_seconds += each.map(|(n, seconds)| n * seconds).sum::<f64>();
            w.seconds += c.seconds();
            for (labels, n) in c.sums(&f::WRITE) {
                *w.stability.entry(key(labels)).or_default() += n;
            }
        }
        w
    }

    fn count(&self, op: &Op) -> f64 {
        self.ops.get(op).map_or(0.0, Times::count)
    }

    /// Share of each operation among the wanted ones.
    fn shares<'a>(&self, wanted: impl Iterator<Item = &'a Op>) -> BTreeMap<&'a Op, f64> {
        let counts: BTreeMap<&Op, f64> = wanted.map(|op| (op, self.count(op))).collect();
        let all: f64 = counts.values().sum();
        let each = counts.into_iter();
        each.map(|(op, n)| (op, n / all.max(1.0))).collect()
    }
}

/// Factor by which another mix alone changes a quantity, and the differences of the mix.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Explained {
    /// Ratios of after to before, with the durations of before and with those of after.
    pub factors: [f64; 2],
    /// Differences: `the mix changed: WRITE 3 was 3.0 % of the operations before, 10 % after`
    pub causes: Vec<Caveat>,
}

impl Explained {
    /// Text of all causes, and of the change that they explain alone: `the mix changed: ... (that alone: +116 %)`
    pub(super) fn text(&self) -> String {
        let texts: Vec<&str> = self.causes.iter().map(|c| c.text.as_str()).collect();
        let [a, b] = self.factors;
        let one = |value: f64| {
            let ratio = Interval {
                value,
                low: value,
                high: value,
            };
            labels::change(Some(ratio)).map_or_else(String::new, |(change, _)| change)
        };
        let (low, high) = (one(a.min(b)), one(a.max(b)));
        let alone = match a.min(b) > 0.0 && a.max(b).is_finite() {
            false => "by any factor".to_owned(),
            true if low == high => low,
            true => format!("{low} to {high}"),
        };
        format!("{} (that alone: {alone})", texts.join("; "))
    }

    /// Returns true if the mix changes the quantity by too little to hide or cause a change that matters.
    pub(super) fn is_nothing(&self, min_effect: f64) -> bool {
        is_nothing(self.factors, min_effect / 2.0)
    }

    /// Returns true if a change of this ratio is one of the server, whatever the mix explains of it. Changes by up to `min_effect` count as
    /// none.
    pub(super) fn leaves(&self, ratio: Interval, min_effect: f64) -> bool {
        let least = 1.0 + min_effect;
        let beyond = |f: &f64| match ratio.value < 1.0 {
            true => ratio.high / f < 1.0 / least,
            false => ratio.low / f > least,
        };
        // A mix that hardly differs does not take back a change that was just found.
        self.is_nothing(min_effect) || self.factors.iter().all(beyond)
    }
}

/// Tolerance for factors of sums that are equal but for rounding.
pub(super) const NOTHING: f64 = 1e-6;

pub(super) fn is_nothing(factors: [f64; 2], least: f64) -> bool {
    factors.iter().all(|f| f.ln().abs() <= least.ln_1p())
}

/// The work of both sides.
#[derive(Debug)]
pub(super) struct Mix(pub [Work; 2]);

impl Mix {
    pub(super) fn of(before: &[SeriesSet], after: &[SeriesSet]) -> Mix {
        Mix([Work::of(before), Work::of(after)])
    }

    /// Part of this quantity that the mix explains; `None` if it is not a total over other work.
    pub(super) fn explains(&self, subject: &Subject, quantity: &Quantity) -> Option<Explained> {
        if quantity.is_count() {
            return None;
        }
        match subject {
            Subject::Op { version, op } => self.other_work(version, op, quantity),
            Subject::Requests { version } => self.of_requests(version, quantity),
            Subject::Queue => self.of_thread_waits(),
            Subject::Log { .. } => self.of_logs(quantity),
            Subject::SyncWrites
            | Subject::Errors { .. }
            | Subject::Dropped { .. }
            | Subject::Replays
            | Subject::Workload { .. }
            | Subject::WorkloadErrors { .. } => None,
        }
    }

    fn ops(&self, wanted: impl Fn(&Op) -> bool) -> BTreeSet<&Op> {
        let all = self.0.iter().flat_map(|w| w.ops.keys());
        all.filter(|op| wanted(op)).collect()
    }

    /// A value of one side, or of the other side if this one has none.
    fn from<'a, T>(
        &'a self,
        side: usize,
        op: &Op,
        of: impl Fn(&'a Times) -> Option<T>,
    ) -> Option<T> {
        let at = |side: usize| self.0[side].ops.get(op).and_then(&of);
        at(side).or_else(|| at(1 - side))
    }

    /// A total of means, weighted with each side's numbers.
    fn of_means(
        &self,
        weights: &[BTreeMap<&Op, f64>; 2],
        beside: [f64; 2],
        mean: impl Fn(usize, &Op) -> Option<f64>,
    ) -> [f64; 2] {
        [0, 1].map(|side| {
            let total = |of: &BTreeMap<&Op, f64>| {
                let each = of.iter();
                each.map(|(op, n)| n * mean(side, op).unwrap_or(0.0))
                    .sum::<f64>()
                    + beside[side]
            };
            let [before, after] = [total(&weights[0]), total(&weights[1])];
            match before > 0.0 && after > 0.0 {
                true => after / before,
                false => 1.0,
            }
        })
    }

    fn of_requests(&self, version: &str, quantity: &Quantity) -> Option<Explained> {
        let ops = self.ops(|(v, _)| v == version);
        let weights = self.per_request(version, &ops);
        let mean = |side: usize, op: &Op| self.from(side, op, Times::mean);
        let factors = match quantity {
            Quantity::MeanAtOneMix => [1.0; 2],
            Quantity::Quantile { percent } => {
                let tail = 1.0 - f64::from(*percent) / 100.0;
                let means = self.of_request_means(version, &weights);
                widest(means, self.of_quantiles(&weights, tail)?)
            }
            _ => self.of_request_means(version, &weights),
        };
        // Other work of an operation is other work of its requests, too. The sum of all grows by no more than the part that grows most.
        let (mut others, mut causes) = ([1.0f64; 2], Vec::new());
        if !is_nothing(factors, NOTHING) {
            causes.push(self.differs(&ops));
        }
        for op in &ops {
            let part = [0, 1].map(|side| {
                let of =
                    |op: &Op| weights[side].get(op).unwrap_or(&0.0) * mean(side, op).unwrap_or(0.0);
                of(op)
                    / ops
                        .iter()
                        .map(|op| of(op))
                        .sum::<f64>()
                        .max(f64::MIN_POSITIVE)
            });
            if part[0].max(part[1]) < PART {
                continue;
            }
            if let Some(other) = self.other_work(&op.0, &op.1, quantity) {
                let [low, high] = other.factors;
                others = [others[0].min(low), others[1].max(high)];
                causes.extend(other.causes);
            }
        }
        let [low, high] = [factors[0].min(factors[1]), factors[0].max(factors[1])];
        (!causes.is_empty()).then(|| Explained {
            factors: [low * others[0], high * others[1]],
            causes,
        })
    }

    /// Operations per request on both sides: a COMPOUND has several.
    fn per_request<'a>(&self, version: &str, ops: &BTreeSet<&'a Op>) -> [BTreeMap<&'a Op, f64>; 2] {
        [0, 1].map(|side| {
            let requests = self.0[side].requests.get(version).map_or(0.0, |(n, _)| *n);
            let each = ops.iter();
            each.map(|op| (*op, self.0[side].count(op) / requests.max(1.0)))
                .collect()
        })
    }

    /// Factors by which another mix alone changes the mean of requests.
    fn of_request_means(&self, version: &str, weights: &[BTreeMap<&Op, f64>; 2]) -> [f64; 2] {
        let mean = |side: usize, op: &Op| self.from(side, op, Times::mean);
        // The time of a request outside its operations has no mix.
        let beside = [0, 1].map(|side| {
            let (n, seconds) = self.0[side].requests.get(version).copied()?;
            let inside = weights[side].iter();
            let inside: f64 = inside
                .map(|(op, n)| n * mean(side, op).unwrap_or(0.0))
                .sum();
            Some((seconds / n.max(1.0) - inside).max(0.0))
        });
        self.of_means(weights, beside.map(|b| b.unwrap_or(0.0)), mean)
    }

    /// Common mix for the requests of both sides: the mean of their operations per request. `None` if another mix alone changes the mean of
    /// requests by too little to matter.
    pub(super) fn one(&self, version: &str, min_effect: f64) -> Option<OneMix> {
        let ops = self.ops(|(v, _)| v == version);
        let weights = self.per_request(version, &ops);
        let factors = self.of_request_means(version, &weights);
        if is_nothing(factors, min_effect / 2.0) {
            return None;
        }
        let each = ops.into_iter().map(|op| {
            let per_request = (weights[0][op] + weights[1][op]) / 2.0;
            let mean = self.from(0, op, Times::mean).unwrap_or(0.0);
            (op.1.clone(), [per_request, per_request * mean])
        });
        Some(OneMix {
            version: version.to_owned(),
            per_request: each.collect(),
        })
    }

    /// Duration that this part of the operations per request exceeds, with the mix of each side.
    fn of_quantiles(&self, weights: &[BTreeMap<&Op, f64>; 2], tail: f64) -> Option<[f64; 2]> {
        let factor = |side: usize| {
            let at = |of: &BTreeMap<&Op, f64>| {
                let mut scheme: Option<Scheme> = None;
                let mut all: Vec<f64> = Vec::new();
                for (op, n) in of {
                    let Some(h) =
                        self.from(side, op, |t| t.histogram.as_ref().filter(|h| h.count() > 0))
                    else {
                        continue;
                    };
                    let h = h.undivided();
                    all.resize(all.len().max(h.counts.len()), 0.0);
                    let count = h.count() as f64;
                    for (sum, c) in all.iter_mut().zip(&h.counts) {
                        *sum += n * *c as f64 / count;
                    }
                    scheme = Some(h.scheme);
                }
                exceeded(&all, scheme?, tail)
            };
            Some(at(&weights[1])? / at(&weights[0])?)
        };
        Some([factor(0)?, factor(1)?])
    }

    /// Factors by which another mix alone changes the mean time of an operation, and the differences of the mix.
    pub(super) fn of_mean_work(&self) -> Option<([f64; 2], Caveat)> {
        let ops = self.ops(|_| true);
        let weights = [0, 1].map(|side| self.0[side].shares(ops.iter().copied()));
        let mean = |side: usize, op: &Op| self.from(side, op, Times::mean);
        let factors = self.of_means(&weights, [0.0; 2], mean);
        (!ops.is_empty()).then(|| (factors, self.differs(&ops)))
    }

    /// Explains waits for a log: operations wait for it for different times.
    fn of_logs(&self, quantity: &Quantity) -> Option<Explained> {
        let waits = |op: &Op| {
            self.0
                .iter()
                .any(|w| w.ops.get(op).is_some_and(|t| t.log > 0.0))
        };
        let ops = self.ops(waits);
        let weights = [0, 1].map(|side| self.0[side].shares(ops.iter().copied()));
        let mean = |side: usize, op: &Op| {
            self.from(side, op, |t| (t.count() > 0.0).then(|| t.log / t.count()))
        };
        let mut factors = self.of_means(&weights, [0.0; 2], mean);
        // Waits have no histogram for each operation, but the durations of the operations that wait have one.
        if let Quantity::Quantile { percent } = quantity {
            let tail = 1.0 - f64::from(*percent) / 100.0;
            factors = widest(factors, self.of_quantiles(&weights, tail)?);
        }
        Some(Explained {
            factors,
            causes: vec![self.differs(&ops)],
        })
    }

    /// Largest differences in the mix of these operations, however small they are.
    fn differs(&self, ops: &BTreeSet<&Op>) -> Caveat {
        Caveat {
            kind: "mix",
            text: format!("{CHANGED}: {}", self.moves(ops, 0.0).unwrap_or_default()),
        }
    }

    fn moves(&self, ops: &BTreeSet<&Op>, least: f64) -> Option<String> {
        let [b, a] = [0, 1].map(|side| self.0[side].shares(ops.iter().copied()));
        let named = |(version, op): &&Op| format!("{} was", labels::operation(version, op));
        Some(moved(&b, &a, least, named, "operations")?.1)
    }

    /// Largest differences in the mix of all operations, if more than this share of them differs.
    pub(super) fn moved(&self, least: f64) -> Option<Caveat> {
        let ops = self.ops(|_| true);
        self.moves(&ops, least).map(|_| self.differs(&ops))
    }
}

/// Range of both factors of two explanations.
fn widest([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a.min(b).min(c).min(d), a.max(b).max(c).max(d)]
}

/// Share of all that moved if it is more than `least`, and its two largest parts. Each part begins with its name and a verb.
pub(super) fn moved<K: Ord>(
    before: &BTreeMap<K, f64>,
    after: &BTreeMap<K, f64>,
    least: f64,
    name: impl Fn(&K) -> String,
    what: &str,
) -> Option<(f64, String)> {
    let part = |of: &BTreeMap<K, f64>, key: &K| of.get(key).copied().unwrap_or(0.0);
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    let mut moves: Vec<(&K, f64)> = (keys.into_iter())
        .map(|key| (key, part(after, key) - part(before, key)))
        .collect();
    let distance = moves.iter().map(|(_, d)| d.abs()).sum::<f64>() / 2.0;
    if distance <= least {
        return None;
    }
    moves.sort_by(|x, y| y.1.abs().total_cmp(&x.1.abs()));
    let each = moves.iter().take(2).map(|(key, _)| {
        let (b, a) = (percent(part(before, key)), percent(part(after, key)));
        format!("{} {b} of the {what} before, {a} after", name(key))
    });
    Some((distance, each.collect::<Vec<_>>().join("; ")))
}

/// Duration that this weight of values exceeds. Values of a bucket are spread evenly over its logarithm.
pub(super) fn exceeded(weights: &[f64], scheme: Scheme, tail: f64) -> Option<f64> {
    let mut above = 0.0;
    for (i, n) in weights.iter().enumerate().rev() {
        if *n > 0.0 && above + n >= tail {
            let high = scheme.upper(i);
            let low = match i {
                0 => high / 2.0,
                _ => scheme.upper(i - 1),
            };
            if !high.is_finite() {
                return Some(low);
            }
            let part = (tail - above) / n;
            return Some(high * (low / high).powf(part));
        }
        above += n;
    }
    None
}
