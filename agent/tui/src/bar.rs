//! Bars of phases.

use crate::spans::{Line, Tone};
use crate::terminal_style::TerminalStyle;
use crate::view::Phases;

/// Cells for each part: they add up to `width`, and none is off by a whole cell. All are zero without any part.
fn cells(parts: &[f64], width: usize) -> Vec<usize> {
    let total: f64 = parts.iter().sum();
    if total <= 0.0 {
        return vec![0; parts.len()];
    }
    let exact: Vec<f64> = parts.iter().map(|p| p / total * width as f64).collect();
    let mut out: Vec<usize> = exact.iter().map(|e| *e as usize).collect();
    // The cells left over from rounding down go to the largest remainders.
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let left = width.saturating_sub(out.iter().sum());
    for i in order.into_iter().take(left) {
        out[i] += 1;
    }
    out
}

/// Letter of a phase; no letter appears twice in a bar.
fn letter(phase: &str) -> &str {
    match phase {
        "lock" => "k",
        "reply" => "p",
        "recall" => "b",
        "reclaim" => "m",
        _ => &phase[..1],
    }
}

/// Bar of `width` cells. With colours each phase begins with its letter, without them it consists of that letter.
pub(super) fn bar(phases: &Phases, width: usize, style: TerminalStyle) -> Line {
    let mut line = Line::default();
    let cells = cells(&phases.parts(), width);
    for (i, (name, n)) in phases.names.iter().zip(&cells).enumerate() {
        if *n > 0 {
            let letter = letter(name);
            let text = match style.color {
                true => format!("{letter}{}", " ".repeat(n - 1)),
                false => letter.repeat(*n),
            };
            line.push(
                if style.color {
                    Tone::Part(i)
                } else {
                    Tone::Plain
                },
                text,
            );
        }
    }
    let missing = width - line.width();
    line.push(Tone::Plain, " ".repeat(missing));
    line
}

/// Legend with the letter and colour of each phase. `shown` says which phases are in it.
pub(super) fn legend(names: &[&str], shown: impl Fn(usize) -> bool, style: TerminalStyle) -> Line {
    let mut line = Line::default();
    for (i, name) in names.iter().enumerate().filter(|(i, _)| shown(*i)) {
        if !line.0.is_empty() {
            line.push(Tone::Plain, "  ");
        }
        let tone = if style.color {
            Tone::Part(i)
        } else {
            Tone::Strong
        };
        line.push(tone, letter(name));
        line.push(Tone::Plain, format!(" {name}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::phase;

    #[test]
    fn cells_add_up_to_the_width() {
        assert_eq!(cells(&[1.0, 1.0, 1.0], 10), [4, 3, 3]);
        assert_eq!(cells(&[0.0, 0.999, 0.001], 10), [0, 10, 0]);
        assert_eq!(cells(&[0.0, 0.0], 10), [0, 0]);
        assert_eq!(cells(&[0.1, 0.2, 0.3, 0.4], 1), [0, 0, 0, 1]);
        assert_eq!(cells(&[1.0], 0), [0]);
    }

    #[test]
    fn letters_tell_phases_apart() {
        for names in [&phase::OF_OP[..], &phase::OF_RPC[..]] {
            let mut letters: Vec<_> = names.iter().map(|n| letter(n)).collect();
            letters.sort_unstable();
            letters.dedup();
            assert_eq!(letters.len(), names.len());
        }
    }
}
