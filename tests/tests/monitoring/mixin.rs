//! The mixin renders to the files of this repository, and its settings change the values that they name.

use std::fs;
use std::process::Command;

use lab::monitoring::{Dashboard, Release, dashboards};
use serde_json::{Value, json};

const ALL: &str =
    "{ dashboards: m.grafanaDashboards, rules: m.prometheusRules, alerts: m.prometheusAlerts }";

/// JSON that jsonnet renders of the mixin with these settings.
fn rendered(settings: &str) -> Value {
    let mixin = dashboards().join("mixin.libsonnet");
    let program = format!(
        "local m = (import '{}') + {{ _config+:: {settings} }}; {ALL}",
        mixin.display()
    );
    let output = Command::new("jsonnet").args(["-e", &program]).output();
    let output = output.expect("jsonnet is missing; run: tests/setup/setup.sh monitoring");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_mixin_renders_to_what_is_shipped() {
    let mixin = rendered("{}");
    let shipped = Dashboard::all().unwrap();
    let found = mixin["dashboards"].as_object().unwrap();
    assert_eq!(found.len(), shipped.len());
    for dashboard in shipped {
        let of_mixin = &found[&format!("{}.json", dashboard.name)];
        assert!(*of_mixin == dashboard.json, "{}", dashboard.name);
    }
    // The generator's test keeps this file equal to the YAML.
    let rules = fs::read(dashboards().join("rules/mixin.json")).unwrap();
    let rules: Value = serde_json::from_slice(&rules).unwrap();
    assert_eq!(mixin["rules"], json!({ "groups": rules["prometheus"] }));
    assert_eq!(mixin["alerts"], json!({ "groups": rules["alerts"] }));
}

#[test]
fn settings_of_the_mixin_reach_every_query() {
    let mixin = rendered(
        "{ clusterLabel: 'site', job: 'nfs', runbooks: 'https://example.org/', engine: 'victoriametrics' }",
    );
    let text = mixin.to_string();
    for gone in [
        "cluster=~",
        "(cluster",
        "cluster,",
        "{{cluster}}",
        "$labels.cluster",
        "fields.cluster",
        r#"job=\"nfscope\""#,
        "histogram_count(",
        "histogram_sum(",
        "histogram_fraction(",
    ] {
        assert!(!text.contains(gone), "{gone}");
    }
    assert!(text.contains(r#"site=~\"$cluster\""#));
    let runbooks: Vec<_> = text.split(r#""runbook_url":""#).skip(1).collect();
    assert!(runbooks.len() > 20);
    assert!(
        runbooks
            .iter()
            .all(|r| r.starts_with("https://example.org/docs/findings.md#"))
    );
    // JSON is YAML.
    let into = lab::target_dir()
        .unwrap()
        .join(format!("mixin-{}.yml", std::process::id()));
    for part in ["rules", "alerts"] {
        fs::write(&into, mixin[part].to_string()).unwrap();
        let file = into.display().to_string();
        for release in Release::ALL {
            let (content, said) = release.promtool(&["check", "rules", &file], None).unwrap();
            assert!(content, "{part}: {said}");
        }
    }
    fs::remove_file(&into).unwrap();
}
