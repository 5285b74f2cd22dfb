//! How much more load a server can take, from a recording of it.

mod text;
mod utilization;

pub use text::render;
pub use utilization::{Capacity, FAMILIES, Resource, capacity, knee};
