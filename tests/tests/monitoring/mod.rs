//! Dashboards, rules and docs/findings.md, against the metric table and by Prometheus's own parser. These tests need no machine, only
//! the results of `tests/setup/setup.sh monitoring`.

mod dashboards;
mod fleet;
mod linter;
mod mixin;
mod objectives;
mod rules;

use std::path::Path;

use lab::monitoring::{Prometheus, Release, Wants};
use nfscope_model::family;

/// Starts a Prometheus that has loaded the rules and scrapes nothing.
fn with_rules() -> Prometheus {
    let rules = lab::monitoring::dashboards().join("rules/*.yml");
    let configuration = format!("rule_files: [{}]\n", rules.display());
    Prometheus::start(Release::Newer, &configuration).unwrap()
}

/// Kinds of findings, from the metric table.
fn kinds() -> Vec<&'static str> {
    let label = family::BOTTLENECK_ACTIVE.info.labels[0];
    assert_eq!(label.name, "kind");
    label.values.split(", ").collect()
}

#[test]
fn promtool_accepts_the_classic_text() {
    // A test of the agent keeps this file equal to the agent's output.
    let text =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/nfscope/tests/golden/metrics.txt");
    for release in Release::ALL {
        let (content, said) = release
            .promtool(&["check", "metrics"], Some(&text))
            .unwrap();
        assert!(content, "promtool {}: {said}", release.name());
    }
}

/// Every family of the table, including families that no host has at the same time. promtool's linter knows the conventions for
/// names, units and types of all exporters.
#[test]
fn promtool_finds_no_fault_with_any_family() {
    let text: String = family::ALL.iter().map(|f| example(f)).collect();
    let path = std::env::temp_dir().join(format!("lab-families-{}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    for release in Release::ALL {
        let (content, said) = release
            .promtool(&["check", "metrics"], Some(&path))
            .unwrap();
        assert!(
            content && said.is_empty(),
            "promtool {}: {said}",
            release.name()
        );
    }
    std::fs::remove_file(path).unwrap();
}

/// Text of a family with one series.
fn example(f: &family::Info) -> String {
    let labels: String = f
        .labels
        .iter()
        .map(|l| format!("{}=\"x\",", l.name))
        .collect();
    let (kind, samples) = match f.kind {
        family::Kind::Counter => ("counter", format!("{}{{{labels}}} 1\n", f.name)),
        family::Kind::Gauge => ("gauge", format!("{}{{{labels}}} 1\n", f.name)),
        family::Kind::Histogram(_) => (
            "histogram",
            format!(
                "{name}_bucket{{{labels}le=\"+Inf\"}} 1\n{name}_sum{{{labels}}} 1\n{name}_count{{{labels}}} 1\n",
                name = f.name
            ),
        ),
    };
    format!(
        "# HELP {} {}\n# TYPE {} {kind}\n{samples}",
        f.name, f.help, f.name
    )
}

#[test]
fn the_example_configuration_is_accepted() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/monitoring");
    let file = dir.join("prometheus.yml").display().to_string();
    for release in Release::ALL {
        let arguments = ["check", "config", "--syntax-only", file.as_str()];
        let (content, said) = release.promtool(&arguments, None).unwrap();
        assert!(content, "promtool {}: {said}", release.name());
    }
}

#[test]
fn what_the_metric_table_does_not_have_is_found() {
    let prometheus = with_rules();
    let wrong = |expression: &str| {
        Wants::of(&prometheus.parse(expression).unwrap())
            .wrong
            .len()
    };
    for (expression, expected) in [
        (
            r#"rate(nfscope_op_phase_seconds_total{phase="log",op="write"}[1m])"#,
            0,
        ),
        (
            r#"sum by (le, op) (nfscope_op_duration_seconds_bucket{job=~".+"})"#,
            0,
        ),
        ("nfscope_op_seconds", 1),
        ("nfscope_threads_bucket", 1),
        (r#"nfscope_threads{client="a"}"#, 1),
        (
            r#"rate(nfscope_op_phase_seconds_total{phase=~"log|wait"}[1m])"#,
            1,
        ),
        ("sum by (op) (nfscope_threads)", 1),
        ("sum by (le) (nfscope_op_duration_seconds_count)", 1),
        ("nfscope_threads / on (op) nfscope_threads_busy", 2),
        (
            r#"histogram_quantile(0.9, -topk(3, nfscope_threads{reason="x"}))"#,
            1,
        ),
    ] {
        assert_eq!(wrong(expression), expected, "{expression}");
    }
}
