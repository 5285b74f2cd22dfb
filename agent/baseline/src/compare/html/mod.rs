//! A comparison as an HTML page.

mod page;
mod plot;
mod table;

pub use page::page;
