//! The HTTP server against clients that behave and clients that do not. In-process, with a source that needs no kernel.

use crate::fixture::serve::{
    HANG, attached, get, receive, resident, send, serve, serve_as, serve_on,
};
use crate::fixture::{Fake, status};
use crate::memory;
use nfscope_model::{HeldRequest, ProbeState};
use nfscope_serve::http::WebConfig;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

/// First evaluation: at the end of the agent's first window. The status stays 200, because the agent still serves.
#[test]
fn health_is_degraded_while_a_request_is_stuck() {
    let stuck = HeldRequest {
        seconds: 7.0,
        version: "3".into(),
        op: "write".into(),
        wait: "disk".into(),
        client: Some("192.0.2.7".into()),
        ..HeldRequest::default()
    };
    let a = attached(Fake {
        held: vec![stuck],
        ..Fake::new()
    });
    let begun = Instant::now();
    let answer = loop {
        let answer = get(a, "/healthz", "");
        if answer.contains("degraded") {
            break answer;
        }
        assert!(begun.elapsed() < HANG, "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.contains("degraded: 1 request is stuck in the server now"),
        "{answer}"
    );
    let findings = get(a, "/findings", "");
    assert!(findings.contains("\"stuck_requests\""), "{findings}");
    // Server without a stuck request: healthy at every call.
    let healthy = attached(Fake::new());
    assert!(get(healthy, "/healthz", "").ends_with("ok\n"));
}

#[test]
fn every_address_answers() {
    let a = attached(Fake::new());
    for (path, code, kind, text) in [
        ("/", 200, "text/html; charset=utf-8", "/page/main.js"),
        (
            "/about",
            200,
            "text/html; charset=utf-8",
            "<title>nfscope on",
        ),
        (
            "/page/main.js",
            200,
            "text/javascript; charset=utf-8",
            "import",
        ),
        ("/windows", 200, "application/json", "\"edges\""),
        ("/windows?since=1.2", 200, "application/json", "\"windows\""),
        (
            "/windows?from=2&to=1",
            400,
            "text/plain; charset=utf-8",
            "seconds since 1970",
        ),
        (
            "/recordings",
            404,
            "text/plain; charset=utf-8",
            "nfscope baseline open",
        ),
        (
            "/windows?recording=friday",
            404,
            "text/plain; charset=utf-8",
            "nfscope baseline open",
        ),
        (
            "/windows?from=1&to=2",
            404,
            "text/plain; charset=utf-8",
            "--history-directory",
        ),
        (
            "/metrics",
            200,
            "text/plain; version=0.0.4; charset=utf-8",
            "nfscope_op_duration_seconds_bucket{",
        ),
        (
            "/metrics?x=1",
            200,
            "text/plain; version=0.0.4; charset=utf-8",
            "nfscope_build_info",
        ),
        (
            "/snapshot",
            200,
            "application/json",
            "\"nfscope_op_duration_seconds\"",
        ),
        (
            "/probes",
            200,
            "application/json",
            "\"times_operations\": true",
        ),
        ("/healthz", 200, "text/plain; charset=utf-8", "ok\n"),
        ("/-/healthy", 200, "text/plain; charset=utf-8", "healthy"),
        ("/-/ready", 200, "text/plain; charset=utf-8", "ready"),
        ("/findings", 200, "application/json", "\"active\""),
        ("/stuck", 200, "application/json", "\"requests\":["),
        (
            "/stuck?over=soon",
            400,
            "text/plain; charset=utf-8",
            "over: ",
        ),
        (
            "/docs/metrics",
            200,
            "text/plain; charset=utf-8",
            "nfscope_op_duration_seconds{version,op}",
        ),
        (
            "/docs/findings",
            200,
            "text/plain; charset=utf-8",
            "stuck_requests",
        ),
        (
            "/metrics?collect[]=opp",
            400,
            "text/plain; charset=utf-8",
            "did you mean `op`?",
        ),
        (
            "/slow?min_latency=1x",
            400,
            "text/plain; charset=utf-8",
            "500ms",
        ),
        ("/nothing", 404, "text/plain; charset=utf-8", "/metrics"),
    ] {
        let answer = get(a, path, "");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code} ")),
            "{path}: {answer}"
        );
        assert!(
            answer.contains(&format!("content-type: {kind}\r\n")),
            "{path}: {answer}"
        );
        assert!(answer.contains(text), "{path}: {answer}");
    }
    let answer = receive(send(
        a,
        b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    ));
    assert!(
        answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: GET, HEAD\r\n"),
        "{answer}"
    );
    for path in ["/metrics", "/slow"] {
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = receive(send(a, request.as_bytes()));
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"),
            "{answer}"
        );
    }
}

#[test]
fn the_accept_header_chooses_the_format() {
    let a = attached(Fake::new());
    let answer = get(
        a,
        "/metrics",
        "Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\n",
    );
    assert!(
        answer.contains(
            "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
        )
    );
    assert!(answer.ends_with("# EOF\n"));
    let accept = "Accept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited\r\n";
    let answer = get(a, "/metrics", accept);
    assert!(answer.contains(
        "content-type: application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited\r\n"
    ));
}

/// Uncompressed body of a response, and its compressed size in bytes.
fn unpacked(a: SocketAddr, path: &str) -> (String, usize) {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
    let mut answer = Vec::new();
    send(a, request.as_bytes())
        .read_to_end(&mut answer)
        .unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    assert!(
        head.contains("content-encoding: gzip\r\n"),
        "{path}: {head}"
    );
    assert!(
        head.contains("vary: accept, accept-encoding\r\n"),
        "{path}: {head}"
    );
    let mut text = String::new();
    flate2::read::GzDecoder::new(&answer[end..])
        .read_to_string(&mut text)
        .unwrap();
    (text, answer.len() - end)
}

#[test]
fn bodies_are_compressed_for_clients_that_accept_gzip() {
    let a = attached(Fake::new());
    for path in ["/metrics", "/metrics?collect[]=op", "/snapshot", "/"] {
        let (text, packed) = unpacked(a, path);
        let plain = get(a, path, "");
        let (head, body) = plain.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("content-encoding"), "{head}");
        assert!(head.contains("vary: accept, accept-encoding\r\n"), "{head}");
        // First line only: readings differ in their numbers.
        assert_eq!(text.lines().next(), body.lines().next(), "{path}");
        assert!(
            3 * packed < 2 * text.len(),
            "{path}: {packed} of {}",
            text.len()
        );
    }
    let (text, packed) = unpacked(a, "/metrics");
    assert!(packed * 4 < text.len(), "{packed} of {}", text.len());
}

#[test]
fn a_scraper_selects_collectors_of_the_metrics() {
    let a = attached(Fake::new());
    let answer = get(a, "/metrics?collect%5B%5D=block&collect%5B%5D=agent", "");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(body.contains("nfscope_block_bytes_total") && body.contains("nfscope_build_info"));
    assert!(!body.contains("nfscope_op_"), "{body}");
    let answer = get(a, "/metrics?exclude[]=block", "");
    assert!(!answer.contains("nfscope_block_") && answer.contains("nfscope_op_"));
}

/// Different parts of one reading are limited. A later reading has its own.
#[test]
fn different_parts_of_one_reading_are_limited() {
    let a = attached(Fake::new());
    let names = ["op", "rpc", "threads", "log", "block", "clients"];
    let pairs = names.iter().flat_map(|a| names.map(|b| (*a, b)));
    let parts: Vec<_> = pairs
        .map(|(a, b)| format!("/metrics?collect[]={a}&exclude[]={b}"))
        .collect();
    let begun = Instant::now();
    let busy = parts.iter().cycle().find_map(|path| {
        assert!(begun.elapsed() < HANG, "every part was made");
        let answer = get(a, path, "");
        (!answer.starts_with("HTTP/1.1 200 ")).then_some(answer)
    });
    let busy = busy.unwrap();
    assert!(busy.starts_with("HTTP/1.1 503 "), "{busy}");
    for text in ["retry-after: 1\r\n", "vary: accept", "at most 8 different"] {
        assert!(busy.contains(text), "{busy}");
    }
    // Whole metrics are not limited, and parts are available again from the next reading.
    assert!(get(a, "/metrics", "").starts_with("HTTP/1.1 200 "));
    while !get(a, &parts[1], "").starts_with("HTTP/1.1 200 ") {
        assert!(begun.elapsed() < HANG);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_snapshot_survives_the_wire() {
    let a = attached(Fake::new());
    let answer = get(a, "/snapshot", "");
    let json = answer.split_once("\r\n\r\n").unwrap().1;
    let s: nfscope_model::Snapshot = serde_json::from_str(json).unwrap();
    let n = s.at.as_secs() - 100;
    for (info, series) in crate::fixture::snapshot(n).filled() {
        if info.name != "nfscope_probe_attached" {
            assert_eq!(s.series(info), series);
        }
    }
}

#[test]
fn an_attaching_agent_answers_and_reports_its_state() {
    let (attached, wait) = mpsc::channel::<()>();
    let a = serve(move || {
        let _ = wait.recv();
        Ok(Box::new(Fake::new()))
    });
    let answer = get(a, "/healthz", "");
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("attaching\n"),
        "{answer}"
    );
    let answer = get(a, "/metrics", "");
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("nfscope_build_info"),
        "{answer}"
    );
    assert!(get(a, "/probes", "").contains("\"reason\": \"attaching\""));
    assert!(get(a, "/about", "").contains("attaching"));
    let answer = get(a, "/windows", "");
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("attaching"),
        "{answer}"
    );
    drop(attached);
    while !get(a, "/healthz", "").starts_with("HTTP/1.1 200 ") {
        std::thread::yield_now();
    }
}

#[test]
fn health_names_the_module_that_a_probe_waits_for() {
    let a = attached(Fake {
        probes: vec![status(
            "dispatch",
            true,
            ProbeState::Waiting,
            "module nfsd is not loaded",
        )],
        ..Fake::new()
    });
    let answer = get(a, "/healthz", "");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.ends_with("nfsd waiting: module nfsd is not loaded (dispatch)\n"),
        "{answer}"
    );
}

#[test]
fn two_hundred_scrapes_at_once_are_all_answered_by_few_readings() {
    let source = Fake {
        delay: Duration::from_millis(50),
        ..Fake::new()
    };
    let read = source.read.clone();
    let a = attached(source);
    let start = Arc::new(Barrier::new(200));
    let scrapers: Vec<_> = (0..200)
        .map(|_| {
            let start = start.clone();
            std::thread::spawn(move || {
                start.wait();
                get(a, "/metrics", "")
            })
        })
        .collect();
    for s in scrapers {
        let answer = s.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("nfscope_coverage_ratio"));
    }
    let read = read.load(Ordering::SeqCst);
    assert!(read < 100, "{read} readings for 200 scrapes");
}

#[test]
fn a_scraper_that_reads_a_byte_a_second_stops_no_other() {
    let a = attached(Fake::new());
    let mut slow: Vec<_> = (0..8)
        .map(|_| send(a, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        .collect();
    for _ in 0..3 {
        for s in &mut slow {
            s.read_exact(&mut [0]).unwrap();
        }
        assert!(get(a, "/metrics", "").contains("nfscope_coverage_ratio"));
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_header_that_never_ends_is_cut_off() {
    let a = attached(Fake::new());
    // Response not checked: there may be none, or a refusal. The connection has to end.
    let answer = receive(send(a, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: "));
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_megabyte_of_header_is_refused_and_costs_no_memory() {
    let _alone = memory();
    let a = attached(Fake::new());
    let mut request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Large: ".to_vec();
    request.resize(request.len() + (1 << 20), b'a');
    request.extend_from_slice(b"\r\n\r\n");
    let refused = |request: &[u8]| {
        let answer = receive(send(a, request));
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    };
    refused(&request);
    let before = resident();
    for _ in 0..100 {
        refused(&request);
    }
    let grown = resident().saturating_sub(before);
    // Bound with room for other tests of this process. Without a limit, these requests are 100 MiB.
    assert!(grown < 50 << 10, "{grown} kB more after 100 MiB of headers");
    assert!(get(a, "/healthz", "").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_request_without_exactly_one_host_header_is_refused() {
    let a = attached(Fake::new());
    for hosts in ["", "Host: localhost\r\nHost: localhost\r\n"] {
        let request = format!("GET /metrics HTTP/1.1\r\n{hosts}\r\n");
        let answer = receive(send(a, request.as_bytes()));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("one Host header"), "{answer}");
    }
    let old = receive(send(a, b"GET /-/healthy HTTP/1.0\r\n\r\n"));
    assert!(old.starts_with("HTTP/1.0 200 "), "{old}");
}

#[test]
fn a_foreign_host_name_is_refused_against_dns_rebinding() {
    let a = attached(Fake::new());
    let ask = |request: String| receive(send(a, request.as_bytes()));
    for path in ["/metrics", "/snapshot", "/nothing"] {
        let answer = ask(format!(
            "GET {path} HTTP/1.1\r\nHost: evil.example:9943\r\n\r\n"
        ));
        assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
        assert!(
            answer.contains("not for `evil.example`; [web] allowed_hosts (--web.allowed-host)")
        );
        assert!(!answer.contains("nfscope_"), "{answer}");
        let answer = ask(format!(
            "GET http://evil.example{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ));
        assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    }
    for own in ["127.0.0.1:9943", "[::1]", "localhost:1", "192.0.2.7"] {
        let answer = ask(format!("GET /-/healthy HTTP/1.1\r\nHost: {own}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{own}: {answer}");
    }
    let old = ask("GET /-/healthy HTTP/1.0\r\n\r\n".to_owned());
    assert!(old.starts_with("HTTP/1.0 200 "), "{old}");
    let mut web = WebConfig::default();
    web.hosts.push("nfs1.example".to_owned());
    let (a, _server) = serve_as(web, || Ok(Box::new(Fake::new())));
    let request = "GET /-/healthy HTTP/1.1\r\nHost: nfs1.example\r\n\r\n";
    let answer = receive(send(a, request.as_bytes()));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

/// Address of this host that other hosts could connect to.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // connect(2) of a UDP socket sends nothing; the kernel chooses the source address.
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().unwrap().ip();
    (!ip.is_loopback()).then_some(ip)
}

/// Responses to a client that the agent takes for one of another host, because of its Host header, and to a program on this host.
fn both(a: SocketAddr, ip: IpAddr, path: &str) -> [String; 2] {
    ["nfs1.example".to_owned(), ip.to_string()].map(|host| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        receive(send(a, request.as_bytes()))
    })
}

#[test]
fn users_and_files_need_a_setting_of_their_own_for_other_hosts() {
    let Some(ip) = own_address() else {
        println!("SKIPPED: names of files: this host has no address but loopback");
        return;
    };
    for (details, names) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut web = WebConfig::default();
        (web.allow_details, web.allow_file_names) = (details, names);
        let (a, _server) = serve_on((ip, 0).into(), web, || Ok(Box::new(Fake::new())));
        while get(a, "/healthz", "").contains("attaching") {
            std::thread::yield_now();
        }
        // Source without break-downs: it answers 503 once the request has passed the access check.
        for (query, allowed) in [
            ("by=client,op", details),
            ("by=client&where=user:0", details && names),
            ("by=op&where=file:77", details && names),
            ("by=user", details && names),
        ] {
            let path = format!("/breakdown?{query}");
            let [elsewhere, here] = both(a, ip, &path);
            assert!(here.starts_with("HTTP/1.1 503 "), "{query}: {here}");
            assert!(here.contains("breaks no operations down"), "{here}");
            let status = if allowed { "503" } else { "403" };
            let expected = format!("HTTP/1.1 {status} ");
            assert!(elsewhere.starts_with(&expected), "{query}: {elsewhere}");
            let setting = match (allowed, details) {
                (true, _) => "",
                (false, false) => "--web.allow-details",
                (false, true) => "--web.allow-file-names",
            };
            assert!(elsewhere.contains(setting), "{query}: {elsewhere}");
        }
        let [_, here] = both(a, ip, "/breakdown?by=inode");
        assert!(here.starts_with("HTTP/1.1 400 "), "{here}");
    }
}

#[test]
fn details_are_refused_to_other_hosts_unless_a_setting_allows_them() {
    let Some(ip) = own_address() else {
        println!("SKIPPED: details: this host has no address but loopback");
        return;
    };
    for allow_details in [false, true] {
        let mut web = WebConfig::default();
        web.allow_details = allow_details;
        let (a, _server) = serve_on((ip, 0).into(), web, || Ok(Box::new(Fake::new())));
        while get(a, "/healthz", "").contains("attaching") {
            std::thread::yield_now();
        }
        for path in ["/snapshot", "/slow"] {
            // Host header that is no name of this host, from an address that is not loopback: treated as another host.
            let request = format!("HEAD {path} HTTP/1.1\r\nHost: nfs1.example\r\n\r\n");
            let answer = receive(send(a, request.as_bytes()));
            let status = if allow_details { "200" } else { "403" };
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{path}: {answer}"
            );
            // Program on this host.
            let request = format!("HEAD {path} HTTP/1.1\r\nHost: {ip}\r\n\r\n");
            let answer = receive(send(a, request.as_bytes()));
            assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        }
        let answer = receive(send(
            a,
            b"GET /snapshot HTTP/1.1\r\nHost: nfs1.example\r\n\r\n",
        ));
        assert_eq!(
            answer.contains("--web.allow-details"),
            !allow_details,
            "{answer}"
        );
        assert!(get(a, "/metrics", "").starts_with("HTTP/1.1 200 "));
    }
}
