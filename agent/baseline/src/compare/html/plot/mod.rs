//! Plots as SVG inside the page.
//!
//! The plots are drawn here and not by a plotting crate. Four kinds of plot are a few hundred lines. Their colours are classes and not
//! attributes, so they follow the page's style sheet (light, dark, print). Their text can be searched and read aloud. Nothing is drawn that
//! the page does not need.

mod density;
mod forest;
mod phases;
mod time_series;

pub(super) use density::draw as density;
pub(super) use forest::draw as forest;
pub(super) use phases::draw as phases;
pub(super) use time_series::draw as time_series;
