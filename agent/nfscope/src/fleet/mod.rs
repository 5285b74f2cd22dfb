//! `nfscope fleet`: servers that a Prometheus knows, the most urgent first.

use crate::cli::FleetArgs;
use anyhow::Context;
use nfscope_agent_client::prometheus::{Series, query};
use nfscope_text::console::{self, plain};
use nfscope_text::table::columns;
use nfscope_text::units;
use serde::Serialize;
use std::collections::BTreeMap;

const SERVER: &str = "cluster, job, instance";
/// Query for agents that do not answer. They have no series of their own, so the last week tells which targets are agents, even if all of a
/// job are down.
const DOWN: &str = "(up == 0 and on (cluster, job, instance) last_over_time(nfscope_build_info[1w])) \
     or (up == 0 and on (cluster, job) nfscope_build_info) or up{job=\"nfscope\"} == 0";
const SUM: &str = "instance_version_op:nfscope_op_duration_seconds_sum:rate5m";

/// Labels of a server: cluster, job, instance.
type Key = [String; 3];

/// Active finding of a server.
#[derive(Debug, Serialize, PartialEq)]
struct Finding {
    kind: String,
    share: f64,
}

/// Most utilised resource.
#[derive(Debug, Serialize, PartialEq)]
struct Saturation {
    resource: &'static str,
    ratio: f64,
}

/// Operation that takes most of a server's time.
#[derive(Debug, Serialize, PartialEq)]
struct Operation {
    version: String,
    op: String,
    /// Number of threads that it keeps busy.
    busy: f64,
    p99_seconds: Option<f64>,
}

/// Server. Values that the recording rules do not have are `None`.
#[derive(Debug, Serialize, Default)]
struct Server {
    cluster: String,
    job: String,
    instance: String,
    answers: bool,
    findings: Vec<Finding>,
    saturation: Option<Saturation>,
    operations_per_second: Option<f64>,
    worst_operation: Option<Operation>,
    /// Mean residence of requests, as a multiple of that a week ago.
    against_last_week: Option<f64>,
}

/// Lists the servers that the Prometheus at the URL knows.
///
/// # Errors
/// When there is no URL, Prometheus does not answer, or it knows no server.
pub fn run(args: &FleetArgs) -> anyhow::Result<String> {
    let url = args.url.as_deref().context(
        "whom to ask? Give the URL of a Prometheus, or write it into client.toml as url of [prometheus]",
    )?;
    let mut servers = servers(url)?;
    anyhow::ensure!(
        !servers.is_empty(),
        "{url} knows no server: nothing is called nfscope_build_info. Add the agents to its scrape_configs"
    );
    servers.sort_by(|a, b| {
        b.urgency()
            .total_cmp(&a.urgency())
            .then(a.instance.cmp(&b.instance))
    });
    Ok(match args.json {
        true => console::json(&servers)?,
        false => table(&servers),
    })
}

impl Server {
    /// Order of the list: servers that do not answer, then by findings and their share, then by saturation.
    fn urgency(&self) -> f64 {
        let share = self.findings.iter().map(|f| f.share).fold(0.0, f64::max);
        let full = self
            .saturation
            .as_ref()
            .map_or(0.0, |s| s.ratio.clamp(0.0, 1.0));
        let down = if self.answers { 0.0 } else { 1e6 };
        // A share is at most 1, so that the number of findings decides before their share does.
        down + 10.0 * self.findings.len() as f64 + share.min(1.0) * 9.0 + full * 0.5
    }

    fn recorded(&self) -> bool {
        self.operations_per_second.is_some()
    }
}

fn key(series: &Series) -> Key {
    ["cluster", "job", "instance"].map(|l| series.label(l).to_owned())
}

fn servers(url: &str) -> anyhow::Result<Vec<Server>> {
    let mut all: BTreeMap<Key, Server> = BTreeMap::new();
    let build = format!("group by ({SERVER}) (nfscope_build_info)");
    for (expression, answers) in [
        // Targets that do not answer: agents of the last week, targets of a job with agents, and targets of a job named nfscope.
        (format!("group by ({SERVER}) ({DOWN})"), false),
        (build, true),
    ] {
        for series in query(url, &expression)? {
            let [cluster, job, instance] = key(&series);
            let server = Server {
                cluster,
                job,
                instance,
                answers,
                ..Server::default()
            };
            all.insert(key(&series), server);
        }
    }
    let mut each = |expression: &str, set: &mut dyn FnMut(&mut Server, &Series, f64)| {
        for series in query(url, expression)? {
            if let (Some(server), Some(n)) = (all.get_mut(&key(&series)), series.number()) {
                set(server, &series, n);
            }
        }
        anyhow::Ok(())
    };
    let active = format!(
        "max by ({SERVER}, kind) (nfscope_bottleneck_score_ratio) \
         and (max by ({SERVER}, kind) (nfscope_bottleneck_active) == 1)"
    );
    each(&active, &mut |server, series, share| {
        let kind = series.label("kind").to_owned();
        server.findings.push(Finding { kind, share });
    })?;
    for (resource, series) in [
        (
            "threads",
            "instance:nfscope_thread_utilization:max_ratio_rate5m",
        ),
        ("CPUs", "instance:nfscope_cpu_utilization:ratio_rate5m"),
        ("disk", "instance:nfscope_block_busy:max_rate5m"),
    ] {
        each(series, &mut |server, _, ratio| {
            let fuller = server.saturation.as_ref().is_none_or(|s| ratio > s.ratio);
            if fuller {
                server.saturation = Some(Saturation { resource, ratio });
            }
        })?;
    }
    each(
        "instance:nfscope_operations:rate5m",
        &mut |server, _, rate| {
            server.operations_per_second = Some(rate);
        },
    )?;
    let most = format!("topk by ({SERVER}) (1, {SUM})");
    each(&most, &mut |server, series, busy| {
        server.worst_operation = Some(Operation {
            version: series.label("version").to_owned(),
            op: series.label("op").to_owned(),
            busy,
            p99_seconds: None,
        });
    })?;
    let p99 = "instance_version_op:nfscope_op_duration_seconds:p99_5m";
    let of_worst = format!("{p99} and on ({SERVER}, version, op) {most}");
    each(&of_worst, &mut |server, series, p99| {
        if let Some(worst) = &mut server.worst_operation
            && (&*worst.version, &*worst.op) == (series.label("version"), series.label("op"))
        {
            worst.p99_seconds = Some(p99);
        }
    })?;
    let residence = "instance:nfscope_rpc_duration_seconds:mean_1h";
    each(
        &format!("{residence} / {residence} offset 1w"),
        &mut |server, _, times| {
            server.against_last_week = Some(times);
        },
    )?;
    let mut servers: Vec<_> = all.into_values().collect();
    for server in &mut servers {
        server.findings.sort_by(|a, b| b.share.total_cmp(&a.share));
    }
    Ok(servers)
}

fn table(servers: &[Server]) -> String {
    let head = [
        "SERVER",
        "CLUSTER",
        "OPS/S",
        "FULLEST",
        "MOST TIME",
        "P99",
        "WEEK",
        "FINDINGS",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    let unknown = || "-".to_owned();
    for s in servers {
        let findings: Vec<_> = s
            .findings
            .iter()
            .map(|f| format!("{} {}", f.kind, units::percent(f.share)))
            .collect();
        let worst = s.worst_operation.as_ref();
        rows.push([
            s.instance.clone(),
            if s.cluster.is_empty() {
                unknown()
            } else {
                s.cluster.clone()
            },
            s.operations_per_second
                .map_or_else(unknown, |n| format!("{n:.0}")),
            s.saturation.as_ref().map_or_else(unknown, |f| {
                format!("{} {}", f.resource, units::percent(f.ratio))
            }),
            worst.map_or_else(unknown, |o| format!("{} v{}", o.op, o.version)),
            worst
                .and_then(|o| o.p99_seconds)
                .map_or_else(unknown, units::seconds),
            s.against_last_week
                .map_or_else(unknown, |n| format!("x{n:.2}")),
            match (s.answers, findings.is_empty()) {
                (false, _) => "does not answer".to_owned(),
                (true, true) => unknown(),
                (true, false) => findings.join(", "),
            },
        ]);
    }
    let count = |n: usize, one: &str| units::many(n as f64, one);
    let with = servers.iter().filter(|s| !s.findings.is_empty()).count();
    let down = servers.iter().filter(|s| !s.answers).count();
    let mut text = format!(
        "{}, {with} with findings, {down} that do not answer\n\n{}",
        count(servers.len(), "server"),
        columns(&rows)
    );
    if !servers.iter().any(Server::recorded) {
        text += "\nOnly findings are known: the recording rules of dashboards/rules are not evaluated there, or not yet.\n";
    }
    plain(&text)
}
