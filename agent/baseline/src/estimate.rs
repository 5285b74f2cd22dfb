//! Statistics of durations with their confidence intervals.

use crate::histogram_series::HistogramSeries;
use nfscope_stats as stats;
use nfscope_stats::{CONFIDENCE, Estimate, Memory, Tail};
use serde::Serialize;

/// A value, and the ends of its 95 % confidence interval if there are enough windows, and if one can hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Value {
    /// Value in seconds, or events per second.
    pub value: f64,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Half the width of the histogram bucket, relative to the value. A longer recording does not make the interval narrower than that.
    #[serde(skip)]
    pub hidden: f64,
    /// Number of independent windows with the same precision; `None` for too few windows.
    pub stretches: Option<f64>,
    /// Precision of the values beyond a quantile, if this is one.
    #[serde(skip)]
    pub tail: Option<Tail>,
    /// How much its windows resemble others that are far away; `None` for too few windows for an interval. More are needed for a test.
    #[serde(skip)]
    pub memory: Option<Memory>,
    /// Windows far apart resemble each other more than neighbours explain, so that no interval holds and there is none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub long_memory: bool,
}

impl Value {
    fn new(
        plain: Option<f64>,
        measured: Option<Estimate>,
        memory: impl FnOnce() -> Option<Memory>,
    ) -> Option<Value> {
        match measured {
            Some(m) => {
                let (i, hidden) = (m.interval(CONFIDENCE), m.interval(0.0));
                let memory = memory();
                let long_memory = memory.is_some_and(|m| m.is_long());
                Some(Value {
                    value: i.value,
                    low: (!long_memory).then_some(i.low),
                    high: (!long_memory).then_some(i.high),
                    memory,
                    long_memory,
                    hidden: (hidden.high - hidden.low) / 2.0 / i.value,
                    stretches: Some(m.stretches),
                    tail: m.tail,
                })
            }
            None => plain.map(|value| Value {
                memory: None,
                long_memory: false,
                value,
                low: None,
                high: None,
                hidden: 0.0,
                stretches: None,
                tail: None,
            }),
        }
    }

    /// Half the width of the interval, relative to the value.
    pub fn half_width(&self) -> Option<f64> {
        let half = (self.high? - self.low?) / 2.0 / self.value;
        half.is_finite().then_some(half)
    }
}

/// The quantile `q`, 0 to 1.
pub fn quantile(s: &HistogramSeries, q: f64) -> Option<Value> {
    let measured = stats::quantile(&s.buckets, s.scheme, q);
    let memory = || stats::quantile_memory(&s.buckets, s.scheme, q);
    Value::new(s.total().quantile(q), measured, memory)
}

/// Windows on each side that detect a change of a quantile by 10 % with a power of 80 %; `None` if a bucket hides it.
pub fn windows_to_find(s: &HistogramSeries, q: f64) -> Option<f64> {
    let measured = stats::quantile(&s.buckets, s.scheme, q)?;
    measured.windows_to_find(1.1, stats::MIN_EFFECT, 0.8, s.buckets.len())
}

/// The mean.
pub fn mean(s: &HistogramSeries) -> Option<Value> {
    per(&s.sums, &s.counts)
}

/// Values per second.
pub fn rate(s: &HistogramSeries, seconds: &[f64]) -> Option<Value> {
    per(&s.counts, seconds)
}

/// The sum of `y` divided by the sum of `x`.
pub fn per(y: &[f64], x: &[f64]) -> Option<Value> {
    let (all_y, all_x) = (y.iter().sum::<f64>(), x.iter().sum::<f64>());
    let memory = || Some(Memory::of_ratio(y, x));
    Value::new(
        (all_x > 0.0).then(|| all_y / all_x),
        stats::ratio(y, x),
        memory,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{Histogram, Scheme};

    /// Means of 10 and 20 windows, of which the score of a long memory is high by chance, have an interval. A step in 60 windows has none.
    #[test]
    fn few_windows_are_not_tested_for_a_long_memory() {
        let ten = [10.4, 12.8, 12.7, 12.8, 12.3, 11.8, 11.7, 11.0, 9.9, 9.1];
        let twenty = [
            12.2, 10.2, 10.4, 10.0, 9.1, 8.9, 8.8, 9.2, 9.9, 11.0, 10.8, 11.5, 11.3, 10.9, 10.3,
            9.1, 7.9, 8.6, 8.9, 9.6,
        ];
        for few in [&ten[..], &twenty[..]] {
            let v = per(few, &vec![1.0; few.len()]).unwrap();
            assert!(!v.long_memory && v.half_width().is_some(), "{v:?}");
        }
        let noise = |i: usize| (i * 7919 % 101) as f64 / 101.0;
        let step = |i: usize| 1.0 + noise(i) + 0.6 * f64::from(i >= 30);
        let y: Vec<f64> = (0..60).map(step).collect();
        let v = per(&y, &[1.0; 60]).unwrap();
        assert!(v.long_memory && v.half_width().is_none(), "{v:?}");
    }

    #[test]
    fn ten_windows_tell_how_sure_they_are() {
        let mut s = HistogramSeries::new(Scheme::TIME);
        for w in 1..=20 {
            s.begin(w);
            let mut h = Histogram::new(Scheme::TIME);
            // Neighbouring windows differ: with a trend all would be one stretch.
            h.add(&[(40, 90 + w as u64 * 7 % 11), (44, 10)], 1.0);
            s.add(&h);
        }
        for v in [quantile(&s, 0.5), mean(&s), rate(&s, &[1.0; 20])] {
            let v = v.unwrap();
            assert!(v.low.unwrap() <= v.value && v.value <= v.high.unwrap());
            assert!(v.half_width().unwrap() < 0.5, "{v:?}");
        }
        // Fewer than ten windows give a value without an interval.
        s.buckets.truncate(9);
        s.counts.truncate(9);
        s.sums.truncate(9);
        let rate = rate(&s, &[2.0; 9]).unwrap();
        assert_eq!((rate.value, rate.low), (951.0 / 18.0, None));
    }
}
