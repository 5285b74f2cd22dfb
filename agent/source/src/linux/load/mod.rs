//! Programs and maps in the kernel: the plan, objects, and how they are loaded. Only this folder uses libbpf.
//!
//! [`program_table`] lists every probe's programs, [`plan`] decides from the host's facts, [`loader`] puts the plan into
//! effect, in a [`child`] that [`attach`] starts, [`standing`] tells how it went, and [`object`] is what then exists: [`maps`] and
//! a [`ring`] that the readers above read by their own types.
//!
//! `unsafe` and libc stand only here, each for a call that no crate in use wraps:
//! - [`pod`]: a map's bytes as a structure of integers, and back.
//! - [`object`]: a program's run counts and the kernel's run-time statistics (bpf(2) by libbpf).
//! - [`pieces`] and [`maps`]: tables mapped into memory, which the kernel writes meanwhile (mmap(2) by rustix), and whether
//!   this thread may read maps (bpf(2) by libbpf).
//! - [`kretprobe`]: perf_event_open(2) and the ownership of its descriptor.
//! - [`child`]: fork(2) and _exit(2).
//! - [`by_handle`]: a file by its handle (open_by_handle_at(2)).

pub mod attach;
mod batch;
pub mod by_handle;
mod child;
pub mod detach;
mod handover;
pub mod hash_table;
mod kretprobe;
mod loader;
pub mod maps;
mod module_of_hook;
pub mod object;
mod pieces;
mod plan;
mod pod;
pub mod program;
pub mod program_table;
mod refusal;
pub mod ring;
mod shape;
mod standing;
