//! `nfscope metrics`: the reference of all families, from the one table.

use nfscope_model::family::{ALL, Label};
use nfscope_model::{Info, Kind};
use std::fmt::Write;

/// Terminal text.
pub fn plain() -> String {
    let mut out = String::new();
    for f in ALL {
        let names: Vec<_> = f.labels.iter().map(|l| l.name).collect();
        let braces = if names.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", names.join(","))
        };
        let _ = writeln!(
            out,
            "{}{braces}  {}, since {}",
            f.name,
            kind(f.kind),
            f.since
        );
        let _ = writeln!(out, "    {}.", f.help);
        for l in f.labels {
            let _ = writeln!(out, "    {}: {}", l.name, l.values);
        }
        out.push('\n');
    }
    out.push_str(NOTES);
    out
}

/// A Markdown page.
pub fn markdown() -> String {
    let mut out = String::from("# Metrics of nfscope\n\nMade by `nfscope metrics --markdown`.\n\n");
    out.push_str(NOTES);
    out.push_str(
        "\n| family | type | labels | since | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for f in ALL {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            f.name,
            kind(f.kind),
            names(f),
            f.since,
            cell(f.help)
        );
    }
    out.push_str("\n## Labels\n\n| label | in | values |\n| --- | --- | --- |\n");
    for (label, families) in labels() {
        let families: Vec<_> = families.iter().map(|f| format!("`{f}`")).collect();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            label.name,
            families.join(", "),
            cell(label.values)
        );
    }
    out
}

const NOTES: &str = "\
Histograms have classic buckets at powers of two. A scraper that asks for protobuf gets native histograms with the full\n\
resolution of the probes. Counters and histograms count since the agent started. A family that this host cannot measure\n\
has no series; `nfscope_probe_attached` gives the reason.\n";

/// Each distinct label with the families that carry it.
fn labels() -> Vec<(&'static Label, Vec<&'static str>)> {
    let mut out: Vec<(&'static Label, Vec<&'static str>)> = Vec::new();
    for f in ALL {
        for l in f.labels {
            match out
                .iter_mut()
                .find(|(o, _)| o.name == l.name && o.values == l.values)
            {
                Some((_, families)) => families.push(f.name),
                None => out.push((l, vec![f.name])),
            }
        }
    }
    out
}

fn names(f: &Info) -> String {
    let names: Vec<_> = f.labels.iter().map(|l| format!("`{}`", l.name)).collect();
    names.join(", ")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(_) => "histogram",
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_pages_have_every_family() {
        let (plain, markdown) = (plain(), markdown());
        for f in ALL {
            assert!(plain.contains(f.name) && markdown.contains(&format!("| `{}` |", f.name)));
            assert!(plain.contains(f.help));
        }
    }
}
