//! Plots as SVG inside the page.
//!
//! Drawn by functions of our own and not by a plotting crate: three kinds of plot are a few hundred lines, their colours
//! follow the page's style sheet (light, dark, print) because they are classes and not attributes, their text is text that
//! can be searched and read aloud, and nothing is drawn that the page does not need.

pub mod density;
pub mod phases;
mod ticks;
pub mod time_series;

use maud::{Markup, html};

/// Units of the drawing from left to right; a phone shows them at four fifths of a pixel each.
const WIDTH: f64 = 460.0;

/// A number in an attribute: one decimal, and finite whatever it was made of.
fn px(v: f64) -> String {
    let v = if v.is_finite() {
        v.clamp(-1e5, 1e5)
    } else {
        0.0
    };
    let text = format!("{v:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A drawing with what it shows as a caption, and in words for those who do not see it.
fn figure(title: &str, words: &str, height: f64, drawing: Markup, below: Markup) -> Markup {
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

/// What has nothing to draw.
fn empty(title: &str) -> Markup {
    html! {
        figure { figcaption { (title) } p.soft { "Nothing was measured." } }
    }
}

/// The names of the two sides, which are also the classes of what is drawn of them.
const SIDES: [&str; 2] = ["before", "after"];

/// A line as it is drawn for a side, and what it is.
fn legend(side: usize, text: &str) -> Markup {
    let y = 14.0 + 18.0 * side as f64;
    html! {
        path class={ "line " (SIDES[side]) } d={ "M2 " (px(y - 4.0)) "h34" } {}
        text x="44" y=(px(y)) { (text) }
    }
}

/// The field that is drawn in, and what its ends stand for.
struct Frame {
    top: f64,
    bottom: f64,
    x: (f64, f64),
    y_max: f64,
}

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 28.0;

impl Frame {
    fn x(&self, v: f64) -> f64 {
        LEFT + (v - self.x.0) / (self.x.1 - self.x.0) * (RIGHT - LEFT)
    }

    fn y(&self, v: f64) -> f64 {
        self.bottom - v / self.y_max * (self.bottom - self.top)
    }

    /// Both axes with their ticks (places and labels), and what is counted upwards.
    fn axes(&self, x: &[(f64, String)], y: &[(f64, String)], upwards: &str) -> Markup {
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
    use crate::compare::html::plot::px;

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
