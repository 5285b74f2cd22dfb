//! The program as a user sees it. No test of this file needs privileges.

use nfscope_api::handover::{self, Counts};
use nfscope_serve::http::{Configuration, WebConfig};
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

fn nfscope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nfscope"))
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn stdout(o: &Output) -> String {
    String::from_utf8(o.stdout.clone()).unwrap()
}

fn stderr(o: &Output) -> String {
    String::from_utf8(o.stderr.clone()).unwrap()
}

fn config(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("nfscope-cli-{}-{name}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn version_has_release_and_revision() {
    let o = nfscope(&["--version"]);
    assert!(o.status.success());
    assert_eq!(
        stdout(&o),
        format!(
            "nfscope {} ({})\n",
            nfscope_api::build_info::VERSION,
            nfscope_api::build_info::REVISION
        )
    );
}

#[test]
fn help_teaches_by_examples() {
    for args in [
        &["--help"][..],
        &["agent", "--help"],
        &["check", "--help"],
        &["top", "--help"],
        &["slow", "--help"],
        &["detach", "--help"],
        &["attach", "--help"],
    ] {
        let o = nfscope(args);
        assert!(o.status.success());
        assert!(stdout(&o).contains("Examples:"), "{args:?}");
    }
}

#[test]
fn an_unknown_flag_names_the_nearest() {
    let o = nfscope(&["agent", "--web.listen-adress", "x"]);
    assert_eq!(o.status.code(), Some(2));
    assert!(
        stderr(&o).contains("'--web.listen-address'"),
        "{}",
        stderr(&o)
    );
    for (typed, meant) in [("agnet", "'agent'"), ("tpo", "'top'"), ("solw", "'slow'")] {
        let o = nfscope(&[typed]);
        assert_eq!(o.status.code(), Some(2));
        assert!(stderr(&o).contains(meant), "{typed}: {}", stderr(&o));
    }
    for (typed, meant) in [
        (&["baseline", "recrod"][..], "'record'"),
        (&["baseline", "lsit"], "'list'"),
        (&["workload", "rnu"], "'run'"),
        (&["help", "tops"], "'top'"),
        (&["top", "--jsno"], "'--json'"),
        (&["top", "--intreval", "1s"], "'--interval'"),
        (&["stuck", "--ovre", "1s"], "'--over'"),
        (&["detach", "nsfd"], "`nfsd`"),
        (&["detach", "jdb2"], "`jbd2`"),
        (&["attach", "al"], "`all`"),
        (&["slow", "--op", "wirte"], "`write`"),
    ] {
        let o = nfscope(typed);
        assert_eq!(o.status.code(), Some(2));
        assert!(stderr(&o).contains(meant), "{typed:?}: {}", stderr(&o));
    }
    let o = nfscope(&["agent", "tpo"]);
    assert!(!stderr(&o).contains("'top'"), "{}", stderr(&o));
}

#[test]
fn an_unknown_config_key_names_the_nearest_and_its_line() {
    let file = config("unknown", "[web]\nlisen_address = \"127.0.0.1:1\"\n");
    let o = nfscope(&["agent", "--config", &file]);
    assert_eq!(o.status.code(), Some(1));
    assert_eq!(
        stderr(&o),
        format!(
            "error: unknown key `lisen_address` in [web] ({file}:2); did you mean `listen_address`?\n"
        )
    );
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_malformed_config_names_file_line_and_column() {
    let file = config("malformed", "[web]\nlisten_address = 127.0.0.1\n");
    let o = nfscope(&["agent", "--config", &file]);
    assert_eq!(o.status.code(), Some(1));
    let text = stderr(&o);
    assert!(text.starts_with(&format!("error: {file}:2:")), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    std::fs::remove_file(file).unwrap();
    let o = nfscope(&["agent", "--config", "/nonexistent/nfscope.toml"]);
    assert!(
        stderr(&o).contains("/nonexistent/nfscope.toml"),
        "{}",
        stderr(&o)
    );
}

#[test]
fn an_address_in_use_is_named_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let o = nfscope(&["agent", "--web.listen-address", &address]);
    assert_eq!(o.status.code(), Some(1));
    assert_eq!(
        stderr(&o),
        format!(
            "error: cannot listen on {address}: address in use, perhaps by another agent; \
             choose another with --web.listen-address HOST:PORT\n"
        )
    );
}

#[test]
fn messages_are_json_with_log_format_json() {
    let o = nfscope(&["agent", "--log.format", "json", "--web.listen-address", "9"]);
    let text = stderr(&o);
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["level"], "error");
    assert!(
        line["msg"].as_str().unwrap().contains("HOST:PORT"),
        "{text}"
    );
    assert!(line["time"].as_str().unwrap().ends_with('Z'), "{text}");
}

#[test]
fn a_listen_address_without_a_host_is_refused() {
    let o = nfscope(&["agent", "--web.listen-address", "9943"]);
    assert_eq!(o.status.code(), Some(1));
    assert!(stderr(&o).contains("HOST:PORT"), "{}", stderr(&o));
}

#[test]
fn json_of_check_has_the_verdict_of_its_exit_code() {
    let o = nfscope(&["check", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let code = match report["verdict"].as_str().unwrap() {
        "full" => 0,
        "degraded" => 3,
        "none" => 1,
        other => panic!("{other}"),
    };
    assert_eq!(o.status.code(), Some(code));
    assert!(report["probes"].is_array());
    assert!(!stdout(&nfscope(&["check"])).is_empty());
}

#[test]
fn top_without_an_agent_is_an_error_with_a_fix() {
    // Port that was bound and released: no program listens there.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}");
    let o = nfscope(&["top", "--once", "--url", &url]);
    assert_eq!(o.status.code(), Some(1));
    assert_eq!(
        stderr(&o),
        format!("error: no agent at {url}: start one with `nfscope agent`\n")
    );
}

#[test]
fn an_unreachable_host_is_not_reported_as_one_without_an_agent() {
    for (url, why) in [
        (
            "http://nosuch.invalid:9943",
            "`nosuch.invalid` is no name that this host finds",
        ),
        ("http://localhost:99999", "invalid port value"),
    ] {
        let o = nfscope(&["top", "--once", "--url", url]);
        let said = stderr(&o);
        assert_eq!(o.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with(&format!("error: cannot reach {url}: {why}")),
            "{said}"
        );
        assert!(!said.contains("start one"), "{said}");
    }
}

#[test]
fn durations_have_a_unit() {
    for (args, fix) in [
        (&["slow", "--min-latency", "10"][..], "10ms or 10s"),
        (&["what-if", "--log", "5"], "5ms or 5s"),
        (&["what-if", "--disk", "0.1"], "0.1ms or 0.1s"),
        (&["stuck", "--over", "5"], "5ms or 5s"),
        (&["top", "--interval", "2"], "2s or 2m"),
        (&["diagnose", "--duration", "30"], "30s or 30m"),
        (&["agent", "--history", "24"], "24h"),
        (
            &["baseline", "record", "a", "--duration", "30"],
            "30ms or 30s",
        ),
        (&["versions", "nfs1:/e", "--runtime", "5"], "5s or 5m"),
        (
            &["workload", "run", "mail", "--dir", "/x", "--runtime", "5"],
            "5s or 5m",
        ),
    ] {
        let o = nfscope(args);
        assert_eq!(o.status.code(), Some(2), "{args:?}");
        let said = stderr(&o);
        assert!(
            said.contains(&format!(": give a unit: {fix}\n")),
            "{args:?}: {said}"
        );
    }
}

/// The process that serves HTTP already waits for the agent's sockets, and must not report the failure, too.
#[test]
fn a_failed_start_is_reported_once() {
    let wrong = [
        "agent",
        "--replay",
        "/nosuch",
        "--web.listen-address",
        "127.0.0.1:0",
    ];
    let said = stderr(&nfscope(&wrong));
    let errors = said.lines().filter(|l| l.contains("error: "));
    assert_eq!(errors.count(), 1, "{said}");
    assert!(said.contains("/nosuch"), "{said}");
    assert!(!said.contains("serving http://"), "{said}");
}

fn hand_over(socket: &UnixStream) {
    let counts = Counts {
        listeners: 1,
        lanes: 0,
        streams: 0,
    };
    let configuration = Configuration {
        web: WebConfig::default().contents().clone(),
        allow_details: false,
        allow_file_names: false,
        hosts: Vec::new(),
        log_level: "error".into(),
        log_json: false,
        who: "for a test".into(),
        sandbox: nfscope_serve::http::Sandbox::Try,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let text = configuration.encode().unwrap();
    handover::send(socket, counts, &[listener.as_fd()], &text).unwrap();
}

#[test]
fn the_http_process_is_silent_once_its_agent_has_ended() {
    let as_http = |stdin: OwnedFd| {
        Command::new(env!("CARGO_BIN_EXE_nfscope"))
            .arg0("nfscope-http")
            .stdin(stdin)
            .output()
            .unwrap()
    };
    let (agent, http) = UnixStream::pair().unwrap();
    drop(agent);
    assert_eq!(stderr(&as_http(http.into())), "");
    // Agent that ended while it sent.
    let (mut agent, http) = UnixStream::pair().unwrap();
    agent.write_all(&[1, 0, 1]).unwrap();
    drop(agent);
    assert_eq!(stderr(&as_http(http.into())), "");
    // Agent that ended after it had sent everything: the response of this process meets a closed socket.
    let (agent, http) = UnixStream::pair().unwrap();
    hand_over(&agent);
    drop(agent);
    let said = stderr(&as_http(http.into()));
    // Error of a process of root: it reports that it runs as root.
    let mut errors = said.lines().filter(|l| l.contains("error: "));
    assert!(
        errors.all(|l| l.contains("a user other than root")),
        "{said}"
    );
    let nobody = std::fs::File::open("/dev/null").unwrap();
    let said = stderr(&as_http(nobody.into()));
    assert!(said.contains("only an agent starts this program"), "{said}");
}

#[test]
fn the_reference_has_every_family() {
    for args in [&["metrics"][..], &["metrics", "--markdown"]] {
        let text = stdout(&nfscope(args));
        for f in nfscope_model::family::ALL {
            assert!(text.contains(f.name), "{}", f.name);
        }
    }
}
