//! Parts of a page beside the comparison itself: its title, its origin, and the capacity before and after.

use crate::capacity::Capacity;
use crate::compare::result::Comparison;
use crate::html::quoted;
use nfscope_text::units::{percent, rate};

/// Facts that the caller has and the comparison lacks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paper {
    /// Title of the page, if one was given.
    pub title: Option<String>,
    /// Note of the author.
    pub note: Option<String>,
    /// Words of the command that repeats the comparison; empty if it is not known.
    pub command: Vec<String>,
    /// A digest of the recordings of each side; empty where there are none.
    pub digests: Vec<String>,
    /// Capacity of the server, before and after.
    pub worth: Option<Worth>,
}

/// The capacity of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Worth {
    /// Before and after.
    pub sides: [WorthOf; 2],
}

/// The capacity of one side.
#[derive(Debug, Clone, PartialEq)]
pub struct WorthOf {
    /// Measured requests per second.
    pub rate: f64,
    /// Requests per second at the limit: both ends of a range, or the same number twice.
    pub limit: [f64; 2],
    /// Name of the resource that limits.
    pub resource: String,
    /// True if the limit is more than three times the measured rate.
    pub extrapolated: bool,
}

impl WorthOf {
    /// Lowest limit of several recordings of one side; `None` if any of them has none.
    pub fn of(all: &[Capacity]) -> Option<WorthOf> {
        let each: Option<Vec<WorthOf>> = all.iter().map(WorthOf::one).collect();
        WorthOf::lowest(each?)
    }

    /// Lowest limit, but not below a measured rate.
    fn lowest(each: Vec<WorthOf>) -> Option<WorthOf> {
        let rates = each.iter().map(|w| w.rate);
        let rate = rates.clone().sum::<f64>() / each.len().max(1) as f64;
        let seen = rates.fold(0.0, f64::max);
        let [low, high] = [0, 1].map(|end| {
            let ends = each.iter().map(|w| w.limit[end]);
            ends.fold(f64::INFINITY, f64::min).max(seen)
        });
        let least = each
            .into_iter()
            .min_by(|a, b| a.limit[0].total_cmp(&b.limit[0]))?;
        Some(WorthOf {
            rate,
            limit: [low, high],
            ..least
        })
    }

    fn one(c: &Capacity) -> Option<WorthOf> {
        let (first, limit) = (c.least()?, c.limits()?);
        let is_known = limit.iter().all(|l| l.is_finite() && *l > 0.0);
        (is_known && c.rate > 0.0).then(|| WorthOf {
            rate: c.rate,
            limit,
            resource: first.name.clone(),
            extrapolated: first.extrapolated,
        })
    }

    /// The limit: `480/s`, or `120 .. 480/s`.
    pub(super) fn at_most(&self) -> String {
        range(self.limit.map(rate)) + "/s"
    }

    /// Part of the limit that is in use; for a range both ends, the smaller one first.
    pub(super) fn in_use(&self) -> String {
        let [low, high] = self.limit;
        range([high, low].map(|limit| percent(self.rate / limit)))
    }
}

/// Both ends, or one if they read alike.
fn range([low, high]: [String; 2]) -> String {
    match low == high {
        true => low,
        false => format!("{low} .. {high}"),
    }
}

impl Worth {
    pub(super) fn is_far(&self) -> bool {
        self.sides.iter().any(|s| s.extrapolated)
    }
}

impl Paper {
    /// The command, or the shortest one that compares the same recordings.
    pub(super) fn command(&self, c: &Comparison) -> String {
        if !self.command.is_empty() {
            let words = self.command.iter().map(|w| option(w));
            return words.collect::<Vec<_>>().join(" ");
        }
        let [before, after] = [&c.before, &c.after].map(|side| side.recordings.join(","));
        match after == before {
            true => format!("nfscope baseline compare {}", quoted(&before)),
            false => format!(
                "nfscope baseline compare {} {}",
                quoted(&before),
                quoted(&after)
            ),
        }
    }
}

/// Quotes a word of a command line so that an option stays readable.
fn option(word: &str) -> String {
    match word.strip_prefix("--").and_then(|w| w.split_once('=')) {
        Some((name, value)) => format!("--{name}={}", quoted(value)),
        None if word.starts_with("--")
            && word[2..]
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-') =>
        {
            word.to_owned()
        }
        None => quoted(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth(rate: f64, limit: [f64; 2]) -> WorthOf {
        WorthOf {
            rate,
            limit,
            resource: "journal".into(),
            extrapolated: false,
        }
    }

    /// A limit that is a range is shown with both ends: its lower end alone is no "at most".
    #[test]
    fn a_limit_that_is_a_range_has_both_ends() {
        let range = worth(100.0, [120.0, 480.0]);
        assert_eq!(range.at_most(), "120 .. 480/s");
        assert_eq!(range.in_use(), "20.8 % .. 83.3 %");
        let one = worth(100.0, [400.0; 2]);
        assert_eq!(
            (one.at_most(), one.in_use()),
            ("400/s".into(), "25.0 %".into())
        );
    }

    /// The part in use is at most 100 %, although a recording may have had more requests than the lowest limit of another one.
    #[test]
    fn no_more_is_in_use_than_there_is() {
        let sides = vec![worth(300.0, [310.0; 2]), worth(100.0, [150.0, 200.0])];
        let side = WorthOf::lowest(sides).unwrap();
        assert_eq!((side.rate, side.limit), (200.0, [300.0; 2]));
        assert_eq!(side.in_use(), "66.7 %");
    }
}
