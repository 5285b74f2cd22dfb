//! Measurements beside the cost of operations, as tables: programs one by one, and the agent's resources.

use std::collections::BTreeMap;

use super::agent::{Scraped, Started};
use super::figures::Subject;
use super::load::Program;
use super::pages::Pages;
use super::results::{Measured, Results};
use super::table::{Out, thousands};

const START: f64 = 0.25;
const RESIDENT_KIB: u64 = 12 * 1024;
const DAY: u64 = 64 << 20;
const COMPARE: f64 = 2.0;
const BINARY: u64 = 6_000_000;
/// Limit of a reading in million instructions, one for each nanosecond: 5 ms.
const READING: f64 = 5.0;

/// Table of each program's cost.
pub(super) fn programs(out: &mut Out, measured: &Measured) {
    out.paragraph(&format!(
        "Programs {}: instructions inside the programs only, with what counting them takes (some of each run).",
        measured.with.name()
    ));
    let mut rows = Vec::new();
    for measure in &measured.measures {
        let row = Subject::Operation(measure.case).name();
        let name = format!("{row}, {}", measure.case.client.name());
        ranked(&mut rows, &name, &measure.programs, measure.ops);
    }
    if let Some(switches) = &measured.switches {
        ranked(
            &mut rows,
            &Subject::Switch.name(),
            &switches.programs,
            switches.switches,
        );
    }
    let head = ["", "program", "runs", "each", "in all"];
    out.table(&head, 2, &rows);
}

/// Rows of the programs, the most expensive first, and of their sum.
fn ranked(
    rows: &mut Vec<Vec<String>>,
    name: &str,
    programs: &BTreeMap<String, Program>,
    times: u64,
) {
    let mut by_cost: Vec<(&str, Program)> = merged(programs).into_iter().collect();
    by_cost.sort_by_key(|(_, program)| std::cmp::Reverse(program.ns));
    let mut total = Program::default();
    for (_, program) in &by_cost {
        total.runs += program.runs;
        total.ns += program.ns;
    }
    by_cost.push(("all", total));
    for (program, cost) in by_cost {
        let (runs, ns, times) = (cost.runs as f64, cost.ns as f64, times as f64);
        // Rare runs belong to other work: a lease, a disk's poll.
        if runs / times < 0.02 {
            continue;
        }
        rows.push(vec![
            name.to_owned(),
            program.to_owned(),
            format!("{:.2}", runs / times),
            thousands((ns / runs).round()),
            thousands((ns / times).round()),
        ]);
    }
}

/// Sums of programs with the same name.
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

/// Table of size, start, memory and scrapes.
pub(super) fn resources(out: &mut Out, results: &Results) {
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
        rows.extend(pages("this host", scraped, |busy| {
            format!("{:.2} ms", busy * 1e3)
        }));
    }
    if let Some(days) = &results.days {
        rows.push(vec![
            "this host: 24 hours of a busy server in windows of 10 s, in the store".to_owned(),
            megabytes(days.bytes),
            format!("at most {}: {}", megabytes(DAY), met(days.bytes <= DAY)),
        ]);
        rows.push(vec![
            "this host: comparing two such recordings".to_owned(),
            milliseconds(days.seconds),
            format!(
                "at most {}: {}",
                milliseconds(COMPARE),
                met(days.seconds <= COMPARE)
            ),
        ]);
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
                format!(
                    "{:.2} million instructions, of which {:.2} in the main process and {:.2} in nfscope-http",
                    scrape.seconds * 1e3,
                    scrape.main * 1e3,
                    scrape.http * 1e3
                ),
                String::new(),
            ]);
        }
        if let Some(window) = &scraped.window {
            rows.push(vec![
                "machine: a window of a recording, in the agent and in the recorder".to_owned(),
                format!(
                    "{:.1} and {:.1} million instructions",
                    window.agent * 1e3,
                    window.recorder * 1e3
                ),
                String::new(),
            ]);
        }
        rows.extend(pages("machine", scraped, |busy| {
            format!("{:.1} million instructions", busy * 1e3)
        }));
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
            "machine: resident memory of nfscope-http".to_owned(),
            mebibytes(scraped.http_resident),
            String::new(),
        ]);
        rows.push(vec![
            "machine: kernel memory of the maps, one CPU".to_owned(),
            mebibytes(results.maps / 1024),
            String::new(),
        ]);
    }
    for sized in &results.sized {
        let most = 16e6 + 0.15e6 * f64::from(sized.possible);
        rows.push(vec![
            format!(
                "machine: kernel memory, {} possible CPUs, {} operations in use",
                sized.possible, sized.operations
            ),
            megabytes(sized.memory as u64),
            format!(
                "at most {}: {}",
                megabytes(most as u64),
                met(sized.memory <= most)
            ),
        ]);
        rows.push(vec![
            format!("machine: a reading, {} possible CPUs", sized.possible),
            format!("{:.2} million instructions", sized.reading * 1e3),
            format!("at most {READING}: {}", met(sized.reading * 1e3 <= READING)),
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
            format!(
                "{:.2} ms; CPU time {:.2} ms in the main process and {:.2} ms in nfscope-http",
                s.seconds * 1e3,
                s.main * 1e3,
                s.http * 1e3
            ),
        )
    };
    scraped.scrapes.iter().map(one).collect()
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.0} ms", seconds * 1e3)
}

fn mebibytes(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

/// Rows of open pages: costs of the agent and of the process that serves HTTP.
fn pages(place: &str, scraped: &Scraped, busy: impl Fn(f64) -> String) -> Vec<Vec<String>> {
    let row = |p: &Pages| {
        let [agent, http] = p.busy;
        vec![
            format!(
                "{place}: {} pages open, of the agent and of nfscope-http",
                p.open
            ),
            format!(
                "{} and {} a second, {} and {}",
                busy(agent),
                busy(http),
                mebibytes(p.resident[0]),
                mebibytes(p.resident[1])
            ),
            String::new(),
        ]
    };
    scraped.pages.iter().map(row).collect()
}
