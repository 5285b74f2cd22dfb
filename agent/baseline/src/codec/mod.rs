//! A window as bytes: postcard, column by column, deflated.
//!
//! A window stands for itself: it names the series that it has as runs of numbers, so that one that was not measured stays
//! different from one in which nothing happened. Zeros are not left out; in their column they deflate to nearly nothing.

mod columns;
mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use columns::{CodecError, in_seconds};
pub use decode::decode;
pub use encode::encode;
