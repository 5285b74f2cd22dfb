//! `nfscope path`: time of this client's RPCs to a server and back, measured by the agents of both.

pub(crate) mod join;

use crate::cli::PathArgs;
use crate::path::join::{Parts, Path, PathVersion, join};
use anyhow::{Context, bail, ensure};
use nfscope_agent_client::http;
use nfscope_api::address;
use nfscope_model::{Snapshot, Window};
use nfscope_text::console;
use nfscope_text::table::columns;
use nfscope_text::units::seconds;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{IpAddr, ToSocketAddrs};
use std::thread;

/// Measures for the given time; returns the output.
///
/// # Errors
/// When an agent does not answer or lacks a metric, or when the two windows cannot be joined.
pub fn run(args: &PathArgs) -> anyhow::Result<String> {
    let server = args.server.clone();
    let own = args.url.clone().unwrap_or_else(address::default_url);
    let host = address::parse(&server, "").context(address::BadUrl(server.clone()))?;
    let mut names = vec![host.name().to_owned()];
    names.extend(args.mounted_as.iter().cloned());
    let before = snapshots(&own, &server)?;
    thread::sleep(args.length);
    let after = snapshots(&own, &server)?;
    let named = |s: &Snapshot, url: &str| s.host.clone().unwrap_or_else(|| url.to_owned());
    let hosts = [named(&after[0], &own), named(&after[1], &server)];
    let windows = [
        window(&before[0], &after[0], &hosts[0])?,
        window(&before[1], &after[1], &hosts[1])?,
    ];
    let servers = Names::of(&names);
    let path = join(&windows[0], &windows[1], [&hosts[0], &hosts[1]], |m| {
        servers.has(host_of(m))
    })
    .map_err(|why| anyhow::anyhow!(why))?;
    match args.json {
        true => Ok(console::json(&path)?),
        false => Ok(console::plain(&page(&path))),
    }
}

/// Snapshots of both agents, taken at the same time.
fn snapshots(own: &str, server: &str) -> anyhow::Result<[Snapshot; 2]> {
    thread::scope(|scope| {
        let there = scope.spawn(|| http::snapshot(server).context("the server's agent"));
        let here = http::snapshot(own).context("this client's agent");
        let there = there.join();
        let Ok(there) = there else {
            bail!("the thread that asks the server's agent has ended")
        };
        Ok([here?, there?])
    })
}

fn window(before: &Snapshot, after: &Snapshot, host: &str) -> anyhow::Result<Window> {
    ensure!(
        after.goes_on_from(before),
        "the agent of {host} was started anew, or detached a probe, in this window; ask again"
    );
    Ok(after.since(before))
}

/// Host of a mount `server:/export`, without the brackets of an IPv6 address.
fn host_of(mount: &str) -> &str {
    let host = mount.split_once(":/").map_or(mount, |(host, _)| host);
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    bare.unwrap_or(host)
}

/// Names of a server, and its addresses.
struct Names<'a> {
    names: &'a [String],
    addresses: BTreeSet<IpAddr>,
}

impl Names<'_> {
    fn of(names: &[String]) -> Names<'_> {
        let addresses = names.iter().flat_map(|name| addresses(name));
        Names {
            names,
            addresses: addresses.collect(),
        }
    }

    fn has(&self, host: &str) -> bool {
        let is_named = self.names.iter().any(|name| name == host);
        is_named || addresses(host).iter().any(|a| self.addresses.contains(a))
    }
}

fn addresses(name: &str) -> Vec<IpAddr> {
    let found = (name, 0).to_socket_addrs();
    found.map_or(Vec::new(), |all| {
        all.map(|a| a.ip().to_canonical()).collect()
    })
}

/// Table for each version, with a note about values that are means over all clients.
fn page(path: &Path) -> String {
    let mut out = format!(
        "{} to {} and back, {:.1} s; an RPC on average:\n",
        path.client, path.server, path.window_seconds
    );
    for v in &path.versions {
        let _ = write!(
            out,
            "\nNFSv{}: {}\n{}",
            v.version,
            sentence(&v.total),
            table(v)
        );
        out.push_str(&unmeasured(v, &path.server));
        if !v.alone {
            let _ = writeln!(
                out,
                "The server answered {:.0} RPCs over NFSv{} in all, others' too: its times are means over all clients.",
                v.server_rpcs, v.version
            );
        }
    }
    out.push_str(
        "\nTOTAL is the client's own time, which the columns behind it add up to. BACKLOG: before the request is sent.\n\
         NETWORK: what is left of the round trips. QUEUE to REPLY: the server. DONE: in the client, after the reply.\n\
         Of a single operation QUEUE, RECEIVE and REPLY are the server's means over all operations of the version.\n",
    );
    out
}

/// Shares of client, network and server, as a sentence.
fn sentence(p: &Parts) -> String {
    let percent = |s: f64| format!("{:.0} %", 100.0 * s / p.seconds.max(f64::MIN_POSITIVE));
    format!(
        "{} of the time in this client, {} in the network, {} in the server",
        percent(p.backlog_seconds + p.completion_seconds),
        percent(p.network_seconds),
        percent(p.server())
    )
}

/// Sentence on the server's times that are not measured, and where they are instead; empty if there are none.
fn unmeasured(v: &PathVersion, server: &str) -> String {
    let columns: Vec<_> = (v.total.of_server().iter())
        .filter(|(_, seconds)| seconds.is_none())
        .map(|(name, _)| name.to_uppercase())
        .collect();
    if columns.is_empty() {
        return String::new();
    }
    format!(
        "{server} does not measure {} of these requests: NETWORK includes that time. `nfscope check` on {server} shows why.\n",
        columns.join(", ")
    )
}

fn table(v: &PathVersion) -> String {
    let head = [
        "OP",
        "RPCS",
        "TOTAL",
        "BACKLOG",
        "NETWORK",
        "QUEUE",
        "RECEIVE",
        "EXECUTE",
        "REPLY",
        "DONE",
        "EXECUTE IS",
    ];
    let mut rows = vec![head.map(str::to_owned), row("all", &v.total, &[])];
    rows.extend(
        v.ops
            .iter()
            .map(|o| row(&o.op.to_uppercase(), &o.parts, &o.phases)),
    );
    columns(&rows)
}

fn row(op: &str, p: &Parts, phases: &[(String, f64)]) -> [String; 11] {
    let each = |s: f64| seconds(s / p.rpcs.max(1.0));
    let of_server = |s: Option<f64>| s.map_or("?".to_owned(), each);
    let phases = phases
        .iter()
        .map(|(name, part)| format!("{name} {:.0} %", part * 100.0));
    [
        op.to_owned(),
        format!("{:.0}", p.rpcs),
        each(p.seconds),
        each(p.backlog_seconds),
        each(p.network_seconds),
        of_server(p.queue_seconds),
        of_server(p.receive_seconds),
        of_server(p.execute_seconds),
        of_server(p.reply_seconds),
        each(p.completion_seconds),
        phases.collect::<Vec<_>>().join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_the_server_does_not_measure_is_said_to_be_in_the_network() {
        let version = |queue_seconds| PathVersion {
            version: "3".into(),
            total: Parts {
                rpcs: 10.0,
                seconds: 1.0,
                network_seconds: 0.9,
                queue_seconds,
                receive_seconds: Some(0.0),
                execute_seconds: Some(0.1),
                reply_seconds: Some(0.0),
                ..Parts::default()
            },
            ops: Vec::new(),
            server_rpcs: 10.0,
            alone: true,
        };
        let said = |queue| {
            page(&Path {
                client: "c1".into(),
                server: "filer".into(),
                window_seconds: 10.0,
                versions: vec![version(queue)],
            })
        };
        let unknown = said(None);
        assert!(
            unknown.contains("filer does not measure QUEUE of these requests: NETWORK includes"),
            "{unknown}"
        );
        let all = unknown.lines().find(|l| l.starts_with("all")).unwrap();
        assert!(all.contains(" ? "), "{all}");
        assert!(!said(Some(0.0)).contains("does not measure"));
    }

    #[test]
    fn a_mount_is_of_a_server_by_name_or_address() {
        let names = ["127.0.0.1".to_owned(), "filer.invalid".to_owned()];
        let names = Names::of(&names);
        for (mount, is) in [
            ("127.0.0.1:/exp", true),
            ("127.0.0.1", true),
            ("filer.invalid:/a:/b", true),
            ("10.9.0.1:/exp", false),
            ("[::1]:/exp", false),
        ] {
            assert_eq!(names.has(host_of(mount)), is, "{mount}");
        }
        assert_eq!(host_of("[fe80::1]:/x"), "fe80::1");
    }
}
