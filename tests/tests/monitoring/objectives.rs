//! Objectives and burn rates have one source, `dashboards/slo.yml`.

use std::fs;
use std::path::Path;

use lab::monitoring::{Release, dashboards, generate_for};

/// Generates rules from the shipped objectives with some words replaced, or returns the generator's error.
fn rules_of(into: &Path, changes: &[(&str, &str)]) -> anyhow::Result<()> {
    let shipped = fs::read_to_string(dashboards().join("slo.yml"))?;
    let changed = changes.iter().fold(shipped, |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text.replace(from, to)
    });
    let objectives = into.join("slo.yml");
    fs::write(&objectives, changed)?;
    generate_for(into, &dashboards().join("../docs/metrics.md"), &objectives)
}

/// All WRITEs are slow, so that the budget of 1 % is spent a hundred times as fast as allowed.
const SLOW: &str = r#"
rule_files: [rules/slo.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: nfscope_op_duration_seconds_count{job="nfscope",instance="a",version="3",op="write"}
        values: 0+6000x200
      - series: nfscope_op_duration_seconds_bucket{job="nfscope",instance="a",version="3",op="write",le="0.01"}
        values: 0x200
    promql_expr_test:
      - expr: count by (sloth_severity) (ALERTS{alertname="NfsWriteObjective",alertstate="firing"})
        eval_time: 3h
        exp_samples: [KINDS]
      - expr: slo:time_period:days
        eval_time: 3h
        exp_samples:
          - labels: 'slo:time_period:days{sloth_id="nfscope-write-p99-10ms",sloth_service="nfscope",sloth_slo="write-p99-10ms"}'
            value: 7
"#;

#[test]
fn objectives_and_burn_rates_are_of_one_file() {
    let into = lab::target_dir()
        .unwrap()
        .join(format!("objectives-{}", std::process::id()));
    fs::create_dir_all(&into).unwrap();
    let page = "{ labels: '{sloth_severity=\"page\"}', value: 1 }";
    let ticket = "{ labels: '{sloth_severity=\"ticket\"}', value: 1 }";
    let test = into.join("test.yml");
    // In an objective of a week, 60 % of the budget in an hour are a factor of 100.8, and 59 % are one of 99.1.
    for (percent, kinds) in [
        ("59", format!("{page}, {ticket}")),
        ("60", ticket.to_owned()),
    ] {
        let quick = format!("quick: {{ errorBudgetPercent: {percent}, shortWindow: 5m");
        let changes = [
            ("objective: 99.9", "objective: 99"),
            ("sloPeriod: 30d", "sloPeriod: 7d"),
            (
                "quick: { errorBudgetPercent: 2, shortWindow: 5m",
                quick.as_str(),
            ),
            // This burn rate never alerts: it is more than the whole budget.
            (
                "errorBudgetPercent: 5, shortWindow: 30m",
                "errorBudgetPercent: 400, shortWindow: 30m",
            ),
        ];
        rules_of(&into, &changes).unwrap();
        fs::write(&test, SLOW.replace("KINDS", &kinds)).unwrap();
        for release in Release::ALL {
            let path = test.display().to_string();
            let (passed, said) = release.promtool(&["test", "rules", &path], None).unwrap();
            assert!(passed, "{percent} %, promtool {}: {said}", release.name());
        }
    }
    for (from, to, why) in [
        (
            "longWindow: 1h",
            "longWindow: 5m",
            "page quick: 5m, 5m and 30d do not rise",
        ),
        (
            "longWindow: 3d",
            "longWindow: 3days",
            "'3days' is no duration",
        ),
        ("sloPeriod: 30d", "sloPeriod: 1d", "do not rise"),
    ] {
        let error = rules_of(&into, &[(from, to)]).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("fix: "), "{error}");
    }
    fs::remove_dir_all(&into).unwrap();
}
