//! Parsers of untrusted input: mutated samples must be parsed or refused, without a panic.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../fixture/mod.rs"]
#[allow(dead_code)]
mod fixture;
#[path = "../fixture/mutate.rs"]
mod mutate;

use crate::fixture::serve::{get, send, serve_as};
use crate::fixture::{Fake, recordings};
use bytes::BytesMut;
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use mutate::{fuzz, fuzz_text};
use nfscope::agent::config;
use nfscope::cli::AgentArgs;
use nfscope_api::access::Access;
use nfscope_api::address;
use nfscope_api::breakdown_query::Query;
use nfscope_api::link::{Answer, Ask, Have, MAX_QUESTION, Made, Question, Turn, Why};
use nfscope_api::query::QueryString;
use nfscope_api::slow_line::Line;
use nfscope_api::stuck_query::Over;
use nfscope_api::windows_query::Wanted;
use nfscope_baseline::codec;
use nfscope_baseline::recording::RecordedWindow;
use nfscope_baseline::store::Store;
use nfscope_baseline::window::Merger;
use nfscope_model::{SlowFilter, Snapshot};
use nfscope_serve::endpoints;
use nfscope_serve::exposition::{self, Collectors, Format};
use nfscope_serve::http::{Configuration, WebConfig, of_this_host};
use nfscope_serve::service::endpoint::Origin;
use nfscope_source::Source;
use nfscope_tui::{Breakdown, TerminalStyle};
use std::io::Read;
use std::sync::Arc;

#[test]
fn mutated_messages_of_the_http_process_are_read_or_refused() {
    let ask = |path: &str, query: &str, turn| Ask {
        path: path.to_owned(),
        query: query.to_owned(),
        format: 1,
        may: Access::Details,
        turn,
        have: Have {
            reading: 7,
            parts: 3,
        },
    };
    let questions = [
        Question::Ask(ask("/metrics", "collect[]=op&exclude[]=cpu", Turn::Quick)),
        Question::Ask(ask("/snapshot", "", Turn::Quick)),
        Question::Ask(ask("/windows", "recording=a&columns=3", Turn::Disk)),
        Question::Ask(ask("/slow", "min_latency=1ms&op=write", Turn::Stream)),
        Question::Ask(ask("/breakdown", "by=user", Turn::Stream)),
        Question::Stop,
    ];
    let samples: Vec<_> = questions.iter().map(|q| q.encode().unwrap()).collect();
    let samples: Vec<_> = samples.iter().map(Vec::as_slice).collect();
    fuzz("questions", &samples, |input| {
        let mut arrived = BytesMut::from(input);
        while let Ok(Some(question)) = Question::take(&mut arrived) {
            // Query of a known path: parsed, or refused with a reason.
            if let Question::Ask(ask) = &question
                && let Some(endpoint) = endpoints::find(&ask.path)
                && let Origin::Agent(_, parse) = endpoint.origin
            {
                match parse(&ask.query) {
                    Ok(parsed) => assert!(endpoint.access <= parsed.access),
                    Err(why) => assert!(!why.is_empty()),
                }
            }
            // Round trip: a parsed message encodes to itself.
            let again = question.encode().unwrap();
            assert_eq!(
                Question::take(&mut BytesMut::from(&again[..])),
                Ok(Some(question))
            );
        }
        assert!(arrived.capacity() <= input.len() + 2 * MAX_QUESTION);
    });
    let made = Made {
        reading: 3,
        part: 1,
    };
    let answers = [
        Answer::Body(made, "body".into()),
        Answer::Same(made),
        Answer::Refused(Why::Query, "no".to_owned()),
        Answer::Wait(Turn::Disk),
        Answer::End,
    ];
    let samples: Vec<_> = (answers.iter().map(Answer::parts))
        .map(|(head, body)| [&head[..], body].concat())
        .collect();
    let samples: Vec<_> = samples.iter().map(Vec::as_slice).collect();
    fuzz("answers", &samples, |input| {
        // Bytes 12 and 13 are the upper half of the length: `Answer::take` reserves that much memory. Inputs that claim 64 KiB or more are
        // left out.
        if input.get(12).is_none_or(|b| *b == 0) && input.get(13).is_none_or(|b| *b == 0) {
            let mut arrived = BytesMut::from(input);
            while let Ok(Some(_)) = Answer::take(&mut arrived) {}
        }
    });
}

#[test]
fn mutated_queries_headers_and_addresses_are_parsed_or_refused() {
    let slow = [
        "min_latency=1.5s&op=write,commit&client=192.0.2.1&limit=9",
        "over=1ms&op=%77rite",
    ];
    fuzz_text("query of /slow", &slow, |input| {
        if let Ok(filter) = SlowFilter::from_query(input) {
            assert_eq!(SlowFilter::from_query(&filter.to_query()), Ok(filter));
        }
    });
    let breakdown = [
        "by=client,op&where=export:/srv/a&where=op:write&interval=2s&rows=9",
        "by=file,user,version&where=file:/srv/a:77&where=client:2001:db8::7&where=user:0&where=version:4.1",
    ];
    fuzz_text("query of /breakdown", &breakdown, |input| {
        if let Ok(query) = Query::from_query(input) {
            assert_eq!(Query::from_query(&query.to_query()), Ok(query));
        }
    });
    let windows = [
        "since=1f2e.77",
        "from=1800000000.125&to=1800000300.5&columns=300",
        "recording=a%26b&columns=3&from=1&to=2.5",
    ];
    fuzz_text("query of /windows", &windows, |input| {
        if let Ok(wanted) = Wanted::from_query(input) {
            assert_eq!(Wanted::from_query(&wanted.to_query()), Ok(wanted));
        }
    });
    fuzz_text(
        "query of /stuck",
        &["over=1.5s", "over=20%6ds&x=1"],
        |input| {
            if let Ok(over) = Over::from_query(input) {
                assert_eq!(Over::from_query(&over.to_query()), Ok(over));
            }
        },
    );
    let parts = ["collect[]=op&collect%5B%5D=block", "exclude[]=cpu&x=1"];
    fuzz_text("query of /metrics", &parts, |input| {
        if let Ok(some) = Collectors::from_query(input) {
            assert_eq!(Collectors::from_query(&some.to_query()), Ok(some));
        }
    });
    let accept = [
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1, */*",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7",
        "gzip;q=0.5, identity;q=0, *",
    ];
    fuzz_text("accept", &accept, |input| {
        exposition::negotiate(Some(input));
        exposition::accepts_gzip(Some(input));
    });
    let urls = ["http://[::1]:9943/prefix/", "https://nfs1.example:9943"];
    fuzz_text("url", &urls, |input| {
        if let Some(target) = address::parse(input, "/snapshot") {
            assert!(!target.name().is_empty() || target.host.starts_with([':', '[']));
        }
    });
    let hosts = ["127.0.0.1 localhost\n127.0.1.1 nfs1.example nfs # own\n::1 ip6-loopback\nx\n"];
    fuzz_text("names of this host", &hosts, |input| {
        drop(of_this_host("nfs1.lan", input));
    });
}

#[test]
fn mutated_snapshots_and_lines_of_an_agent_are_read_or_refused() {
    let snapshot = serde_json::to_vec(&Fake::new().snapshot()).unwrap();
    fuzz("snapshot", &[&snapshot], |input| {
        if let Ok(snapshot) = serde_json::from_slice::<Snapshot>(input) {
            let snapshot = Arc::new(snapshot);
            for format in Format::ALL {
                // Families of an agent of another version may be unknown here: an error, not a panic.
                let _ = exposition::encode(&snapshot, format);
            }
        }
    });
    let lines: [&[u8]; 2] = [
        br#"{"left_out":3}"#,
        br#"{"time":"2026-01-01T00:00:00Z","version":"4.2","op":"write","duration_seconds":0.5}"#,
    ];
    let lines_of_breakdown: [&[u8]; 2] = [
        br#"{"header":{"host":"a","by":["op"],"where":["op:write"],"interval_seconds":1.0,"max_rows":2,"kernel_bytes":3}}"#,
        br#"{"at":1.0,"seconds":1.0,"by":["op"],"rows":[{"op":"write","count":2,"sum_seconds":0.1,"buckets":[[0.1,1],[null,1]]}],"other":{"count":0,"sum_seconds":0.0,"buckets":[]},"evicted":0,"cost_seconds":0.0}"#,
    ];
    let query = Query::from_query("by=op").unwrap();
    let style = TerminalStyle {
        color: true,
        utf8: true,
    };
    fuzz("break-down line", &lines_of_breakdown, |input| {
        let mut shown = Breakdown::new(query.clone());
        for line in input.split(|b| *b == b'\n') {
            if let Ok(line) = serde_json::from_slice(line) {
                shown.take(Ok(line));
            }
        }
        shown.plain(80, style);
    });
    fuzz("slow line", &lines, |input| {
        let _ = serde_json::from_slice::<Line>(input);
    });
}

#[test]
fn mutated_configuration_files_are_parsed_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let hash = "$2y$04$5SsxgLv9vKCVd9Fa2oRRSOuiQ7C0lCDHcQxVAPIYjyKzv5zNuwhXW";
    let web = [
        format!("basic_auth_users:\n  alice: {hash}\nhttp_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n"),
        "tls_server_config:\n  cert: x\n  key: y\n  min_version: TLS13\n  client_allowed_sans: [a, 192.0.2.1]\n".to_owned(),
        "{a: [1, {b: &x c}], d: *x}\n---\n".to_owned(),
    ];
    let web: Vec<_> = web.iter().map(String::as_str).collect();
    let path = dir.path().join("web.yml");
    fuzz_text("web configuration", &web, |input| {
        std::fs::write(&path, input).unwrap();
        let _ = WebConfig::load(&path);
    });
    let toml = [
        "[web]\nlisten_address = [\"a:1\"]\nallow_details = true\n[limits]\nclients = 0x10\n[log]\nlevel = \"debug\"\n",
    ];
    let args = AgentArgs {
        config: Some(dir.path().join("nfscope.toml")),
        ..AgentArgs::default()
    };
    fuzz_text("configuration", &toml, |input| {
        std::fs::write(args.config.as_ref().unwrap(), input).unwrap();
        if let Err(e) = config::load(&args) {
            assert!(!e.to_string().is_empty());
        }
    });
    let sent = Configuration {
        web: WebConfig::default().contents().clone(),
        allow_details: false,
        allow_file_names: false,
        hosts: vec!["a".to_owned()],
        log_level: "info".to_owned(),
        log_json: true,
        who: String::new(),
        sandbox: nfscope_serve::http::Sandbox::Try,
    };
    fuzz("configuration sent", &[&sent.encode().unwrap()], |input| {
        let _ = Configuration::of(input);
    });
}

#[test]
fn mutated_recordings_are_imported_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let recording = recordings::recording("one", 1, 4, &recordings::writes(recordings::FLASH));
    let mut from = Store::create(&path("from")).unwrap();
    from.put(&recording).unwrap();
    from.export("one", &path("one"), true).unwrap();
    let file = std::fs::read(path("one")).unwrap();
    fuzz("import", &[&file], |input| {
        std::fs::write(path("mutated"), input).unwrap();
        let to = path("to");
        let _ = std::fs::remove_file(&to);
        let mut store = Store::create(&to).unwrap();
        if let Ok(names) = store.import(&path("mutated"), None) {
            for name in names {
                let _ = store.entry(&name);
            }
        }
    });
}

/// Contents behind the checksum: the author of a file can compute a valid checksum.
#[test]
fn mutated_windows_of_recordings_are_decoded_or_refused() {
    let recording = recordings::recording("one", 1, 2, &recordings::writes(recordings::FLASH));
    let packed: Vec<_> = (recording.windows.iter())
        .map(|w| codec::encode(w.samples.iter().map(|(id, s)| (*id, true, s))).unwrap())
        .collect();
    let columns = packed.iter().map(|packed| {
        let mut columns = Vec::new();
        DeflateDecoder::new(&packed[..])
            .read_to_end(&mut columns)
            .unwrap();
        columns
    });
    let columns: Vec<Vec<u8>> = columns.collect();
    // Decoded windows are merged and encoded as metrics, too.
    let mut decoded = 0;
    let mut read = |packed: &[u8]| {
        if let Ok(samples) = codec::decode(packed, |_| true) {
            decoded += 1;
            let mut merger = Merger::new(recording.series.clone(), |_| true);
            let window = RecordedWindow {
                samples,
                ..recording.windows[0].clone()
            };
            merger.add(&window);
            merger.add(&recording.windows[1]);
            let all = Arc::new(merger.so_far());
            let _ = exposition::encode(&all, Format::Plain);
        }
    };
    let samples: Vec<_> = columns.iter().map(Vec::as_slice).collect();
    fuzz("window", &samples, |input| {
        let mut packed = Vec::new();
        DeflateEncoder::new(input, Compression::none())
            .read_to_end(&mut packed)
            .unwrap();
        read(&packed);
    });
    let samples: Vec<_> = packed.iter().map(Vec::as_slice).collect();
    fuzz("packed window", &samples, read);
    assert!(decoded > 100, "only {decoded} of all inputs are windows");
}

/// Whole requests over a real connection.
#[test]
fn mutated_requests_get_an_http_response_or_none() {
    let hash = bcrypt::hash("open sesame", 4).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.yml");
    std::fs::write(&path, format!("basic_auth_users: {{alice: '{hash}'}}\n")).unwrap();
    let password = "Authorization: Basic YWxpY2U6b3BlbiBzZXNhbWU=\r\n";
    let samples = [
        format!(
            "GET /metrics?collect[]=op HTTP/1.1\r\nHost: localhost\r\n{password}Accept-Encoding: gzip\r\n\r\n"
        ),
        format!("HEAD /snapshot HTTP/1.0\r\n{password}\r\n"),
        format!("GET http://localhost/probes HTTP/1.1\r\nHost: [::1]:9\r\n{password}\r\n"),
        format!("HEAD /slow?min_latency=1ms HTTP/1.1\r\nHost: a\r\n{password}\r\n"),
        "GET / HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Basic Og==\r\n\r\n".to_owned(),
    ];
    let samples: Vec<_> = samples.iter().map(String::as_bytes).collect();
    for (name, web) in [
        ("requests", WebConfig::default()),
        ("requests with passwords", WebConfig::load(&path).unwrap()),
    ] {
        let (a, _server) = serve_as(web, || Ok(Box::new(Fake::new())));
        fuzz(name, &samples, |input| {
            let stream = send(a, input);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            // First bytes only: a stream does not end.
            let _ = stream.take(64).read_to_end(&mut answer);
            assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
        });
        let answer = get(a, "/metrics", password);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}
