//! Pages of the documentation, as MCP resources.

use rmcp::model::{Resource, ResourceContents};

const MARKDOWN: &str = "text/markdown";

/// Name, description and text of each page.
const ALL: [(&str, &str, &str); 8] = [
    (
        "findings",
        "each finding, its evidence, and what to do about it",
        include_str!("../../../../docs/findings.md"),
    ),
    (
        "measured",
        "what is measured, and what is not",
        include_str!("../../../../docs/measured.md"),
    ),
    (
        "breakdown",
        "operations by client, export, user and file",
        include_str!("../../../../docs/breakdown.md"),
    ),
    (
        "baselines",
        "recordings, comparisons and experiments",
        include_str!("../../../../docs/baselines.md"),
    ),
    (
        "what-if",
        "predictions, their assumptions and limits",
        include_str!("../../../../docs/what-if.md"),
    ),
    (
        "thresholds",
        "thresholds of the findings",
        include_str!("../../../../docs/thresholds.md"),
    ),
    (
        "metrics",
        "each metric with labels and meaning",
        include_str!("../../../../docs/metrics.md"),
    ),
    (
        "doctor",
        "rules of the configuration, with their sources",
        include_str!("../../../../docs/doctor.md"),
    ),
];

fn uri(name: &str) -> String {
    format!("nfscope://docs/{name}")
}

/// List of the resources.
pub fn list() -> Vec<Resource> {
    let all = ALL.iter().map(|(name, about, _)| {
        Resource::new(uri(name), *name)
            .with_description(*about)
            .with_mime_type(MARKDOWN)
    });
    all.collect()
}

/// Content of the resource with this URI.
pub fn read(asked: &str) -> Option<ResourceContents> {
    let (name, _, text) = ALL.iter().find(|(name, ..)| uri(name) == asked)?;
    Some(ResourceContents::text(*text, uri(name)).with_mime_type(MARKDOWN))
}
