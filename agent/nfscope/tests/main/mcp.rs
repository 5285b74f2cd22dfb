//! `nfscope mcp` as an assistant uses it: the program with its standard input and output, and an agent in the process of the test.

use crate::fixture::Fake;
use crate::fixture::recorder::Place;
use crate::fixture::recordings::{FLASH, recording, writes};
use crate::fixture::serve::attached;
use nfscope_baseline::store::Store;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Session {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Session {
    fn with(url: &str) -> Session {
        let store = std::env::temp_dir().join("nfscope-no-store-of-this-name.db");
        Session::over(url, &store)
    }

    fn over(url: &str, store: &Path) -> Session {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nfscope"))
            .args(["mcp", "--url", url, "--store"])
            .arg(store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Session {
            to: child.stdin.take(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn greeted(url: &str) -> Session {
        let mut session = Session::with(url);
        session.greet();
        session
    }

    fn greeted_over(url: &str, store: &Path) -> Session {
        let mut session = Session::over(url, store);
        session.greet();
        session
    }

    fn greet(&mut self) {
        let answer = self.ask(1, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}));
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn send(&mut self, line: &[u8]) {
        let to = self.to.as_mut().unwrap();
        to.write_all(line).unwrap();
        to.write_all(b"\n").unwrap();
        to.flush().unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"))
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(line.to_string().as_bytes());
        loop {
            let answer = self.answer();
            assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
            if answer["id"] == id {
                return answer;
            }
            // Error of a request whose ID could not be read: it has no ID.
            assert!(answer["error"]["code"].is_i64(), "{answer}");
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let answer = self.ask(
            9,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        );
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}")).to_owned();
        (result["isError"] == true, text)
    }

    /// Closes standard input, and returns the rest of the output. The program must end with success.
    fn end(mut self) -> String {
        drop(self.to.take());
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

#[test]
fn an_assistant_lists_and_uses_tools_and_pages() {
    let url = format!("http://{}", attached(Fake::new()));
    let mut s = Session::greeted(&url);
    assert_eq!(s.ask(2, "ping", json!({}))["result"], json!({}));
    let list = s.ask(3, "tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().filter_map(|t| t["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "findings",
            "diagnose",
            "operations",
            "who",
            "stuck",
            "what_if",
            "recordings",
            "compare",
            "measured",
            "doctor"
        ]
    );
    assert!(
        tools
            .iter()
            .all(|t| t["annotations"]["readOnlyHint"] == true)
    );
    let (wrong, findings) = s.call("findings", json!({}));
    let findings: Value = serde_json::from_str(&findings).unwrap();
    assert!(!wrong && findings["active"].is_array(), "{findings}");
    let (wrong, window) = s.call("operations", json!({"seconds": 1}));
    let window: Value = serde_json::from_str(&window).unwrap();
    assert!(!wrong && window["ops"].is_array(), "{window}");
    let (_, measured) = s.call("measured", json!({}));
    assert!(measured.contains("times_operations"), "{measured}");
    let (wrong, doctor) = s.call("doctor", json!({}));
    assert!(
        !wrong && doctor.contains("\"rule\":\"threads\""),
        "{doctor}"
    );
    // Name of a recording that looks like a flag: it is not parsed as one.
    let (wrong, why) = s.call("compare", json!({"before": "--help", "after": "b"}));
    assert!(wrong && !why.contains("Usage"), "{why}");
    let pages = s.ask(4, "resources/list", json!({}));
    for page in pages["result"]["resources"].as_array().unwrap() {
        let read = s.ask(5, "resources/read", json!({"uri": page["uri"]}));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("# "), "{page}");
    }
    assert_eq!(s.end(), "");
}

/// Lines that are no JSON or too long have no response; wrong requests have an error. The session goes on after each of them.
#[test]
fn hostile_input_does_not_end_the_session() {
    let url = format!("http://{}", attached(Fake::new()));
    let mut s = Session::greeted(&url);
    let hostile: [Vec<u8>; 9] = [
        b"{".to_vec(),
        b"\xff\xfe\x00".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        "[".repeat(1_000_000).into_bytes(),
        vec![b'a'; 3 << 20],
        br#"{"jsonrpc":"2.0","id":1e999,"method":"ping"}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":8,"method":7}"#.to_vec(),
    ];
    for line in hostile {
        s.send(&line);
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        assert_eq!(s.ask(3, "ping", json!({}))["result"], json!({}), "{shown}");
    }
    for (method, params) in [
        ("tools/call", json!({})),
        ("tools/call", json!({"name": "sh", "arguments": {}})),
        ("tools/call", json!({"name": "who", "arguments": [1]})),
        ("resources/read", json!({"uri": "file:///etc/shadow"})),
        (
            "resources/read",
            json!({"uri": "nfscope://docs/../../etc/shadow"}),
        ),
        ("nothing", json!({})),
    ] {
        let answer = s.ask(5, method, params.clone());
        assert!(
            answer["error"]["code"].is_i64(),
            "{method} {params}: {answer}"
        );
    }
    for (tool, arguments) in [
        ("diagnose", json!({"seconds": 1e18})),
        ("diagnose", json!({"seconds": 2, "x": 1})),
        ("what_if", json!({"recording": "a\u{0}b"})),
        // Values are never parsed as flags, and reach no shell.
        ("who", json!({"by": "--url=http://x", "seconds": 1})),
        ("who", json!({"by": "op; reboot", "seconds": 1})),
        ("compare", json!({"before": "--html=/tmp/x", "after": "b"})),
    ] {
        let (wrong, why) = s.call(tool, arguments.clone());
        assert!(wrong && !why.is_empty(), "{tool} {arguments}: {why}");
    }
    // Responses without a request, cancellations of unknown calls, and empty lines have no response.
    for line in [
        r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#,
        r#"{"jsonrpc":"2.0","method":"nothing"}"#,
        "",
        "  ",
    ] {
        s.send(line.as_bytes());
        assert_eq!(s.ask(3, "ping", json!({}))["result"], json!({}), "{line}");
    }
    s.end();
}

/// Messages before `initialize` that are no requests have no response, and requests have an error. The session then begins as usual.
#[test]
fn messages_before_initialize_do_not_end_the_program() {
    let url = format!("http://{}", attached(Fake::new()));
    let early = [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#,
        r#"{"jsonrpc":"2.0","method":"nothing"}"#,
        r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"no"}}"#,
    ];
    let mut s = Session::with(&url);
    for line in early {
        s.send(line.as_bytes());
        assert_eq!(s.ask(3, "ping", json!({}))["result"], json!({}), "{line}");
    }
    for method in ["nothing", "tools/list"] {
        let answer = s.ask(5, method, json!({}));
        assert!(answer["error"]["code"].is_i64(), "{method}: {answer}");
        s.send(early[0].as_bytes());
    }
    s.greet();
    assert!(s.ask(6, "tools/list", json!({}))["result"]["tools"].is_array());
    s.end();
}

/// Standard input may end before the session begins.
#[test]
fn the_end_of_input_before_initialize_is_a_success() {
    assert_eq!(Session::with("http://127.0.0.1:1").end(), "");
}

/// A call that observes for minutes blocks no other one and can be cancelled. At most four calls are under way.
#[test]
fn calls_run_in_parallel_up_to_a_limit_and_can_be_cancelled() {
    let url = format!("http://{}", attached(Fake::new()));
    let mut s = Session::greeted(&url);
    let watch = |id: u64| {
        let params = json!({"name": "operations", "arguments": {"seconds": 300}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    for id in 11..15 {
        s.send(watch(id).as_bytes());
    }
    assert_eq!(s.ask(2, "ping", json!({}))["result"], json!({}));
    s.send(watch(15).as_bytes());
    let full = s.answer();
    assert_eq!(full["id"], 15, "{full}");
    let why = &full["result"]["content"][0]["text"];
    assert_eq!(why, "4 calls are under way: wait for one of them");
    for id in 11..14 {
        let params = json!({"requestId": id, "reason": "enough"});
        let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        s.send(told.to_string().as_bytes());
    }
    // Three of four slots are free again, and the end waits for no call.
    let (wrong, doctor) = s.call("doctor", json!({}));
    assert!(!wrong, "{doctor}");
    s.end();
}

/// Store of an older release: commands that write upgrade it, and tools of an assistant do not.
#[test]
fn tools_about_recordings_do_not_upgrade_the_store() {
    let place = Place::new("mcp-store");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    for (name, seed) in [("before", 1), ("after", 2)] {
        store
            .put(&recording(name, seed, 12, &writes(FLASH)))
            .unwrap();
    }
    drop(store);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "ALTER TABLE baseline DROP COLUMN windows; ALTER TABLE baseline DROP COLUMN length_ns;
         ALTER TABLE baseline DROP COLUMN series_sum; ALTER TABLE baseline DROP COLUMN windows_sum;
         ALTER TABLE baseline DROP COLUMN checksum; ALTER TABLE \"window\" DROP COLUMN checksum; PRAGMA user_version = 1",
    )
    .unwrap();
    drop(db);
    let bytes = std::fs::read(&path).unwrap();
    let mut s = Session::greeted_over("http://127.0.0.1:1", &path);
    let (wrong, list) = s.call("recordings", json!({}));
    assert!(!wrong && list.contains("before"), "{list}");
    let (wrong, compared) = s.call("compare", json!({"before": "before", "after": "after"}));
    assert!(!wrong, "{compared}");
    s.end();
    assert!(std::fs::read(&path).unwrap() == bytes, "the store changed");
}

#[test]
fn a_tool_without_an_agent_reports_that_and_attaches_nothing() {
    let mut s = Session::greeted("http://127.0.0.1:1");
    for tool in ["findings", "diagnose", "operations", "stuck", "what_if"] {
        let (wrong, why) = s.call(tool, json!({}));
        assert!(
            wrong && why.contains("no agent at http://127.0.0.1:1"),
            "{tool}: {why}"
        );
    }
    s.end();
}
