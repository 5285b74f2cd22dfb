//! Clients that are guilty together: each has a small part, and no single name says that.

use crate::ratio::sum;
use crate::rules::evidence::percent;
use crate::thresholds::{ALIKE, LONG_PART};

/// Most clients of a group that are named.
const NAMED: usize = 3;

/// Clients with similar parts of a whole, which have most of it together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group<'a> {
    /// Names, the client with most first; two at least.
    pub names: Vec<&'a str>,
    /// Number of all clients.
    pub of: usize,
    /// The part of all together, 0 to 1.
    pub share: f64,
    /// The smallest and the largest part of one.
    pub each: [f64; 2],
}

/// The group of clients that leads in parts of a whole, which are sorted, the largest first; `None` if one client stands out, or if those
/// with similar parts have less than half of the whole or do not stand out from the next one.
pub fn leading<'a>(parts: &[(&'a str, f64)]) -> Option<Group<'a>> {
    let most = parts.first()?.1;
    let alike: Vec<_> = (parts.iter())
        .take_while(|(_, part)| *part > 0.0 && *part >= ALIKE * most)
        .collect();
    let share = sum(alike.iter().map(|(_, part)| *part));
    let least = alike.last()?.1;
    // A line between clients that hardly differ would be drawn by chance.
    let next = parts.get(alike.len()).map_or(0.0, |(_, part)| *part);
    let stands_out = next < ALIKE * least;
    (alike.len() > 1 && share >= LONG_PART && stands_out).then(|| Group {
        names: alike.iter().map(|(name, _)| *name).collect(),
        of: parts.len(),
        share,
        each: [least, most],
    })
}

impl Group<'_> {
    /// `6 of 14 clients (10.0.0.1, 10.0.0.2, 10.0.0.3 and 3 more), 16 % to 17 % each, have 98 %`, or of all clients alike
    /// `6 clients have 16 % to 17 % each`.
    pub fn words(&self) -> String {
        let [least, most] = self.each.map(percent);
        let each = match least == most {
            true => most,
            false => format!("{least} to {most}"),
        };
        let number = self.names.len();
        if number == self.of {
            return format!("{number} clients have {each} each");
        }
        let more = number.saturating_sub(NAMED);
        let named = self.names[..number.min(NAMED)].join(", ");
        let named = match more {
            0 => named,
            n => format!("{named} and {n} more"),
        };
        format!(
            "{number} of {} clients ({named}), {each} each, have {}",
            self.of,
            percent(self.share)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_guilty_together_are_named_together() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let parts = [0.17, 0.17, 0.17, 0.16, 0.16, 0.15, 0.01, 0.01];
        let all: Vec<_> = names.into_iter().zip(parts).collect();
        let group = leading(&all).unwrap();
        assert_eq!(
            group.words(),
            "6 of 8 clients (a, b, c and 3 more), 15 % to 17 % each, have 98 %"
        );
        let two = [("a", 0.45), ("b", 0.45), ("c", 0.1)];
        assert_eq!(
            leading(&two).unwrap().words(),
            "2 of 3 clients (a, b), 45 % each, have 90 %"
        );
        let alike = [("a", 0.34), ("b", 0.33), ("c", 0.33)];
        assert_eq!(
            leading(&alike).unwrap().words(),
            "3 clients have 33 % to 34 % each"
        );
    }

    #[test]
    fn one_client_that_stands_out_is_no_group() {
        assert_eq!(leading(&[("a", 0.7), ("b", 0.2), ("c", 0.1)]), None);
        assert_eq!(leading(&[("a", 1.0)]), None);
        assert_eq!(leading(&[]), None);
        // The clients that are alike have less than half.
        let many = [("a", 0.2), ("b", 0.15)];
        let rest = [("c", 0.07); 9];
        assert_eq!(leading(&[&many[..], &rest].concat()), None);
        assert_eq!(leading(&[("a", 0.0), ("b", 0.0)]), None);
        // The last one is just below half of the first, and hardly below the one before.
        let falling = [
            ("a", 0.22),
            ("b", 0.2),
            ("c", 0.18),
            ("d", 0.17),
            ("e", 0.12),
            ("f", 0.1),
        ];
        assert_eq!(leading(&falling), None);
    }
}
