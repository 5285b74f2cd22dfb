//! Tests of the lab: in one program, because each would be linked with the same libraries once more. What needs a machine
//! has a path that begins with `vm_`, so that the rest runs with `--skip vm_`.
#![allow(clippy::unwrap_used)]

mod breakdown;
mod call_counts;
mod client_view;
mod conformance;
mod connections;
mod coverage;
mod disks;
mod durability;
mod faults;
mod hot_plug;
mod layouts;
mod lifecycle;
mod logs;
mod many_threads;
mod matrix;
mod measures;
mod memory;
mod monitoring;
mod namespaces;
mod nfs4_state;
mod not_measured;
mod outstanding;
mod page;
mod phases;
mod put_off;
mod rdma;
mod recalls;
mod refused;
mod sessions;
mod starvation;
mod stuck;
mod versions;
mod vm_baselines;
mod vm_experiment;
mod vm_kernels;
mod vm_lab;
mod vm_prometheus;
mod vm_scenarios;
mod vm_ssd_log;
mod vm_versions;
mod windows;
mod words;
mod workloads;
mod zfs;
