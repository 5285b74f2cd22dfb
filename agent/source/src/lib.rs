//! Sources of snapshots. Only a source talks to a kernel.
//!
//! [`source`] defines a source, and a folder for each operating system implements it. This file picks one at compile time. The exception is
//! the source for illumos, which runs two programs and reads their output: it is built everywhere and can be asked for ([`illumos`]).
//! [`clock`], [`mounts`], [`privileges`], [`hostname`], [`lossless`], [`bounded`], [`host_table`], [`nfs4_names`], [`etab`] and
//! [`file_path`] serve callers outside this crate on every system.

pub mod bounded;
pub mod clock;
pub mod confinement;
pub mod etab;
pub mod file_path;
#[cfg(test)]
mod fuzz;
pub mod host_table;
pub mod hostname;
mod illumos;
#[cfg(target_os = "linux")]
mod linux;
pub mod lossless;
pub mod mounts;
pub mod nfs4_names;
mod nfs_names;
#[cfg(target_os = "linux")]
mod no_huge_pages;
pub mod own_process;
pub mod privileges;
pub mod source;
mod top_k;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use unsupported as system;

use anyhow::Context;
pub use illumos::on_illumos;
use nfscope_model::host_report::{Exported, IllumosReport, Report};
pub use source::{MOST_PAIRS, Options, Source};

/// Loads and attaches every probe that this host can run. A probe that cannot run never stops the others.
///
/// # Errors
/// Only what leaves nothing to measure: no permission to load any program, naming the missing capability; or an operating
/// system without a source.
pub fn start(options: &Options) -> anyhow::Result<Box<dyn Source>> {
    match illumos::Tools::find() {
        Some(tools) => illumos::start(tools, options),
        None => system::start(options),
    }
}

/// Checks what the host offers, and attaches and detaches every probe to be sure.
pub fn check() -> Report {
    match illumos::Tools::find() {
        Some(tools) => illumos::check(tools),
        None => system::check(),
    }
}

/// Exported file systems of this host and their logs, without a probe; empty where that is not known.
pub fn exports() -> Vec<Exported> {
    system::exports()
}

/// Report on this host for the developers: [`host_report`](nfscope_model::host_report).
///
/// # Errors
/// Fails on another operating system than illumos.
pub fn report() -> anyhow::Result<IllumosReport> {
    let tools = illumos::Tools::find();
    let tools =
        tools.context("`--report` is for illumos; here `nfscope check --json` says it all")?;
    Ok(illumos::report(&tools))
}

/// Kernel functions in which an nfsd thread of this host sleeps, the innermost first; empty without the right to see them.
pub fn kernel_stack(thread: u32) -> Vec<String> {
    system::kernel_stack(thread)
}

/// Kernel functions in which an nfsd thread of this host sleeps, each with its module if it is in one: `nfsd_read [nfsd]`.
///
/// # Errors
/// Fails without the right to see the functions (`PermissionDenied`), and if there is no such nfsd thread.
pub fn kernel_frames(thread: u32) -> std::io::Result<Vec<String>> {
    system::kernel_frames(thread)
}

/// Lets every other thread run before this one from here on: for work of this thread that no request waits for.
pub fn yield_to_others() {
    system::yield_to_others();
}

/// Lets this process and those that it starts take huge pages where the kernel gives them. Before this call it does not take them.
pub fn accept_huge_pages() {
    #[cfg(target_os = "linux")]
    no_huge_pages::accept();
}

/// Words of all probes.
pub fn words() -> impl Iterator<Item = &'static str> {
    let illumos = illumos::Tools::find().map(|_| illumos::WORDS);
    let linux = system::words().filter(move |_| illumos.is_none());
    illumos.into_iter().flatten().chain(linux)
}

/// The text of a D script for illumos, by its name.
///
/// # Errors
/// Fails for a name that no script has.
pub fn script(name: &str) -> anyhow::Result<String> {
    illumos::show(name)
}
