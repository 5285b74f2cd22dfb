//! Stands in for a source on operating systems that have none: recordings and running agents on other hosts can still be read.

use crate::source::{Options, Source};
use nfscope_model::host_report::{Exported, Fact, Report, Verdict};
use std::env::consts::OS;

fn reason() -> String {
    format!("nfscope has no source for {OS} yet")
}

/// See [`crate::start`].
pub fn start(_: &Options) -> anyhow::Result<Box<dyn Source>> {
    anyhow::bail!(
        "{}: run the agent on a Linux server, and name it with --url",
        reason()
    )
}

/// See [`crate::check`].
pub fn check() -> Report {
    Report {
        verdict: Verdict::None,
        facts: vec![Fact {
            name: "operating system".to_owned(),
            value: reason(),
            ok: false,
            fix: "run the agent on a Linux server".to_owned(),
        }],
        exports: Vec::new(),
        unseen: Vec::new(),
        probes: Vec::new(),
    }
}

/// See [`crate::exports`].
pub fn exports() -> Vec<Exported> {
    Vec::new()
}

/// See [`crate::kernel_stack`].
pub fn kernel_stack(_: u32) -> Vec<String> {
    Vec::new()
}

/// See [`crate::kernel_frames`].
pub fn kernel_frames(_: u32) -> std::io::Result<Vec<String>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// See [`crate::yield_to_others`]. On these systems a nice value is the whole process's.
pub fn yield_to_others() {}

/// See [`crate::words`].
pub fn words() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}
