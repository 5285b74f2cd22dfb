//! Common parts of all HTML pages: the page around their content, its style, axes and ticks.

pub(crate) mod frame;
mod page;
pub(crate) mod ticks;

pub use page::document;
pub(crate) use page::quoted;
