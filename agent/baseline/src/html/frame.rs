//! Parts of every plot: figure, axes and legend.

use maud::{Markup, html};

/// Units of the drawing from left to right; a phone shows them at four fifths of a pixel each.
pub(crate) const WIDTH: f64 = 460.0;

/// Formats a number for an attribute, with one decimal; always finite.
pub(crate) fn px(v: f64) -> String {
    let v = if v.is_finite() {
        v.clamp(-1e5, 1e5)
    } else {
        0.0
    };
    let text = format!("{v:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A plot with a caption, and a description for screen readers.
pub(crate) fn figure(
    title: &str,
    words: &str,
    height: f64,
    drawing: Markup,
    below: Markup,
) -> Markup {
    html! {
        figure {
            figcaption { (title) }
            svg viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) } role="img" {
                title { (title) }
                desc { (words) }
                (drawing)
            }
            (below)
        }
    }
}

/// A figure without data.
pub(crate) fn empty(title: &str) -> Markup {
    html! {
        figure { figcaption { (title) } p.soft { "Nothing was measured." } }
    }
}

/// The names of the two sides, also used as CSS classes.
pub(crate) const SIDES: [&str; 2] = ["before", "after"];

/// A legend entry.
pub(crate) fn legend(side: usize, text: &str) -> Markup {
    let y = 14.0 + 18.0 * side as f64;
    html! {
        path class={ "line " (SIDES[side]) } d={ "M2 " (px(y - 4.0)) "h34" } {}
        text x="44" y=(px(y)) { (text) }
    }
}

/// The plot area and its scales.
pub(crate) struct Frame {
    pub top: f64,
    pub bottom: f64,
    pub x: (f64, f64),
    pub y_max: f64,
}

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 28.0;

impl Frame {
    pub(crate) fn x(&self, v: f64) -> f64 {
        LEFT + (v - self.x.0) / (self.x.1 - self.x.0) * (RIGHT - LEFT)
    }

    pub(crate) fn y(&self, v: f64) -> f64 {
        self.bottom - v / self.y_max * (self.bottom - self.top)
    }

    /// Draws both axes with their ticks (positions and labels), and the label of the vertical axis.
    pub(crate) fn axes(&self, x: &[(f64, String)], y: &[(f64, String)], upwards: &str) -> Markup {
        html! {
            @for (v, label) in y {
                path.grid d={ "M" (px(LEFT)) " " (px(self.y(*v))) "H" (px(RIGHT)) } {}
                text.tick x=(px(LEFT - 6.0)) y=(px(self.y(*v) + 4.0)) text-anchor="end" { (label) }
            }
            @for (v, label) in x {
                path.grid d={ "M" (px(self.x(*v))) " " (px(self.top)) "V" (px(self.bottom + 4.0)) } {}
                text.tick x=(px(self.x(*v))) y=(px(self.bottom + 18.0)) text-anchor="middle" { (label) }
            }
            path.axis d={ "M" (px(LEFT)) " " (px(self.bottom)) "H" (px(RIGHT)) } {}
            text.tick x="2" y=(px(self.top - 12.0)) { (upwards) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::px;

    #[test]
    fn no_attribute_is_anything_but_a_number() {
        for (v, text) in [
            (1.25, "1.2"),
            (3.0, "3"),
            (-0.04, "-0"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
            (1e300, "100000"),
        ] {
            assert_eq!(px(v), text);
        }
    }
}
