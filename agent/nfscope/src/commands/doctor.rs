//! `nfscope doctor`: how this server is configured, without a load.

use crate::cli::DoctorArgs;
use crate::doctor::answer::Finding;
use crate::doctor::render::render;
use crate::doctor::{Host, examine, exit_code};
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
        false => render(&host, &findings, console::colors()),
    };
    Ok((text, exit_code(&findings)))
}
