//! The tables of each panel, from a view.

use crate::spans::Tone;
use crate::table::{BAR, Cell, Column, Key, NEVER, Row, Sort, Table, name};
use crate::view::{SampledOp, View};
use nfscope_model::HeldRequest;
use nfscope_text::units::{bytes, percent, rate, seconds};

/// Part of the time with a request from which on threads count as scarce.
const SCARCE: f64 = 0.9;

pub(super) const fn left(head: &'static str, key: Option<Key>, min: usize, rank: u8) -> Column {
    Column {
        head,
        key,
        left: true,
        min,
        rank,
    }
}

pub(super) const fn right(head: &'static str, key: Option<Key>, min: usize, rank: u8) -> Column {
    Column {
        head,
        key,
        left: false,
        min,
        rank,
    }
}

const OPS: &[Column] = &[
    left("VER", None, 3, 6),
    left("OPERATION", Some(Key::Name), 14, NEVER),
    right("OPS/S", Some(Key::Rate), 7, 8),
    right("P50", Some(Key::P50), 7, 4),
    right("P99", Some(Key::P99), 7, 7),
    right("MAX", Some(Key::Max), 7, 1),
    right("ERR/S", Some(Key::Errors), 6, 2),
    right("SHARE", Some(Key::Time), 6, 5),
    left(BAR, None, 9, 3),
];

pub(super) fn operations(v: &View) -> Table {
    let row = |o: &crate::view::Op| Row {
        sort: Sort {
            time: Some(o.seconds),
            rate: Some(o.rate),
            p50: o.p50,
            p99: o.p99,
            max: o.max,
            errors: o.errors_per_s,
            name: o.op.clone(),
            version: Some(o.version.clone()),
            called: String::new(),
        },
        cells: vec![
            name(&o.version),
            name(&o.op),
            number(Some(o.rate), rate),
            number(o.p50, seconds),
            number(o.p99, seconds),
            number(o.max, seconds),
            alarm(o.errors_per_s, rate, o.errors_per_s > Some(0.0)),
            number(Some(o.share), percent),
            Cell::Bar(o.phases.clone()),
        ],
    };
    Table {
        columns: OPS.into(),
        rows: v.ops.iter().map(row).collect(),
        empty: match v.rpc.iter().any(|r| r.rate > 0.0) {
            // NULL calls have none.
            true => "no NFS operations are known of in this window",
            false => "no NFS operations in this window",
        }
        .to_owned(),
        history: None,
    }
}

const POOLS: &[Column] = &[
    left("POOL", Some(Key::Name), 4, NEVER),
    right("THREADS", None, 7, 7),
    right("BUSY", None, 4, 5),
    right("LIMIT", None, 5, 2),
    right("BUSY %", Some(Key::Time), 7, 9),
    right("ALL BUSY", None, 8, 8),
    right("WAITS/S", Some(Key::Rate), 7, 3),
    right("QUEUE P50", Some(Key::P50), 9, 4),
    right("QUEUE P99", Some(Key::P99), 9, 10),
    right("MAX", Some(Key::Max), 7, 1),
];

pub(super) fn pools(v: &View) -> Table {
    let row = |p: &crate::view::Pool| Row {
        sort: Sort {
            // Seconds, as in the other tables.
            time: p.busy_ratio.map(|r| r * p.threads * v.window_seconds),
            rate: p.rate,
            p50: p.queue_p50,
            p99: p.queue_p99,
            max: p.queue_max,
            errors: None,
            name: p.pool.clone(),
            version: None,
            called: String::new(),
        },
        cells: vec![
            name(&p.pool),
            number(Some(p.threads), whole),
            number(p.busy, whole),
            number(p.limit, whole),
            alarm(p.busy_ratio, percent, p.busy_ratio > Some(SCARCE)),
            alarm(
                p.saturated_ratio,
                percent,
                p.saturated_ratio > Some(1.0 - SCARCE),
            ),
            number(p.rate, rate),
            number(p.queue_p50, seconds),
            number(p.queue_p99, seconds),
            number(p.queue_max, seconds),
        ],
    };
    Table {
        columns: POOLS.into(),
        rows: v.pools.iter().map(row).collect(),
        empty: empty(v, "pools", "no nfsd threads"),
        history: None,
    }
}

const RPC: &[Column] = &[
    left("VER", Some(Key::Name), 4, NEVER),
    right("RPC/S", Some(Key::Rate), 7, 8),
    right("P50", Some(Key::P50), 7, 5),
    right("P99", Some(Key::P99), 7, 7),
    right("MAX", Some(Key::Max), 7, 3),
    right("IN", None, 9, 2),
    right("OUT", None, 9, 1),
    left(BAR, None, 9, 4),
];

pub(super) fn rpc(v: &View) -> Table {
    let row = |r: &crate::view::Rpc| Row {
        sort: Sort {
            time: Some(r.seconds),
            rate: Some(r.rate),
            p50: r.p50,
            p99: r.p99,
            max: r.max,
            errors: None,
            name: r.version.clone(),
            version: Some(r.version.clone()),
            called: String::new(),
        },
        cells: vec![
            name(&r.version),
            number(Some(r.rate), rate),
            number(r.p50, seconds),
            number(r.p99, seconds),
            number(r.max, seconds),
            number(r.received_per_s, bytes),
            number(r.sent_per_s, bytes),
            Cell::Bar(r.phases.clone()),
        ],
    };
    Table {
        columns: RPC.into(),
        rows: v.rpc.iter().map(row).collect(),
        empty: empty(v, "rpc", "no requests in this window"),
        history: None,
    }
}

const LOGS: &[Column] = &[
    left("LOG", Some(Key::Name), 14, NEVER),
    right("WAITS/S", Some(Key::Rate), 9, 6),
    right("P50", Some(Key::P50), 10, 4),
    right("P99", Some(Key::P99), 10, 7),
    right("MAX", Some(Key::Max), 10, 1),
    right("WRITES/S", None, 10, 3),
    right("WRITE P99", None, 10, 5),
    right("BYTES", None, 9, 2),
    right("DEVICE", None, 7, 4),
];

pub(super) fn logs(v: &View) -> Table {
    let row = |l: &crate::view::Log| Row {
        sort: Sort {
            time: l.seconds,
            rate: l.waits_per_s,
            p50: l.wait_p50,
            p99: l.wait_p99,
            max: l.wait_max,
            errors: None,
            name: format!("{} {}", l.fs, l.volume),
            version: None,
            called: String::new(),
        },
        cells: vec![
            name(&format!("{} {}", l.fs, l.volume)),
            number(l.waits_per_s, rate),
            number(l.wait_p50, seconds),
            number(l.wait_p99, seconds),
            number(l.wait_max, seconds),
            number(l.writes_per_s, rate),
            number(l.write_p99, seconds),
            number(l.bytes_per_s, bytes),
            l.separate.map_or(Cell::None, |own| {
                let device = if own { "own" } else { "shared" };
                Cell::Text(Tone::Plain, device.into())
            }),
        ],
    };
    Table {
        columns: LOGS.into(),
        rows: v.logs.iter().map(row).collect(),
        empty: empty(v, "logs", "no log was written in this window"),
        history: None,
    }
}

const DISKS: &[Column] = &[
    left("DISK", Some(Key::Name), 14, NEVER),
    right("REQ/S", Some(Key::Rate), 7, 6),
    right("QUEUE P99", None, 9, 4),
    right("DEV P50", Some(Key::P50), 8, 3),
    right("DEV P99", Some(Key::P99), 8, 7),
    right("MAX", Some(Key::Max), 7, 1),
    right("BYTES", None, 9, 5),
    right("IN FLIGHT", None, 9, 2),
];

pub(super) fn disks(v: &View) -> Table {
    let row = |d: &crate::view::Disk| {
        let text = format!("{} {}", d.device, d.op);
        Row {
            sort: Sort {
                time: d.seconds,
                rate: d.rate,
                p50: d.device_p50,
                p99: d.device_p99,
                max: d.device_max,
                errors: None,
                name: text.clone(),
                version: None,
                called: String::new(),
            },
            cells: vec![
                name(text.trim_end()),
                number(d.rate, rate),
                number(d.queue_p99, seconds),
                number(d.device_p50, seconds),
                number(d.device_p99, seconds),
                number(d.device_max, seconds),
                number(d.bytes_per_s, bytes),
                number(d.in_flight, whole),
            ],
        }
    };
    Table {
        columns: DISKS.into(),
        rows: v.disks.iter().map(row).collect(),
        empty: empty(v, "disks", "no block requests in this window"),
        history: None,
    }
}

const CLIENTS: &[Column] = &[
    left("CLIENT", Some(Key::Name), 16, NEVER),
    right("OPS/S", Some(Key::Rate), 9, 4),
    right("MEAN", None, 10, 3),
    right("SHARE", Some(Key::Time), 8, 5),
    right("READ/S", None, 9, 3),
    right("WRITE/S", None, 9, 3),
    right("OPS/REQ", None, 9, 1),
    right("RTT", None, 10, 2),
];

pub(super) fn clients(v: &View) -> Table {
    let row = |c: &crate::view::Client| Row {
        sort: Sort {
            called: c.name.clone().unwrap_or_default(),
            ..spender(&c.client, c.seconds, c.rate)
        },
        cells: vec![
            match &c.name {
                Some(called) => name(&format!("{} {called}", c.client)),
                None => name(&c.client),
            },
            number(Some(c.rate), rate),
            number(c.mean, seconds),
            number(c.share, percent),
            number(c.read_per_s, bytes),
            number(c.written_per_s, bytes),
            number(c.ops_per_request, |n| format!("{n:.1}")),
            number(c.min_rtt, seconds),
        ],
    };
    Table {
        columns: CLIENTS.into(),
        rows: v.clients.iter().map(row).collect(),
        empty: empty(v, "clients", "no client operations in this window"),
        history: None,
    }
}

const EXPORTS: &[Column] = &[
    left("EXPORT", Some(Key::Name), 16, NEVER),
    right("OPS/S", Some(Key::Rate), 9, 4),
    right("MEAN", None, 10, 3),
    right("SHARE", Some(Key::Time), 8, 5),
    right("READ/S", None, 9, 2),
    right("WRITE/S", None, 9, 1),
];

pub(super) fn exports(v: &View) -> Table {
    let row = |e: &crate::view::Export| Row {
        sort: spender(&e.export, e.seconds, e.rate),
        cells: vec![
            name(&e.export),
            number(Some(e.rate), rate),
            number(e.mean, seconds),
            number(e.share, percent),
            number(e.read_per_s, bytes),
            number(e.written_per_s, bytes),
        ],
    };
    Table {
        columns: EXPORTS.into(),
        rows: v.exports.iter().map(row).collect(),
        empty: empty(v, "exports", "no operations on exports in this window"),
        history: None,
    }
}

const SAMPLED: &[Column] = &[
    left("VER", None, 3, 6),
    left("OPERATION", Some(Key::Name), 14, NEVER),
    // This column has no Key::Rate, because a sample is no part of the history of the server's operations.
    right("SEEN", None, 7, 8),
    right("P50", Some(Key::P50), 7, 4),
    right("MAX", Some(Key::Max), 7, 7),
    right("ERRORS", Some(Key::Errors), 6, 2),
    right("SHARE", Some(Key::Time), 6, 5),
    left(BAR, None, 9, 3),
];

/// Table of the sampled operations of one client.
pub(super) fn sampled(ops: &[SampledOp]) -> Table {
    let row = |o: &SampledOp| Row {
        sort: Sort {
            time: Some(o.seconds),
            rate: Some(o.count as f64),
            p50: Some(o.p50),
            p99: None,
            max: Some(o.max),
            errors: Some(o.errors as f64),
            name: o.op.clone(),
            version: Some(o.version.clone()),
            called: String::new(),
        },
        cells: vec![
            name(&o.version),
            name(&o.op),
            number(Some(o.count as f64), whole),
            number(Some(o.p50), seconds),
            number(Some(o.max), seconds),
            alarm(Some(o.errors as f64), whole, o.errors > 0),
            number(Some(o.share), percent),
            Cell::Bar(o.phases.clone()),
        ],
    };
    Table {
        columns: SAMPLED.into(),
        rows: ops.iter().map(row).collect(),
        empty: "none was reported".to_owned(),
        history: None,
    }
}

const HELD: &[Column] = &[
    right("THREAD", None, 7, 2),
    right("IN HAND", Some(Key::Time), 8, NEVER),
    left("VER", None, 3, 4),
    left("REQUEST", Some(Key::Name), 14, NEVER),
    left("WAITS FOR", None, 9, 7),
    left("CLIENT", None, 16, 5),
    right("INODE", None, 10, 3),
    left("EXPORT", None, 16, 6),
];

/// Table of requests in hand. Newer requests end sooner, so that none of them may be an old one.
pub(super) fn held<'a>(requests: impl Iterator<Item = &'a HeldRequest>) -> Table {
    let text = |text: Option<String>| text.map_or(Cell::None, |t| name(&t));
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let row = |r: &HeldRequest| Row {
        sort: Sort {
            time: Some(r.seconds),
            name: r.op.clone(),
            version: some(&r.version),
            ..Sort::default()
        },
        cells: vec![
            name(&r.thread.to_string()),
            number(Some(r.seconds), seconds),
            text(some(&r.version)),
            text(some(&r.op)),
            name(&r.wait),
            text(r.client.clone()),
            text(r.inode.map(|i| i.to_string())),
            text(r.export.clone()),
        ],
    };
    Table {
        columns: HELD.into(),
        rows: requests.map(row).collect(),
        empty: "no request in hand for half a second or longer".to_owned(),
        history: None,
    }
}

fn spender(name: &str, time: Option<f64>, rate: f64) -> Sort {
    Sort {
        time,
        rate: Some(rate),
        name: name.to_owned(),
        ..Sort::default()
    }
}

const COVERAGE: &[Column] = &[
    left("VER", Some(Key::Name), 4, NEVER),
    right("COVERAGE", None, 10, 1),
];

pub(super) fn coverage(v: &View) -> Table {
    let row = |(version, ratio): (&String, &f64)| Row {
        sort: Sort {
            name: version.clone(),
            version: Some(version.clone()),
            ..Sort::default()
        },
        cells: vec![
            name(version),
            alarm(Some(*ratio), percent, (ratio - 1.0).abs() > 0.01),
        ],
    };
    Table {
        columns: COVERAGE.into(),
        rows: v.coverage.iter().map(row).collect(),
        empty: "no operations to compare with the kernel's counters yet".to_owned(),
        history: None,
    }
}

const LOST: &[Column] = &[
    left("LOST", Some(Key::Name), 24, NEVER),
    right("EVENTS/S", Some(Key::Rate), 10, 1),
];

pub(super) fn lost(v: &View) -> Table {
    let row = |l: &crate::view::Lost| {
        let text = format!("{} {}", l.probe, l.reason);
        Row {
            sort: spender(&text, None, l.rate),
            cells: vec![name(&text), number(Some(l.rate), rate)],
        }
    };
    Table {
        columns: LOST.into(),
        rows: v.lost.iter().map(row).collect(),
        empty: "no events lost in this window".to_owned(),
        history: None,
    }
}

/// Text of an empty table. It distinguishes "not measured" from "nothing happened".
fn empty(v: &View, section: &str, nothing: &str) -> String {
    if v.not_measured.contains(&section) {
        "not measured on this host: see `nfscope check`".to_owned()
    } else {
        nothing.to_owned()
    }
}

pub(super) fn number(value: Option<f64>, text: fn(f64) -> String) -> Cell {
    alarm(value, text, false)
}

fn alarm(value: Option<f64>, text: fn(f64) -> String, alarm: bool) -> Cell {
    let tone = if alarm { Tone::Alarm } else { Tone::Plain };
    value.map_or(Cell::None, |v| Cell::Text(tone, text(v)))
}

fn whole(v: f64) -> String {
    format!("{v:.0}")
}
