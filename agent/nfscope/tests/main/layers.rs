//! Layers: dependencies between crates run one way, and cargo refuses cycles. This table lists the crates and the libraries that each crate
//! may use. An edge that is not listed fails.

use crate::fixture::root;
use std::collections::BTreeSet;
use std::fs;
use toml::Table;

/// Crates by folder, lowest layer first, each with the crates of this workspace that it may use.
const CRATES: [(&str, &[&str]); 17] = [
    ("probes", &[]),
    ("agent/model", &[]),
    ("agent/text", &["nfscope-model"]),
    ("agent/stats", &["nfscope-model"]),
    ("agent/source", &["nfscope-model", "nfscope-probes"]),
    (
        "agent/whatif",
        &["nfscope-model", "nfscope-stats", "nfscope-text"],
    ),
    ("agent/diagnose", &["nfscope-model", "nfscope-text"]),
    (
        "agent/baseline",
        &["nfscope-model", "nfscope-stats", "nfscope-text"],
    ),
    // Test support of the crates below this line.
    ("agent/example", &["nfscope-model", "nfscope-source"]),
    ("agent/trace", &["nfscope-model", "nfscope-text"]),
    (
        "agent/api",
        &[
            "nfscope-model",
            "nfscope-source",
            "nfscope-text",
            "nfscope-whatif",
        ],
    ),
    (
        "agent/agent_client",
        &[
            "nfscope-api",
            "nfscope-diagnose",
            "nfscope-model",
            "nfscope-source",
            "nfscope-text",
        ],
    ),
    (
        "agent/tui",
        &[
            "nfscope-agent-client",
            "nfscope-api",
            "nfscope-model",
            "nfscope-text",
            "nfscope-whatif",
        ],
    ),
    (
        "agent/load",
        &[
            "nfscope-agent-client",
            "nfscope-baseline",
            "nfscope-model",
            "nfscope-source",
            "nfscope-stats",
            "nfscope-text",
        ],
    ),
    (
        "agent/serve",
        &[
            "nfscope-api",
            "nfscope-baseline",
            "nfscope-diagnose",
            "nfscope-model",
            "nfscope-source",
            "nfscope-text",
            "nfscope-whatif",
        ],
    ),
    (
        "agent/nfscope",
        &[
            "nfscope-agent-client",
            "nfscope-api",
            "nfscope-baseline",
            "nfscope-diagnose",
            "nfscope-load",
            "nfscope-model",
            "nfscope-serve",
            "nfscope-source",
            "nfscope-stats",
            "nfscope-text",
            "nfscope-trace",
            "nfscope-tui",
            "nfscope-whatif",
        ],
    ),
    // Tests in virtual machines: they run the program of nfscope and do not link it. They link the probes, because measurements load some
    // of them without a feature.
    (
        "tests",
        &[
            "nfscope-diagnose",
            "nfscope-model",
            "nfscope-probes",
            "nfscope-whatif",
        ],
    ),
];

/// Libraries for the kernel, the database, the command line, HTTP and the terminal, each with the only crates that may use it.
const LIBRARIES: [(&str, &[&str]); 22] = [
    ("parquet", &["agent/trace"]),
    ("libbpf-rs", &["agent/source", "probes"]),
    ("landlock", &["agent/source"]),
    ("seccompiler", &["agent/source"]),
    ("caps", &["agent/source"]),
    ("libc", &["agent/source"]),
    ("rusqlite", &["agent/baseline"]),
    ("postcard", &["agent/baseline"]),
    (
        "flate2",
        &["agent/baseline", "agent/nfscope", "agent/serve", "tests"],
    ),
    ("maud", &["agent/baseline", "agent/nfscope"]),
    ("statrs", &["agent/stats"]),
    ("clap", &["agent/nfscope", "tests"]),
    ("tokio", &["agent/api", "agent/nfscope", "agent/serve"]),
    ("hyper", &["agent/serve"]),
    ("ratatui", &["agent/tui"]),
    ("rustls", &["agent/agent_client", "agent/serve"]),
    (
        "ring",
        &[
            "agent/agent_client",
            "agent/api",
            "agent/nfscope",
            "agent/serve",
            "tests",
        ],
    ),
    ("bcrypt", &["agent/serve"]),
    ("rmcp", &["agent/nfscope"]),
    ("saphyr", &["agent/serve"]),
    ("listenfd", &["agent/serve"]),
    ("prometheus-client", &["agent/serve"]),
];

/// Crates with unsafe code: system calls of BPF and perf, bytes of maps as values, and C that the tests call.
const UNSAFE: [&str; 2] = ["agent/source", "probes"];

/// Names of the dependencies of a crate on every target, without those of its tests.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let manifest: Table = text.parse().unwrap();
    let mut tables = vec![&manifest];
    if let Some(targets) = manifest.get("target").and_then(|t| t.as_table()) {
        tables.extend(targets.values().filter_map(|t| t.as_table()));
    }
    let names = tables
        .into_iter()
        .filter_map(|t| t.get("dependencies")?.as_table())
        .flat_map(|t| t.keys().cloned());
    names.collect()
}

#[test]
fn crates_use_only_listed_crates_and_libraries() {
    let ours: BTreeSet<_> = CRATES.iter().flat_map(|(_, below)| below.iter()).collect();
    for (folder, allowed) in CRATES {
        for name in dependencies(folder) {
            let ours = ours.contains(&name.as_str()) || name == "nfscope";
            assert!(
                !ours || allowed.contains(&name.as_str()),
                "{folder} uses {name}, which is not below it"
            );
            let only = LIBRARIES.iter().find(|(library, _)| *library == name);
            assert!(
                only.is_none_or(|(_, crates)| crates.contains(&folder)),
                "{folder} uses {name}, which is for {only:?} alone"
            );
        }
    }
}

#[test]
fn every_crate_of_the_workspace_has_a_layer() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: Table = text.parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    let members: BTreeSet<_> = members.iter().filter_map(|m| m.as_str()).collect();
    assert_eq!(members, CRATES.iter().map(|(folder, _)| *folder).collect());
}

#[test]
fn only_listed_crates_have_unsafe_code() {
    for (folder, _) in CRATES.iter().filter(|(f, _)| !UNSAFE.contains(f)) {
        for start in ["src/lib.rs", "src/main.rs"] {
            let Ok(text) = fs::read_to_string(root().join(folder).join(start)) else {
                continue;
            };
            assert!(
                text.contains("#![forbid(unsafe_code)]"),
                "{folder}/{start} does not forbid unsafe code"
            );
        }
    }
}
