//! Plots as SVG inside the page.
//!
//! Drawn by functions of our own and not by a plotting crate: four kinds of plot are a few hundred lines, their colours
//! follow the page's style sheet (light, dark, print) because they are classes and not attributes, their text is text that
//! can be searched and read aloud, and nothing is drawn that the page does not need.

mod density;
mod forest;
mod phases;
mod time_series;

pub(super) use density::draw as density;
pub(super) use forest::draw as forest;
pub(super) use phases::draw as phases;
pub(super) use time_series::draw as time_series;
