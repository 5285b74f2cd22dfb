//! Dashboards as Grafana reads them, and its substitution of their variables.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Prometheus, dashboards};

/// Dashboard of Grafana.
#[derive(Clone, Debug)]
pub struct Dashboard {
    /// Name of the file without its ending.
    pub name: String,
    /// JSON of the dashboard.
    pub json: Value,
    /// Titles of its rows.
    pub rows: Vec<String>,
    /// Panels, without rows.
    pub panels: Vec<Panel>,
    /// Variables with values from Prometheus, in the dashboard's order.
    pub variables: Vec<Variable>,
}

/// Panel of a dashboard.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Title above the panel.
    pub title: String,
    /// JSON of the panel.
    pub json: Value,
    /// Queries of the panel.
    pub targets: Vec<Target>,
}

/// Format of a query's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines, numbers, or a native histogram.
    Series,
    /// Columns.
    Table,
    /// Classic buckets.
    Buckets,
}

/// Query of a panel.
#[derive(Clone, Debug)]
pub struct Target {
    /// Expression in PromQL, with Grafana's variables.
    pub expression: String,
    /// Names of the series.
    pub legend: String,
    /// True if only the newest value is queried.
    pub instant: bool,
    /// Format of the result.
    pub format: Format,
}

/// Variable whose values are those of a label.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name of the variable, without `$`.
    pub name: String,
    /// Series that have the label, with earlier variables in the selector.
    pub selector: String,
    /// The label.
    pub label: String,
    /// Value of the choice All.
    pub all: String,
}

impl Dashboard {
    /// Every dashboard of the workspace, by name.
    pub fn all() -> Result<Vec<Dashboard>> {
        Dashboard::all_in(&dashboards().join("grafana"))
    }

    /// Every dashboard in that directory, by name.
    pub fn all_in(dir: &Path) -> Result<Vec<Dashboard>> {
        let mut dashboards = Vec::new();
        for entry in fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
            dashboards.push(Dashboard::read(&entry?.path())?);
        }
        dashboards.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(dashboards)
    }

    fn read(path: &Path) -> Result<Dashboard> {
        let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let json: Value =
            serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
        let (rows, panels): (Vec<_>, Vec<_>) =
            list(&json["panels"]).partition(|p| p["type"] == "row");
        Ok(Dashboard {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            rows: rows.iter().map(|row| text_of(&row["title"])).collect(),
            panels: panels.iter().map(|p| Panel::read(p)).collect(),
            variables: list(&json["templating"]["list"])
                .filter_map(Variable::read)
                .collect(),
            json,
        })
    }

    /// Values that Grafana substitutes for the variables if everything of this job is chosen.
    pub fn values(&self, of: &Prometheus, job: &str, rate: &str) -> Result<Vec<(String, String)>> {
        let mut values = vec![
            ("__rate_interval".to_owned(), rate.to_owned()),
            ("job".to_owned(), job.to_owned()),
        ];
        for variable in self.variables.iter().filter(|v| v.name != "job") {
            let found = of
                .label_values(&substituted(&variable.selector, &values), &variable.label)
                .with_context(|| format!("{}: variable {}", self.name, variable.name))?;
            let quoted: Vec<_> = found.iter().map(|v| quoted(v)).collect();
            let value = match quoted.is_empty() {
                true => variable.all.clone(),
                false => format!("({})", quoted.join("|")),
            };
            values.push((variable.name.clone(), value));
        }
        Ok(values)
    }
}

/// Substitutes the variables of an expression.
pub fn substituted(expression: &str, values: &[(String, String)]) -> String {
    // Longer names come first: $op is the beginning of $operation.
    let mut values: Vec<_> = values.iter().collect();
    values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut text = expression.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("${name}"), value);
    }
    text
}

/// Quotes a value for a regular expression, and that for a string, as Grafana does.
fn quoted(value: &str) -> String {
    let mut out = String::new();
    for c in value.chars() {
        if r"\^$.|?*+()[]{}".contains(c) {
            out.push_str(r"\\");
        }
        out.push(c);
    }
    out
}

impl Panel {
    fn read(json: &Value) -> Panel {
        Panel {
            title: text_of(&json["title"]),
            targets: list(&json["targets"]).map(Target::read).collect(),
            json: json.clone(),
        }
    }

    /// True for a heat map, which queries native histograms beside classic ones.
    pub fn is_heat_map(&self) -> bool {
        self.json["type"] == "heatmap"
    }
}

impl Target {
    fn read(json: &Value) -> Target {
        Target {
            expression: text_of(&json["expr"]),
            legend: text_of(&json["legendFormat"]),
            instant: json["instant"] == true,
            format: match json["format"].as_str() {
                Some("table") => Format::Table,
                Some("heatmap") => Format::Buckets,
                _ => Format::Series,
            },
        }
    }
}

impl Variable {
    fn read(json: &Value) -> Option<Variable> {
        let query = json["query"]["query"].as_str()?;
        let inside = query.strip_prefix("label_values(")?.strip_suffix(')')?;
        let (selector, label) = inside.rsplit_once(", ")?;
        Some(Variable {
            name: text_of(&json["name"]),
            selector: selector.to_owned(),
            label: label.to_owned(),
            all: text_of(&json["allValue"]),
        })
    }
}

fn list(json: &Value) -> impl Iterator<Item = &Value> {
    json.as_array().into_iter().flatten()
}

fn text_of(json: &Value) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_what_grafana_makes_of_them() {
        let values = [("op", "read"), ("open", "x")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(
            substituted("a{b=~\"$op\",c=~\"$open\"}", &values),
            "a{b=~\"read\",c=~\"x\"}"
        );
        assert_eq!(quoted("10.9.0.2:1"), r"10\\.9\\.0\\.2:1");
    }
}
