//! Parts, sums and means that are finite numbers for any input.

/// `of` as a part of `whole`, 0 to 1; 0 if `whole` is 0.
pub fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (of / whole).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// A sum. The sum of nothing is 0, where `Iterator::sum` returns -0.
pub fn sum(all: impl Iterator<Item = f64>) -> f64 {
    all.fold(0.0, |sum, n| sum + n)
}

/// An average; 0 if `count` is 0.
pub fn mean(sum: f64, count: f64) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}
