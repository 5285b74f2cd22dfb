//! `/slow` with several subscribers at once, each with its own filter. In-process, with a source that needs no kernel.

use crate::fixture::serve::{HANG, attached, get, receive, resident, send, send_from, serve};
use crate::fixture::{Fake, Slow, slow_op, status};
use crate::memory;
use nfscope_api::query::QueryString;
use nfscope_api::slow_line::Line;
use nfscope_model::{ProbeState, SlowFilter};
use nfscope_serve::service::slow_subscribers::MAX_SUBSCRIBERS;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Subscriber whose response header has been read.
struct Listener(BufReader<TcpStream>);

impl Listener {
    fn new(address: SocketAddr, query: &str) -> Self {
        // HTTP/1.0: lines come without chunks.
        let request = format!("GET /slow{query} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        Listener::open(send(address, request.as_bytes()))
    }

    fn open(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.0 200 "), "{head}");
        assert!(
            head.contains("content-type: application/x-ndjson\r\n"),
            "{head}"
        );
        Listener(reader)
    }

    fn line(&mut self) -> Line {
        let mut text = String::new();
        self.0.read_line(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Name of the operation in the next line.
    fn op(&mut self) -> String {
        match self.line() {
            Line::Op(op) => op.op,
            other => panic!("{other:?}"),
        }
    }
}

fn server() -> (SocketAddr, Arc<Mutex<Slow>>) {
    let source = Fake::new();
    let slow = source.slow.clone();
    (attached(source), slow)
}

/// Waits until the source was last given this filter.
fn asked(slow: &Mutex<Slow>, want: Option<&SlowFilter>) {
    let begun = Instant::now();
    while slow.lock().unwrap().asked.last().map(Option::as_ref) != Some(want) {
        assert!(
            begun.elapsed() < HANG,
            "{:?}",
            slow.lock().unwrap().asked.last()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn happen(slow: &Mutex<Slow>, ops: &[(&str, u64)]) {
    let ops = ops.iter().map(|(op, ms)| slow_op(op, *ms));
    slow.lock().unwrap().batch.ops.extend(ops);
}

#[test]
fn slow_operations_arrive_as_they_happen() {
    let (a, slow) = server();
    let mut listener = Listener::new(a, "");
    asked(&slow, Some(&SlowFilter::from_query("").unwrap()));
    for op in ["write", "commit", "getattr"] {
        // Next operation only after this one has arrived.
        happen(&slow, &[(op, 20)]);
        assert_eq!(listener.op(), op);
    }
}

#[test]
fn an_http_1_1_client_gets_slow_operations_in_chunks() {
    let (a, slow) = server();
    let mut s = send(a, b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
    happen(&slow, &[("write", 20)]);
    let mut text = String::new();
    while !text.contains("\"op\":\"write\"") {
        let mut some = [0; 1024];
        let n = s.read(&mut some).unwrap();
        text += std::str::from_utf8(&some[..n]).unwrap();
    }
    assert!(text.contains("transfer-encoding: chunked\r\n"), "{text}");
}

#[test]
fn each_subscriber_gets_its_filter_and_the_last_one_ends_the_watch() {
    let (a, slow) = server();
    assert!(slow.lock().unwrap().asked.is_empty());
    let mut writes = Listener::new(a, "?op=write&min_latency=50ms&limit=10");
    let mut all = Listener::new(a, "?min_latency=100ms&limit=20");
    let union = SlowFilter::from_query("min_latency=50ms&limit=20").unwrap();
    asked(&slow, Some(&union));
    happen(
        &slow,
        &[
            ("write", 60),
            ("read", 200),
            ("read", 60),
            ("write", 200),
            ("read", 300),
        ],
    );
    assert_eq!([writes.op(), writes.op()], ["write", "write"]);
    assert_eq!([all.op(), all.op(), all.op()], ["read", "write", "read"]);
    slow.lock().unwrap().batch.left_out = 3;
    for listener in [&mut writes, &mut all] {
        assert_eq!(listener.line(), Line::LeftOut { left_out: 3 });
    }
    drop(all);
    let alone = SlowFilter::from_query("op=write&min_latency=50ms&limit=10").unwrap();
    asked(&slow, Some(&alone));
    drop(writes);
    asked(&slow, None);
}

#[test]
fn a_subscriber_that_does_not_read_is_bounded_and_gets_the_number_missed() {
    const BATCHES: u64 = 250;
    const OPS: u64 = 2000;
    let _alone = memory();
    let (a, slow) = server();
    let mut stalled = Listener::new(a, "?limit=10000");
    let mut other = Listener::new(a, "?op=read");
    let ops = vec![("write", 20); OPS as usize];
    let before = resident();
    for _ in 0..BATCHES {
        happen(&slow, &ops);
        while !slow.lock().unwrap().batch.ops.is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let grown = resident().saturating_sub(before);
    // 500,000 lines are some 150 MB. The queue of a subscriber holds one of these MB, and other tests of this process take some 20.
    assert!(grown < 50 << 10, "{grown} kB more");
    happen(&slow, &[("read", 20)]);
    while other.line() == (Line::LeftOut { left_out: 0 }) {}
    let (mut shown, mut missed) = (0, 0);
    while shown + missed < BATCHES * OPS + 1 {
        match stalled.line() {
            Line::Op(_) => shown += 1,
            Line::LeftOut { left_out } => missed += left_out,
        }
    }
    assert_eq!(shown + missed, BATCHES * OPS + 1);
    assert!(missed > 0);
}

#[test]
fn a_subscriber_without_operations_gets_signs_of_life() {
    let (a, _slow) = server();
    let mut listener = Listener::new(a, "");
    assert_eq!(listener.line(), Line::LeftOut { left_out: 0 });
}

#[test]
fn slow_is_refused_with_the_reason() {
    let refused = |a, code: u16, why: &str| {
        let answer = get(a, "/slow", "");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code} ")) && answer.ends_with(why),
            "{answer}"
        );
    };
    let (_attached, wait) = mpsc::channel::<()>();
    let attaching = serve(move || {
        let _ = wait.recv();
        Ok(Box::new(Fake::new()))
    });
    refused(attaching, 503, "attaching\n");

    let untimed = attached(Fake {
        probes: vec![status("dispatch", true, ProbeState::Waiting, "no nfsd")],
        ..Fake::new()
    });
    refused(untimed, 503, "nfsd waiting: no nfsd (dispatch)\n");

    let (a, slow) = server();
    slow.lock().unwrap().refuses = Some("no room for a ring");
    refused(a, 503, "no room for a ring\n");
    slow.lock().unwrap().refuses = None;
    let answer = get(a, "/slow?op=wirte", "");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(
        answer.ends_with("op: no operation is called `wirte`; did you mean `write`?\n"),
        "{answer}"
    );
    let head = receive(send(a, b"HEAD /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(head.contains("application/x-ndjson"), "{head}");
    assert!(slow.lock().unwrap().asked.is_empty());
}

#[test]
fn subscribers_are_limited_in_all_and_for_one_address() {
    let (a, slow) = server();
    let refused = |answer: String, why: &str| {
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.ends_with(why),
            "{answer}"
        );
    };
    let mut some: Vec<_> = (0..5).map(|_| Listener::new(a, "")).collect();
    refused(
        get(a, "/slow", ""),
        "this agent serves at most 5 listeners for operations to one address at once\n",
    );
    let request = b"GET /slow HTTP/1.0\r\nHost: localhost\r\n\r\n";
    while some.len() < MAX_SUBSCRIBERS {
        some.push(Listener::open(send_from([127, 0, 0, 2], a, request)));
    }
    let one_more = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n";
    refused(
        receive(send_from([127, 0, 0, 2], a, one_more)),
        "this agent serves at most 8 listeners for slow operations at once\n",
    );
    assert!(get(a, "/healthz", "").starts_with("HTTP/1.1 200 "));
    drop(some);
    asked(&slow, None);
    Listener::new(a, "");
}
