//! What this host says of itself: /proc, /sys, mounts, capabilities.

pub mod capabilities;
pub mod cpu;
pub mod diskstats;
pub mod exports;
pub mod facts;
pub mod file_handle;
pub mod kstat;
pub mod log_device;
pub mod log_types;
pub mod mounts;
pub mod procfs;
pub mod zfs_datasets;
