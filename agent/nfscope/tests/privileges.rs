//! Real agent process under signals, and the capabilities that its threads keep. This program has no libtest harness, whose threads would
//! keep their own capabilities. It runs itself as the agent, with a source that needs no kernel.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, missing_docs)]
mod fixture;
#[path = "privileges/limits.rs"]
mod limits;

use fixture::Fake;
use fixture::serve::get;
use libtest_mimic::{Arguments, Trial};
use nfscope::agent::config::{self, Settings};
use nfscope::cli::AgentArgs;
use nfscope_baseline::recording::{RecordedWindow, Sample};
use nfscope_baseline::store::{Entry, Store};
use nfscope_model::{Histogram, ProbeStatus, Scheme, SlowBatch, SlowFilter, Snapshot, family as f};
use nfscope_serve::http::Sandbox;
use nfscope_serve::service::http_process::Told;
use nfscope_source::{Source, clock};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// Role of the child process; absent in the test itself.
const ROLE: &str = "NFSCOPE_TEST_AGENT";
/// Path of the child's configuration file.
const FILE: &str = "NFSCOPE_TEST_FILE";

/// Path of the child's store of recordings.
const STORE: &str = "NFSCOPE_TEST_STORE";

/// Directory of the child's history.
const HISTORY: &str = "NFSCOPE_TEST_HISTORY";

fn main() -> ExitCode {
    if nfscope_serve::http::process::is_this() {
        return nfscope_serve::http::process::run();
    }
    match std::env::var(ROLE) {
        Ok(role) if role == "old kernel" => return confined_on_an_old_kernel(),
        Ok(role) => return agent(&role),
        Err(_) => {}
    }
    let tests: [(&'static str, fn()); 17] = [
        (
            "a_low_limit_of_open_files_is_reported_with_both_numbers",
            limits::a_low_limit_of_open_files_is_reported_with_both_numbers,
        ),
        (
            "a_low_limit_of_threads_is_reported_with_the_number_needed",
            || {
                with_privileges(limits::a_low_limit_of_threads_is_reported_with_the_number_needed);
            },
        ),
        (
            "a_refused_system_call_is_named_in_the_error",
            limits::a_refused_system_call_is_named_in_the_error,
        ),
        (
            "a_signal_during_attach_ends_the_agent_with_success",
            a_signal_during_attach_ends_the_agent_with_success,
        ),
        (
            "sighup_applies_live_settings_and_names_those_that_need_a_restart",
            sighup_applies_live_settings_and_names_those_that_need_a_restart,
        ),
        (
            "the_agent_serves_on_several_addresses_and_on_sockets_of_systemd",
            the_agent_serves_on_several_addresses_and_on_sockets_of_systemd,
        ),
        (
            "the_http_process_is_confined_and_restarted",
            the_http_process_is_confined_and_restarted,
        ),
        (
            "a_stopped_http_process_is_replaced_and_counted",
            a_stopped_http_process_is_replaced_and_counted,
        ),
        ("sandbox_require_refuses_an_unconfined_http_process", || {
            with_privileges(sandbox_require_refuses_an_unconfined_http_process);
        }),
        (
            "paths_that_hang_stop_neither_scrapes_nor_signals",
            paths_that_hang_stop_neither_scrapes_nor_signals,
        ),
        (
            "an_agent_that_was_stopped_for_seconds_has_every_count_in_its_windows",
            an_agent_that_was_stopped_for_seconds_has_every_count_in_its_windows,
        ),
        (
            "systemd_is_notified_of_start_watchdog_reload_and_stop",
            systemd_is_notified_of_start_watchdog_reload_and_stop,
        ),
        (
            "a_file_that_sighup_could_not_read_again_fails_the_start",
            || {
                with_privileges(a_file_that_sighup_could_not_read_again_fails_the_start);
            },
        ),
        ("every_thread_drops_its_capabilities", || {
            with_privileges(every_thread_drops_its_capabilities);
        }),
        ("cap_bpf_stays_where_map_reads_need_it", || {
            with_privileges(cap_bpf_stays_where_map_reads_need_it);
        }),
        ("missing_capabilities_are_named_in_the_error", || {
            with_privileges(missing_capabilities_are_named_in_the_error);
        }),
        ("only_root_may_replace_a_probe_of_the_agent", || {
            with_privileges(only_root_may_replace_a_probe_of_the_agent);
        }),
    ];
    let tests = tests.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    let mut arguments = Arguments::from_args();
    // Single-threaded run: libtest-mimic then runs tests in the main thread, the only one.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, tests.into()).exit_code()
}

/// Runs a test that drops capabilities, or skips it if there are none to drop.
fn with_privileges(test: fn()) {
    let held = caps::has_cap(
        None,
        caps::CapSet::Permitted,
        caps::Capability::CAP_SYS_ADMIN,
    );
    if matches!(held, Ok(true)) {
        test();
    } else {
        fixture::skip("this process has no capabilities to drop");
    }
}

fn agent(role: &str) -> ExitCode {
    let mut settings = Settings {
        listen_addresses: vec!["127.0.0.1:0".to_owned()],
        ..Settings::default()
    };
    settings.source.late_attach = role != "drop";
    settings.systemd_socket = role == "socket";
    if role == "require" {
        settings.sandbox = Sandbox::Require;
    }
    if role == "two" {
        settings.listen_addresses.push("127.0.0.2:0".to_owned());
    }
    let (slow, counts_time) = (role == "slow", role == "counts time");
    let args = AgentArgs {
        config: std::env::var_os(FILE).map(Into::into),
        listen_addresses: settings.listen_addresses.clone(),
        ..AgentArgs::default()
    };
    settings.replay = std::env::var_os(STORE).map(Into::into);
    settings.history_directory = std::env::var_os(HISTORY).map(Into::into);
    let reread = move || match args.config {
        Some(_) => config::load(&args),
        None => Ok(settings.clone()),
    };
    let run = nfscope::agent::run(reread().unwrap(), reread, move || {
        if slow {
            eprintln!("attaching");
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok(match counts_time {
            true => Box::new(TimeCounter(Fake::new())),
            false => Box::new(Fake::new()),
        })
    });
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.is::<Told>() => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Source with one operation per millisecond: the number of operations of a window is its length.
struct TimeCounter(Fake);

impl Source for TimeCounter {
    fn snapshot(&mut self) -> Snapshot {
        let mut s = Snapshot::new(clock::now());
        s.wall = clock::wall(s.at);
        s.began = Duration::from_secs(1);
        s.host = Some("nfs7".to_owned());
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[40] = s.at.as_millis() as u64;
        s.histogram(&f::OP_DURATION, ["3", "write"], h);
        s.probes = self.probes();
        s
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        self.0.probes()
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        SlowBatch::default()
    }
}

/// Begin, length and operations of a window; times in milliseconds.
type ToldWindow = (i64, i64, i64);

/// Asserts that windows follow each other without a gap, and have all operations of their time.
fn are_whole(windows: &[ToldWindow]) {
    for w in windows {
        assert!((w.1 - w.2).abs() <= 1, "{w:?} of {windows:?}");
    }
    for w in windows.windows(2) {
        assert!((w[0].0 + w[0].1 - w[1].0).abs() <= 2, "{w:?}");
    }
}

/// Reads new windows as the page does, until the agent has no more.
fn ask_for_windows(page: SocketAddr, since: &mut String, told: &mut Vec<ToldWindow>) {
    loop {
        let answer = get(page, &format!("/windows{since}"), "");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        // Agent that was stopped a moment ago: it answers 503 first.
        if head.starts_with("HTTP/1.1 503 ") {
            return;
        }
        let body: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|e| {
            panic!("{e}: {answer}");
        });
        *since = format!("?since={}", body["since"].as_str().unwrap());
        for w in body["windows"].as_array().unwrap() {
            let length = 1e3 * w["seconds"].as_f64().unwrap();
            let began = 1e3 * w["at"].as_f64().unwrap() - length;
            let count = w["ops"][0]["times"]["count"].as_i64().unwrap_or_default();
            told.push((began.round() as i64, length.round() as i64, count));
        }
        if body["more"] == false {
            return;
        }
    }
}

/// Windows of each recording in the history on the disk.
fn kept(path: &Path) -> Vec<Vec<ToldWindow>> {
    let Ok(store) = Store::open(path) else {
        return Vec::new();
    };
    let of = |e: &Entry| {
        let windows = store.windows(e, |_| true).map(Result::unwrap);
        let count = |w: &RecordedWindow| {
            let counts = w.samples.iter().filter_map(|(_, s)| match s {
                Sample::Histogram { counts, .. } => Some(counts.iter().map(|c| c.1 as i64)),
                _ => None,
            });
            counts.flatten().sum()
        };
        let told = |w: RecordedWindow| (w.began_ms, w.length.as_millis() as i64, count(&w));
        windows.map(told).collect()
    };
    store.list().unwrap().iter().map(of).collect()
}

fn an_agent_that_was_stopped_for_seconds_has_every_count_in_its_windows() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = command("counts time")
        .env(HISTORY, directory.path())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    while !said.iter().any(|l: &String| l.contains("serving http://")) {
        said.push(lines.next().unwrap().unwrap());
    }
    let page = served(&said)[0];
    // Standard error must be read to its end: a full pipe would block the agent.
    let log = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
    let (mut since, mut told) = (String::new(), Vec::new());
    // First stop: longer than a window of the history. The others are short, at arbitrary points of a window.
    for milliseconds in [12_000, 700, 300, 2600, 500, 3100].iter().cycle() {
        let before = told.len();
        while told.len() < before + 2 {
            ask_for_windows(page, &mut since, &mut told);
            std::thread::sleep(Duration::from_millis(100));
        }
        if kept(&directory.path().join(format!("history-{}.db", page.port())))
            .iter()
            .any(|windows| windows.len() >= 2)
        {
            break;
        }
        kill(&child, libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(*milliseconds));
        kill(&child, libc::SIGCONT);
    }
    are_whole(&told);
    stop(child, libc::SIGTERM);
    let history = kept(&directory.path().join(format!("history-{}.db", page.port())));
    let [windows] = &history[..] else {
        panic!("{history:?}")
    };
    are_whole(windows);
    let said = log.join().unwrap();
    let clocks = said.iter().filter(|l| l.contains("system clock"));
    assert_eq!(clocks.count(), 0, "{said:?}");
}

fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role).stderr(Stdio::piped());
    command
}

/// Runs this program as an agent, and reads its messages until one contains `ready`.
fn spawn(role: &str, ready: &str) -> (Child, Vec<String>) {
    spawned(command(role), ready)
}

fn spawned(mut agent: Command, ready: &str) -> (Child, Vec<String>) {
    let mut child = agent.spawn().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        said.push(line.unwrap());
        if said.last().unwrap().contains(ready) {
            return (child, said);
        }
    }
    let status = child.wait().unwrap();
    panic!("the agent ended with {status} after saying {said:?}");
}

fn kill(child: &Child, signal: i32) {
    // SAFETY: kill takes two integers; the process is our child and not yet waited for, so the id is its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

fn stop(mut child: Child, signal: i32) {
    kill(&child, signal);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
}

fn a_signal_during_attach_ends_the_agent_with_success() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let (child, _) = spawn("slow", "attaching");
        stop(child, signal);
    }
}

/// Notifications of sd_notify(3): ready once attached, watchdog, reloading and ready again, stopping.
fn systemd_is_notified_of_start_watchdog_reload_and_stop() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut child = command("keep")
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "200000")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut until = |all: &[&str]| {
        while !all.iter().all(|text| told.contains(text)) {
            let mut message = [0; 4096];
            let length = socket.recv(&mut message).unwrap();
            told += std::str::from_utf8(&message[..length]).unwrap();
        }
        std::mem::take(&mut told)
    };
    until(&["READY=1\n", "STATUS=NFS operations are being timed\n"]);
    until(&["WATCHDOG=1\n"]);
    until(&["WATCHDOG=1\n"]);
    kill(&child, libc::SIGHUP);
    let reload = until(&["RELOADING=1\nMONOTONIC_USEC=", "READY=1\n"]);
    assert!(reload.find("RELOADING=1") < reload.find("READY=1"));
    kill(&child, libc::SIGTERM);
    until(&["STOPPING=1\n"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn sighup_applies_live_settings_and_names_those_that_need_a_restart() {
    let file = std::env::temp_dir().join(format!("nfscope-sighup-{}.toml", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let mut child = command("keep").env(FILE, &file).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // Reads lines until all of these texts have come, in any order: several threads log.
    let mut until = |all: &[&str]| {
        let mut said = String::new();
        while !all.iter().all(|text| said.contains(text)) {
            match lines.next() {
                Some(line) => said += &(line.unwrap() + "\n"),
                None => panic!("the agent ended after saying {said}"),
            }
        }
        said
    };
    let said = until(&["attached "]);
    let said: Vec<_> = said.lines().map(str::to_owned).collect();
    let page = served(&said)[0];
    std::fs::write(&file, "[limits]\nclients = 5\npairs = 64\n").unwrap();
    kill(&child, libc::SIGHUP);
    until(&[
        "SIGHUP: now [limits] clients = 5\n",
        "SIGHUP: [limits] pairs = 64 takes effect after a restart of the agent\n",
        "series for 5 clients and 100 exports\n",
    ]);
    std::fs::write(&file, "[limits]\nclients = 5\npears = 64\n").unwrap();
    kill(&child, libc::SIGHUP);
    until(&["the old settings stay in effect: unknown key `pears`"]);
    std::fs::write(&file, "[limits]\nclients = 5\n").unwrap();
    kill(&child, libc::SIGHUP);
    until(&["SIGHUP: no setting has changed\n"]);
    let web = file.with_extension("yml");
    let hash = bcrypt::hash("open sesame", 4).unwrap();
    std::fs::write(&web, format!("basic_auth_users: {{alice: '{hash}'}}")).unwrap();
    let key = format!("[limits]\nclients = 5\n[web]\nconfig_file = {web:?}\n");
    std::fs::write(&file, key).unwrap();
    assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 200 "));
    kill(&child, libc::SIGHUP);
    until(&[
        "SIGHUP: passwords are sent without encryption",
        "SIGHUP: now [web] config_file = ",
    ]);
    assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 401 "));
    let wrong = "Authorization: Basic YWxpY2U6Z3Vlc3M=\r\n";
    assert!(get(page, "/-/healthy", wrong).starts_with("HTTP/1.1 401 "));
    until(&["a password from 127.0.0.1 was refused\n"]);
    std::fs::write(&web, "basic_auth_user: {}").unwrap();
    kill(&child, libc::SIGHUP);
    until(&["the old settings stay in effect: web configuration "]);
    assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 401 "));
    std::fs::write(&web, "").unwrap();
    kill(&child, libc::SIGHUP);
    until(&[".yml: the file is empty; write {} for no TLS and no passwords\n"]);
    assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 401 "));
    std::fs::write(&web, "{}").unwrap();
    kill(&child, libc::SIGHUP);
    until(&["the old settings stay in effect: the web configuration has lost its passwords; if"]);
    assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 401 "));
    // Second SIGHUP with the same file: it confirms that the passwords are meant to go.
    kill(&child, libc::SIGHUP);
    until(&[
        ".yml is read again\n",
        "SIGHUP: everybody who can connect may read now\n",
        "SIGHUP: no setting has changed\n",
    ]);
    assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 200 "));
    let debug = "[limits]\nclients = 5\n[log]\nlevel = \"debug\"\nformat = \"json\"\n";
    std::fs::write(&file, debug).unwrap();
    kill(&child, libc::SIGHUP);
    until(&[
        "SIGHUP: now [log] level = \"debug\"",
        "now [log] format = \"json\"\n",
    ]);
    get(page, "/-/healthy?x", "");
    until(&["\"level\":\"debug\",\"msg\":\"127.0.0.1 GET /-/healthy?x 200\"}\n"]);
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = serde_json::json!({"cert": own.cert.pem(), "key": own.signing_key.serialize_pem()});
    std::fs::write(&web, format!("{{tls_server_config: {tls}}}")).unwrap();
    std::fs::write(&file, format!("{debug}[web]\nconfig_file = {web:?}\n")).unwrap();
    kill(&child, libc::SIGHUP);
    until(&["SIGHUP: now [web] config_file = "]);
    get(page, "/-/healthy", "");
    until(&["\"level\":\"debug\",\"msg\":\"127.0.0.1 TLS: "]);
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(&web).unwrap();
    stop(child, libc::SIGTERM);
}

/// Addresses of the log lines `serving http://.../metrics`.
fn served(said: &[String]) -> Vec<SocketAddr> {
    let pages = said.iter().filter_map(|l| l.split_once("serving http://"));
    pages
        .map(|(_, page)| page.strip_suffix("/metrics").unwrap().parse().unwrap())
        .collect()
}

fn the_agent_serves_on_several_addresses_and_on_sockets_of_systemd() {
    let (child, said) = spawn("two", "attached ");
    let pages = served(&said);
    assert_eq!(pages.len(), 2, "{said:?}");
    for page in pages {
        assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 200 "));
    }
    stop(child, libc::SIGTERM);

    // Socket activation as systemd does it: descriptor 3, and LISTEN_PID names the process that may take it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut child = Command::new("sh")
        .args([
            "-c",
            "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\"",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, "socket")
        .stdin(std::os::fd::OwnedFd::from(listener))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.find(|l| l.as_ref().unwrap().contains("serving "));
    assert_eq!(served(&[line.unwrap().unwrap()]), [address]);
    assert!(get(address, "/-/healthy", "").starts_with("HTTP/1.1 200 "));
    stop(child, libc::SIGTERM);

    let out = command("socket").output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("systemd has handed over no socket"), "{text}");
}

/// Value of a line of /proc/PID/status.
fn status(pid: u32, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap();
    line.trim().replace('\t', " ")
}

/// Process ID of the log line ` serves HTTP as `.
fn serves_http(said: &str) -> u32 {
    let (before, _) = said.split_once(" serves HTTP as ").unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

fn the_http_process_is_confined_and_restarted() {
    let mut child = command("keep").spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut until = |all: &[&str]| {
        let mut said = String::new();
        while !all.iter().all(|text| said.contains(text)) {
            said += &(lines.next().unwrap().unwrap() + "\n");
        }
        said
    };
    let said = until(&["serving http://", "attached ", " serves HTTP as "]);
    let page = served(&said.lines().map(str::to_owned).collect::<Vec<_>>())[0];
    let started = || {
        let body = get(page, "/metrics?collect[]=agent", "");
        let line = body.lines().find(|l| l.starts_with("process_start_time"));
        line.unwrap().to_owned()
    };
    let before = started();
    assert!(
        said.contains(", without capabilities, with a filter of system calls, with"),
        "{said}"
    );
    let mut http = serves_http(&said);
    for _ in 0..2 {
        assert_ne!(http, child.id());
        assert_eq!(status(http, "Name:"), "nfscope-http");
        assert_eq!(status(http, "PPid:"), child.id().to_string());
        assert_eq!(status(http, "NoNewPrivs:"), "1");
        assert_eq!(status(http, "Seccomp:"), "2");
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(status(http, set), "0".repeat(16), "{set}");
        }
        if rustix::process::geteuid().is_root() {
            assert_eq!(status(http, "CapBnd:"), "0".repeat(16));
            assert_eq!(status(http, "Groups:"), "");
            for ids in ["Uid:", "Gid:"] {
                let all = status(http, ids);
                assert!(all.split(' ').all(|id| id != "0"), "{ids} {all}");
            }
        }
        // SAFETY: kill takes two integers; the agent has not waited for the process, whose id therefore is its own.
        assert_eq!(unsafe { libc::kill(http as i32, libc::SIGKILL) }, 0);
        // Start time of the agent: its probes and their counts have gone on.
        assert_eq!(started(), before);
        let said = until(&[
            "the process that serves HTTP ended with ",
            " serves HTTP as ",
        ]);
        assert!(said.contains("ended with signal: 9"), "{said}");
        http = serves_http(&said);
    }
    stop(child, libc::SIGTERM);
    // No HTTP process outlives its agent: it would hold standard error open, and log.
    assert_eq!(
        lines.map_while(Result::ok).last().unwrap(),
        "nfscope: stopping on SIGTERM"
    );
}

fn a_stopped_http_process_is_replaced_and_counted() {
    let mut child = command("keep").spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut until = |all: &[&str]| {
        let mut said = String::new();
        while !all.iter().all(|text| said.contains(text)) {
            let line = lines.next();
            let line = line.unwrap_or_else(|| panic!("the agent ended: {said}"));
            said += &(line.unwrap() + "\n");
        }
        said
    };
    let said = until(&["serving http://", "attached ", " serves HTTP as "]);
    let page = served(&said.lines().map(str::to_owned).collect::<Vec<_>>())[0];
    let http = serves_http(&said);
    // Wait for the metric of the sandbox: from then on the agent has seen this process serve.
    while !get(page, "/metrics?collect[]=agent", "").contains("nfscope_http_sandbox") {}
    // SAFETY: kill takes two integers; the agent has not waited for the process, whose id therefore is its own.
    assert_eq!(unsafe { libc::kill(http as i32, libc::SIGSTOP) }, 0);
    let said = until(&[
        "the process that serves HTTP was ended: ",
        " serves HTTP as ",
    ]);
    assert!(said.contains("it does not answer the agent"), "{said}");
    assert_ne!(serves_http(&said), http);
    let body = get(page, "/metrics?collect[]=agent", "");
    // At least one: on a host that stalls, the replacement may be ended for the same reason.
    let counted = "nfscope_http_process_ends_total{reason=\"no_answer\"} ";
    let (_, ends) = body.split_once(counted).unwrap();
    let ends: f64 = ends.lines().next().unwrap().parse().unwrap();
    assert!(ends >= 1.0, "{body}");
    assert!(
        body.contains("nfscope_http_sandbox{part=\"seccomp\"} 1"),
        "{body}"
    );
    stop(child, libc::SIGTERM);
}

/// Configuration that names a web configuration without TLS and passwords.
fn web_configuration(dir: &std::path::Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let (file, web) = (dir.join("a.toml"), dir.join("web.yml"));
    std::fs::write(&file, format!("[web]\nconfig_file = {web:?}\n")).unwrap();
    std::fs::write(&web, "{}").unwrap();
    (file, web)
}

/// A FIFO without a writer is a path on which open(2) hangs.
fn paths_that_hang_stop_neither_scrapes_nor_signals() {
    let dir = tempfile::tempdir().unwrap();
    let (file, web) = web_configuration(dir.path());
    let fifo = |path: &std::path::Path| {
        let _ = std::fs::remove_file(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let mut child = command("keep").env(FILE, &file).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut until = |all: &[&str]| {
        let mut said = String::new();
        while !all.iter().all(|text| said.contains(text)) {
            said += &(lines.next().unwrap().unwrap() + "\n");
        }
        said
    };
    let said = until(&["serving http://", "attached ", " serves HTTP as "]);
    let page = served(&said.lines().map(str::to_owned).collect::<Vec<_>>())[0];
    let refused = "the old settings stay in effect: ";
    let ask = |child: &Child, until: &mut dyn FnMut(&[&str]) -> String| {
        kill(child, libc::SIGHUP);
        assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 200 "));
        until(&[refused])
    };
    fifo(&web);
    let said = ask(&child, &mut until);
    assert!(said.contains("web.yml: it is no regular file"), "{said}");
    std::fs::remove_file(&web).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &web).unwrap();
    let said = ask(&child, &mut until);
    assert!(said.contains("web.yml: it is no regular file"), "{said}");
    std::fs::remove_file(&web).unwrap();
    fifo(&dir.path().join("cert"));
    std::fs::write(&web, "tls_server_config: {cert_file: cert, key_file: key}").unwrap();
    let said = ask(&child, &mut until);
    assert!(said.contains("cert: it is no regular file"), "{said}");
    fifo(&file);
    let said = ask(&child, &mut until);
    assert!(said.contains("a.toml: it is no regular file"), "{said}");
    stop(child, libc::SIGTERM);

    // FIFO in place of the store: SQLite opens it, and hangs.
    let store = dir.path().join("store");
    fifo(&store);
    let mut child = command("keep").env(STORE, &store).spawn().unwrap();
    let mut said = Vec::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while !said.iter().any(|l: &String| l.contains(" serves HTTP as ")) || served(&said).is_empty()
    {
        said.push(lines.next().unwrap().unwrap());
    }
    let page = served(&said)[0];
    let asked = fixture::serve::send(page, b"GET /recordings HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // Thread of the agent that hangs in open(2).
    while !reads(child.id()) {
        assert!(get(page, "/-/healthy", "").starts_with("HTTP/1.1 200 "));
    }
    stop(child, libc::SIGTERM);
    drop(asked);
}

/// True if this process has a thread that reads files for a request. There is none before the first such request.
fn reads(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.flatten().any(|task| {
        std::fs::read_to_string(task.path().join("comm"))
            .is_ok_and(|name| name.starts_with("settings") || name.starts_with("recordings"))
    })
}

/// HTTP process without the capabilities to change its user, as in a container.
fn sandbox_require_refuses_an_unconfined_http_process() {
    if !rustix::process::geteuid().is_root() {
        return fixture::skip("this process is not root's");
    }
    let agent = |role: &str| {
        let mut command = Command::new("setpriv");
        command
            .args([
                "--bounding-set",
                "-setuid,-setgid",
                "--inh-caps",
                "-setuid,-setgid",
            ])
            .arg(std::env::current_exe().unwrap())
            .env(ROLE, role)
            .stderr(Stdio::piped());
        command
    };
    let out = agent("require").output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(
        text.contains("it must be confined, and lacks a user other than root (it runs as root)"),
        "{text}"
    );
    assert!(!text.contains("panicked"), "{text}");
    let mut child = agent("keep").spawn().unwrap();
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        said += &(line.unwrap() + "\n");
        if said.contains(" serves HTTP as root") {
            break;
        }
    }
    assert!(
        said.contains("error: the process that serves HTTP lacks a user other than root"),
        "{said}"
    );
    stop(child, libc::SIGTERM);
}

/// Files that only root may read: the agent loads them before it drops its capabilities, and could not read them again on SIGHUP.
fn a_file_that_sighup_could_not_read_again_fails_the_start() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let dir = tempfile::tempdir().unwrap();
    let (file, web) = web_configuration(dir.path());
    for secret in [&web, &file] {
        std::fs::set_permissions(secret, PermissionsExt::from_mode(0o600)).unwrap();
        chown(secret, Some(65_534), Some(65_534)).unwrap();
        let out = command("keep").env(FILE, &file).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{text}");
        assert!(
            text.contains("without capabilities, which the agent has dropped"),
            "{text}"
        );
        assert!(text.contains(secret.to_str().unwrap()), "{text}");
        assert!(!text.contains("serving "), "{text}");
        chown(secret, Some(0), Some(0)).unwrap();
    }
}

/// Names of a process's threads, and their effective capabilities. Asserts that a thread can get no others.
fn capabilities_of_threads(process: u32, said: &str) -> Vec<(String, u64)> {
    let mut threads = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let Ok(status) = std::fs::read_to_string(task.unwrap().path().join("status")) else {
            // Thread of one file read, which has ended meanwhile.
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find(|l| l.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        let set = |name| u64::from_str_radix(&field(name), 16).unwrap();
        assert_eq!(set("CapEff:"), set("CapPrm:"));
        assert_eq!(
            set("CapInh:") | set("CapAmb:") | set("CapBnd:"),
            0,
            "{said}"
        );
        assert_eq!(field("NoNewPrivs:"), "1");
        threads.push((field("Name:"), set("CapEff:")));
    }
    threads
}

fn every_thread_drops_its_capabilities() {
    for role in ["drop", "keep"] {
        let (child, said) = spawn(role, "attached ");
        let said = said.join("\n");
        // A new thread has the name of its parent until it sets its own. The runner ends a test in which one never does.
        let threads = loop {
            let threads = capabilities_of_threads(child.id(), &said);
            let names: BTreeSet<_> = threads.iter().map(|(name, _)| name.as_str()).collect();
            if names.iter().filter(|name| **name != "read-file").count() == 4 {
                break threads;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        for (name, held) in threads {
            let expected = match role {
                _ if name != "probes" => 0,
                "keep" => 1 << 39 | 1 << 38 | 1 << 21 | 1 << 2,
                // Kernels before 6.0 leave CAP_BPF, and the agent logs it.
                _ if said.contains("kept CAP_BPF because") => 1 << 39,
                _ => 0,
            };
            assert_eq!(held, expected, "thread {name}; {said}");
        }
        assert!(!said.contains("more is held"), "{said}");
        stop(child, libc::SIGTERM);
    }
}

/// Kernels before 6.0 refuse map reads without CAP_BPF. The child simulates the refusal.
fn cap_bpf_stays_where_map_reads_need_it() {
    let out = Command::new(std::env::current_exe().unwrap())
        .env(ROLE, "old kernel")
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{text}");
    assert!(text.starts_with("kept CAP_BPF because"), "{text}");
    assert!(text.contains("CapEff:\t0000008000000000\n"), "{text}");
    assert!(text.contains("CapPrm:\t0000008000000000\n"), "{text}");
}

fn confined_on_an_old_kernel() -> ExitCode {
    assert!(nfscope_source::privileges::may_read_maps());
    println!(
        "{}",
        nfscope_source::privileges::confine(false, || false).unwrap()
    );
    println!("{}", std::fs::read_to_string("/proc/self/status").unwrap());
    ExitCode::SUCCESS
}

/// Starts the agent as a user other than root, which the agent refuses. `privileges` are arguments of setpriv(1). Returns standard error.
fn refused_to_another_user(privileges: &[&str], arguments: &[&str]) -> String {
    // Copy that every user may execute: the build directory may be readable for its owner only.
    let program = std::env::temp_dir().join(format!("nfscope-unprivileged-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_nfscope"), &program).unwrap();
    let out = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(privileges)
        .arg(&program)
        .args(["agent", "--web.listen-address", "127.0.0.1:0"])
        .args(arguments)
        .output()
        .unwrap();
    std::fs::remove_file(&program).unwrap();
    let text = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{text}");
    text
}

fn missing_capabilities_are_named_in_the_error() {
    let text = refused_to_another_user(&[], &[]);
    assert!(
        text.contains("error: missing CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN"),
        "{text}"
    );
    assert!(
        text.contains("setcap cap_bpf,cap_perfmon,cap_sys_admin+ep"),
        "{text}"
    );
}

/// Ambient capabilities are not enough: they may be the program's, and not the user's.
fn only_root_may_replace_a_probe_of_the_agent() {
    let three = "+bpf,+perfmon,+sys_admin";
    let text = refused_to_another_user(
        &["--inh-caps", three, "--ambient-caps", three],
        &["--test-nfsd-object", "/etc/hostname"],
    );
    let says = "error: only root may give the agent another probe";
    assert!(text.contains(says), "{text}");
}
