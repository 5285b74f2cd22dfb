//! Capacity: the load that a server can take beyond the present one, from recordings of it.

mod group_commit;
mod several;
mod several_text;
mod text;
mod utilization;

pub use several::{Law, Limit, Loads, Point, several};
pub use several_text::render_several;
pub use text::render;
pub use utilization::{Capacity, FAMILIES, Resource, capacity, knee};
