//! Facts that this host gives about itself: /proc, /sys, mounts, capabilities. Nothing here knows what is loaded or read.

pub mod btf_names;
pub mod capabilities;
pub mod cpu;
pub mod device_names;
pub mod diskstats;
pub mod export_devices;
pub mod exports;
pub mod facts;
pub mod file_handle;
pub mod file_id;
pub mod kstat;
pub mod log_device;
pub mod log_types;
pub mod mountstats;
pub mod nfs4_state;
pub mod procfs;
pub mod sandbox;
pub mod server_state;
pub mod syscalls;
pub mod task;
pub mod unseen;
pub mod zfs_layout;
pub mod zfs_tools;
