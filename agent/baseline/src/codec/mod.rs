//! Encoding of a window: columns in postcard, compressed by deflate.
//!
//! Each window is self-contained. It lists its series as runs of numbers, so that a series that was not measured differs from one
//! whose value is zero. Zeros are stored; within their column they compress to nearly nothing.

mod columns;
mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use columns::{CodecError, in_seconds};
pub use decode::decode;
pub use encode::encode;
