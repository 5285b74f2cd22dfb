//! The dashboards: equal to the generator's, by the house rules, and querying only metrics that the agent has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lab::monitoring::{Dashboard, Panel, Wants, base_name, dashboards, generate, substituted};
use nfscope_model::family;

use super::with_rules;

/// Begin of every selector: it chooses the servers at the top of the dashboard.
const CHOSEN: &str = r#"{cluster=~"$cluster",job=~"$job",instance=~"$instance""#;

#[test]
fn dashboards_and_rules_are_what_the_generator_writes() {
    let committed = dashboards();
    let metrics = docs_metrics();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        generate(&committed, &metrics).unwrap();
    }
    let into = lab::target_dir()
        .unwrap()
        .join(format!("dashboards-{}", std::process::id()));
    fs::create_dir_all(&into).unwrap();
    generate(&into, &metrics).unwrap();
    let files = |dir: &Path| -> Vec<(String, String)> {
        let mut files = Vec::new();
        for folder in ["grafana", "rules", "rules/victoriametrics"] {
            let entries = fs::read_dir(dir.join(folder)).unwrap();
            for path in entries.map(|e| e.unwrap().path()).filter(|p| p.is_file()) {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                files.push((name, fs::read_to_string(path).unwrap()));
            }
        }
        files.sort();
        files
    };
    let (generated, committed) = (files(&into), files(&committed));
    fs::remove_dir_all(&into).unwrap();
    let names = |files: &[(String, String)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&generated), names(&committed));
    for (new, old) in generated.iter().zip(&committed) {
        assert!(
            new == old,
            "dashboards/{} is not what dashboards/generate.py writes; UPDATE_GOLDEN=1 rewrites it",
            new.0
        );
    }
}

/// Metric table from which families without a panel of their own get one.
fn docs_metrics() -> PathBuf {
    dashboards().join("../docs/metrics.md")
}

#[test]
fn every_dashboard_follows_the_house_rules() {
    let dashboards = Dashboard::all().unwrap();
    assert!(dashboards.len() >= 9);
    follow_the_house_rules(&dashboards);
}

/// Families that are a summary in the text format have no buckets in a Prometheus that stores classic histograms.
#[test]
fn classic_buckets_that_are_asked_for_exist() {
    let golden = dashboards().join("../agent/nfscope/tests/golden/metrics.txt");
    let text = fs::read_to_string(golden).unwrap();
    let summaries: Vec<_> = text
        .lines()
        .filter_map(|l| l.strip_prefix("# TYPE ")?.strip_suffix(" summary"))
        .collect();
    assert!(summaries.contains(&family::BLOCK_DEVICE.info.name));
    let rules = fs::read_to_string(dashboards().join("rules/recording.yml")).unwrap();
    let all = Dashboard::all().unwrap();
    let panels = all.iter().flat_map(|d| &d.panels);
    let targets = panels.flat_map(|p| &p.targets);
    let mut asked: Vec<_> = targets.map(|t| t.expression.as_str()).collect();
    asked.push(&rules);
    for expression in asked {
        for name in &summaries {
            let buckets = format!("{name}_bucket");
            assert!(!expression.contains(&buckets), "{expression}");
        }
    }
}

/// A family with nothing but its declaration gets a panel on the dashboard of its probe.
#[test]
fn a_family_without_a_panel_of_its_own_is_drawn() {
    let into = lab::target_dir()
        .unwrap()
        .join(format!("dashboards-others-{}", std::process::id()));
    fs::create_dir_all(&into).unwrap();
    let mut table = fs::read_to_string(docs_metrics()).unwrap();
    let new = [
        ("block_requeued_total", "counter", "`device`, `op`", "disks"),
        ("zfs_scrub_seconds", "histogram", "`volume`", "logs"),
        ("wonder_ratio", "gauge", "", "agent"),
    ];
    for (name, kind, labels, _) in new {
        table += &format!("| `nfscope_{name}` | {kind} | {labels} | 0.2.0 | What {name} is. |\n");
    }
    let metrics = into.join("metrics.md");
    fs::write(&metrics, table).unwrap();
    generate(&into, &metrics).unwrap();
    let drawn = Dashboard::all_in(&into.join("grafana")).unwrap();
    fs::remove_dir_all(&into).unwrap();
    follow_the_house_rules(&drawn);
    for (name, _, labels, place) in new {
        let asks = |panel: &&Panel| panel.targets[0].expression.contains(name);
        let found: Vec<_> = drawn
            .iter()
            .flat_map(|d| d.panels.iter().filter(asks).map(move |p| (d, p)))
            .collect();
        let [(dashboard, panel)] = &found[..] else {
            panic!("{name} is in {} panels", found.len());
        };
        assert_eq!(dashboard.name, place);
        assert!(
            dashboard.rows.last().unwrap().ends_with(": other figures"),
            "{:?}",
            dashboard.rows
        );
        for label in labels.split(['`', ',', ' ']).filter(|l| !l.is_empty()) {
            let target = &panel.targets[0];
            assert!(target.legend.contains(&format!("{{{{{label}}}}}")));
            assert!(target.expression.contains(label));
        }
    }
}

fn follow_the_house_rules(dashboards: &[Dashboard]) {
    let probes = family::PROBE_ATTACHED.info.labels[0].values;
    let words: BTreeSet<&str> = probes.split(", ").chain(["nfscope"]).collect();
    for dashboard in dashboards {
        let name = &dashboard.name;
        assert_eq!(dashboard.json["uid"], format!("nfscope-{name}"));
        for field in ["title", "description"] {
            assert!(
                dashboard.json[field]
                    .as_str()
                    .is_some_and(|t| !t.is_empty()),
                "{name}: {field}"
            );
        }
        let all = dashboard.json["templating"]["list"].as_array().unwrap();
        let variables: Vec<_> = all.iter().map(|v| v["name"].as_str().unwrap()).collect();
        assert_eq!(
            variables[..4],
            ["datasource", "cluster", "job", "instance"],
            "{name}"
        );
        assert_eq!(
            all.len() - 1,
            dashboard.variables.len(),
            "{name}: variables that cannot be read"
        );
        for variable in &all[1..] {
            assert_eq!(variable["datasource"]["uid"], "${datasource}", "{name}");
            assert!(
                variable["multi"] == true && variable["includeAll"] == true,
                "{name}"
            );
        }
        let mut ids = BTreeSet::new();
        for panel in dashboard.json["panels"].as_array().unwrap() {
            assert!(
                ids.insert(panel["id"].as_u64().unwrap()),
                "{name}: two panels with one id"
            );
        }
        assert!(
            !dashboard.rows.is_empty() && dashboard.json["panels"][0]["type"] == "row",
            "{name}"
        );
        for row in &dashboard.rows {
            // `git grep <word>` walks from the probe to its row.
            let (named, _) = row
                .split_once(": ")
                .expect("a row's title is <probes>: <what>");
            assert!(
                named.split(", ").all(|word| words.contains(word)),
                "{name}: row {row:?}"
            );
        }
        for panel in &dashboard.panels {
            check(name, panel);
        }
    }
}

fn check(dashboard: &str, panel: &Panel) {
    let what = format!("{dashboard}: panel {:?}", panel.title);
    assert!(!panel.title.is_empty(), "{what}: no title");
    let description = panel.json["description"].as_str().unwrap_or_default();
    let sentences = description.split_inclusive(['.', ':', ';', '?']).count();
    assert!(
        sentences >= 2,
        "{what}: a description says what it shows and what a rise means"
    );
    assert!(description.ends_with('.'), "{what}: {description:?}");
    let unit = panel.json["fieldConfig"]["defaults"]["unit"]
        .as_str()
        .unwrap_or_default();
    assert!(!unit.is_empty(), "{what}: no unit");
    assert_eq!(panel.json["datasource"]["uid"], "${datasource}", "{what}");
    assert!(!panel.targets.is_empty(), "{what}: asks nothing");
    let mut names = BTreeSet::new();
    for (target, json) in panel
        .targets
        .iter()
        .zip(panel.json["targets"].as_array().unwrap())
    {
        let expression = &target.expression;
        assert!(
            names.insert(json["refId"].as_str().unwrap()),
            "{what}: two queries of one name"
        );
        assert_eq!(json["datasource"]["uid"], "${datasource}", "{what}");
        // Selected metrics: those of the server; those of the agent's own process, which every exporter has; objectives. `up` is left
        // out, because every target of a Prometheus has it: a recorded series has that of agents.
        let selected = ["nfscope_", "process_", "slo:"];
        let begins =
            |at: usize| !expression[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let named = |m: &str| {
            expression
                .match_indices(m)
                .filter(|(at, _)| begins(*at))
                .count()
        };
        let metrics: usize = selected.iter().map(|m| named(m)).sum();
        assert!(metrics > 0, "{what}: {expression}");
        assert_eq!(
            expression.matches(CHOSEN).count(),
            metrics,
            "{what}: {expression}"
        );
        let ranges = expression.matches('[').count();
        assert_eq!(
            expression.matches("[$__rate_interval]").count(),
            ranges,
            "{what}: {expression}"
        );
        assert_eq!(
            expression.matches("rate(").count(),
            ranges,
            "{what}: {expression}"
        );
    }
}

#[test]
fn dashboards_ask_for_what_the_metric_table_has() {
    let prometheus = with_rules();
    let mut asked = BTreeSet::new();
    for dashboard in Dashboard::all().unwrap() {
        let mut values = vec![("__rate_interval".to_owned(), "1m".to_owned())];
        for variable in &dashboard.variables {
            let selector = substituted(&variable.selector, &values);
            let wants = Wants::of(&prometheus.parse(&selector).unwrap());
            assert_eq!(
                wants.wrong, [""; 0],
                "{}: ${}",
                dashboard.name, variable.name
            );
            assert!(
                wants.has_label(&variable.label),
                "{}: ${}",
                dashboard.name,
                variable.name
            );
            values.push((variable.name.clone(), ".+".to_owned()));
        }
        for panel in &dashboard.panels {
            let what = format!("{}: {}", dashboard.name, panel.title);
            for target in &panel.targets {
                let expression = substituted(&target.expression, &values);
                assert!(
                    !expression.contains('$'),
                    "{what}: an unknown variable in {expression}"
                );
                let wants = Wants::of(&prometheus.parse(&expression).unwrap());
                assert_eq!(wants.wrong, [""; 0], "{what}: {expression}");
                for label in target
                    .legend
                    .split("{{")
                    .skip(1)
                    .filter_map(|l| l.split_once("}}"))
                {
                    assert!(wants.has_label(label.0), "{what}: {{{{{}}}}}", label.0);
                }
                asked.extend(wants.metrics.iter().map(|m| base_name(m).to_owned()));
            }
        }
    }
    let unseen = family::ALL
        .iter()
        .filter(|f| !asked.contains(f.name))
        .map(|f| f.name);
    assert_eq!(
        unseen.collect::<Vec<_>>(),
        [""; 0],
        "families that no dashboard shows"
    );
}
