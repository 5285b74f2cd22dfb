//! `nfscope doctor`: the configuration of an NFS server without a load: each rule looks at files of the kernel and says why, how and by which source.
//!
//! [`host`] reads, [`rules`] judge, [`answer`] is what they say, and [`render`] prints it. Nothing is changed, and no agent is
//! asked. Files below a folder of a test are a host, too.

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

/// The page, and the exit code.
///
/// # Errors
/// None that a host can cause.
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

/// Findings of every rule: those to change, those to consider, those not known, and the good ones.
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

/// 3 where something is to be changed; 1 where not even the threads of a server are known; otherwise 0.
pub fn exit_code(findings: &[Finding]) -> u8 {
    let server = |f: &&Finding| f.rule == rules::threads::THREADS.name;
    match findings.iter().find(server).map(|f| f.state) {
        _ if findings.iter().any(|f| f.state == State::Change) => 3,
        Some(State::Unknown) | None => 1,
        Some(_) => 0,
    }
}
