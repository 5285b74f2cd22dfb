//! Baselines: recordings of what a server did, kept and compared.

pub mod capacity;
pub mod codec;
pub mod compare;
pub mod estimate;
pub mod histogram_series;
pub mod list;
pub mod name;
pub mod progress;
pub mod recording;
pub mod series;
pub mod show;
pub mod store;
pub mod summary;
pub mod target_metric;
pub mod temp_dir;
pub mod wall_clock;
