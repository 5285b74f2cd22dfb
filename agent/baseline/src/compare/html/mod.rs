//! A comparison as an HTML page: first the page to sign, and then the details.

mod answer;
mod dots;
mod front;
mod page;
mod paper;
mod plot;
mod table;

pub(in crate::compare) use answer::main_row;
pub use page::{page, page_to_sign};
pub use paper::{Paper, Worth, WorthOf};
