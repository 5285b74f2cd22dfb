//! The page of `nfscope trace show`: reservations, plots and the text's tables.

use maud::{Markup, html};
use nfscope_baseline::html::document;
use nfscope_trace::describe::sketch::Distribution;
use nfscope_trace::describe::{Load, text};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 160.0;
/// Bars from the bottom of a plot up to its labels.
const BOTTOM: f64 = 130.0;

/// Page of this trace's load.
pub(super) fn page(name: &str, load: &Load) -> String {
    let title = format!("Load of {name}");
    let intervals = &load.course.intervals;
    let course = |value: fn(&nfscope_trace::describe::Interval) -> f64| -> Vec<(String, f64)> {
        let each = load.course.seconds;
        let all = intervals.iter().enumerate();
        all.map(|(i, interval)| (format!("{:.0} s", i as f64 * each), value(interval)))
            .collect()
    };
    let content = html! {
        h1 { (title) }
        @if !load.reservations.is_empty() {
            h2 { "Limits of this trace" }
            ul { @for reservation in &load.reservations { li { (reservation) } } }
        }
        (bars("Sizes of READs", &sizes(&load.read_sizes)))
        (bars("Sizes of WRITEs", &sizes(&load.write_sizes)))
        (bars("Operations over time", &course(|i| i.operations as f64)))
        (bars("Bytes of the working set so far", &course(|i| i.bytes_so_far)))
        h2 { "All numbers" }
        pre { (text::render(load)) }
    };
    document(&title, &content)
}

/// Counts of sizes, in buckets that double.
fn sizes(of: &Distribution) -> Vec<(String, f64)> {
    let mut doubled: Vec<(u64, f64)> = Vec::new();
    for bucket in of.buckets() {
        let from = match bucket.from {
            0 => 0,
            n => 1 << n.ilog2(),
        };
        match doubled.last_mut() {
            Some(last) if last.0 == from => last.1 += bucket.count as f64,
            _ => doubled.push((from, bucket.count as f64)),
        }
    }
    let named = doubled.into_iter();
    named
        .map(|(from, count)| (text::size(from as f64), count))
        .collect()
}

/// Plot of bars, of which the first, the last and some between have a label.
fn bars(title: &str, values: &[(String, f64)]) -> Markup {
    let most = values.iter().map(|v| v.1).fold(0.0, f64::max);
    if most <= 0.0 {
        return html! {};
    }
    let each = WIDTH / values.len() as f64;
    let labelled = values.len().div_ceil(6);
    let px = |v: f64| format!("{v:.1}");
    html! {
        figure {
            figcaption { (title) }
            svg viewBox={ "0 0 " (px(WIDTH)) " " (px(HEIGHT)) } role="img" {
                title { (title) }
                desc { (values.len()) " bars, the highest has " (px(most)) }
                @for (i, (label, value)) in values.iter().enumerate() {
                    @let height = (BOTTOM - 10.0) * value / most;
                    rect x=(px(i as f64 * each)) y=(px(BOTTOM - height)) width=(px((each - 1.0).max(0.5)))
                        height=(px(height)) fill="currentColor" opacity="0.6" {
                        title { (label) ": " (px(*value)) }
                    }
                    @if i % labelled == 0 {
                        text.tick x=(px(i as f64 * each)) y=(px(BOTTOM + 18.0)) { (label) }
                    }
                }
            }
        }
    }
}
