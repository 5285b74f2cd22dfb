//! Scrapes while thousands of other connections are idle, slow or hostile: every scrape must be answered. No time is asserted, but a scrape
//! gives up if it has to wait until other connections run into their time limits. A program of its own: thousands of connections take
//! memory that other tests measure.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../fixture/mod.rs"]
#[allow(dead_code)]
mod fixture;

use crate::fixture::Fake;
use crate::fixture::pki::{Pki, TLS};
use crate::fixture::serve::{attached, get, send, send_from};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const CROWD: usize = 2000;
const SCRAPES: usize = 20;

/// Raises the limit of open files: both ends of each connection are in this process.
fn allow_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let most = limit.current.unwrap_or(u64::MAX);
    assert!(most >= 4000, "this test needs 4000 descriptors: ulimit -n");
}

/// Collectors of `/metrics`.
const PARTS: [&str; 12] = [
    "op", "rpc", "threads", "log", "zfs", "block", "clients", "exports", "cpu", "findings",
    "coverage", "agent",
];

fn scrape(a: SocketAddr) {
    let answer = get(a, "/metrics", "");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
    assert!(answer.contains("nfscope_coverage_ratio"));
}

/// Bytes that one connection of a crowd sends, by its kind: none, part of a header, a request whose response is never read, or no HTTP.
fn sent(kind: usize, random: &mut SmallRng) -> Vec<u8> {
    match kind % 12 {
        0 => Vec::new(),
        // Unknown operation of 15,600 bytes: the agent compares it with all known names for its suggestion.
        1 => format!("GET /slow?op={} HTTP/1.1\r\nHost: localhost\r\n\r\n", "writ".repeat(3_900)).into_bytes(),
        2 => b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".to_vec(),
        3 => b"G".to_vec(),
        4 => b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        5 => b"GET /snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        6 => b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\nx".to_vec(),
        7 => b"GET /slow HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"
            .to_vec(),
        // Random sets of collectors: most of these responses have to be encoded anew.
        10 | 11 => {
            let mut any = || PARTS[random.random_range(0..PARTS.len())];
            let query = format!(
                "collect[]={}&collect[]={}&exclude[]={}",
                any(),
                any(),
                any()
            );
            format!("GET /metrics?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
        }
        // Start of a TLS handshake, and of HTTP/2.
        8 => [
            &b"\x16\x03\x01\xff\xff\x01\x00\x00"[..],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ]
        .concat(),
        _ => (0..random.random_range(1..64))
            .map(|_| random.random())
            .collect(),
    }
}

#[test]
fn every_scrape_is_answered_in_a_crowd() {
    allow_descriptors();
    let a = attached(Fake::new());
    let mut random = SmallRng::seed_from_u64(7);
    let mut crowd: Vec<TcpStream> = Vec::new();
    for kind in 0..CROWD {
        crowd.push(send(a, &sent(kind, &mut random)));
        if kind % (CROWD / SCRAPES) == 0 {
            scrape(a);
        }
    }
    for _ in 0..SCRAPES {
        scrape(a);
    }
    assert_eq!(crowd.len(), CROWD);
}

/// Idle connections without a request: a scraper behind a broken firewall leaves them.
#[test]
fn every_scrape_is_answered_beside_idle_connections() {
    allow_descriptors();
    let a = attached(Fake::new());
    let crowd: Vec<_> = (0..CROWD).map(|_| send(a, b"")).collect();
    for _ in 0..SCRAPES {
        scrape(a);
    }
    drop(crowd);
}

/// Crowd that reconnects from another address: each connection sends its header byte by byte, and is opened again once it is closed.
#[test]
fn every_scrape_is_answered_while_connections_come_back() {
    allow_descriptors();
    let a = attached(Fake::new());
    let (stop, opened) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let crowds: Vec<_> = (0..2)
        .map(|_| {
            let (stop, opened) = (stop.clone(), opened.clone());
            std::thread::spawn(move || {
                let open = || {
                    opened.fetch_add(1, Ordering::SeqCst);
                    send_from([127, 0, 0, 2], a, b"GET /metrics HTTP/1.1\r\nX: ")
                };
                let mut crowd: Vec<_> = (0..CROWD / 4).map(|_| open()).collect();
                while !stop.load(Ordering::SeqCst) {
                    for s in &mut crowd {
                        if s.write_all(b"y").is_err() {
                            *s = open();
                        }
                    }
                    // Pause between rounds: the crowd must not take the host's CPUs.
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
        })
        .collect();
    while opened.load(Ordering::SeqCst) < CROWD {
        scrape(a);
    }
    for _ in 0..SCRAPES {
        scrape(a);
    }
    stop.store(true, Ordering::SeqCst);
    for crowd in crowds {
        crowd.join().unwrap();
    }
}

/// Clients that request and do not read delay no other response.
#[test]
fn every_scrape_is_answered_beside_clients_that_do_not_read() {
    allow_descriptors();
    let a = attached(Fake::new());
    let request = b"GET /snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut crowd: Vec<_> = (0..CROWD / 2).map(|_| send(a, request)).collect();
    for s in crowd.iter_mut().rev().take(SCRAPES) {
        scrape(a);
        // Read of one byte: a slow reader, not a dead one.
        let _ = s.read(&mut [0]);
    }
}

/// Bytes that a connection of a crowd sends to a TLS port: none, part of a ClientHello, a whole one without the rest of the handshake, or
/// no TLS.
fn sent_of_tls(kind: usize, hello: &[u8], random: &mut SmallRng) -> Vec<u8> {
    match kind % 6 {
        0 => Vec::new(),
        1 => hello[..random.random_range(1..hello.len())].to_vec(),
        // Handshake that stays open: the server answers with its certificate and waits.
        2 | 3 => hello.to_vec(),
        4 => [&hello[..5], &sent(9, random)].concat(),
        _ => sent(kind, random),
    }
}

/// Each ClientHello costs the server a signature on the thread that answers scrapes.
#[test]
fn every_scrape_over_tls_is_answered_in_a_crowd() {
    allow_descriptors();
    let pki = Pki::new();
    let (a, _server) = pki.serve(TLS);
    let scrape = || {
        let answer = pki.scrape(a, None).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
    };
    let hello = pki.hello();
    let mut random = SmallRng::seed_from_u64(7);
    let mut crowd: Vec<TcpStream> = Vec::new();
    for kind in 0..CROWD {
        crowd.push(send(a, &sent_of_tls(kind, &hello, &mut random)));
        if kind % (CROWD / SCRAPES) == 0 {
            scrape();
        }
    }
    for _ in 0..SCRAPES {
        scrape();
    }
    assert_eq!(crowd.len(), CROWD);
}
