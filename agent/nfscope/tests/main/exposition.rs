//! Whole expositions of a literal snapshot, in all three formats.

use crate::fixture::{golden, snapshot};
use nfscope::exposition::{Format, describe, encode};
use nfscope_model::{Kind, Sample, Snapshot, family};
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
fn classic_text() {
    let text = text(Format::Plain);
    golden("metrics.txt", &text);
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    assert!(text.contains("# TYPE nfscope_op_errors_total counter\n"));
}

#[test]
fn openmetrics_text() {
    let text = text(Format::OpenMetrics);
    golden("metrics.openmetrics.txt", &text);
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("# TYPE nfscope_op_errors counter\n"));
    assert!(text.contains(
        "# TYPE nfscope_rpc_phase_seconds counter\n# UNIT nfscope_rpc_phase_seconds seconds\n"
    ));
}

#[test]
fn protobuf_has_both_faces_of_every_histogram() {
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
        assert_eq!(f.metric.len(), series.len(), "{}", f.name);
        for (m, s) in f.metric.iter().zip(series) {
            let values: Vec<_> = m.label.iter().map(|l| l.value.clone()).collect();
            assert_eq!(values, s.labels);
            match &s.sample {
                Sample::Counter(v) => assert_eq!(m.counter.as_ref().unwrap().value, *v),
                Sample::Gauge(v) => assert_eq!(m.gauge.as_ref().unwrap().value, *v),
                Sample::Histogram(h) => {
                    let p = m.histogram.as_ref().unwrap();
                    assert_eq!(p.sample_count, h.count());
                    assert_eq!(p.sample_sum, h.sum);
                    assert_eq!(p.bucket.last().unwrap().cumulative_count, h.count());
                    assert_eq!(p.schema, i32::from(h.scheme.schema));
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
fn a_host_that_measures_nothing_still_says_what_runs() {
    let mut s = Snapshot::default();
    describe(&mut s, Duration::ZERO);
    assert_eq!(
        s.value(&family::BUILD_INFO, [nfscope::VERSION, nfscope::REVISION]),
        Some(1.0)
    );
    let text = String::from_utf8(encode(&Arc::new(s), Format::Plain).unwrap()).unwrap();
    assert_eq!(text.lines().filter(|l| !l.starts_with('#')).count(), 2);
}

#[test]
fn the_reference_page_is_the_table_in_the_code() {
    let page = nfscope::commands::metrics::markdown();
    golden("../../../../docs/metrics.md", &page);
}
