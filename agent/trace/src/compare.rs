//! Distance of two loads: of two recordings, or of a trace and the synthetic load that was fitted to it.

use crate::describe::Load;
use crate::describe::sketch::Distribution;
use nfscope_text::table::columns;
use nfscope_text::wrap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Distance of two loads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Reservations of either trace.
    pub reservations: Vec<String>,
    /// Operations of each kind on both sides.
    pub kinds: Vec<KindDifference>,
    /// Other quantities.
    pub quantities: Vec<Quantity>,
}

/// Operations of one kind on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindDifference {
    /// Name of the operation.
    pub op: String,
    /// Version of NFS.
    pub version: String,
    /// Operations of the first load.
    pub first: u64,
    /// Operations of the second load.
    pub second: u64,
}

/// Quantity of both loads, and the distance of these.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantity {
    /// Name, the same in text and JSON.
    pub name: &'static str,
    /// Value of the first load; `None` where it is not known, or the distance is one of whole distributions.
    pub first: Option<f64>,
    /// Value of the second load.
    pub second: Option<f64>,
    /// Distance; `None` where either side does not have the quantity.
    pub distance: Option<f64>,
    /// Kind of the distance.
    pub kind: DistanceKind,
}

/// Kind of a distance; all are 0 for equal loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DistanceKind {
    /// Second over first, less 1.
    Relative,
    /// Second less first, of parts of a whole.
    Difference,
    /// Largest difference of the cumulative distributions (Kolmogorov-Smirnov).
    KolmogorovSmirnov,
    /// Half of the sum of the differences of all parts (total variation): the part of the operations that would have to be others.
    TotalVariation,
}

/// Compares two loads.
pub fn compare(first: &Load, second: &Load) -> Comparison {
    let mut kinds: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for kind in &first.mix {
        kinds.entry((&kind.op, &kind.version)).or_default().0 = kind.operations;
    }
    for kind in &second.mix {
        kinds.entry((&kind.op, &kind.version)).or_default().1 = kind.operations;
    }
    let mut kinds: Vec<_> = (kinds.into_iter())
        .map(|((op, version), (first, second))| KindDifference {
            op: op.to_owned(),
            version: version.to_owned(),
            first,
            second,
        })
        .collect();
    kinds.sort_by_key(|k| std::cmp::Reverse(k.first.max(k.second)));
    let reservations = [("first", first), ("second", second)];
    let reservations = reservations.iter().flat_map(|(side, load)| {
        let all = load.reservations.iter();
        all.map(move |r| format!("{side} trace: {r}"))
    });
    Comparison {
        reservations: reservations.collect(),
        quantities: quantities(first, second, &kinds),
        kinds,
    }
}

fn quantities(a: &Load, b: &Load, kinds: &[KindDifference]) -> Vec<Quantity> {
    let rate = |l: &Load| (l.seconds > 0.0).then(|| l.operations as f64 / l.seconds);
    let bytes = |l: &Load| {
        let bytes: u64 = l.mix.iter().map(|k| k.bytes).sum();
        (l.seconds > 0.0).then(|| bytes as f64 / l.seconds)
    };
    let known = |v: f64| Some(v).filter(|v| *v > 0.0);
    let total = |side: fn(&KindDifference) -> u64| kinds.iter().map(side).sum::<u64>() as f64;
    let (first, second) = (total(|k| k.first), total(|k| k.second));
    let variation = (first > 0.0 && second > 0.0).then(|| {
        let parts = kinds
            .iter()
            .map(|k| (k.first as f64 / first - k.second as f64 / second).abs());
        parts.sum::<f64>() / 2.0
    });
    let durable = |l: &Load| {
        let s = &l.stabilities;
        let all = s.unstable + s.data_sync + s.file_sync;
        (all > 0).then(|| 1.0 - s.unstable as f64 / all as f64)
    };
    let mut all = vec![
        relative(
            "operations",
            known(a.operations as f64),
            known(b.operations as f64),
        ),
        relative("operations_per_second", rate(a), rate(b)),
        relative("bytes_per_second", bytes(a), bytes(b)),
        Quantity {
            name: "mix",
            first: None,
            second: None,
            distance: variation,
            kind: DistanceKind::TotalVariation,
        },
        distributions("read_sizes", &a.read_sizes, &b.read_sizes),
        distributions("write_sizes", &a.write_sizes, &b.write_sizes),
        distributions("gaps_between_arrivals", &a.gaps, &b.gaps),
        difference(
            "reads_in_sequence",
            a.files.reads.sequential_part(),
            b.files.reads.sequential_part(),
        ),
        difference(
            "writes_in_sequence",
            a.files.writes.sequential_part(),
            b.files.writes.sequential_part(),
        ),
        difference("durable_writes", durable(a), durable(b)),
        distributions(
            "writes_for_each_commit",
            &a.files.commits.writes,
            &b.files.commits.writes,
        ),
        relative(
            "files_in_working_set",
            known(a.course.files),
            known(b.course.files),
        ),
        relative(
            "bytes_in_working_set",
            known(a.course.bytes),
            known(b.course.bytes),
        ),
    ];
    const DISPERSIONS: [&str; 5] = [
        "dispersion_in_10_ms",
        "dispersion_in_100_ms",
        "dispersion_in_1_s",
        "dispersion_in_10_s",
        "dispersion_in_60_s",
    ];
    for ((a, b), name) in a.bursts.iter().zip(&b.bursts).zip(DISPERSIONS) {
        all.push(relative(name, a.dispersion, b.dispersion));
    }
    all
}

fn relative(name: &'static str, first: Option<f64>, second: Option<f64>) -> Quantity {
    let distance = first.zip(second).filter(|(first, _)| *first != 0.0);
    Quantity {
        name,
        first,
        second,
        distance: distance.map(|(first, second)| second / first - 1.0),
        kind: DistanceKind::Relative,
    }
}

fn difference(name: &'static str, first: Option<f64>, second: Option<f64>) -> Quantity {
    Quantity {
        name,
        first,
        second,
        distance: first.zip(second).map(|(first, second)| second - first),
        kind: DistanceKind::Difference,
    }
}

fn distributions(name: &'static str, first: &Distribution, second: &Distribution) -> Quantity {
    Quantity {
        name,
        first: first.mean(),
        second: second.mean(),
        distance: first.distance(second),
        kind: DistanceKind::KolmogorovSmirnov,
    }
}

/// How a comparison is read, below its tables.
const READING: &str = "\
Distances are 0 for equal loads. A percentage with a sign is the second over the
first, less 1. KS is the largest difference of the two cumulative distributions
(Kolmogorov-Smirnov): at KS 0.1 there is a size or gap that 10 % more of the
operations of one load stay below; first and second are then means. TV is the
part of the operations that would have to be of another kind (total variation).
Dispersion is that of the operations in an interval: variance over mean.
";

/// The comparison as text.
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    for reservation in &comparison.reservations {
        wrap::wrap(&mut out, 78, "! ", reservation);
    }
    if !comparison.reservations.is_empty() {
        out.push('\n');
    }
    let mut rows = vec![["op", "version", "first", "second", "distance"].map(str::to_owned)];
    for k in &comparison.kinds {
        let distance = match k.first {
            0 => "?".to_owned(),
            first => format!("{:+.1} %", 100.0 * (k.second as f64 / first as f64 - 1.0)),
        };
        rows.push([
            k.op.clone(),
            k.version.clone(),
            k.first.to_string(),
            k.second.to_string(),
            distance,
        ]);
    }
    let _ = writeln!(out, "{}", columns(&rows));
    let mut rows = vec![["quantity", "first", "second", "distance"].map(str::to_owned)];
    for q in &comparison.quantities {
        let number = |v: Option<f64>| match (v, q.kind) {
            (None, DistanceKind::TotalVariation) => String::new(),
            (None, _) => "?".to_owned(),
            (Some(v), DistanceKind::Difference) => format!("{:.1} %", 100.0 * v),
            (Some(v), _) if v >= 100.0 => format!("{v:.0}"),
            (Some(v), _) => format!("{v:.2}"),
        };
        let distance = match (q.distance, q.kind) {
            (None, _) => "?".to_owned(),
            (Some(d), DistanceKind::Relative) => format!("{:+.1} %", 100.0 * d),
            (Some(d), DistanceKind::Difference) => format!("{:+.1} points", 100.0 * d),
            (Some(d), DistanceKind::KolmogorovSmirnov) => format!("KS {d:.3}"),
            (Some(d), DistanceKind::TotalVariation) => format!("TV {d:.3}"),
        };
        rows.push([
            q.name.replace('_', " "),
            number(q.first),
            number(q.second),
            distance,
        ]);
    }
    let _ = writeln!(out, "{}", columns(&rows));
    out.push_str(READING);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::describe;
    use crate::example;
    use crate::header::{Header, Host};

    fn load(seed: u64, slower: u64) -> Load {
        let mut header = Header::new(Host::Server, "test");
        header.clients = (0..example::CLIENTS).map(|i| format!("c{i}")).collect();
        let operations = example::mixed(seed).take(40_000).map(|mut o| {
            o.arrival *= slower;
            Ok(o)
        });
        describe(&header, operations).unwrap()
    }

    fn distance(c: &Comparison, name: &str) -> f64 {
        let found = c.quantities.iter().find(|q| q.name == name);
        found.unwrap().distance.unwrap()
    }

    #[test]
    fn a_load_has_no_distance_from_itself() {
        let load = load(1, 1);
        let c = compare(&load, &load);
        assert!(
            c.quantities
                .iter()
                .all(|q| q.distance.is_none_or(|d| d == 0.0)),
            "{c:?}"
        );
        assert!(c.kinds.iter().all(|k| k.first == k.second));
    }

    #[test]
    fn the_same_mix_at_half_the_rate_is_far_in_time_alone() {
        let c = compare(&load(1, 1), &load(2, 2));
        assert!(distance(&c, "mix") < 0.02);
        assert!(distance(&c, "read_sizes") < 0.03);
        assert!((distance(&c, "operations_per_second") + 0.5).abs() < 0.1);
        assert!(distance(&c, "gaps_between_arrivals") > 0.15);
        let text = render(&c);
        assert!(
            text.contains("Kolmogorov-Smirnov") && text.contains("mix"),
            "{text}"
        );
    }
}
