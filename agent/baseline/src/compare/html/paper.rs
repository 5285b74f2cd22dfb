//! Parts of a page beside the comparison itself: its title, its origin, and what the change is worth.

use crate::capacity::Capacity;
use crate::compare::result::Comparison;
use crate::html::quoted;

/// Facts that the caller knows and the comparison does not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paper {
    /// Title of the page, if somebody gave one.
    pub title: Option<String>,
    /// A note of whoever made it.
    pub note: Option<String>,
    /// The words of the command that makes the comparison again; none where it is not known.
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
    /// Requests per second that were measured.
    pub rate: f64,
    /// Requests per second at the limit.
    pub limit: f64,
    /// Name of the resource that limits.
    pub resource: String,
    /// The limit is more than three times as far as what was measured.
    pub extrapolated: bool,
}

impl WorthOf {
    /// The lowest limit of several recordings of one side; `None` where any of them has none.
    pub fn of(all: &[Capacity]) -> Option<WorthOf> {
        let each: Option<Vec<WorthOf>> = all.iter().map(WorthOf::one).collect();
        let each = each?;
        let rate = each.iter().map(|w| w.rate).sum::<f64>() / each.len().max(1) as f64;
        let least = each
            .into_iter()
            .min_by(|a, b| a.limit.total_cmp(&b.limit))?;
        Some(WorthOf { rate, ..least })
    }

    fn one(c: &Capacity) -> Option<WorthOf> {
        let first = c.least()?;
        let limit = first.max_rate_at_least.unwrap_or(first.max_rate);
        (limit.is_finite() && limit > 0.0 && c.rate > 0.0).then(|| WorthOf {
            rate: c.rate,
            limit,
            resource: first.name.clone(),
            extrapolated: first.extrapolated,
        })
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

/// A word of a command line: an option stays readable.
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
