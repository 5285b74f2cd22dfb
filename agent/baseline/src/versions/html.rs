//! The comparison as a self-contained HTML page.

use crate::html::document;
use crate::html::frame::{Frame, WIDTH, figure, legend, px};
use crate::html::ticks;
use crate::versions::block::Metric;
use crate::versions::result::{LoadResult, Report, Row, Verdict};
use crate::versions::scale::Scale;
use crate::versions::text::{
    conditions, distances, factor, label, mean, probability, slope_sentence, too_few,
};
use maud::{Markup, html};

const LINE: f64 = 18.0;
const TOP: f64 = 34.0;
/// Left and right end of the scale of ratios.
const LEFT: f64 = 200.0;
const RIGHT: f64 = WIDTH - 12.0;

/// The page that `nfscope versions --html` writes.
pub fn page(r: &Report) -> String {
    let s = &r.setting;
    let content = html! {
        header {
            h1 { "NFS versions: " (s.source) }
            p.headline { (headline(r)) }
        }
        @if !s.warnings.is_empty() || !s.left_out.is_empty() {
            section.caveats aria-label="Caveats" {
                @for warning in &s.warnings { p { strong { "Warning: " } (warning) } }
                @for left in &s.left_out { p { strong { "Not measured: " } (left.what) ": " (left.why) } }
            }
        }
        @for load in &r.loads {
            h2 { (load.load) }
            p { (load.operation) }
            @if let Some(plot) = forest(load) { div.forest-plot { (plot) } }
            (table(load))
            @for sentence in distances(&load.distance) { p { (sentence) } }
        }
        @if let Some(scale) = &r.scale {
            h2 { "Throughput against threads" }
            div.plots { (lines(scale)) }
            ul { @for slope in &scale.slopes { li { (slope_sentence(slope, &scale.slopes)) } } }
        }
        h2 { "Method" }
        ul { @for sentence in conditions(r) { li { (sentence) } } }
    };
    document("nfscope versions", &content)
}

fn headline(r: &Report) -> String {
    if let Some(why) = too_few(r) {
        return why;
    }
    let throughput = |row: &&Row| row.metric == Metric::Throughput && row.ratio.is_some();
    let words = r.loads.iter().flat_map(|load| {
        let found = load.rows.iter().filter(throughput);
        found
            .filter(|row| matches!(row.verdict, Verdict::Better | Verdict::Worse))
            .map(|row| {
                let by = factor(row.ratio.unwrap_or(1.0));
                format!("{} over {}: {by}", load.load, row.version)
            })
    });
    let words: Vec<String> = words.collect();
    match (&words[..], r.setting.versions.first()) {
        ([], _) => "No evidence of a difference in throughput.".to_owned(),
        (all, Some(base)) => format!("Throughput over that of NFS {base}: {}.", all.join("; ")),
        (all, None) => all.join("; "),
    }
}

/// Each ratio with its interval on a line.
fn forest(load: &LoadResult) -> Option<Markup> {
    let sound = |r: &&Row| {
        r.interval
            .is_some_and(|ends| ends.iter().all(|v| v.is_finite() && *v > 0.0))
    };
    let shown: Vec<&Row> = load.rows.iter().filter(sound).collect();
    if shown.is_empty() {
        return None;
    }
    let ends = shown.iter().filter_map(|r| r.interval);
    let furthest = ends
        .map(|[low, high]| high.max(1.0 / low))
        .fold(1.1, f64::max);
    let scale = furthest.min(1000.0).ln() * 1.05;
    let x = |ratio: f64| {
        (LEFT + RIGHT) / 2.0 + (ratio.ln() / scale).clamp(-1.0, 1.0) * (RIGHT - LEFT) / 2.0
    };
    let height = TOP + LINE * shown.len() as f64 + 8.0;
    let drawing = html! {
        @for (tick, label) in ticks::factors(scale.exp()) {
            path.grid d={ "M" (px(x(tick))) " " (px(TOP - 6.0)) "V" (px(height - 8.0)) } {}
            text.tick x=(px(x(tick))) y="14" text-anchor="middle" { (label) }
        }
        path.axis d={ "M" (px(x(1.0))) " " (px(TOP - 6.0)) "V" (px(height - 8.0)) } {}
        @for (i, row) in shown.iter().enumerate() {
            @let y = TOP + LINE * (i as f64 + 0.5);
            @if let (Some([low, high]), Some(ratio)) = (row.interval, row.ratio) {
                text.tick x="0" y=(px(y + 4.0)) { (label("", row).trim()) }
                path class={ "forest " (class(row.verdict)) } d={ "M" (px(x(low))) " " (px(y)) "H" (px(x(high))) } {}
                circle class={ "forest " (class(row.verdict)) } cx=(px(x(ratio))) cy=(px(y)) r="3.5" {}
            }
        }
    };
    let words = format!("{} ratios with their 95 % intervals", shown.len());
    let title = format!(
        "{}: ratios to the first version, with 95 % intervals",
        load.load
    );
    Some(figure(&title, &words, height, drawing, html! {}))
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "gain",
        Verdict::Worse => "worse",
        _ => "nothing",
    }
}

fn table(load: &LoadResult) -> Markup {
    html! {
        table.rows {
            thead {
                tr {
                    @for head in ["quantity", "NFS", "value", "ratio", "p", "verdict"] { th scope="col" { (head) } }
                }
            }
            tbody {
                @for row in &load.rows {
                    tr class=(class(row.verdict)) {
                        th scope="row" { (row.metric.name()) }
                        td data-label="NFS" { (row.version) }
                        td data-label="value" { b { (mean(row.mean, |v| row.metric.shown(v))) } }
                        td data-label="ratio" {
                            (row.ratio.map_or(String::new(), factor))
                            @if let Some([low, high]) = row.interval { " " small { "95 % CI " (factor(low)) " .. " (factor(high)) } }
                        }
                        td data-label="p" { (row.p.map_or(String::new(), probability)) }
                        td.verdict data-label="verdict" {
                            (row.verdict.word())
                            @if let Some(finds) = row.finds { " " small { "finds " (factor(finds)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Throughput of the first two versions against threads. The list below has all of them.
fn lines(s: &Scale) -> Markup {
    let most = s
        .points
        .iter()
        .map(|p| p.throughput.mean)
        .fold(0.0, f64::max);
    let y = ticks::upwards(most, ticks::count);
    let numbers: Vec<f64> = s.points.iter().map(|p| f64::from(p.threads)).collect();
    let last = numbers.iter().copied().fold(1.0, f64::max);
    let frame = Frame {
        top: 70.0,
        bottom: 260.0,
        x: (0.0, last),
        y_max: y.last().map_or(1.0, |(v, _)| *v),
    };
    let x = ticks::upwards(last, ticks::count);
    let x: Vec<_> = x.into_iter().filter(|(v, _)| *v <= last).collect();
    let versions: Vec<&str> = s
        .slopes
        .iter()
        .map(|l| l.version.as_str())
        .take(2)
        .collect();
    let drawing = html! {
        (frame.axes(&x, &y, "operations per second"))
        @for (side, version) in versions.iter().enumerate() {
            (legend(side, &format!("NFS {version}")))
            @let path: Vec<String> = s.points.iter().filter(|p| p.version == *version)
                .map(|p| format!("{} {}", px(frame.x(f64::from(p.threads))), px(frame.y(p.throughput.mean)))).collect();
            path class={ "line " (crate::html::frame::SIDES[side.min(1)]) } d={ "M" (path.join("L")) } {}
        }
    };
    let words = format!("throughput of {} versions by threads", versions.len());
    figure(
        &format!("{}: throughput by threads", s.load),
        &words,
        290.0,
        drawing,
        html! {},
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::{Block, LeftOut, LoadBlocks, ScaleBlock, Setting, compare, scale, text};

    /// A report of ten rounds: 4.1 has half the throughput, and opens over 14 ms.
    fn report() -> Report {
        report_of(10)
    }

    fn report_of(rounds: usize) -> Report {
        let versions = ["3", "4.1"].map(str::to_owned).to_vec();
        let block = |i: usize, slower: f64| {
            Some(Block {
                host_ops: 1000,
                seconds: slower + 0.001 * (i % 3) as f64,
                latency_seconds: Some(0.126 * slower),
                p99_seconds: Some(0.2),
                waited_rpcs: Some(9),
                rpcs: [("READ".to_owned(), 1000)].into(),
                ..Block::default()
            })
        };
        let blocks = LoadBlocks {
            load: "reads".into(),
            operation: "an operation is a <read>".into(),
            rounds: (0..rounds)
                .map(|i| vec![block(i, 1.0), block(i, 2.0)])
                .collect(),
        };
        let (loads, comparisons) = compare(&versions, &[blocks], Some(13.9e-3));
        let points = [(1, 100.0), (2, 150.0), (4, 260.0)];
        let blocks = (0..3).flat_map(|round| {
            points.map(|(threads, throughput)| ScaleBlock {
                round,
                version: "3".into(),
                threads,
                throughput: throughput + round as f64,
            })
        });
        Report {
            scale: Some(scale("reads", &versions, &blocks.collect::<Vec<_>>())),
            setting: Setting {
                source: "nfs1:/srv".into(),
                versions,
                rounds,
                threads: 1,
                until_ci: Some(0.05),
                reached: Some(false),
                warnings: vec!["the server is this host".into()],
                left_out: vec![LeftOut {
                    what: "4.2".into(),
                    why: "Protocol not supported".into(),
                }],
                ..Setting::default()
            },
            loads,
            comparisons,
        }
    }

    #[test]
    fn few_rounds_are_no_evidence_of_equality() {
        for rounds in 1..6 {
            let mut report = report_of(rounds);
            report.setting.until_ci = None;
            let (html, plain) = (page(&report), text(&report).replace('\n', " "));
            let words = "6 are the fewest that have intervals. Fix: leave out --rounds, or give at least 6.";
            assert!(html.contains(words), "{html}");
            assert!(plain.contains(words), "{plain}");
            assert!(!html.contains("No evidence"), "{html}");
            report.setting.versions.truncate(1);
            assert!(page(&report).contains("Only NFS 3 was measured"));
        }
        let mut ended = report_of(3);
        ended.comparisons = 0;
        assert!(page(&ended).contains("Fix: raise --max-duration."));
    }

    #[test]
    fn page_and_text_say_the_same() {
        let (html, plain) = (page(&report()), text(&report()));
        for words in [
            "0.50x",
            "worse",
            "4.2: Protocol not supported",
            "the server is this host",
            "NFS 3: each thread more adds",
        ] {
            assert!(html.contains(words), "{words}: {html}");
            assert!(
                plain.replace("\n              ", " ").contains(words),
                "{words}: {plain}"
            );
        }
        // The text says how the intervals of means were made, because a ramp has some, too.
        let words =
            "They are by batch means, and wider, where neighbouring rounds resemble each other";
        let one_line: Vec<&str> = plain.split_whitespace().collect();
        assert!(html.contains(words) && one_line.join(" ").contains(words));
        let mut ramp = report();
        (ramp.loads, ramp.comparisons) = (Vec::new(), 0);
        assert!(page(&ramp).contains(words));
        ramp.scale = None;
        assert!(!page(&ramp).contains(words));
        assert!(html.contains("Throughput over that of NFS 3: reads over 4.1: 0.50x."));
        // A name is escaped, whatever is in it.
        assert!(html.contains("a &lt;read&gt;") && !html.contains("<read>"));
        assert!(
            plain.contains("The target of ± 5.0 % was not reached."),
            "{plain}"
        );
        assert!(
            plain.contains("9.0 round trips of 13.9 ms = 125 ms"),
            "{plain}"
        );
        assert!(!html.contains("NaN") && !html.contains("inf\""), "{html}");
    }
}
