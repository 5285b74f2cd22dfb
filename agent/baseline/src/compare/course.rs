//! The trend of a recording: steady, or with a warm-up, a ramp or a step. A recording that is not steady mixes several states of the
//! server.

use crate::compare::labels;
use crate::histogram_series::HistogramSeries;
use crate::series::SeriesSet;
use nfscope_model::family as f;
use nfscope_text::units::{rate, seconds};

/// Factor between parts of a recording below which they count as alike.
const DRIFT: f64 = 1.25;
/// Standard errors from which on a slope or a step is not chance. The limit is high, because the place of a step is chosen among all.
const SURE: f64 = 5.0;
/// Length in seconds from which on a recording has the wave of the day, which is not a trend of its own.
pub(super) const DAY: f64 = 0.75 * 86_400.0;
/// Least number of windows for a trend.
const FEWEST: usize = 20;
/// Name of a warm-up.
const WARM_UP: &str = "a warm-up";
/// Least number of windows of a warm-up; then its largest part of all windows.
const WARM: usize = 3;
const MOST: f64 = 1.0 / 3.0;
/// Distance of a warm-up from the rest, in standard deviations of single windows.
const FAR: f64 = 3.0;

/// A quantity, window by window: a ratio of two sums.
pub(super) struct Line<'a> {
    what: String,
    y: &'a [f64],
    x: &'a [f64],
    show: fn(f64) -> String,
}

/// Finds caveats about the latency of the operation with the most time, and about the rate of all operations.
pub(super) fn find(side: &str, c: &SeriesSet, say: &mut impl FnMut(&'static str, String)) {
    if c.seconds() >= DAY {
        return;
    }
    if let Some((op, one)) = longest(c) {
        latency(op, &one).tell(side, c, say);
    }
    let Some(all) = c.histograms(&f::OP_DURATION, |_| true) else {
        return;
    };
    let load = Line {
        what: "the rate of operations".to_owned(),
        y: &all.counts,
        x: &c.lengths,
        show: rate,
    };
    load.tell(side, c, say);
}

/// The operation with the most time. The mean of all operations changes with their mix, too.
fn longest(c: &SeriesSet) -> Option<([&str; 2], HistogramSeries)> {
    let ops = c.totals(&f::OP_DURATION).into_iter();
    let (op, _) = ops.max_by(|(_, a), (_, b)| a.sum.total_cmp(&b.sum))?;
    Some((op, c.histograms(&f::OP_DURATION, |l| l == op)?))
}

/// The mean latency of an operation.
pub(super) fn latency<'a>(op: [&str; 2], one: &'a HistogramSeries) -> Line<'a> {
    Line {
        what: format!("the mean latency of {}", labels::operation(op[0], op[1])),
        y: &one.sums,
        x: &one.counts,
        show: seconds,
    }
}

impl Line<'_> {
    fn tell(&self, side: &str, c: &SeriesSet, say: &mut impl FnMut(&'static str, String)) {
        let n = self.y.len();
        let (what, show) = (&self.what, self.show);
        if let Some(windows) = self.warm_up() {
            let [first, rest] = [0..windows, windows..n].map(|part| self.mean(part));
            let until = c.begins.get(windows).copied().unwrap_or(0.0);
            let from = c.begins.first().copied().unwrap_or(0.0);
            let text = format!(
                "{side}: the first {} are a warm-up: {what} was {} there, and {} afterwards. Begin to record after it, or compare what \
                 comes then with --before and --after",
                labels::length(until - from),
                show(first),
                show(rest)
            );
            return say("warmup", text);
        }
        let Some(course) = self.course(0) else {
            return;
        };
        if course == Course::Ramp {
            let tenth = (n / 10).max(1);
            let [from, to] = [0..tenth, n - tenth..n].map(|part| self.mean(part));
            let verb = if to > from { "rose" } else { "fell" };
            let text = format!(
                "{side}: {what} {verb} all the time, from {} in the first tenth to {} in the last: a ramp, of which no part is typical",
                show(from),
                show(to)
            );
            return say("drift", text);
        }
        let [first, second] = self.halves(0);
        let text = format!(
            "{side}: {what} changed during the recording, from {} in the first half to {} in the second",
            show(first),
            show(second)
        );
        say("drift", text);
    }

    /// Returns true if there are enough windows with a value for a test of this trend. A warm-up needs a value in each window.
    pub(super) fn shows(&self, course: &str) -> bool {
        let values = self.logarithms(0).len();
        values >= FEWEST && (course != WARM_UP || values == self.y.len())
    }

    /// Name of the trend: a warm-up, a ramp or a step. `None` if the quantity is steady.
    pub(super) fn unsteady(&self) -> Option<&'static str> {
        if self.warm_up().is_some() {
            return Some(WARM_UP);
        }
        self.course(0).map(|course| match course {
            Course::Ramp => "a ramp",
            Course::Step => "a step",
        })
    }

    fn mean(&self, part: std::ops::Range<usize>) -> f64 {
        let sum = |of: &[f64]| of[part.clone()].iter().sum::<f64>();
        sum(self.y) / sum(self.x).max(f64::MIN_POSITIVE)
    }

    /// Logarithms of all windows from `from` on that have a value.
    fn logarithms(&self, from: usize) -> Vec<f64> {
        let each = self.y.iter().zip(self.x).skip(from);
        let each = each.map(|(y, x)| (y / x).ln());
        each.filter(|v| v.is_finite()).collect()
    }

    /// Mean values of both halves of the windows from `from` on.
    fn halves(&self, from: usize) -> [f64; 2] {
        let n = self.y.len();
        let middle = from + (n - from) / 2;
        [from..middle, middle..n].map(|part| self.mean(part))
    }

    /// Trend of the windows from `from` on; `None` if they are steady.
    fn course(&self, from: usize) -> Option<Course> {
        let of: Vec<f64> = self.logarithms(from);
        let [first, second] = self.halves(from);
        let factor = (first / second).max(second / first);
        if of.len() < FEWEST / 2 || factor.is_nan() || factor <= DRIFT {
            return None;
        }
        let (line, step) = (Fit::line(&of), Fit::step(&of)?);
        let (course, fit) = match line.squares < step.squares {
            true => (Course::Ramp, line),
            false => (Course::Step, step),
        };
        fit.is_sure(of.len()).then_some(course)
    }

    /// Number of windows of a warm-up: those without which the mean has the smallest error (MSER: K. P. White, Simulation 69, 1997). They
    /// must be far from the rest, and the rest must be steady.
    fn warm_up(&self) -> Option<usize> {
        let all = self.logarithms(0);
        // The method needs a value in each window.
        if all.len() != self.y.len() || all.len() < FEWEST {
            return None;
        }
        let cut = cut(&all);
        let (first, rest) = all.split_at(cut);
        if cut < WARM || cut as f64 > MOST * all.len() as f64 {
            return None;
        }
        let (a, b) = (mean(first), mean(rest));
        let deviation = (squares(rest) / (rest.len() as f64 - 1.0)).sqrt();
        let is_far = (a - b).abs() > DRIFT.ln().max(FAR * deviation);
        (is_far && self.course(cut).is_none()).then_some(cut)
    }
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / (of.len() as f64).max(1.0)
}

/// Sum of squared deviations from the mean.
fn squares(of: &[f64]) -> f64 {
    let mean = mean(of);
    of.iter().map(|v| (v - mean).powi(2)).sum()
}

/// Number of first values without which the standard error of the mean of the others is smallest; at most half of all.
fn cut(of: &[f64]) -> usize {
    let error = |from: usize| squares(&of[from..]) / ((of.len() - from) as f64).powi(2);
    let all = (0..=of.len() / 2).map(|from| (from, error(from)));
    all.min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(0, |(from, _)| from)
}

/// A trend that is not steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Ramp,
    Step,
}

/// A trend that was fitted to a series by least squares.
struct Fit {
    /// Change by the trend: per value for a line, in all for a step.
    effect: f64,
    /// Sum of the squared weights of the values, of which the effect is the weighted sum.
    weights: f64,
    residuals: Vec<f64>,
    /// Sum of the squared residuals.
    squares: f64,
}

impl Fit {
    fn new(effect: f64, weights: f64, residuals: Vec<f64>) -> Fit {
        let squares = residuals.iter().map(|r| r * r).sum();
        Fit {
            effect,
            weights,
            residuals,
            squares,
        }
    }

    /// A straight line.
    fn line(of: &[f64]) -> Fit {
        let (middle, mean) = ((of.len() as f64 - 1.0) / 2.0, mean(of));
        let (mut xy, mut xx) = (0.0, 0.0);
        for (i, v) in of.iter().enumerate() {
            let x = i as f64 - middle;
            (xy, xx) = (xy + x * v, xx + x * x);
        }
        let slope = xy / xx;
        let each = of.iter().enumerate();
        let residuals = each.map(|(i, v)| v - mean - slope * (i as f64 - middle));
        Fit::new(slope, 1.0 / xx, residuals.collect())
    }

    /// A step at its best place.
    fn step(of: &[f64]) -> Option<Fit> {
        let error = |at: usize| squares(&of[..at]) + squares(&of[at..]);
        let at = (1..of.len()).map(|at| (at, error(at)));
        let (at, _) = at.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let (first, second) = of.split_at(at);
        let (a, b) = (mean(first), mean(second));
        let residuals = first.iter().map(|v| v - a);
        let residuals = residuals.chain(second.iter().map(|v| v - b));
        let weights = 1.0 / first.len() as f64 + 1.0 / second.len() as f64;
        Some(Fit::new(b - a, weights, residuals.collect()))
    }

    /// Returns true if chance hardly causes such an effect, given the correlation of the residuals.
    fn is_sure(&self, n: usize) -> bool {
        let pairs = self.residuals.windows(2).map(|p| p[0] * p[1]);
        let alike = (pairs.sum::<f64>() / self.squares.max(f64::MIN_POSITIVE)).clamp(0.0, 0.98);
        let variance = self.squares / (n as f64 - 2.0).max(1.0);
        let error = (variance * self.weights * (1.0 + alike) / (1.0 - alike)).sqrt();
        self.effect.abs() > SURE * error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use rand_distr::{Distribution, StandardNormal};

    /// A series around a trend with this correlation from window to window and a deviation of 10 %.
    fn series(random: &mut SmallRng, correlation: f64, course: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut state: f64 = StandardNormal.sample(random);
        let n = 180;
        let each = (0..n).map(|i| {
            let z: f64 = StandardNormal.sample(random);
            state = correlation * state + (1.0 - correlation * correlation).sqrt() * z;
            course(f64::from(i) / f64::from(n)) * (0.1 * state).exp()
        });
        each.collect()
    }

    fn told(y: &[f64]) -> Vec<(&'static str, String)> {
        let x = vec![1.0; y.len()];
        let metadata = crate::recording::Metadata {
            name: "x".into(),
            began_ms: 0,
            host: "nfs1".into(),
            kernel: None,
            agent: "0.1.0".into(),
            interval: std::time::Duration::from_secs(10),
            labels: Default::default(),
        };
        let mut c = SeriesSet::from_windows(metadata, Vec::new(), 0, std::iter::empty()).unwrap();
        c.begins = (0..y.len()).map(|i| 10.0 * i as f64).collect();
        let line = Line {
            what: "the mean latency".into(),
            y,
            x: &x,
            show: |v| format!("{v:.1}"),
        };
        let mut all = Vec::new();
        line.tell("before", &c, &mut |kind, text| all.push((kind, text)));
        all
    }

    /// Name of a trend, the trend over the time from 0 to 1, and words of its caveat.
    type Told<'a> = (&'a str, &'a dyn Fn(f64) -> f64, &'a str);

    /// Each trend is reported as itself in 90 of 100 series, and a steady series has none in as many.
    #[test]
    fn a_ramp_is_a_ramp_and_a_warm_up_is_one() {
        let mut random = SmallRng::seed_from_u64(5);
        let step = |at: f64, by: f64| move |t: f64| if t < at { 1.0 } else { by };
        let courses: [Told; 6] = [
            ("steady", &|_| 1.0, ""),
            ("ramp", &|t| 1.0 + t, "rose all the time, from"),
            ("falling ramp", &|t| 2.0 - t, "fell all the time, from"),
            (
                "step",
                &step(0.5, 2.0),
                "changed during the recording, from 1.0",
            ),
            (
                "late step",
                &step(0.7, 2.0),
                "changed during the recording, from 1.0",
            ),
            (
                "warm-up",
                &|t| 1.0 + 2.0 * (-t * 40.0).exp(),
                "are a warm-up: the mean latency was",
            ),
        ];
        for correlation in [0.0, 0.3, 0.6] {
            for (name, course, said) in &courses {
                let right = (0..100).filter(|_| {
                    let all = told(&series(&mut random, correlation, course));
                    match said.is_empty() {
                        true => all.is_empty(),
                        false => all.len() == 1 && all[0].1.contains(said),
                    }
                });
                let right = right.count();
                println!("correlation {correlation}, {name}: told as it is in {right} of 100");
                assert!(right >= 90, "{name} {correlation}: {right}");
            }
        }
    }
}
