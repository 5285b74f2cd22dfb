//! A window as the page at `/` draws it: the answer of `/windows`.
//!
//! Times are in seconds, counts are those of the window. A value that this host does not have is `null` or has no row; it is never 0.
//! Histograms are sparse: index and count of each bucket that is not empty, by the edges of [`Greeting`].

use nfscope_model::breakdown::Moved;
use nfscope_model::window_parts::{self, WindowDisk, WindowLog, WindowOp, WindowUser};
use nfscope_model::{Family, Histogram, Scheme, Sparse, Window, family as f, phase};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Most clients and exports in one window; the others are in a row named `other`.
const MOST_USERS: usize = 50;
/// Name of the row for the others, as in the labels of the metrics.
const OTHER: &str = "other";

/// Converts a clock to seconds since 1970.
pub fn seconds(clock: SystemTime) -> f64 {
    let since = clock.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |d| d.as_secs_f64())
}

/// First message to a viewer.
#[derive(Debug, Serialize)]
pub struct Greeting<'a> {
    /// Name of the server.
    pub host: &'a str,
    /// Release of its kernel; empty where the agent does not know it.
    pub kernel: &'a str,
    /// The agent's version.
    pub version: &'a str,
    /// Upper edges of the buckets of times, in seconds. The last bucket, for longer times, has no edge.
    pub edges: Vec<f64>,
    /// Names of the phases of operations, in the order of [`Op::phases`].
    pub phases: &'static [&'static str],
    /// Names of the phases of requests, in the order of [`Rpc::phases`].
    pub rpc_phases: &'static [&'static str],
}

impl<'a> Greeting<'a> {
    /// Greeting of this host.
    pub fn new(host: &'a str, kernel: &'a str) -> Self {
        Greeting {
            host,
            kernel,
            version: crate::build_info::VERSION,
            edges: (0..Scheme::TIME.len - 1)
                .map(|i| Scheme::TIME.edge(i))
                .collect(),
            phases: &phase::OF_OP,
            rpc_phases: &phase::OF_RPC,
        }
    }
}

/// Contents of one window.
#[derive(Debug, Serialize)]
pub struct LiveWindow<'a> {
    /// End of the window by the server's clock, in seconds since 1970.
    pub at: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Procedures and component operations that ended in the window.
    pub ops: Vec<Op<'a>>,
    /// Requests by version.
    pub rpc: Vec<Rpc<'a>>,
    /// Thread pools.
    pub pools: Vec<Pool<'a>>,
    /// Journals and intent logs.
    pub logs: Vec<Log<'a>>,
    /// Block devices.
    pub disks: Vec<Disk<'a>>,
    /// Clients with operations.
    pub clients: Vec<User<'a>>,
    /// Exports with operations.
    pub exports: Vec<User<'a>>,
    /// Operations timed over operations counted by the kernel, by version.
    pub coverage: BTreeMap<&'a str, f64>,
    /// Number of events that probes could not measure.
    pub lost: f64,
    /// Active findings by name: the share of the requests' time that each explains.
    pub findings: BTreeMap<&'a str, f64>,
}

/// Histogram of times.
#[derive(Debug, Serialize)]
pub struct Times {
    /// Number of times.
    pub count: u64,
    /// Sum of the times.
    pub sum: f64,
    /// Counts by bucket.
    pub buckets: Sparse,
}

impl From<&Histogram> for Times {
    fn from(h: &Histogram) -> Self {
        Times {
            count: h.count(),
            sum: h.sum,
            buckets: h.sparse(),
        }
    }
}

/// A procedure or component operation.
#[derive(Debug, Serialize)]
pub struct Op<'a> {
    /// NFS version.
    pub version: &'a str,
    /// The RFC's name in lower case.
    pub op: &'a str,
    /// Times from begin to end.
    pub times: Times,
    /// Answers with a status other than OK.
    pub errors: Option<f64>,
    /// That time by what the thread did.
    pub phases: Option<window_parts::PhaseSeconds<{ phase::OPS }>>,
}

/// Requests of one version.
#[derive(Debug, Serialize)]
pub struct Rpc<'a> {
    /// NFS version.
    pub version: &'a str,
    /// Times from arrival to reply.
    pub times: Times,
    /// Sum of the times by phase.
    pub phases: Option<window_parts::PhaseSeconds<5>>,
}

/// A pool of nfsd threads.
#[derive(Debug, Serialize)]
pub struct Pool<'a> {
    /// Number.
    pub pool: &'a str,
    /// Number of threads.
    pub threads: f64,
    /// Seconds of threads with a request in hand, summed up.
    pub busy: Option<f64>,
    /// Seconds in which every thread had a request in hand.
    pub saturated: Option<f64>,
    /// Waits of requests for a thread.
    pub queue: Option<Times>,
}

/// The log of one file system.
#[derive(Debug, Serialize)]
pub struct Log<'a> {
    /// File system type.
    pub fs: &'a str,
    /// Source that it is mounted from.
    pub volume: &'a str,
    /// Waits of threads for the log.
    pub waits: Option<Times>,
    /// Writes of the log.
    pub writes: Option<Times>,
}

/// Requests of one kind to one block device.
#[derive(Debug, Serialize)]
pub struct Disk<'a> {
    /// Name.
    pub device: &'a str,
    /// `read`, `write`, `flush`.
    pub op: &'a str,
    /// Times from issue to completion.
    pub times: Times,
    /// Bytes read or written.
    pub bytes: Option<f64>,
}

/// A client or an export.
#[derive(Debug, Serialize)]
pub struct User<'a> {
    /// Address or path.
    pub name: &'a str,
    /// Name of the client with this address, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    /// Number of operations.
    pub ops: f64,
    /// Time of the operations.
    pub seconds: Option<f64>,
    /// Bytes that READs returned and WRITEs stored, where they are counted.
    pub moved: Option<Moved>,
    /// Smoothed round-trip time of a client's connection, in seconds, with delayed acknowledgements.
    pub rtt: Option<f64>,
    /// Lowest round-trip time of a client in the last minutes, in seconds.
    pub min_rtt: Option<f64>,
}

impl<'a> LiveWindow<'a> {
    /// Contents of a window that ended `at` this many seconds after 1970, with the active findings.
    pub fn of(w: &'a Window, at: f64, findings: impl Iterator<Item = (&'a str, f64)>) -> Self {
        let rpc_phases = window_parts::rpc_phases(w);
        LiveWindow {
            at,
            seconds: w.length.as_secs_f64(),
            ops: window_parts::ops(w).into_iter().map(op).collect(),
            rpc: window_parts::histograms(w, &f::RPC_DURATION)
                .map(|([version], h)| Rpc {
                    version,
                    times: h.into(),
                    phases: rpc_phases.get(version).copied(),
                })
                .collect(),
            pools: pools(w),
            logs: window_parts::logs(w).into_iter().map(log).collect(),
            disks: window_parts::disks(w).into_iter().map(disk).collect(),
            clients: users(window_parts::clients(w)),
            exports: users(window_parts::exports(w)),
            coverage: window_parts::numbers(w, &f::COVERAGE)
                .map(|([version], v)| (version, v))
                .collect(),
            lost: window_parts::numbers(w, &f::EVENTS_LOST).fold(0.0, |sum, (_, n)| sum + n),
            findings: findings.collect(),
        }
    }

    /// This window with names of clients.
    pub fn naming(mut self, name: impl Fn(&str) -> Option<String>) -> Self {
        for client in &mut self.clients {
            client.called = name(client.name);
        }
        self
    }
}

fn op(o: WindowOp<'_>) -> Op<'_> {
    Op {
        version: o.version,
        op: o.op,
        times: o.durations.into(),
        errors: o.errors,
        phases: o.phases,
    }
}

fn log(l: WindowLog<'_>) -> Log<'_> {
    Log {
        fs: l.fs,
        volume: l.volume,
        waits: l.waits.map(Times::from),
        writes: l.writes.map(Times::from),
    }
}

fn disk(d: WindowDisk<'_>) -> Disk<'_> {
    Disk {
        device: d.device,
        op: d.op,
        times: d.requests.into(),
        bytes: d.bytes,
    }
}

fn pools(w: &Window) -> Vec<Pool<'_>> {
    let value = |family: &Family<1>, pool: &str| w.delta.value(family, [pool]);
    window_parts::numbers(w, &f::THREADS)
        .map(|([pool], threads)| Pool {
            pool,
            threads,
            busy: value(&f::THREAD_BUSY, pool),
            saturated: value(&f::THREADS_SATURATED, pool),
            queue: w.delta.hist(&f::RPC_QUEUE, [pool]).map(Times::from),
        })
        .collect()
}

/// Rows of the users with the most time. The rest is summed up in one row, so that all rows still add up.
fn users(mut all: Vec<WindowUser<'_>>) -> Vec<User<'_>> {
    let time = |u: &WindowUser| u.seconds.unwrap_or(0.0);
    all.sort_by(|a, b| {
        (a.name == OTHER)
            .cmp(&(b.name == OTHER))
            .then(time(b).total_cmp(&time(a)))
            .then(a.name.cmp(b.name))
    });
    let known = all.iter().take_while(|u| u.name != OTHER).count();
    let rest = all.split_off(known.min(MOST_USERS));
    let row = |u: &WindowUser| (u.ops, u.seconds, u.moved);
    let mut rows: Vec<_> = (all.into_iter())
        .map(|u| User {
            name: u.name,
            called: None,
            ops: u.ops,
            seconds: u.seconds,
            moved: u.moved,
            rtt: u.rtt,
            min_rtt: u.min_rtt,
        })
        .collect();
    let together = rest
        .iter()
        .map(row)
        .reduce(|(ops, seconds, moved), (n, s, m)| {
            let both = seconds.zip(s).map(|(a, b)| a + b);
            // A client without READs and WRITEs has no bytes, and adds none.
            let bytes = match (moved, m) {
                (Some(mut a), Some(b)) => {
                    a += b;
                    Some(a)
                }
                (a, b) => a.or(b),
            };
            (ops + n, both, bytes)
        });
    rows.extend(together.map(|(ops, seconds, moved)| User {
        name: OTHER,
        called: None,
        ops,
        seconds,
        moved,
        rtt: None,
        min_rtt: None,
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::Snapshot;
    use std::time::Duration;

    fn window(fill: impl FnOnce(&mut Snapshot)) -> Window {
        let mut delta = Snapshot::new(Duration::from_secs(1));
        fill(&mut delta);
        Window {
            length: Duration::from_secs(2),
            delta,
        }
    }

    #[test]
    fn counts_and_sums_are_those_of_the_window() {
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[7] = 3;
        h.counts[40] = 2;
        h.sum = 0.5;
        let w = window(|s| {
            s.histogram(&f::OP_DURATION, ["4.2", "write"], h);
            s.counter(&f::OP_ERRORS, ["4.2", "write", "nospc"], 1.0);
            s.gauge(&f::THREADS, ["0"], 8.0);
        });
        let live = LiveWindow::of(&w, 10.5, [("slow_disk", 0.5)].into_iter());
        let json = serde_json::to_value(&live).unwrap();
        let write = &json["ops"][0];
        assert_eq!(write["times"]["count"], 5);
        assert_eq!(write["times"]["sum"], 0.5);
        assert_eq!(
            write["times"]["buckets"],
            serde_json::json!([[7, 3], [40, 2]])
        );
        assert_eq!(
            (&write["errors"], &json["seconds"]),
            (&1.0.into(), &2.0.into())
        );
        assert!(write["phases"].is_null());
        assert_eq!(json["findings"]["slow_disk"], 0.5);
        // A value that was not measured is null and not 0.
        assert!(json["pools"][0]["busy"].is_null());
    }

    #[test]
    fn users_beyond_the_limit_are_put_together_and_still_add_up() {
        let names: Vec<_> = (0..MOST_USERS + 10)
            .map(|i| format!("10.0.0.{i}"))
            .collect();
        let w = window(|s| {
            for (i, name) in names.iter().enumerate() {
                s.counter(&f::CLIENT_OPS, [name], 1.0);
                s.counter(&f::CLIENT_OP_SECONDS, [name], i as f64);
            }
            s.counter(&f::CLIENT_OPS, [OTHER], 5.0);
            s.counter(&f::CLIENT_OP_SECONDS, [OTHER], 1000.0);
        });
        let rows = users(window_parts::clients(&w));
        assert_eq!(rows.len(), MOST_USERS + 1);
        assert_eq!(rows[0].name, names[MOST_USERS + 9]);
        let other = &rows[MOST_USERS];
        // The row `other` sums up the ten with the least time (0 to 9 seconds) and the operations that were in `other` before.
        assert_eq!(
            (other.name, other.ops, other.seconds),
            (OTHER, 15.0, Some(1045.0))
        );
    }

    #[test]
    fn edges_are_those_of_the_buckets() {
        let edges = Greeting::new("", "").edges;
        assert_eq!(edges.len() + 1, Scheme::TIME.len);
        assert_eq!(Scheme::TIME.bucket(edges[12]), 12);
    }
}
