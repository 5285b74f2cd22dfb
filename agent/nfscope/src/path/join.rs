//! Joins the windows of a client and of its server: splits the time of the client's RPCs into parts that add up.
//!
//! The client measures the total time of an RPC, the time before it was sent, and the round trip. The server measures the residence of
//! requests, and its phases. The rest of the round trip is the network's.

use nfscope_model::window_mounts::{MountOp, WindowMount, mounts};
use nfscope_model::window_parts::{WindowOp, histograms, ops, rpc_phases};
use nfscope_model::{Window, family as f, phase};
use serde::Serialize;

/// Largest relative difference of the windows' lengths. Above it, they are not of the same time, or a clock is wrong.
const MOST_APART: f64 = 0.05;
/// Largest difference for short windows, in seconds: a snapshot takes a moment.
const APART_SECONDS: f64 = 0.5;
/// Largest relative difference of the RPC counts at which the client is the only one. Some RPCs are in flight at both ends of a window.
const ALONE: f64 = 0.02;
/// Largest difference of the counts for few RPCs.
const ALONE_RPCS: f64 = 3.0;

/// Parts of the time of RPCs, in seconds over all of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Parts {
    pub rpcs: f64,
    /// Total time by the client's clock, the sum of the parts below.
    pub seconds: f64,
    /// Wait in the client until the RPC was sent.
    pub backlog_seconds: f64,
    /// Network in both directions, including the TCP of both hosts, and what the server does not measure.
    pub network_seconds: f64,
    /// Wait in the server for an nfsd thread; `None` where it is not measured, as each time of the server.
    pub queue_seconds: Option<f64>,
    /// Receiving from the socket, including upcalls to daemons.
    pub receive_seconds: Option<f64>,
    pub execute_seconds: Option<f64>,
    pub reply_seconds: Option<f64>,
    /// Processing in the client after the reply.
    pub completion_seconds: f64,
}

impl Parts {
    /// Names of the server's parts, and their times.
    pub fn of_server(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("queue", self.queue_seconds),
            ("receive", self.receive_seconds),
            ("execute", self.execute_seconds),
            ("reply", self.reply_seconds),
        ]
    }

    /// Measured time in the server.
    pub fn server(&self) -> f64 {
        self.of_server().iter().filter_map(|(_, s)| *s).sum()
    }

    fn add(&mut self, other: &Parts) {
        let add = |to: &mut Option<f64>, more: Option<f64>| {
            if let Some(more) = more {
                *to = Some(to.unwrap_or(0.0) + more);
            }
        };
        self.rpcs += other.rpcs;
        self.seconds += other.seconds;
        self.backlog_seconds += other.backlog_seconds;
        self.network_seconds += other.network_seconds;
        add(&mut self.queue_seconds, other.queue_seconds);
        add(&mut self.receive_seconds, other.receive_seconds);
        add(&mut self.execute_seconds, other.execute_seconds);
        add(&mut self.reply_seconds, other.reply_seconds);
        self.completion_seconds += other.completion_seconds;
    }
}

/// Procedure of the client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathOp {
    pub op: String,
    #[serde(flatten)]
    pub parts: Parts,
    /// Phases of the server's operation of this name, by [`phase::OF_OP`], as parts of its time, the largest first. Empty if the server has
    /// no such operation or no phases.
    pub phases: Vec<(String, f64)>,
}

/// RPCs over one version of NFS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathVersion {
    pub version: String,
    pub total: Parts,
    /// Procedures, sorted by their time, the longest first.
    pub ops: Vec<PathOp>,
    /// RPCs of this version that the server answered, of all clients.
    pub server_rpcs: f64,
    /// True if no other client used this version. Otherwise the server's times are means over all clients.
    pub alone: bool,
}

/// Path of a client's RPCs to a server and back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Path {
    pub client: String,
    pub server: String,
    pub window_seconds: f64,
    pub versions: Vec<PathVersion>,
}

/// Part of a server's window that belongs to one version.
struct ServerSide<'a> {
    rpcs: f64,
    /// Seconds per RPC: queue, receive (with its upcalls), execute, reply; `None` where one is not measured.
    each: [Option<f64>; 4],
    ops: Vec<WindowOp<'a>>,
}

/// Joins two windows of the same time. `of_server` returns true for a mount of this server.
///
/// # Errors
/// When something is missing, or the windows are not of the same time; the error is a sentence.
pub fn join(
    client: &Window,
    server: &Window,
    names: [&str; 2],
    of_server: impl Fn(&str) -> bool,
) -> Result<Path, String> {
    let [client_name, server_name] = names;
    let lengths = [client, server].map(|w| w.length.as_secs_f64());
    let apart = (lengths[0] - lengths[1]).abs();
    if apart > (MOST_APART * lengths[0]).max(APART_SECONDS) {
        return Err(format!(
            "the two windows are not of the same time: {:.1} s by the clock of {client_name}, {:.1} s by that of {server_name}; \
             set their clocks right, or ask again when neither host is busy",
            lengths[0], lengths[1]
        ));
    }
    if client.delta.series(&f::VIEW_SOURCE_INFO.info).is_empty() {
        return Err(format!(
            "the agent of {client_name} does not look at mounts: start it with `nfscope agent --client`, and mount something"
        ));
    }
    if server.delta.series(&f::RPC_PHASE.info).is_empty() {
        return Err(format!(
            "the agent of {server_name} times no NFS requests; `nfscope check` there says why"
        ));
    }
    let (own, others): (Vec<_>, Vec<_>) = mounts(client)
        .into_iter()
        .partition(|m| of_server(&m.mount));
    if own.is_empty() {
        let mut seen: Vec<_> = others.into_iter().map(|m| m.mount).collect();
        seen.dedup();
        let seen = match seen.is_empty() {
            true => "it sent no RPC at all".to_owned(),
            false => format!("it sent some to {}", seen.join(", ")),
        };
        return Err(format!(
            "{client_name} sent no RPC to {server_name} in this window: {seen}"
        ));
    }
    let mut versions: Vec<&str> = own.iter().map(|m| m.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let versions = versions.into_iter().map(|version| {
        let mounts: Vec<_> = own.iter().filter(|m| m.version == version).collect();
        of_version(version, &mounts, server, server_name)
    });
    Ok(Path {
        client: client_name.to_owned(),
        server: server_name.to_owned(),
        window_seconds: lengths[0],
        versions: versions.collect::<Result<_, _>>()?,
    })
}

fn of_version(
    version: &str,
    mounts: &[&WindowMount],
    server: &Window,
    server_name: &str,
) -> Result<PathVersion, String> {
    let side = server_side(server, version).ok_or_else(|| {
        format!(
            "the agent of {server_name} saw no request over NFSv{version}: it is not the server of these mounts, or measures another \
             network namespace"
        )
    })?;
    let mut by_op: Vec<MountOp> = Vec::new();
    for op in mounts.iter().flat_map(|m| &m.ops) {
        match by_op.iter_mut().find(|o| o.op == op.op) {
            Some(o) => {
                o.rpcs += op.rpcs;
                o.backlog += op.backlog;
                o.round_trip += op.round_trip;
                o.completion += op.completion;
            }
            None => by_op.push(op.clone()),
        }
    }
    let executed = executed(&by_op, &side);
    let rpcs: f64 = by_op.iter().map(|op| op.rpcs).sum();
    let mut total = Parts::default();
    let mut ops = Vec::new();
    for (op, execute) in by_op.iter().zip(executed) {
        let [queue, receive, _, reply] = side.each.map(|s| Some(s? * op.rpcs));
        let in_server = sum([queue, receive, execute, reply]);
        // The server's time of a single operation is partly a mean over others, so it is limited to the round trips.
        let fits = if in_server > op.round_trip && in_server > 0.0 {
            op.round_trip / in_server
        } else {
            1.0
        };
        let parts = Parts {
            rpcs: op.rpcs,
            seconds: op.seconds(),
            backlog_seconds: op.backlog,
            network_seconds: op.round_trip - in_server * fits,
            queue_seconds: queue.map(|s| s * fits),
            receive_seconds: receive.map(|s| s * fits),
            execute_seconds: execute.map(|s| s * fits),
            reply_seconds: reply.map(|s| s * fits),
            completion_seconds: op.completion,
        };
        total.add(&parts);
        ops.push(PathOp {
            op: op.op.clone(),
            phases: phases(&op.op, &side),
            parts,
        });
    }
    // If the client is alone, the sums over all operations are exact.
    let alone = (side.rpcs - rpcs).abs() <= (ALONE * rpcs).max(ALONE_RPCS);
    let of_server = side.each.map(|s| Some(s? * rpcs));
    let [queue, receive, execute, reply] = of_server;
    let round_trip: f64 = by_op.iter().map(|op| op.round_trip).sum();
    let in_server = sum(of_server);
    if in_server <= round_trip {
        (total.queue_seconds, total.receive_seconds) = (queue, receive);
        (total.execute_seconds, total.reply_seconds) = (execute, reply);
        total.network_seconds = round_trip - in_server;
    } else if alone {
        return Err(format!(
            "{server_name} had the requests over NFSv{version} in hand for longer than their round trips took: the two windows are not \
             of the same time, or these mounts are of another server"
        ));
    }
    ops.sort_by(|a, b| b.parts.seconds.total_cmp(&a.parts.seconds));
    Ok(PathVersion {
        version: version.to_owned(),
        total,
        ops,
        server_rpcs: side.rpcs,
        alone,
    })
}

fn sum(parts: [Option<f64>; 4]) -> f64 {
    parts.into_iter().flatten().sum()
}

/// Server's times of one version; `None` if the server saw no request of it.
fn server_side<'a>(server: &'a Window, version: &str) -> Option<ServerSide<'a>> {
    let residence = histograms(server, &f::RPC_DURATION)
        .find(|([v], _)| *v == version)?
        .1;
    let rpcs = residence.count() as f64;
    let by_phase = rpc_phases(server);
    let of = |name: &str| {
        let place = phase::OF_RPC.iter().position(|p| *p == name)?;
        by_phase.get(version)?.get(place).copied().flatten()
    };
    let each = |name| Some(of(name)? / rpcs);
    // Without the programs for upcalls the phase `receive` includes them.
    let upcall = each("upcall").unwrap_or(0.0);
    Some(ServerSide {
        rpcs,
        each: [
            each("queue"),
            each("receive").map(|s| s + upcall),
            each("execute"),
            each("reply"),
        ],
        ops: ops(server)
            .into_iter()
            .filter(|o| o.version == version)
            .collect(),
    })
}

/// Time in the server's threads by operation; the sum is their total. Each operation has the time of the server's operation of the same
/// name, and an equal part per RPC of the rest: other operations of a COMPOUND, decoding, encoding.
fn executed(by_op: &[MountOp], side: &ServerSide) -> Vec<Option<f64>> {
    let Some(each) = side.each[2] else {
        return vec![None; by_op.len()];
    };
    let main = |op: &MountOp| {
        let named = side.ops.iter().find(|o| o.op == op.op.as_str());
        let mean = named.and_then(|o| o.durations.mean()).unwrap_or(0.0);
        mean * op.rpcs
    };
    let main: Vec<f64> = by_op.iter().map(main).collect();
    let rpcs: f64 = by_op.iter().map(|op| op.rpcs).sum();
    let all = each * rpcs;
    let known: f64 = main.iter().sum();
    if known > all && known > 0.0 {
        return main.iter().map(|s| Some(s * all / known)).collect();
    }
    let rest = (all - known) / rpcs.max(1.0);
    main.iter()
        .zip(by_op)
        .map(|(s, op)| Some(s + rest * op.rpcs))
        .collect()
}

fn phases(op: &str, side: &ServerSide) -> Vec<(String, f64)> {
    let named = side.ops.iter().find(|o| o.op == op);
    let Some(seconds) = named.and_then(|o| o.phases) else {
        return Vec::new();
    };
    let all: f64 = seconds.iter().flatten().sum();
    let mut parts: Vec<_> = phase::OF_OP
        .iter()
        .zip(seconds)
        .filter_map(|(name, s)| Some(((*name).to_owned(), s? / all)))
        .filter(|(_, part)| *part >= 0.005)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{Histogram, Scheme, Snapshot};
    use std::time::Duration;

    const MOUNT: &str = "nfs1:/exp";

    fn window(seconds: u64, delta: Snapshot) -> Window {
        Window {
            length: Duration::from_secs(seconds),
            delta,
        }
    }

    /// Ten WRITEs of 43 ms and ten GETATTRs of 3 ms.
    fn client() -> Window {
        let mut s = Snapshot::default();
        s.gauge(&f::VIEW_SOURCE_INFO, ["tracepoints"], 1.0);
        for (op, backlog, round_trip, completion) in
            [("write", 0.2, 0.22, 0.01), ("getattr", 0.005, 0.02, 0.005)]
        {
            s.counter(&f::VIEW_RPCS, [MOUNT, "4.1", op], 10.0);
            for (stage, seconds) in [
                ("backlog", backlog),
                ("round_trip", round_trip),
                ("completion", completion),
            ] {
                s.counter(&f::VIEW_STAGE, [MOUNT, "4.1", op, stage], seconds);
            }
        }
        window(10, s)
    }

    fn durations(n: u64, seconds: f64) -> Histogram {
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[40] = n;
        h.sum = seconds;
        h
    }

    /// Server with this many requests of 5 ms each: queue 0.5, receive 0.3, upcall 0.2, execute 3.5, reply 0.5.
    fn server(rpcs: u64) -> Window {
        let mut s = Snapshot::default();
        let n = rpcs as f64;
        s.histogram(&f::RPC_DURATION, ["4.1"], durations(rpcs, n * 0.005));
        for (phase, ms) in [
            ("queue", 0.5),
            ("receive", 0.3),
            ("upcall", 0.2),
            ("execute", 3.5),
            ("reply", 0.5),
        ] {
            s.counter(&f::RPC_PHASE, ["4.1", phase], n * ms / 1e3);
        }
        s.histogram(&f::OP_DURATION, ["4.1", "write"], durations(10, 0.06));
        for (phase, seconds) in [("cpu", 0.006), ("log", 0.048), ("disk", 0.006)] {
            s.counter(&f::OP_PHASE, ["4.1", "write", phase], seconds);
        }
        window(10, s)
    }

    fn joined(client: &Window, server: &Window) -> Result<Path, String> {
        join(client, server, ["c", "s"], |mount| mount == MOUNT)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn the_parts_of_each_operation_add_up_to_the_clients_time() {
        let path = joined(&client(), &server(20)).unwrap();
        let [v] = &path.versions[..] else { panic!() };
        assert!(v.alone && v.server_rpcs == 20.0);
        let all =
            |p: &Parts| p.backlog_seconds + p.network_seconds + p.server() + p.completion_seconds;
        for parts in v.ops.iter().map(|o| &o.parts).chain([&v.total]) {
            near(all(parts), parts.seconds);
        }
        near(v.total.seconds, 0.46);
        near(v.total.server(), 0.1);
        near(v.total.network_seconds, 0.24 - 0.1);
        let [write, getattr] = &v.ops[..] else {
            panic!()
        };
        assert_eq!(
            (write.op.as_str(), getattr.op.as_str()),
            ("write", "getattr")
        );
        // 60 ms of its own, and half of the 10 ms of other work in COMPOUNDs.
        near(write.parts.execute_seconds.unwrap(), 0.065);
        near(getattr.parts.execute_seconds.unwrap(), 0.005);
        let phases: Vec<_> = write
            .phases
            .iter()
            .map(|(p, part)| (p.as_str(), *part))
            .collect();
        assert_eq!(phases[0].0, "log");
        near(phases[0].1, 0.8);
        assert!(getattr.phases.is_empty());
    }

    #[test]
    fn beside_other_clients_the_servers_times_are_means() {
        let path = joined(&client(), &server(2_000)).unwrap();
        let v = &path.versions[0];
        assert!(!v.alone);
        near(v.total.server(), 0.1);
        near(v.total.network_seconds, 0.14);
    }

    #[test]
    fn what_is_missing_is_said() {
        let none = || window(10, Snapshot::default());
        let why = |c: &Window, s: &Window| joined(c, s).unwrap_err();
        assert!(why(&none(), &server(20)).contains("`nfscope agent --client`"));
        assert!(why(&client(), &none()).contains("times no NFS requests"));
        let mut other = server(20);
        other.length = Duration::from_secs(12);
        assert!(why(&client(), &other).contains("10.0 s by the clock of c, 12.0 s by that of s"));
        let elsewhere = join(&client(), &server(20), ["c", "s"], |_| false).unwrap_err();
        assert!(
            elsewhere.contains("it sent some to nfs1:/exp"),
            "{elsewhere}"
        );
        let mut v3 = Snapshot::default();
        v3.counter(&f::RPC_PHASE, ["3", "queue"], 1.0);
        assert!(why(&client(), &window(10, v3)).contains("saw no request over NFSv4.1"));
        // A server whose times exceed the client's round trips is another server.
        let mut slow = server(20);
        slow.delta = {
            let mut s = Snapshot::default();
            s.histogram(&f::RPC_DURATION, ["4.1"], durations(20, 9.0));
            s.counter(&f::RPC_PHASE, ["4.1", "execute"], 9.0);
            s
        };
        assert!(why(&client(), &slow).contains("for longer than their round trips"));
    }
}
