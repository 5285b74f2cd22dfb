//! How much more load a server can take, from recordings of it.

mod group_commit;
mod several;
mod several_text;
mod text;
mod utilization;

pub use several::{Law, Limit, Loads, Point, several};
pub use several_text::render_several;
pub use text::render;
pub use utilization::{Capacity, FAMILIES, Resource, capacity, knee};
