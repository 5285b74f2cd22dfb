//! Definition of "flat". Only settled rounds are compared with each other:
//!
//! - The first quarter of the rounds does not count: caches fill, and clients get their series.
//! - The first twenty minutes do not count. The agent keeps a quarter of an hour in memory, and the answer to `/windows` grows until
//!   then. The memory of both processes grows with it, in steps, because a larger answer needs a larger allocation. Both are settled
//!   five minutes later.
//! - The first five minutes of a restarted process do not count, and neither do rounds before it has lived through each event. While
//!   nfsd's module is replaced requests wait, and then all of them are answered at once: memory has a peak there.
//!
//! The median of the last third of the settled rounds may not exceed the median of the first third by more than the quantity's
//! allowance. The allowance does not grow with the time, so that a longer run finds slower leaks.

use super::event::CYCLE;
use super::figures::Quantity;

/// Fewest settled rounds for meaningful thirds.
pub const FEWEST: usize = 9;
/// Hours until the agent's memory holds a quarter of an hour, its maximum, and has settled with it.
const FILLS: f64 = 0.25 + SETTLES / 3600.0;
/// Seconds after which a process has answered each request often enough to have all the memory that it needs.
const SETTLES: f64 = 300.0;

/// A quantity at the end of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Hours since the agent began to serve.
    pub hours: f64,
    /// Age in seconds of the quantity's process; [`f64::INFINITY`] for a quantity that begins with the run.
    pub age: f64,
    /// Rounds that the process has lived through; [`usize::MAX`] for a quantity that begins with the run.
    pub lived: usize,
    /// Value of the quantity.
    pub value: f64,
}

/// Course of a quantity over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Median of the first third of the settled rounds.
    pub first: f64,
    /// Median of the last third of the settled rounds.
    pub last: f64,
    /// Highest value of all rounds.
    pub most: f64,
    /// Slope of the settled rounds by least squares, in an hour.
    pub slope: f64,
    /// Growth that is allowed.
    pub allowed: f64,
}

impl Course {
    /// Course over all rounds. `None` if too few are settled.
    pub fn of(quantity: &Quantity, rounds: &[Point]) -> Option<Course> {
        let (hours, values): (Vec<f64>, Vec<f64>) = rounds[rounds.len().div_ceil(4)..]
            .iter()
            .filter(|r| r.hours >= FILLS && r.age >= SETTLES && r.lived >= CYCLE)
            .map(|r| (r.hours, r.value))
            .unzip();
        if values.len() < FEWEST {
            return None;
        }
        let third = values.len() / 3;
        let first = median(&values[..third]);
        Some(Course {
            first,
            last: median(&values[values.len() - third..]),
            most: rounds.iter().map(|r| r.value).fold(f64::MIN, f64::max),
            slope: slope(&hours, &values),
            allowed: (first * quantity.part).max(quantity.units),
        })
    }

    /// True if the quantity has not grown by more than is allowed.
    pub fn flat(&self) -> bool {
        self.last - self.first <= self.allowed
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}

fn slope(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (mx, my) = (mean(x), mean(y));
    let both: f64 = x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum();
    let spread: f64 = x.iter().map(|x| (x - mx).powi(2)).sum();
    if spread > 0.0 { both / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Quantity = Quantity {
        name: "memory",
        unit: "KiB",
        part: 0.03,
        units: 256.0,
        judged: true,
        of_http: false,
    };

    /// Rounds of one process, evenly spaced in these hours.
    fn rounds(count: u32, hours: f64, value: impl Fn(f64) -> f64) -> Vec<Point> {
        let at = |n| f64::from(n) / f64::from(count) * hours;
        (0..count)
            .map(|n| Point {
                hours: at(n),
                age: f64::INFINITY,
                lived: usize::MAX,
                value: value(at(n)),
            })
            .collect()
    }

    fn course(value: impl Fn(f64) -> f64) -> Option<Course> {
        Course::of(&MEMORY, &rounds(40, 1.0, value))
    }

    #[test]
    fn what_grows_in_the_first_quarter_alone_is_flat() {
        let warm = course(|h| 9000.0 + 4000.0 * h.min(0.2)).expect("enough rounds");
        assert!(warm.flat(), "{warm:?}");
        assert_eq!((warm.first, warm.last), (9800.0, 9800.0));
        assert!(warm.slope.abs() < 1e-6);
    }

    #[test]
    fn what_goes_on_growing_is_not() {
        // A page every 20 s is 720 KiB an hour. Half of that growth lies between the middles of the first and the last third.
        let leak = course(|h| 9000.0 + 720.0 * h).expect("enough rounds");
        assert!(!leak.flat(), "{leak:?}");
        assert!((leak.slope - 720.0).abs() < 1.0, "{leak:?}");
        assert!(course(|h| 9000.0 - 720.0 * h).is_some_and(|c| c.flat()));
    }

    #[test]
    fn one_descriptor_more_is_one_too_many() {
        let fds = Quantity {
            part: 0.0,
            units: 0.0,
            ..MEMORY
        };
        let mut rounds = rounds(24, 8.0, |_| 40.0);
        assert!(Course::of(&fds, &rounds).is_some_and(|c| c.flat()));
        for late in &mut rounds[14..] {
            late.value = 41.0;
        }
        assert!(Course::of(&fds, &rounds).is_some_and(|c| !c.flat()));
        assert_eq!(Course::of(&fds, &rounds[..11]), None);
    }

    #[test]
    fn what_fills_for_a_quarter_of_an_hour_is_flat_in_a_short_run_as_well() {
        let filling = |h: f64| 9000.0 + 6000.0 * h.min(0.25);
        let short = Course::of(&MEMORY, &rounds(40, 0.5, filling)).expect("enough rounds");
        assert!(short.flat(), "{short:?}");
        assert_eq!(Course::of(&MEMORY, &rounds(40, 0.4, filling)), None);
        // A step of half a megabyte may come from memory that fills only now.
        let step = |h: f64| if h < 0.3 { 9000.0 } else { 9500.0 };
        let short = Course::of(&MEMORY, &rounds(40, 0.5, step)).expect("enough rounds");
        assert!(short.flat(), "{short:?}");
    }

    /// Plays a process that takes 1500 KiB more in its first minutes than at its start, and is killed every five minutes of the first
    /// half hour. Five minutes after its last start it has all that it needs.
    fn young_and_old(leak: f64) -> Vec<Point> {
        let mut rounds = rounds(80, 1.0, |_| 0.0);
        let (mut lived, mut last) = (0, f64::INFINITY);
        for round in &mut rounds {
            let began = ((round.hours * 12.0).floor() / 12.0).min(0.5);
            round.age = (round.hours - began) * 3600.0;
            lived = if round.age < last { 0 } else { lived + 1 };
            (last, round.lived) = (round.age, lived);
            round.value =
                9000.0 + 1500.0 * (round.age / 240.0).min(1.0) + leak * round.age / 3600.0;
        }
        rounds
    }

    #[test]
    fn a_young_process_is_not_compared_with_an_old_one() {
        let course = Course::of(&MEMORY, &young_and_old(0.0)).expect("enough rounds");
        assert!(course.flat(), "{course:?}");
        // The control has all rounds as if of one process, which grew.
        let mut one = young_and_old(0.0);
        for round in &mut one {
            (round.age, round.lived) = (f64::INFINITY, usize::MAX);
        }
        assert!(Course::of(&MEMORY, &one).is_some_and(|c| !c.flat()));
        // The peak of the process's first reload is no growth.
        let mut peak = young_and_old(0.0);
        for late in &mut peak[49..] {
            late.value += 400.0;
        }
        assert!(Course::of(&MEMORY, &peak).is_some_and(|c| c.flat()));
        // A leak of the old process is found.
        let leak = Course::of(&MEMORY, &young_and_old(2000.0)).expect("enough rounds");
        assert!(!leak.flat(), "{leak:?}");
        // An old process needs enough settled rounds.
        assert_eq!(Course::of(&MEMORY, &young_and_old(0.0)[..50]), None);
    }
}
