//! `nfscope doctor`: checks the configuration of an NFS server without a load. Each finding has a reason, a fix and a source.
//!
//! [`host`] reads files, [`rules`] judge them, [`answer`] has their answers, and [`render`] prints them. The command changes nothing and
//! needs no agent. Tests examine directories that have the files of a host.

pub mod answer;
#[cfg(test)]
mod client_tests;
mod host;
pub mod render;
mod rule;
pub mod rules;
#[cfg(test)]
mod storage_tests;
#[cfg(test)]
mod tests;

pub use host::Host;

use crate::cli::DoctorArgs;
use answer::{Finding, State};
use nfscope_source::hostname;
use nfscope_text::console;
use serde::Serialize;

/// Returns the output and the exit code.
///
/// # Errors
/// When the JSON cannot be made, which no host causes.
pub fn run(args: &DoctorArgs) -> anyhow::Result<(String, u8)> {
    #[derive(Serialize)]
    struct Page<'a> {
        host: &'a str,
        findings: &'a [Finding],
    }
    let host = hostname::own_name();
    let findings = examine(&Host::this());
    let page = Page {
        host: &host,
        findings: &findings,
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&page)? + "\n",
        false => render::render(&host, &findings, console::colors()),
    };
    Ok((text, exit_code(&findings)))
}

/// Findings of all rules, in the order of [`State`].
pub fn examine(host: &Host) -> Vec<Finding> {
    let mut all: Vec<_> = (rules::ALL.iter())
        .flat_map(|rule| {
            let answers = (rule.look)(host);
            answers.into_iter().map(move |a| Finding {
                rule: rule.name,
                state: a.state,
                says: a.says,
                why: rule.why,
                how: a.how,
                source: rule.source,
            })
        })
        .collect();
    all.sort_by_key(|f| f.state);
    all
}

/// Exit code: 3 if something is to be changed, 1 if the server's threads cannot be read, otherwise 0.
pub fn exit_code(findings: &[Finding]) -> u8 {
    let server = |f: &&Finding| f.rule == rules::threads::THREADS.name;
    match findings.iter().find(server).map(|f| f.state) {
        _ if findings.iter().any(|f| f.state == State::Change) => 3,
        Some(State::Unknown) | None => 1,
        Some(_) => 0,
    }
}
