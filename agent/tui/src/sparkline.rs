//! Sparklines: values as marks of different height.

/// Most marks of a row, which is also the number of windows that are remembered.
pub(super) const MOST: usize = 60;
/// Marks from zero to the row's highest value; then the same without letters beyond ASCII.
const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_MARKS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// Marks, one for each of the last `width` values, the newest at the right. The highest value gets the highest mark. A blank is a window
/// without such a value.
pub(super) fn marks(values: &[Option<f64>], width: usize, utf8: bool) -> String {
    let shown = &values[values.len().saturating_sub(width)..];
    let finite = |v: &&f64| v.is_finite();
    let most = (shown.iter().flatten().filter(finite)).fold(0.0f64, |a, b| a.max(*b));
    let marks = if utf8 { MARKS } else { ASCII_MARKS };
    let highest = marks.len() - 1;
    let mark = |v: &Option<f64>| match *v {
        None => ' ',
        Some(v) if v <= 0.0 => marks[0],
        Some(v) if !v.is_finite() => marks[highest],
        // A value above zero never gets the mark of zero.
        Some(v) => marks[((v / most * highest as f64).ceil() as usize).clamp(1, highest)],
    };
    shown.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_rise_with_the_value() {
        let values = [0.0, 1.0, 50.0, 100.0].map(Some);
        assert_eq!(marks(&values, 9, true), "▁▂▅█");
        assert_eq!(marks(&values, 9, false), "_.=#");
        assert_eq!(marks(&values, 2, true), "▅█");
        // The scale is that of the values shown.
        assert_eq!(marks(&values[..3], 2, true), "▂█");
        let unknown = [None, Some(f64::INFINITY), Some(2.0), Some(0.0)];
        assert_eq!(marks(&unknown, 9, true), " ██▁");
        assert_eq!(marks(&[Some(0.0)], 9, true), "▁");
        assert_eq!(marks(&[], 9, true), "");
    }
}
