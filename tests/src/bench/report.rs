//! What was measured, as tables for a terminal or in Markdown.

use std::collections::BTreeMap;

use super::agent::{Scraped, Started};
use super::load::{Case, Client, Measure, Program};
use super::phases::{Phase, With};
use super::table::{Out, thousands};
use super::{Options, Results, median};

/// The agent may add so much to a mount's 4 KiB sync write.
const SHARE: f64 = 0.02;
/// The agent may cost so much of what the bpftrace script costs.
const OF_PEER: f64 = 1.0 / 3.0;
const START: f64 = 0.5;
const RESIDENT_KIB: u64 = 12 * 1024;
const BINARY: u64 = 6_000_000;

pub(super) fn render(options: &Options, results: &Results) -> String {
    let mut out = Out::new(options.markdown);
    let compared = compare(options, results);
    out.paragraph(&format!(
        "Instructions per operation on Linux {}, client and server together; in brackets the lowest and the highest \
         of {} measurements of {} operations. Over loopback, from and to memory (tmpfs).",
        options.kernel,
        results.phases.iter().filter(|p| p.with == With::Agent).count(),
        options.ops
    ));
    costs(&mut out, &compared);
    if !options.quick {
        out.paragraph(if options.without_queue {
            "The bpftrace script here does not time the queue, and so does less than the agent."
        } else {
            "Most of what the bpftrace script costs is its queue time: svc_xprt_enqueue is traced about eight times a \
             request. Compare --without-queue before quoting the ratio."
        });
    }
    targets(&mut out, &compared);
    for phase in &results.per_program {
        programs(&mut out, phase);
    }
    resources(&mut out, results);
    out.text
}

/// A figure over the rounds.
struct Figure {
    median: f64,
    least: f64,
    most: f64,
}

impl Figure {
    fn of(mut numbers: Vec<f64>) -> Option<Figure> {
        let median = median(&mut numbers);
        Some(Figure {
            median,
            least: *numbers.first()?,
            most: *numbers.last()?,
        })
    }

    fn minus(self, base: f64) -> Figure {
        Figure {
            median: self.median - base,
            least: self.least - base,
            most: self.most - base,
        }
    }

    fn show(&self) -> String {
        let round = |x: f64| thousands(x.round());
        format!(
            "{} [{}..{}]",
            round(self.median),
            round(self.least),
            round(self.most)
        )
    }
}

struct Row {
    case: Case,
    base: Figure,
    agent: Figure,
    peer: Option<Figure>,
}

impl Row {
    fn share(&self, figure: &Figure) -> f64 {
        figure.median / self.base.median
    }

    /// Whether a limit holds, and whether the measurements agree about it.
    fn verdict(met: bool, least: f64, most: f64, limit: f64) -> String {
        let unsure = least <= limit && limit < most;
        let word = if met { "met" } else { "MISSED" };
        format!("{word}{}", if unsure { ", within the spread" } else { "" })
    }

    fn of_peer(&self) -> Option<f64> {
        Some(self.agent.median / self.peer.as_ref()?.median)
    }
}

fn compare(options: &Options, results: &Results) -> Vec<Row> {
    let figure = |case: Case, with: With| {
        let phases = results.phases.iter().filter(|p| p.with == with);
        let measures = phases.flat_map(|p| &p.measures).filter(|m| m.case == case);
        Figure::of(measures.map(Measure::per_op).collect())
    };
    Case::all(options.quick, &options.clients())
        .into_iter()
        .filter_map(|case| {
            let base = figure(case, With::Nothing)?;
            Some(Row {
                agent: figure(case, With::Agent)?.minus(base.median),
                peer: figure(case, With::Bpftrace).map(|f| f.minus(base.median)),
                base,
                case,
            })
        })
        .collect()
}

fn costs(out: &mut Out, compared: &[Row]) {
    let mut rows = Vec::new();
    for row in compared {
        let peer = row.peer.as_ref();
        let percent = |figure: &Figure| format!("{:.2} %", 100.0 * row.share(figure));
        let dash = || "-".to_owned();
        rows.push(vec![
            row.case.operation().to_owned(),
            version(row.case).to_owned(),
            row.case.client.name().to_owned(),
            row.base.show(),
            row.agent.show(),
            percent(&row.agent),
            peer.map_or_else(dash, Figure::show),
            peer.map_or_else(dash, percent),
            row.of_peer().map_or_else(dash, |r| format!("{r:.2}")),
        ]);
    }
    let head = [
        "operation",
        "version",
        "client",
        "alone",
        "+ agent",
        "",
        "+ bpftrace",
        "",
        "agent / bpftrace",
    ];
    out.table(&head, 3, &rows);
    out.paragraph(
        "mount: the kernel's client through a mount. raw: the lab's own client on a TCP connection, hardly more than \
         the server itself.",
    );
}

fn targets(out: &mut Out, compared: &[Row]) {
    let mut rows = Vec::new();
    let mut target = |what: String, limit: String, measured: String, verdict: String| {
        rows.push(vec![what, limit, measured, verdict]);
    };
    for row in compared {
        let what = format!(
            "{} {}, {}",
            version(row.case),
            row.case.operation(),
            row.case.client.name()
        );
        if row.case.write && row.case.client == Client::Mount {
            let share = row.share(&row.agent);
            target(
                format!("agent adds to a {what}"),
                format!("{:.0} %", 100.0 * SHARE),
                format!("{:.2} %", 100.0 * share),
                Row::verdict(
                    share <= SHARE,
                    row.agent.least / row.base.median,
                    row.agent.most / row.base.median,
                    SHARE,
                ),
            );
        }
        if let (Some(ratio), Some(peer)) = (row.of_peer(), &row.peer) {
            target(
                format!("agent / bpftrace, {what}"),
                format!("{OF_PEER:.2}"),
                format!("{ratio:.2}"),
                Row::verdict(
                    ratio <= OF_PEER,
                    row.agent.least / peer.most,
                    row.agent.most / peer.least,
                    OF_PEER,
                ),
            );
        }
    }
    out.table(&["target", "at most", "measured", ""], 1, &rows);
}

fn programs(out: &mut Out, phase: &Phase) {
    out.paragraph(&format!(
        "Programs, {}: instructions inside the programs only, with what counting them takes (some of each run).",
        phase.with.name()
    ));
    let mut rows = Vec::new();
    for measure in &phase.measures {
        let case = measure.case;
        let name = format!(
            "{} {}, {}",
            version(case),
            case.operation(),
            case.client.name()
        );
        let mut by_cost: Vec<(&str, Program)> = merged(&measure.programs).into_iter().collect();
        by_cost.sort_by_key(|(_, program)| std::cmp::Reverse(program.ns));
        let mut total = Program::default();
        for (_, program) in &by_cost {
            total.runs += program.runs;
            total.ns += program.ns;
        }
        by_cost.push(("all", total));
        for (program, cost) in by_cost {
            let (runs, ns, ops) = (cost.runs as f64, cost.ns as f64, measure.ops as f64);
            // What ran for something else: a lease, a disk's poll.
            if runs / ops < 0.02 {
                continue;
            }
            rows.push(vec![
                name.clone(),
                program.to_owned(),
                format!("{:.2}", runs / ops),
                thousands((ns / runs).round()),
                thousands((ns / ops).round()),
            ]);
        }
    }
    let head = ["operation", "program", "runs", "each", "per operation"];
    out.table(&head, 2, &rows);
}

/// Programs of one name together.
fn merged(programs: &BTreeMap<String, Program>) -> BTreeMap<&str, Program> {
    let mut all: BTreeMap<&str, Program> = BTreeMap::new();
    for (name, program) in programs {
        let name = name.split('#').next().unwrap_or(name);
        let entry = all.entry(name).or_default();
        entry.runs += program.runs;
        entry.ns += program.ns;
    }
    all
}

fn resources(out: &mut Out, results: &Results) {
    let mut rows = Vec::new();
    let megabytes = |bytes: u64| format!("{:.2} MB", bytes as f64 / 1e6);
    let met = |met: bool| if met { "met" } else { "MISSED" }.to_owned();
    rows.push(vec![
        "release binary".to_owned(),
        megabytes(results.binary),
        format!(
            "at most {}: {}",
            megabytes(BINARY),
            met(results.binary <= BINARY)
        ),
    ]);
    if let Some((started, scraped)) = &results.native {
        rows.push(vec![
            format!("this host: start until attached, {}", attached(started)),
            milliseconds(started.attached),
            format!(
                "at most {}: {}",
                milliseconds(START),
                met(started.attached <= START)
            ),
        ]);
        for (format, time) in scrapes(scraped) {
            rows.push(vec![format!("this host: {format}"), time, String::new()]);
        }
    }
    if let Some((started, scraped)) = &results.inside {
        rows.push(vec![
            format!("machine: start until attached, {}", attached(started)),
            format!("{:.0} million instructions", started.busy * 1e3),
            String::new(),
        ]);
        for scrape in &scraped.scrapes {
            rows.push(vec![
                format!(
                    "machine: a scrape, {}, {} bytes",
                    scrape.format,
                    thousands(scrape.bytes as f64)
                ),
                format!("{:.2} million instructions", scrape.seconds * 1e3),
                String::new(),
            ]);
        }
        let mebibytes = |kib: u64| format!("{:.1} MiB", kib as f64 / 1024.0);
        rows.push(vec![
            "machine: resident memory after a mixed load and the scrapes".to_owned(),
            format!(
                "{} (peak {})",
                mebibytes(scraped.resident),
                mebibytes(scraped.peak)
            ),
            format!(
                "at most {}: {}",
                mebibytes(RESIDENT_KIB),
                met(scraped.resident <= RESIDENT_KIB)
            ),
        ]);
        rows.push(vec![
            "machine: kernel memory of the maps, one processor".to_owned(),
            mebibytes(results.maps / 1024),
            String::new(),
        ]);
    }
    out.table(&["the agent", "measured", "target"], 1, &rows);
}

fn attached(started: &Started) -> String {
    format!(
        "{} of {} programs ({})",
        started.programs,
        started.of,
        started.probes.join(", ")
    )
}

fn scrapes(scraped: &Scraped) -> Vec<(String, String)> {
    let one = |s: &super::agent::Scrape| {
        (
            format!(
                "a scrape, {}, {} bytes",
                s.format,
                thousands(s.bytes as f64)
            ),
            format!("{:.2} ms", s.seconds * 1e3),
        )
    };
    scraped.scrapes.iter().map(one).collect()
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.0} ms", seconds * 1e3)
}

fn version(case: Case) -> &'static str {
    if case.version == 3 { "v3" } else { "v4.2" }
}
