//! Measurements as tables for a terminal or in Markdown.

use super::figures::{Figure, Row, Subject, Verdict};
use super::load::{Case, Client};
use super::options::Options;
use super::resources;
use super::results::Results;
use super::table::{Out, thousands};
use crate::raw::repeat::What;

/// Limit of the agent without phases: its share of a mount's 4 KiB sync write.
const SHARE: f64 = 0.02;
/// Limit of the agent with phases: its share of a mount's 4 KiB sync write.
const SHARE_PHASES: f64 = 0.023;
/// Limit for a GETATTR, whose own cost is lower.
const SHARE_GETATTR: f64 = 0.035;
/// Limit of the agent, phases included, as a share of the bpftrace script's cost.
const OF_PEER: f64 = 1.0 / 3.0;
/// Limit of phases for a switch between tasks without any NFS, in instructions: the cost of a switch itself varies by this much.
const SWITCH: f64 = 5.0;

pub(super) fn render(options: &Options, results: &Results) -> String {
    let mut out = Out::new(options.markdown);
    let row = |subject| Row::new(&results.measured, subject);
    let case = |client: &Client| {
        let cases = Case::all(options.quick, &[*client]).into_iter();
        let rows: Vec<Row> = cases.filter_map(|c| row(Subject::Operation(c))).collect();
        (*client, rows)
    };
    let clients: Vec<(Client, Vec<Row>)> = options.clients().iter().map(case).collect();
    let switch = row(Subject::Switch);
    out.paragraph(&format!(
        "Instructions per operation on Linux {}, client and server together, over loopback, from and to memory (tmpfs): \
         {}.",
        options.kernel,
        rounds(options)
    ));
    for (client, rows) in &clients {
        out.paragraph(match client {
            Client::Mount => "mount: the kernel's client through a mount.",
            Client::Raw => {
                "raw: the lab's own client on a TCP connection, hardly more than the server itself."
            }
        });
        costs(&mut out, rows);
    }
    if !options.quick {
        out.paragraph(if options.without_queue {
            "The bpftrace script here does not time the queue, and so does less than the agent."
        } else {
            "Most of what the bpftrace script costs is its queue time: svc_xprt_enqueue is traced about eight times a \
             request. Compare --without-queue before quoting the ratio."
        });
        out.paragraph(
            "Phases (the agent less the agent without them, round by round) beside a bpftrace script that sums up what \
             nfsd's threads spend off the CPU, by state: instructions added.",
        );
        phases(&mut out, &clients, switch.as_ref());
    }
    if let Some(switch) = &switch {
        out.paragraph(&format!(
            "Two processes pass a byte to and fro {} times: instructions per context switch, with the system calls \
             around it.",
            thousands(options.trips as f64)
        ));
        switches(&mut out, switch);
    }
    targets(&mut out, &clients, switch.as_ref());
    for measured in &results.per_program {
        resources::programs(&mut out, measured);
    }
    resources::resources(&mut out, results);
    out.text
}

fn rounds(options: &Options) -> String {
    let ops = thousands(options.ops as f64);
    match options.rounds() {
        1 => format!("one round of {ops} operations"),
        rounds => format!(
            "medians of {rounds} rounds of {ops} operations, in brackets the lowest and the highest; scripts in every \
             other round"
        ),
    }
}

fn cell<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn ratio(one: Option<&Figure>, other: Option<&Figure>) -> String {
    cell(one.zip(other), |(one, other)| {
        format!("{:.2}", one.median / other.median)
    })
}

fn costs(out: &mut Out, compared: &[Row]) {
    let mut rows = Vec::new();
    for row in compared {
        let percent = |f: &Figure| format!("{:.1} %", 100.0 * row.share(f));
        rows.push(vec![
            row.subject.name(),
            row.alone.short(),
            cell(row.no_phases.as_ref(), Figure::show),
            cell(row.no_phases.as_ref(), percent),
            cell(row.agent.as_ref(), Figure::show),
            cell(row.agent.as_ref(), percent),
            cell(row.entered.as_ref(), Figure::short),
            cell(row.breakdown.as_ref(), Figure::show),
            cell(row.peer.as_ref(), Figure::short),
            cell(row.peer.as_ref(), percent),
            ratio(row.agent.as_ref(), row.peer.as_ref()),
        ]);
    }
    let head = [
        "operation",
        "alone",
        "agent, no phases, adds",
        "",
        "agent adds",
        "",
        "of that entering programs",
        "agent and a break-down add",
        "bpftrace adds",
        "",
        "agent / bpftrace",
    ];
    let scripts = compared.iter().any(|row| row.peer.is_some());
    let columns = if scripts { head.len() } else { 8 };
    for row in &mut rows {
        row.truncate(columns);
    }
    out.table(&head[..columns], 1, &rows);
}

fn phases(out: &mut Out, clients: &[(Client, Vec<Row>)], switch: Option<&Row>) {
    let operations = clients.iter().flat_map(|(client, rows)| {
        let named = move |row| (row, format!(", {}", client.name()));
        rows.iter().map(named)
    });
    let named = operations.chain(switch.map(|row| (row, String::new())));
    let rows: Vec<Vec<String>> = named
        .map(|(row, client)| {
            vec![
                row.subject.name() + &client,
                cell(row.phases.as_ref(), Figure::show),
                cell(row.off_cpu.as_ref(), Figure::show),
                ratio(row.phases.as_ref(), row.off_cpu.as_ref()),
            ]
        })
        .collect();
    let head = ["", "phases add", "off-CPU script adds", "phases / script"];
    out.table(&head, 1, &rows);
}

fn switches(out: &mut Out, row: &Row) {
    let mut rows = vec![vec![
        row.subject.name() + ", alone",
        row.alone.show(),
        String::new(),
    ]];
    for (what, figure) in [
        ("the agent without phases adds", &row.no_phases),
        ("the agent adds", &row.agent),
        ("that is, phases add", &row.phases),
        (
            "of that the kernel's own: an empty program adds",
            &row.empty,
        ),
        ("the off-CPU script adds", &row.off_cpu),
    ] {
        if let Some(figure) = figure {
            rows.push(vec![
                what.to_owned(),
                figure.show(),
                format!("{:.1} %", 100.0 * row.share(figure)),
            ]);
        }
    }
    out.table(&["context switches", "instructions", ""], 1, &rows);
}

fn targets(out: &mut Out, clients: &[(Client, Vec<Row>)], switch: Option<&Row>) {
    let mut rows = Vec::new();
    let mut target = |what: String, limit: String, measured: String, verdict: String| {
        rows.push(vec![what, limit, measured, verdict]);
    };
    for (client, compared) in clients {
        for row in compared {
            let Subject::Operation(case) = row.subject else {
                continue;
            };
            let what = format!("{}, {}", row.subject.name(), client.name());
            if *client == Client::Mount {
                let all = [
                    ("agent without phases adds", &row.no_phases, SHARE),
                    ("agent, phases included, adds", &row.agent, SHARE_PHASES),
                    ("agent, phases included, adds", &row.agent, SHARE_GETATTR),
                ];
                let limits = if case.what == What::Write {
                    &all[..2]
                } else {
                    &all[2..]
                };
                for (agent, figure, limit) in limits {
                    let Some(figure) = figure else { continue };
                    let verdict = Verdict::of(figure, row.alone.median);
                    target(
                        format!("{agent} to {what}"),
                        format!("{:.1} %", 100.0 * limit),
                        format!("{:.2} %", 100.0 * verdict.measured),
                        verdict.show(*limit),
                    );
                }
            }
            if let (Some(agent), Some(peer)) = (&row.agent, &row.peer) {
                let verdict = Verdict {
                    measured: agent.median / peer.median,
                    least: agent.least / peer.most,
                    most: agent.most / peer.least,
                };
                target(
                    format!("agent / bpftrace, {what}"),
                    format!("{OF_PEER:.2}"),
                    format!("{:.2}", verdict.measured),
                    verdict.show(OF_PEER),
                );
            }
        }
    }
    if let Some(phases) = switch.and_then(|row| row.phases.as_ref()) {
        target(
            "phases add to a switch of an unrelated task".to_owned(),
            format!("{SWITCH:.0}"),
            format!("{:.0}", phases.median),
            Verdict::of(phases, 1.0).show(SWITCH),
        );
    }
    out.table(&["target", "at most", "measured", ""], 1, &rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(peer: Option<f64>) -> Row {
        let figure = |median| Figure {
            median,
            least: median - 100.0,
            most: median + 100.0,
        };
        let case = Case {
            client: Client::Mount,
            version: 3,
            what: What::Write,
        };
        Row {
            subject: Subject::Operation(case),
            alone: figure(100_000.0),
            no_phases: Some(figure(1_500.0)),
            agent: Some(figure(2_500.0)),
            phases: Some(figure(1_000.0)),
            peer: peer.map(figure),
            off_cpu: None,
            breakdown: None,
            empty: None,
            entered: None,
        }
    }

    fn markdown(show: impl Fn(&mut Out)) -> String {
        let mut out = Out::new(true);
        show(&mut out);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
        out.text.lines().skip(2).map(words).collect()
    }

    #[test]
    fn scripts_have_columns_only_where_they_ran() {
        let without = markdown(|out| costs(out, &[write(None)]));
        let row = "| 4 KiB sync write, v3 | 100,000 | 1,500 (1,400 to 1,600) | 1.5 % | 2,500 (2,400 to 2,600) | 2.5 % | - | - |";
        assert_eq!(without.trim(), row);
        let with = markdown(|out| costs(out, &[write(Some(10_000.0))]));
        assert_eq!(with.trim(), format!("{row} 10,000 | 10.0 % | 0.25 |"));
    }

    #[test]
    fn phases_have_a_target_of_their_own() {
        let shown = markdown(|out| targets(out, &[(Client::Mount, vec![write(None)])], None));
        assert_eq!(
            shown.trim(),
            "| agent without phases adds to 4 KiB sync write, v3, mount | 2.0 % | 1.50 % | met |\n\
             | agent, phases included, adds to 4 KiB sync write, v3, mount | 2.3 % | 2.50 % | MISSED |"
        );
    }
}
