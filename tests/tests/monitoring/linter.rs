//! Rules of Grafana's dashboard-linter, by their names there. `make lint` runs the linter itself if it is installed.

use lab::monitoring::{Dashboard, Panel};
use serde_json::Value;

use super::with_rules;

/// Rule for a dashboard: returns the errors that it finds.
type Rule = fn(&Dashboard) -> Vec<String>;
/// Rule for a query's tree: returns the errors that it finds.
type QueryRule = fn(&Value) -> Vec<String>;

/// Rules that read a dashboard.
const OF_DASHBOARDS: [(&str, Rule); 9] = [
    ("template-datasource-rule", template_datasource),
    ("template-job-rule", |d| template(d, "job", "Job")),
    ("template-instance-rule", |d| {
        template(d, "instance", "Instance")
    }),
    ("template-on-time-change-reload-rule", template_reload),
    ("panel-datasource-rule", panel_datasource),
    ("panel-title-description-rule", panel_title_description),
    ("panel-units-rule", panel_units),
    ("panel-no-targets-rule", panel_no_targets),
    ("uneditable-dashboard", uneditable),
];

/// Rules for a query, as Prometheus parses it. Those for LogQL find no query here.
const OF_QUERIES: [(&str, QueryRule); 4] = [
    ("target-rate-interval-rule", target_rate_interval),
    ("target-job-rule", |q| target_matcher(q, "job")),
    ("target-instance-rule", |q| target_matcher(q, "instance")),
    ("target-counter-agg-rule", target_counter),
];

/// Units of Grafana that panels here use. The linter knows all units.
const UNITS: [&str; 9] = [
    "short",
    "percentunit",
    "s",
    "bytes",
    "Bps",
    "ops",
    "reqps",
    "iops",
    "cps",
];

/// Range in place of `$__rate_interval`, which Prometheus does not parse.
const RATE_INTERVAL: &str = "17m";

#[test]
fn dashboards_follow_the_rules_of_dashboard_linter() {
    let prometheus = with_rules();
    // template-label-promql-rule and target-promql-rule: Prometheus reads every query.
    let read = |text: &str| {
        let text = text.replace("$__rate_interval", RATE_INTERVAL);
        prometheus
            .parse(&text)
            .unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    let dashboards = Dashboard::all().unwrap();
    assert!(dashboards.len() >= 9);
    let mut queries = 0;
    for dashboard in &dashboards {
        for (rule, wrong) in OF_DASHBOARDS {
            assert_eq!(wrong(dashboard), [""; 0], "{}: {rule}", dashboard.name);
        }
        for variable in &dashboard.variables {
            read(&variable.selector);
        }
        for target in dashboard.panels.iter().flat_map(|p| &p.targets) {
            let tree = read(&target.expression);
            for (rule, wrong) in OF_QUERIES {
                let what = format!("{}: {rule}: {}", dashboard.name, target.expression);
                assert_eq!(wrong(&tree), [""; 0], "{what}");
            }
            queries += 1;
        }
    }
    assert!(queries > 150, "{queries}");
}

/// Each rule finds an error made for it: a rule without errors above could otherwise be one that cannot fail.
#[test]
fn what_breaks_a_rule_is_found() {
    let shipped = Dashboard::all().unwrap().remove(0);
    let broken = |path: &str, value: Value| {
        let mut dashboard = shipped.clone();
        *dashboard.json.pointer_mut(path).unwrap() = value.clone();
        let first = path.strip_prefix("/panels/1").map(|p| p.to_owned());
        if let Some(path) = first {
            *dashboard.panels[0].json.pointer_mut(&path).unwrap() = value;
        }
        let rules = OF_DASHBOARDS.into_iter();
        let failed = rules.filter(|(_, wrong)| !wrong(&dashboard).is_empty());
        failed.map(|(rule, _)| rule).collect::<Vec<_>>()
    };
    for (path, value, rule) in [
        (
            "/templating/list/0/name",
            "prometheus".into(),
            "template-datasource-rule",
        ),
        (
            "/templating/list/2/allValue",
            ".*".into(),
            "template-job-rule",
        ),
        (
            "/templating/list/3/multi",
            false.into(),
            "template-instance-rule",
        ),
        (
            "/templating/list/1/refresh",
            1.into(),
            "template-on-time-change-reload-rule",
        ),
        (
            "/panels/1/datasource/uid",
            "mine".into(),
            "panel-datasource-rule",
        ),
        (
            "/panels/1/description",
            "".into(),
            "panel-title-description-rule",
        ),
        (
            "/panels/1/fieldConfig/defaults/unit",
            "apples".into(),
            "panel-units-rule",
        ),
        (
            "/panels/1/targets",
            Value::Array(Vec::new()),
            "panel-no-targets-rule",
        ),
        ("/editable", true.into(), "uneditable-dashboard"),
    ] {
        assert_eq!(broken(path, value), [rule], "{path}");
    }
    let prometheus = with_rules();
    let chosen = r#"job=~"$job",instance=~"$instance""#;
    for (query, rule) in [
        (
            format!("rate(a_total{{{chosen}}}[5m])"),
            "target-rate-interval-rule",
        ),
        (
            r#"a{job="x",instance=~"$instance"}"#.to_owned(),
            "target-job-rule",
        ),
        (r#"a{job=~"$job"}"#.to_owned(), "target-instance-rule"),
        (
            format!("sum(a_total{{{chosen}}})"),
            "target-counter-agg-rule",
        ),
        (
            format!("max_over_time(a_total{{{chosen}}}[17m])"),
            "target-counter-agg-rule",
        ),
    ] {
        let tree = prometheus.parse(&query).unwrap();
        let rules = OF_QUERIES.into_iter();
        let failed = rules.filter(|(_, wrong)| !wrong(&tree).is_empty());
        assert_eq!(
            failed.map(|(rule, _)| rule).collect::<Vec<_>>(),
            [rule],
            "{query}"
        );
    }
}

fn variables(dashboard: &Dashboard) -> &[Value] {
    dashboard.json["templating"]["list"]
        .as_array()
        .map_or(&[], |l| l)
}

/// Values that differ from the wanted ones.
fn differing(of: &Value, wanted: &[(&str, Value)]) -> Vec<String> {
    let wrong = wanted
        .iter()
        .filter(|(path, value)| of.pointer(path) != Some(value));
    wrong
        .map(|(path, value)| format!("{path} is not {value}"))
        .collect()
}

fn template_datasource(dashboard: &Dashboard) -> Vec<String> {
    let mut sources = variables(dashboard)
        .iter()
        .filter(|v| v["type"] == "datasource");
    let (Some(source), None) = (sources.next(), sources.next()) else {
        return vec!["not one data source".to_owned()];
    };
    let wanted = [
        ("/name", "datasource".into()),
        ("/label", "Data source".into()),
        ("/query", "prometheus".into()),
    ];
    differing(source, &wanted)
}

fn template(dashboard: &Dashboard, name: &str, label: &str) -> Vec<String> {
    let Some(variable) = variables(dashboard).iter().find(|v| v["name"] == name) else {
        return vec![format!("no variable {name}")];
    };
    let wanted = [
        ("/datasource/uid", "${datasource}".into()),
        ("/type", "query".into()),
        ("/label", label.into()),
        ("/multi", true.into()),
        ("/allValue", ".+".into()),
    ];
    differing(variable, &wanted)
}

fn template_reload(dashboard: &Dashboard) -> Vec<String> {
    let queries = variables(dashboard).iter().filter(|v| v["type"] == "query");
    queries
        .flat_map(|v| differing(v, &[("/refresh", 2.into())]))
        .collect()
}

/// Errors of each panel, with its title.
fn of_panels(dashboard: &Dashboard, wrong: impl Fn(&Panel) -> Option<String>) -> Vec<String> {
    let panels = dashboard.panels.iter();
    panels
        .filter_map(|p| wrong(p).map(|w| format!("{}: {w}", p.title)))
        .collect()
}

fn panel_datasource(dashboard: &Dashboard) -> Vec<String> {
    of_panels(dashboard, |p| {
        let uid = &p.json["datasource"]["uid"];
        (uid != "${datasource}").then(|| uid.to_string())
    })
}

fn panel_title_description(dashboard: &Dashboard) -> Vec<String> {
    of_panels(dashboard, |p| {
        let empty = ["title", "description"].map(|f| p.json[f].as_str().is_none_or(str::is_empty));
        empty
            .contains(&true)
            .then(|| "no title or description".to_owned())
    })
}

fn panel_units(dashboard: &Dashboard) -> Vec<String> {
    of_panels(dashboard, |p| {
        let config = &p.json["fieldConfig"];
        let overrides = config["overrides"].as_array().into_iter().flatten();
        let properties = overrides.flat_map(|o| o["properties"].as_array().into_iter().flatten());
        let units = properties
            .filter(|p| p["id"] == "unit")
            .map(|p| &p["value"]);
        let mut all = units.chain([&config["defaults"]["unit"]]);
        let known = |unit: &&Value| unit.as_str().is_some_and(|u| UNITS.contains(&u));
        all.find(|unit| !known(unit))
            .map(|unit| format!("unit {unit}"))
    })
}

fn panel_no_targets(dashboard: &Dashboard) -> Vec<String> {
    of_panels(dashboard, |p| {
        let none = p.json["targets"].as_array().is_none_or(Vec::is_empty);
        none.then(|| "no targets".to_owned())
    })
}

fn uneditable(dashboard: &Dashboard) -> Vec<String> {
    differing(&dashboard.json, &[("/editable", false.into())])
}

/// Every selector of a query, with its range and the function around it.
fn selectors(tree: &Value) -> Vec<(&Value, &str)> {
    fn walk<'a>(node: &'a Value, function: &'a str, into: &mut Vec<(&'a Value, &'a str)>) {
        if let Some("vectorSelector" | "matrixSelector") = node["type"].as_str() {
            into.push((node, function));
        }
        let own = node["func"]["name"].as_str().unwrap_or_default();
        let args = node["args"].as_array().into_iter().flatten();
        let parts = ["expr", "lhs", "rhs", "param"]
            .into_iter()
            .map(|part| &node[part]);
        for child in args.chain(parts.filter(|p| p.is_object())) {
            walk(child, own, into);
        }
    }
    let mut all = Vec::new();
    walk(tree, "", &mut all);
    all
}

fn target_rate_interval(tree: &Value) -> Vec<String> {
    let rates = selectors(tree).into_iter();
    let rates =
        rates.filter(|(s, f)| s["type"] == "matrixSelector" && ["rate", "irate"].contains(f));
    let other = rates.filter(|(s, _)| s["range"] != 17 * 60 * 1000);
    other
        .map(|(s, f)| format!("{f} over {}", s["range"]))
        .collect()
}

fn target_matcher(tree: &Value, label: &str) -> Vec<String> {
    let wanted =
        |m: &Value| m["name"] == label && m["type"] == "=~" && m["value"] == format!("${label}");
    let without = selectors(tree).into_iter().filter(|(s, _)| {
        let matchers = s["matchers"].as_array();
        !matchers.is_some_and(|all| all.iter().any(wanted))
    });
    without.map(|(s, _)| s["name"].to_string()).collect()
}

fn target_counter(tree: &Value) -> Vec<String> {
    let counters = selectors(tree).into_iter();
    let counters =
        counters.filter(|(s, _)| s["name"].as_str().is_some_and(|n| n.ends_with("_total")));
    let bare = counters.filter(|(_, f)| !["rate", "irate", "increase"].contains(f));
    bare.map(|(s, _)| s["name"].to_string()).collect()
}
