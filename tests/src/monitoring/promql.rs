//! Checks of an expression against the metric table, on the tree that Prometheus makes of the expression.

use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

use nfscope_model::{Info, Kind, family};
use serde_json::Value;

use super::dashboards;

/// Metrics and labels of an expression, and those that the metric table does not have.
#[derive(Clone, Debug, Default)]
pub struct Wants {
    /// Every metric of the expression, by its name there.
    pub metrics: BTreeSet<String>,
    /// Errors in words.
    pub wrong: Vec<String>,
}

/// Names that the rules of this workspace record.
fn recorded() -> &'static BTreeSet<String> {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let rules = ["recording.yml", "slo.yml"].map(|f| dashboards().join("rules").join(f));
        let texts = rules.map(|path| fs::read_to_string(path).unwrap_or_default());
        let lines = texts.iter().flat_map(|t| t.lines());
        let names = lines.filter_map(|l| l.trim_start_matches([' ', '-']).strip_prefix("record: "));
        names.map(str::to_owned).collect()
    });
    &NAMES
}

/// The metric of a recorded series, whose name is level:metric:operations; another name is the metric itself.
fn metric_of(name: &str) -> &str {
    name.split(':').nth(1).unwrap_or(name)
}

/// The family of a series: series of a classic histogram have endings of their own.
pub fn base_name(name: &str) -> &str {
    let name = metric_of(name);
    let known = |name: &str| family::ALL.iter().any(|f| f.name == name);
    let endings = ["_bucket", "_sum", "_count"];
    let base = endings
        .iter()
        .find_map(|e| name.strip_suffix(e).filter(|b| known(b)));
    base.unwrap_or(name)
}

impl Wants {
    /// Reads a syntax tree.
    pub fn of(tree: &Value) -> Wants {
        let mut wants = Wants::default();
        wants.visit(tree);
        wants
    }

    /// True if one of the metrics has this label.
    pub fn has_label(&self, label: &str) -> bool {
        self.metrics.iter().any(|m| labels_of(m).contains(label))
    }

    fn visit(&mut self, node: &Value) {
        match node["type"].as_str() {
            Some("vectorSelector" | "matrixSelector") => self.select(node),
            Some("aggregation") => self.part(&node["expr"], &node["grouping"]),
            Some("binaryExpr") => {
                let matching = &node["matching"];
                for side in ["lhs", "rhs"] {
                    let labels = if node[side]["type"] == "numberLiteral" {
                        &Value::Null
                    } else {
                        &matching["labels"]
                    };
                    self.part(&node[side], labels);
                }
            }
            Some("call") => node["args"]
                .as_array()
                .into_iter()
                .flatten()
                .for_each(|a| self.visit(a)),
            _ => ["expr", "lhs", "rhs"]
                .iter()
                .for_each(|child| self.visit_some(&node[*child])),
        }
    }

    fn visit_some(&mut self, node: &Value) {
        if node.is_object() {
            self.visit(node);
        }
    }

    /// Reads a part of the tree; one of its metrics must have these labels.
    fn part(&mut self, node: &Value, labels: &Value) {
        let part = Wants::of(node);
        for label in labels
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            if !part.has_label(label) {
                self.wrong
                    .push(format!("none of {:?} has the label {label}", part.metrics));
            }
        }
        self.metrics.extend(part.metrics);
        self.wrong.extend(part.wrong);
    }

    fn select(&mut self, node: &Value) {
        let matchers: Vec<_> = node["matchers"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|m| [&m["name"], &m["type"], &m["value"]].map(|v| v.as_str().unwrap_or_default()))
            .collect();
        // Variables query a histogram by either of its names: with `_count` or without.
        let name = matchers
            .iter()
            .find(|[label, ..]| *label == "__name__")
            .map_or("", |[_, _, name]| name.trim_end_matches("(_count)?"));
        if name.contains(':') {
            if !recorded().contains(name) {
                self.wrong.push(format!("no rule records {name}"));
            }
        } else if name != "up" {
            match info(name) {
                None => self.wrong.push(format!("no metric is called {name:?}")),
                Some(f) if (base_name(name) != name) && !matches!(f.kind, Kind::Histogram(_)) => {
                    self.wrong.push(format!("{} is no histogram", f.name));
                }
                Some(_) => {}
            }
        }
        let labels = labels_of(name);
        for [label, _, value] in matchers.iter().filter(|[l, ..]| *l != "__name__") {
            if !labels.contains(*label) {
                self.wrong.push(format!("{name} has no label {label}"));
                continue;
            }
            let Some(closed) = info(name).and_then(|f| closed_set(f, label)) else {
                continue;
            };
            let foreign = |v: &&str| *v != ".+" && !closed.contains(v);
            for value in value.split('|').filter(foreign) {
                self.wrong
                    .push(format!("{label} of {name} is never {value}"));
            }
        }
        self.metrics.insert(name.to_owned());
    }
}

/// Labels of the series with this name.
fn labels_of(metric: &str) -> BTreeSet<String> {
    let mut labels: BTreeSet<String> = ["cluster", "job", "instance"].map(str::to_owned).into();
    if let Some((level, rest)) = metric.split_once(':') {
        labels.extend(level.split('_').map(str::to_owned));
        if level == "slo" {
            // Sloth adds labels of its own.
            labels.extend(["id", "service", "slo", "window"].map(|l| format!("sloth_{l}")));
        }
        if rest.contains("_within:") {
            labels.insert("le".to_owned());
        }
        return labels;
    }
    if metric.ends_with("_bucket") {
        labels.insert("le".to_owned());
    }
    if let Some(f) = info(metric) {
        labels.extend(f.labels.iter().map(|l| l.name.to_owned()));
    }
    labels
}

fn info(metric: &str) -> Option<&'static Info> {
    family::ALL
        .iter()
        .copied()
        .find(|f| f.name == base_name(metric))
}

/// Values of a label, if the table lists them all: single words with commas between, before any further words.
fn closed_set(f: &Info, label: &str) -> Option<Vec<&'static str>> {
    let values = f.labels.iter().find(|l| l.name == label)?.values;
    let end = values.find([';', ':']).unwrap_or(values.len());
    let mut words = Vec::new();
    let mut depth = 0;
    let mut from = 0;
    for (at, c) in values[..end].char_indices().chain([(end, ',')]) {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                let word = &values[from..at];
                words.push(word.split('(').next().unwrap_or(word).trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    (words.iter().all(|w| !w.contains(' ')) && words.len() > 1).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_sets_are_told_from_words() {
        let set = |f: &Info, label| closed_set(f, label);
        assert_eq!(
            set(&family::LOG_BYTES.info, "target"),
            Some(vec!["main", "separate"])
        );
        assert_eq!(
            set(&family::OP_PHASE.info, "phase").map(|s| s.len()),
            Some(9)
        );
        assert_eq!(set(&family::BLOCK_BYTES.info, "device"), None);
        assert_eq!(set(&family::OP_ERRORS.info, "status"), None);
    }

    #[test]
    fn a_histogram_has_four_names() {
        assert_eq!(
            base_name("nfscope_io_size_bytes_bucket"),
            "nfscope_io_size_bytes"
        );
        assert_eq!(base_name("nfscope_io_size_bytes"), "nfscope_io_size_bytes");
        assert_eq!(base_name("nfscope_compound_ops"), "nfscope_compound_ops");
        assert_eq!(
            base_name("instance_version_op:nfscope_io_size_bytes_sum:rate5m"),
            "nfscope_io_size_bytes"
        );
    }
}
