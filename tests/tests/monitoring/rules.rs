//! Recording and alert rules: parsed by Prometheus, tested in both directions, and explained.

use std::fs;
use std::path::Path;

use lab::monitoring::{Dashboard, Panel, Release, Rule, Wants, dashboards};
use nfscope_model::family;
use serde_json::Value;

use super::{kinds, with_rules};

/// Page with the sections of every rule's `runbook_url`.
const RUNBOOK: &str = "docs/findings.md";

fn page() -> String {
    fs::read_to_string(dashboards().join("..").join(RUNBOOK)).unwrap()
}

fn rules() -> Vec<Rule> {
    with_rules().rules().unwrap()
}

fn alerts() -> Vec<Rule> {
    rules()
        .into_iter()
        .filter(|r| r.kind == "alerting")
        .collect()
}

fn files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "yml"))
        .map(|p| p.display().to_string())
        .collect();
    files.sort();
    files
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    let dir = dashboards().join("rules");
    let rules = [files(&dir), files(&dir.join("victoriametrics"))].concat();
    for release in Release::ALL {
        let mut tests = files(&dir.join("tests"));
        // The older promtool cannot write native histograms.
        tests.retain(|f| release == Release::Newer || !f.ends_with("/native.yml"));
        for (command, files) in [("check", &rules), ("test", &tests)] {
            let mut arguments = vec![command, "rules"];
            arguments.extend(files.iter().map(String::as_str));
            let (content, said) = release.promtool(&arguments, None).unwrap();
            assert!(
                content,
                "promtool {} {command} rules: {said}",
                release.name()
            );
        }
    }
}

/// An alert that never fires, and one that always does, must each fail the tests of that alert.
#[test]
fn every_alert_is_tested_firing_and_not_firing() {
    let rules = fs::read_to_string(dashboards().join("rules/alerts.yml")).unwrap();
    let into = lab::target_dir()
        .unwrap()
        .join(format!("rules-{}", std::process::id()));
    fs::create_dir_all(into.join("tests")).unwrap();
    let tests: Vec<_> = files(&dashboards().join("rules/tests"))
        .into_iter()
        .filter(|f| fs::read_to_string(f).unwrap().contains("../alerts.yml"))
        .map(|f| {
            let copy = into.join("tests").join(Path::new(&f).file_name().unwrap());
            fs::copy(&f, &copy).unwrap();
            copy.display().to_string()
        })
        .collect();
    let arguments: Vec<_> = ["test", "rules"]
        .into_iter()
        .chain(tests.iter().map(String::as_str))
        .collect();
    let run = |rules: &str| {
        fs::write(into.join("alerts.yml"), rules).unwrap();
        Release::Newer.promtool(&arguments, None).unwrap()
    };
    let (content, said) = run(&rules);
    assert!(content, "{said}");
    for (bound, why) in [("> 1e9", "never"), (">= -1e9", "always")] {
        // Alerts of objectives have tests of their own.
        let mut alerts = alerts();
        alerts.retain(|a| {
            !a.labels.contains_key("sloth_id") && !a.labels.contains_key("sloth_severity")
        });
        let changed = alerts
            .iter()
            .fold(rules.clone(), |r, a| with_bound(&r, &a.name, bound));
        let (_, said) = run(&changed);
        for name in alerts.iter().map(|a| &a.name) {
            let reported = format!("alertname: {name},");
            assert!(
                said.contains(&reported),
                "{name}: the tests pass where it {why} fires"
            );
        }
    }
    fs::remove_dir_all(&into).unwrap();
}

/// Rules with another comparison at the end of this alert's expression.
fn with_bound(rules: &str, alert: &str, bound: &str) -> String {
    let start = rules.find(&format!("- alert: {alert}\n")).unwrap();
    let end = start + rules[start..].find("\n        for:").unwrap();
    let mut words: Vec<_> = rules[start..end].rsplitn(3, ' ').collect();
    assert!(
        words[0].parse::<f64>().is_ok() && ["==", "<", ">"].contains(&words[1]),
        "{alert}"
    );
    words.reverse();
    format!("{}{} {bound}{}", &rules[..start], words[0], &rules[end..])
}

#[test]
fn rules_ask_for_what_the_metric_table_has() {
    let prometheus = with_rules();
    let rules = prometheus.rules().unwrap();
    assert!(rules.iter().any(|r| r.kind == "recording"));
    for rule in &rules {
        let wants = Wants::of(&prometheus.parse(&rule.query).unwrap());
        assert_eq!(wants.wrong, [""; 0], "{}", rule.name);
        for label in rule
            .annotations
            .values()
            .flat_map(|a| a.split("$labels.").skip(1))
        {
            let label = label
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .next()
                .unwrap();
            assert!(wants.has_label(label), "{}: $labels.{label}", rule.name);
        }
        if rule.kind == "recording" {
            // level:metric:operations
            let [level, metric, how] = rule.name.split(':').collect::<Vec<_>>()[..] else {
                panic!("{}: not level:metric:operations", rule.name);
            };
            assert!(!level.is_empty() && !how.is_empty());
            // Sloth names its own series.
            assert!(
                metric.starts_with("nfscope_") || level == "slo",
                "{}",
                rule.name
            );
        }
    }
}

#[test]
fn annotations_ask_for_what_the_metric_table_has() {
    let prometheus = with_rules();
    for dashboard in Dashboard::all().unwrap() {
        let all = dashboard.json["annotations"]["list"].as_array().unwrap();
        let names: Vec<_> = all.iter().map(|a| a["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            ["Findings", "Restarts", "Changes"],
            "{}",
            dashboard.name
        );
        for annotation in all {
            let expression = annotation["expr"].as_str().unwrap();
            let wants = Wants::of(&prometheus.parse(expression).unwrap());
            assert_eq!(wants.wrong, [""; 0], "{expression}");
        }
    }
}

/// In a mixed fleet `native or classic` between sums over servers drops servers: half of the operations were missing once.
#[test]
fn no_sum_over_servers_chooses_between_kinds_of_histograms() {
    let prometheus = with_rules();
    let asked = rules().into_iter().map(|r| (r.name, r.query));
    let panels = Dashboard::all().unwrap().into_iter().flat_map(|d| {
        let of = |p: Panel| {
            p.targets
                .into_iter()
                .map(move |t| (p.title.clone(), t.expression))
        };
        d.panels.into_iter().flat_map(of)
    });
    let mut choices = 0;
    for (what, expression) in asked.chain(panels) {
        let expression = expression.replace("$__rate_interval", "1m");
        let tree = prometheus.parse(&expression).unwrap();
        let mut arms = Vec::new();
        lost_servers(&tree, &mut arms, &mut choices);
        assert_eq!(arms, [""; 0], "{what}: {expression}");
    }
    assert!(choices > 20, "{choices}");
}

/// Collects sums without the label instance below an `or`.
fn lost_servers(tree: &Value, found: &mut Vec<String>, choices: &mut usize) {
    if tree["type"] == "binaryExpr" && tree["op"] == "or" {
        *choices += 1;
        for side in ["lhs", "rhs"] {
            sums_without_instance(&tree[side], found);
        }
    }
    for child in children(tree) {
        lost_servers(child, found, choices);
    }
}

fn sums_without_instance(tree: &Value, found: &mut Vec<String>) {
    let by = |l: &Value| l == "instance";
    let kept = tree["grouping"]
        .as_array()
        .is_some_and(|g| g.iter().any(by))
        != (tree["without"] == true);
    if tree["type"] == "aggregation" && !kept {
        found.push(format!("{} by {}", tree["op"], tree["grouping"]));
    }
    for child in children(tree) {
        sums_without_instance(child, found);
    }
}

fn children(tree: &Value) -> impl Iterator<Item = &Value> {
    let args = tree["args"].as_array().into_iter().flatten();
    let parts = ["expr", "lhs", "rhs"].into_iter().map(|part| &tree[part]);
    args.chain(parts.filter(|p| p.is_object()))
}

/// Disks or volumes with the same name on two servers have a line for each server.
#[test]
fn what_servers_have_in_common_is_told_apart() {
    let named = ["device", "volume", "pool", "client", "export", "map"];
    let prometheus = with_rules();
    let mut seen = 0;
    for panel in Dashboard::all().unwrap().into_iter().flat_map(|d| d.panels) {
        for target in &panel.targets {
            let expression = target.expression.replace("$__rate_interval", "1m");
            let mut groupings = Vec::new();
            collect_groupings(&prometheus.parse(&expression).unwrap(), &mut groupings);
            for grouping in groupings {
                let has = |l: &str| grouping.iter().any(|g| g == l);
                if named.iter().any(|l| has(l)) {
                    seen += 1;
                    assert!(
                        has("instance") && has("cluster"),
                        "{}: {expression}",
                        panel.title
                    );
                }
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

fn collect_groupings(tree: &Value, into: &mut Vec<Vec<String>>) {
    if tree["type"] == "aggregation" {
        let labels = tree["grouping"].as_array().into_iter().flatten();
        into.push(
            labels
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        );
    }
    children(tree).for_each(|c| collect_groupings(c, into));
}

#[test]
fn every_alert_says_what_to_do() {
    let page = page();
    for alert in alerts() {
        let name = &alert.name;
        // Alerts on findings have the agent's severity, sentence and first action.
        if alert.query.contains(family::FINDING_INFO.info.name) {
            assert!(!alert.labels.contains_key("severity"), "{name}");
            let description = &alert.annotations["description"];
            for label in ["text", "action"] {
                let asked = format!("label \"{label}\"");
                assert!(description.contains(&asked), "{name}: {label}");
            }
        } else {
            let severity = alert.labels["severity"].as_str();
            assert!(["warning", "critical"].contains(&severity), "{name}");
        }
        for annotation in ["summary", "description"] {
            assert!(
                !alert.annotations[annotation].is_empty(),
                "{name}: {annotation}"
            );
        }
        let (file, anchor) = alert.annotations["runbook_url"].split_once('#').unwrap();
        assert_eq!(file, RUNBOOK, "{name}");
        let section = section(&page, anchor);
        assert!(
            section.contains(name.as_str()),
            "{name} is not named in section {anchor}"
        );
    }
}

#[test]
fn every_kind_of_finding_has_a_section_and_an_alert_if_the_agent_finds_it() {
    let page = page();
    let alerts = alerts();
    for kind in kinds() {
        let of_kind = format!("kind=\"{kind}\"");
        let words = kind.split('_').map(|w| w[..1].to_uppercase() + &w[1..]);
        let name = format!("Nfs{}", words.collect::<String>());
        // Lock contention has no alert, because the agent counts no operations by file.
        if kind == "lock_contention" {
            assert!(alerts.iter().all(|a| !a.query.contains(&of_kind)));
        } else {
            let alert = alerts.iter().find(|a| a.name == name);
            let alert = alert.unwrap_or_else(|| panic!("no alert {name}"));
            assert!(alert.query.contains(&of_kind), "{name}");
            let url = &alert.annotations["runbook_url"];
            assert_eq!(*url, format!("{RUNBOOK}#{kind}"));
        }
        let section = section(&page, kind);
        for part in [
            "**What it means.**",
            "**How nfscope decides.**",
            "**What to do.**",
            "**How to check.**",
        ] {
            assert!(section.contains(part), "{kind}: {part}");
        }
    }
}

#[test]
fn the_page_names_what_the_metric_table_has() {
    let page = page();
    let prometheus = with_rules();
    let mut named = 0;
    // Code is between backquotes: every second piece.
    for code in page.split('`').skip(1).step_by(2) {
        if code.starts_with("nfscope_") {
            let wants = Wants::of(&prometheus.parse(code).unwrap());
            assert_eq!(wants.wrong, [""; 0], "{code}");
            named += 1;
        }
    }
    let anywhere = page.matches("nfscope_").count();
    assert_eq!(named, anywhere, "a metric stands between backquotes, alone");
}

/// Text below a heading, which is its own anchor.
fn section<'a>(page: &'a str, anchor: &str) -> &'a str {
    let heading = format!("\n### {anchor}\n");
    let (_, after) = page
        .split_once(&heading)
        .unwrap_or_else(|| panic!("no section {anchor}"));
    after.split("\n#").next().unwrap()
}
