//! Whole expositions of a literal snapshot, in all three formats.

use crate::fixture::{golden, histogram, large_server, snapshot};
use nfscope_model::{Kind, Sample, Scheme, Snapshot, family};
use nfscope_serve::exposition::{Format, describe, encode};
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;
use prost::Message;
use std::sync::Arc;
use std::time::Duration;

fn described() -> Arc<Snapshot> {
    let mut s = snapshot(2);
    describe(&mut s, Duration::from_millis(2));
    Arc::new(s)
}

fn text(format: Format) -> String {
    String::from_utf8(encode(&described(), format).unwrap()).unwrap()
}

#[test]
fn classic_text_is_the_golden_file() {
    let text = text(Format::Plain);
    golden("metrics.txt", &text);
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    assert!(text.contains("# TYPE nfscope_op_errors_total counter\n"));
}

#[test]
fn openmetrics_text_is_the_golden_file() {
    let text = text(Format::OpenMetrics);
    golden("metrics.openmetrics.txt", &text);
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("# TYPE nfscope_op_errors counter\n"));
    assert!(text.contains(
        "# TYPE nfscope_rpc_phase_seconds counter\n# UNIT nfscope_rpc_phase_seconds seconds\n"
    ));
}

#[test]
fn protobuf_has_classic_and_native_buckets_of_every_histogram() {
    let snapshot = described();
    let bytes = encode(&snapshot, Format::Protobuf).unwrap();
    let mut rest = bytes.as_slice();
    let mut families = Vec::new();
    while !rest.is_empty() {
        families.push(MetricFamily::decode_length_delimited(&mut rest).unwrap());
    }
    let names: Vec<_> = families.iter().map(|f| f.name.as_str()).collect();
    let expected: Vec<_> = snapshot.filled().map(|(i, _)| i.name).collect();
    assert_eq!(names, expected);
    for (f, (info, series)) in families.iter().zip(snapshot.filled()) {
        // Empty histogram of an operation that no client uses: left out of the exposition.
        let series = series.iter().filter(|s| *s.labels != ["3", "lookup"]);
        let series: Vec<_> = series.collect();
        assert_eq!(f.metric.len(), series.len(), "{}", f.name);
        for (m, s) in f.metric.iter().zip(series) {
            let values: Vec<_> = m.label.iter().map(|l| l.value.clone()).collect();
            assert_eq!(values[..], *s.labels);
            match &s.sample {
                Sample::Counter(v) => assert_eq!(m.counter.as_ref().unwrap().value, *v),
                Sample::Gauge(v) => assert_eq!(m.gauge.as_ref().unwrap().value, *v),
                Sample::Histogram(h) => {
                    let p = m.histogram.as_ref().unwrap();
                    assert_eq!(p.sample_count, h.count());
                    assert_eq!(p.sample_sum, h.sum);
                    assert_eq!(p.bucket.last().unwrap().cumulative_count, h.count());
                    assert_eq!(p.schema, i32::from(h.scheme.schema));
                    // Halves of a bucket that is split at a power of ten are one bucket of the native histogram.
                    let plain = h.undivided();
                    let used = plain.counts.iter().skip(1).filter(|n| **n > 0).count();
                    let told = p.positive_delta.iter().scan(0, |one, d| {
                        *one += d;
                        Some(*one)
                    });
                    assert_eq!(told.filter(|n| *n > 0).count(), used);
                    let (mut total, mut one) = (p.zero_count as i64, 0);
                    for d in &p.positive_delta {
                        one += d;
                        total += one;
                    }
                    assert_eq!(total, h.count() as i64);
                }
            }
        }
        assert_eq!(
            matches!(info.kind, Kind::Histogram(_)),
            f.metric[0].histogram.is_some()
        );
    }
}

#[test]
fn a_host_without_measurements_exposes_its_build() {
    let mut s = Snapshot::default();
    describe(&mut s, Duration::ZERO);
    assert_eq!(
        s.value(
            &family::BUILD_INFO,
            [
                nfscope_api::build_info::VERSION,
                nfscope_api::build_info::REVISION
            ]
        ),
        Some(1.0)
    );
    let text = String::from_utf8(encode(&Arc::new(s), Format::Plain).unwrap()).unwrap();
    assert_eq!(text.lines().filter(|l| !l.starts_with('#')).count(), 2);
}

#[test]
fn the_reference_page_is_the_table_in_the_code() {
    let page = nfscope_serve::exposition::reference::markdown();
    golden("../../../../docs/metrics.md", &page);
}

fn samples(s: Snapshot, format: Format) -> Vec<String> {
    let text = String::from_utf8(encode(&Arc::new(s), format).unwrap()).unwrap();
    let samples = text.lines().filter(|l| !l.starts_with('#'));
    samples.map(str::to_owned).collect()
}

#[test]
fn a_scrape_of_a_large_server_stays_small() {
    let mut s = large_server::snapshot();
    describe(&mut s, Duration::from_millis(20));
    for (family, series) in [
        (
            &family::OP_DURATION.info,
            large_server::OPERATIONS * large_server::VERSIONS.len(),
        ),
        (&family::CLIENT_OPS.info, large_server::CLIENTS + 1),
        (&family::EXPORT_OPS.info, large_server::EXPORTS + 1),
        (&family::BLOCK_INFLIGHT.info, large_server::DISKS),
    ] {
        assert_eq!(s.series(family).len(), series, "{}", family.name);
    }
    for format in [Format::Plain, Format::OpenMetrics] {
        let all = samples(s.clone(), format);
        let mut by_family = std::collections::BTreeMap::new();
        for line in &all {
            let name = line.split(['{', ' ']).next().unwrap();
            *by_family.entry(name).or_insert(0) += 1;
        }
        println!("{} samples as {format:?}", all.len());
        assert!(all.len() <= 2_000, "{}: {by_family:#?}", all.len());
    }
}

/// Objectives count the values up to an edge: exact at the edge, and a nanosecond above it.
#[test]
fn objectives_are_counted_exactly() {
    let edges = [0.001, 0.01, 0.1, 1.0];
    let values: Vec<(f64, u64)> = edges
        .iter()
        .flat_map(|e| [(e - 1e-9, 1), (*e, 2), (e + 1e-9, 4)])
        .collect();
    let mut s = Snapshot::default();
    let labels = ["3", "write"];
    s.histogram(
        &family::OP_DURATION,
        labels,
        histogram(Scheme::TIME, &values),
    );
    s.histogram(
        &family::RPC_DURATION,
        ["3"],
        histogram(Scheme::TIME, &values),
    );
    for format in [Format::Plain, Format::OpenMetrics] {
        let all = samples(s.clone(), format);
        for (series, labels) in [
            ("nfscope_op_duration_seconds", r#"version="3",op="write""#),
            ("nfscope_rpc_duration_seconds", r#"version="3""#),
        ] {
            for (le, count) in [
                ("0.001", 3),
                ("0.01", 10),
                ("0.1", 17),
                ("1.0", 24),
                ("+Inf", 28),
            ] {
                let line = format!("{series}_bucket{{le=\"{le}\",{labels}}} {count}");
                assert!(all.contains(&line), "{line}\n{all:#?}");
            }
        }
    }
}

/// Disks have a rate and a mean in text formats. Their distribution is in native histograms.
#[test]
fn disks_are_summaries_in_text() {
    for format in [Format::Plain, Format::OpenMetrics] {
        let text = text(format);
        for name in [
            family::BLOCK_QUEUE.info.name,
            family::BLOCK_DEVICE.info.name,
        ] {
            assert!(text.contains(&format!("# TYPE {name} summary\n")));
            assert!(!text.contains(&format!("{name}_bucket")));
            for part in ["sum", "count"] {
                assert!(text.contains(&format!("{name}_{part}{{device=\"vda\"")));
            }
        }
        assert!(text.contains("# TYPE nfscope_op_duration_seconds histogram\n"));
    }
}
