//! Recording and alert rules: understood, tested in both directions, and explained.

use std::fs;
use std::path::Path;

use lab::monitoring::{Release, Rule, Wants, base_name, dashboards};

use super::{kinds, with_rules};

/// Where the sections of the page are, for every rule's `runbook_url`.
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
    for release in Release::ALL {
        for (command, files) in [("check", files(&dir)), ("test", files(&dir.join("tests")))] {
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
        let alerts = alerts();
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

/// The rules with another comparison at the end of this alert's expression.
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
            assert!(metric.starts_with("nfscope_") && !level.is_empty() && !how.is_empty());
            assert_eq!(base_name(&rule.name), rule.name);
        }
    }
}

#[test]
fn every_alert_says_what_to_do() {
    let page = page();
    for alert in alerts() {
        let name = &alert.name;
        assert!(
            ["warning", "critical"].contains(&alert.labels["severity"].as_str()),
            "{name}"
        );
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
fn every_kind_of_finding_has_an_alert_and_a_section() {
    let page = page();
    let alerts = alerts();
    for kind in kinds() {
        let words = kind.split('_').map(|w| w[..1].to_uppercase() + &w[1..]);
        let name = format!("Nfs{}", words.collect::<String>());
        let alert = alerts
            .iter()
            .find(|a| a.name == name)
            .unwrap_or_else(|| panic!("no alert {name}"));
        assert!(alert.query.contains(&format!("kind=\"{kind}\"")), "{name}");
        assert_eq!(
            alert.annotations["runbook_url"],
            format!("{RUNBOOK}#{kind}")
        );
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
    // Code between backquotes: every second piece.
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

/// What stands under a heading, whose anchor it is itself.
fn section<'a>(page: &'a str, anchor: &str) -> &'a str {
    let heading = format!("\n### {anchor}\n");
    let (_, after) = page
        .split_once(&heading)
        .unwrap_or_else(|| panic!("no section {anchor}"));
    after.split("\n#").next().unwrap()
}
