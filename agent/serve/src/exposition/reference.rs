//! Reference of all families, from the metric table: for `nfscope metrics` and for the agent's own page.

use crate::exposition::classic_edges::GROUPS;
use crate::exposition::collectors::families;
use nfscope_model::family::{ALL, Label};
use nfscope_model::{Info, Kind};
use nfscope_source::on_illumos::on_illumos;
use std::fmt::Write;

/// Reference as text for a terminal.
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
        let _ = writeln!(out, "    On illumos: {}.", on_illumos(f));
        out.push('\n');
    }
    out.push_str(NOTES);
    out
}

/// Reference as a Markdown page.
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
    out.push_str(PARTS);
    out.push_str("\n| collector | families |\n| --- | --- |\n");
    for (collector, its) in families() {
        let its: Vec<_> = its.iter().map(|f| format!("`{f}`")).collect();
        let _ = writeln!(out, "| `{collector}` | {} |", its.join(", "));
    }
    out.push_str(ILLUMOS);
    out.push_str("\n| family | on illumos |\n| --- | --- |\n");
    for f in ALL {
        let _ = writeln!(
            out,
            "| `{}` | {} |",
            f.name,
            cell(&on_illumos(f).to_string())
        );
    }
    out.push_str(BUCKETS);
    out.push_str("\n| families | edges in text | why |\n| --- | --- | --- |\n");
    for g in GROUPS {
        let _ = writeln!(out, "| {} | {} | {} |", g.families, g.text, g.why);
    }
    out.push_str(EDGES);
    out
}

const NOTES: &str = "\
Histograms have few classic buckets. A scraper that asks for protobuf gets native histograms with four buckets for each power\n\
of two. Counters and histograms count since the agent started. A family that this host cannot measure has no series;\n\
`/probes` and `nfscope check` give the reason.\n";

const PARTS: &str = "
## Parts of a scrape

`/metrics?collect[]=op&collect[]=block` has the families of these collectors alone, and `/metrics?exclude[]=clients` has all others.
In Prometheus, `params` of a scrape configuration sets them.
";

const ILLUMOS: &str = "
## On illumos

The families above are those of Linux. [illumos.md](illumos.md) has the same server on illumos. A family with *no* has no series there.
Functions of the kernel (`fbt`) are private to a release: a script that needs one which is missing does not run.
";

const BUCKETS: &str = "
## Buckets

The probes count durations in 110 buckets. Their edges are at 2^(n/4) s from 0.95 µs to 64 s, and at 100 µs, 1, 10 and 100 ms. An
objective of 1 ms, 10 ms, 100 ms or 1 s therefore has an exact count:

```
sum(rate(nfscope_op_duration_seconds_bucket{op=\"write\",le=\"0.01\"}[5m])) / sum(rate(nfscope_op_duration_seconds_count{op=\"write\"}[5m]))
```

The edge of 1 s is `le=\"1.0\"`. Native histograms (schema 2) have no edges at powers of ten. The two halves of a bucket that such an edge
divides are one bucket there, and `histogram_fraction()` interpolates inside of it.

The text formats carry classic buckets only. They have few edges, so that a scrape of a server with 25 operations in three versions,
100 clients, 100 exports and 20 disks has fewer than 2,000 samples:
";

const EDGES: &str = "
- A family has the same edges in each of its series, on every host and at any time. Prometheus reads a missing bucket as 0. With
  edges that depend on the values, `sum by (le)` over several servers would count too little.
- A histogram by version or by disk has a series from its first value on. A version that nobody speaks has none. Every other
  histogram begins with zeros, so that `rate()` sees its first value.
- `histogram_quantile()` interpolates between classic edges that are a factor of ten apart. Use native histograms for quantiles, and
  classic edges for objectives.
";

/// Each distinct label with the families that have it.
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
