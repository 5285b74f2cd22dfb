//! Names of clients and users in responses of the agent: beside their addresses and IDs, and never in a metric.

use crate::fixture::serve::{Kept, attached_with, get, send};
use crate::fixture::{slow_op, status};
use nfscope_api::slow_line::Line;
use nfscope_model::{
    BreakdownBatch, BreakdownRow, BreakdownWant, Histogram, ProbeState, ProbeStatus, Scheme,
    SlowBatch, SlowFilter, Snapshot, family as f,
};
use nfscope_serve::names::Names;
use nfscope_source::{Source, clock};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;

/// Source with two clients that write, one as user 1000 and one as user 1001.
struct Two(u64);

const CLIENTS: [(&str, &str, u64); 2] = [("10.9.0.2", "1000", 80), ("10.9.0.3", "1001", 20)];

fn times(n: u64) -> Histogram {
    let mut h = Histogram::new(Scheme::TIME);
    h.counts[40] = n;
    h.sum = n as f64 * 1e-3;
    h
}

impl Source for Two {
    fn snapshot(&mut self) -> Snapshot {
        self.0 += 1;
        let mut s = Snapshot::new(clock::now());
        for (client, _, n) in CLIENTS {
            s.counter(&f::CLIENT_OPS, [client], (n * self.0) as f64);
        }
        s.histogram(&f::OP_DURATION, ["4.2", "write"], times(100 * self.0));
        s.probes = self.probes();
        s
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        vec![status("nfsd_op_end", true, ProbeState::Attached, "")]
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        SlowBatch::default()
    }

    fn watch_breakdown(&mut self, _: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        Ok(BreakdownBatch::default())
    }

    fn take_breakdown(&mut self) -> BreakdownBatch {
        let row = |(client, user, n): (&str, &str, u64)| BreakdownRow {
            keys: [client, "/srv", "write", "4.2", user, "7"].map(str::to_owned),
            times: times(n),
            moved: Default::default(),
        };
        BreakdownBatch {
            rows: CLIENTS.into_iter().map(row).collect(),
            ..BreakdownBatch::default()
        }
    }
}

fn agent() -> SocketAddr {
    let names = Names::of_pairs(&[("10.9.0.2", "db1.example"), ("1000", "alice")]);
    let kept = Kept {
        names,
        ..Kept::default()
    };
    attached_with(kept, Two(0))
}

fn json(agent: SocketAddr, path: &str) -> Value {
    let answer = get(agent, path, "");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
}

/// Client, its name, user and its name of each row of the first second. `Err` has the text of a refusal.
fn rows(agent: SocketAddr, query: &str) -> Result<Vec<[Option<String>; 4]>, String> {
    let request = format!("GET /breakdown?{query} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let mut lines = BufReader::new(send(agent, request.as_bytes())).lines();
    let first = lines.next().unwrap().unwrap();
    let mut body = lines
        .map(Result::unwrap)
        .skip_while(|l| !l.is_empty())
        .skip(1);
    if !first.contains(" 200 ") {
        return Err(body.collect::<String>());
    }
    let told = body.nth(1).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().map(str::to_owned);
    let row = |row: &Value| ["client", "client_name", "user", "user_name"].map(|k| text(row, k));
    Ok(told["rows"].as_array().unwrap().iter().map(row).collect())
}

#[test]
fn names_stand_beside_addresses_and_in_no_metric() {
    let agent = agent();
    let snapshot = json(agent, "/snapshot");
    assert_eq!(
        snapshot["names"],
        serde_json::json!({"10.9.0.2": "db1.example"})
    );
    let windows = loop {
        let answer = json(agent, "/windows");
        let windows = answer["windows"].as_array().unwrap().clone();
        if !windows.is_empty() {
            break windows;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let clients = windows[0]["clients"].as_array().unwrap();
    let called: Vec<_> = (clients.iter())
        .map(|c| (c["name"].as_str().unwrap(), c.get("called")))
        .collect();
    assert!(
        called.contains(&("10.9.0.2", Some(&"db1.example".into()))),
        "{called:?}"
    );
    assert!(called.contains(&("10.9.0.3", None)), "{called:?}");
    let metrics = get(agent, "/metrics", "");
    assert!(metrics.contains("client=\"10.9.0.2\""), "{metrics}");
    assert!(!metrics.contains("db1") && !metrics.contains("alice"));
}

#[test]
fn a_slow_operation_has_the_name_of_its_client() {
    let line = Line::Op(Box::new(slow_op("write", 1)));
    let (plain, named) = (
        line.encode().unwrap(),
        line.encode_named(Some("a\"b")).unwrap(),
    );
    let mut value: Value = serde_json::from_str(&named).unwrap();
    assert_eq!(value["client_name"], "a\"b");
    value.as_object_mut().unwrap().remove("client_name");
    assert_eq!(value, serde_json::from_str::<Value>(&plain).unwrap());
    assert_eq!(serde_json::from_str::<Line>(&named).unwrap(), line);
    assert_eq!(line.encode_named(None).unwrap(), plain);
}

#[test]
fn a_breakdown_has_names_and_takes_them_as_filters() {
    let agent = agent();
    let some = |text: &str| Some(text.to_owned());
    let all = rows(agent, "by=client,user").unwrap();
    let db = [
        some("10.9.0.2"),
        some("db1.example"),
        some("1000"),
        some("alice"),
    ];
    assert_eq!(
        all,
        [db.clone(), [some("10.9.0.3"), None, some("1001"), None]]
    );
    for filter in [
        "client:db1",
        "client:DB1.example",
        "user:alice",
        "client:10.9.0.2",
    ] {
        let found = rows(agent, &format!("by=client,user&where={filter}"));
        assert_eq!(found, Ok(vec![db.clone()]), "{filter}");
    }
    let why = rows(agent, "by=client&where=client:web7").unwrap_err();
    assert!(
        why.contains("no client with the name `web7` is known here; give an address"),
        "{why}"
    );
}
