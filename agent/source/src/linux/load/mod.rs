//! What is loaded into the kernel: the plan, objects, programs and maps. Only here the agent meets libbpf.

pub mod detach;
pub mod kretprobe;
pub mod loader;
pub mod maps;
pub mod plan;
pub mod pod;
pub mod program;
pub mod program_table;
