//! Tests whether an event occurred on one side only by chance.

use crate::change::MIN_P;

/// The probability that all independent windows with events are on one side, whichever it is. Without a difference each of them
/// is on the side that has events with the probability of that side's `share` of all windows. `factor` is the largest ratio of
/// both sides that counts as no difference: 1.02 for 2 %.
pub fn one_sided(with_events: f64, share: f64, factor: f64) -> f64 {
    let odds = share / (1.0 - share);
    let all_on = |odds: f64| (odds / (1.0 + odds)).powf(with_events);
    let p = all_on(odds * factor) + all_on(factor / odds);
    p.clamp(MIN_P, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_coins_have_it() {
        assert_eq!(one_sided(0.0, 0.5, 1.0), 1.0);
        assert!((one_sided(5.0, 0.5, 1.0) - 2.0 / 32.0).abs() < 1e-12);
        assert!((one_sided(2.0, 0.75, 1.0) - (9.0 + 1.0) / 16.0).abs() < 1e-12);
        assert!(one_sided(5.0, 0.5, 1.5) > one_sided(5.0, 0.5, 1.0));
        assert_eq!(one_sided(1e4, 0.5, 1.0), MIN_P);
    }
}
