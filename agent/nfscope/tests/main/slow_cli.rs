//! `nfscope slow` as a user sees it: whole lines, and the program against an agent in the process of the test.

use crate::fixture::serve::{attached, serve};
use crate::fixture::{Fake, Slow, golden, slow_op};
use nfscope::slow::table::{Style, Table};
use nfscope_api::slow_line::Line;
use nfscope_model::{OpPhases, SlowOp};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WIDE: Style = Style {
    width: usize::MAX,
    color: false,
    longest: 40,
    offset: 3600,
};

/// Operations of every kind: with all fields, with few, and with values wider than their column.
fn several() -> Vec<SlowOp> {
    let phases = |cpu, log, lock| {
        Some(OpPhases {
            cpu: Duration::from_nanos(cpu),
            runqueue: Duration::from_micros(15),
            log: Duration::from_micros(log),
            disk: Duration::ZERO,
            lock: Duration::from_micros(lock),
            ..OpPhases::default()
        })
    };
    vec![
        SlowOp {
            phases: phases(999, 34_100, 0),
            ..slow_op("write", 35)
        },
        SlowOp {
            client: None,
            version: "3".into(),
            export: None,
            inode: None,
            path: None,
            bytes: None,
            stability: None,
            status: "jukebox".into(),
            phases: None,
            ..slow_op("commit", 1_234)
        },
        SlowOp {
            client: Some("2001:db8:1234:5678:9abc:def0:1234:5678".parse().unwrap()),
            export: Some("/srv/a path\u{1b}[2J/that/is/somewhat/long/for/any/screen".into()),
            inode: Some(18_446_744_073_709_551_615),
            path: None,
            bytes: None,
            stability: None,
            status: "reclaim_conflict".into(),
            phases: phases(1_200, 0, 59_000_000),
            ..slow_op("setclientid_confirm", 59_001)
        },
        SlowOp {
            bytes: Some(1_048_576),
            stability: Some("unstable".into()),
            ..slow_op("write", 12)
        },
    ]
}

fn table(style: Style) -> String {
    let mut table = Table::default();
    several().iter().map(|op| table.row(op, style)).collect()
}

#[test]
fn lines_of_slow_are_drawn_for_files_and_screens() {
    golden("slow.txt", &table(WIDE));
    for width in [120, 80] {
        golden(
            &format!("slow.{width}.txt"),
            &table(Style { width, ..WIDE }),
        );
    }
    let color = Style {
        width: 120,
        color: true,
        ..WIDE
    };
    golden("slow.color.txt", &table(color));
}

#[test]
fn a_long_path_is_shortened_with_a_mark() {
    let mut op = several().remove(0);
    op.export = Some(format!("/srv/{}/end", "x".repeat(5000)));
    let row = |longest| Table::default().row(&op, Style { longest, ..WIDE });
    let bounded = row(40);
    let line = bounded.lines().last().unwrap();
    assert!(
        line.chars().count() < 200 && line.ends_with("xxx/end"),
        "{line}"
    );
    assert!(line.contains("…xxx"), "{line}");
    assert!(row(usize::MAX).contains(op.export.as_deref().unwrap()));
}

#[test]
fn no_line_wraps() {
    for width in 6..200 {
        let text = table(Style { width, ..WIDE });
        let longest = text.lines().map(|l| l.chars().count()).max().unwrap();
        assert!(longest <= width, "{width}: {longest}\n{text}");
    }
}

fn nfscope(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    command
        .arg("slow")
        .args(args)
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn stdout(o: &Output) -> String {
    String::from_utf8(o.stdout.clone()).unwrap()
}

fn stderr(o: &Output) -> String {
    String::from_utf8(o.stderr.clone()).unwrap()
}

fn agent() -> (String, Arc<Mutex<Slow>>) {
    let source = Fake::new();
    let slow = source.slow.clone();
    (format!("http://{}", attached(source)), slow)
}

/// Adds these slow operations once a client is subscribed.
fn happen(slow: &Mutex<Slow>, ops: Vec<SlowOp>, left_out: u64) {
    let begun = Instant::now();
    while !matches!(slow.lock().unwrap().asked.last(), Some(Some(_))) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody listens");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut slow = slow.lock().unwrap();
    slow.batch.ops.extend(ops);
    slow.batch.left_out += left_out;
}

/// Output of the program for two operations and a number left out, until this signal stops it.
fn until(signal: &str, more: &[&str]) -> Output {
    let (url, slow) = agent();
    let args = [&["--url", &url, "--limit", "500"], more].concat();
    let child = nfscope(&args).spawn().unwrap();
    happen(&slow, several()[..2].to_vec(), 12);
    // Wait for both polls that the agent needs: the number left out follows its operations.
    while !slow.lock().unwrap().batch.ops.is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(500));
    kill(&child, signal);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn kill(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn slow_prints_text_and_a_summary() {
    let o = until("-TERM", &[]);
    let style = Style { offset: 0, ..WIDE };
    let mut table = Table::default();
    let rows: String = several()[..2]
        .iter()
        .map(|op| table.row(op, style))
        .collect();
    assert_eq!(stdout(&o), rows);
    assert_eq!(
        stderr(&o),
        "nfscope: no phases: turned off by --no-phases, or see `nfscope check`\n\
         nfscope: 12 left out: more than 500 per second, or more than was read in time\n\
         nfscope: 2 shown, 12 left out\n"
    );
}

#[test]
fn slow_prints_json_lines() {
    let o = until("-INT", &["--json"]);
    let lines: Vec<Line> = stdout(&o)
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let mut wanted: Vec<_> = several()[..2]
        .iter()
        .cloned()
        .map(Box::new)
        .map(Line::Op)
        .collect();
    wanted.push(Line::LeftOut { left_out: 12 });
    assert_eq!(lines, wanted);
    assert_eq!(stderr(&o), "nfscope: 2 shown, 12 left out\n");
}

#[test]
fn slow_stops_after_the_count() {
    let (url, slow) = agent();
    let child = nfscope(&["--url", &url, "--count", "2", "--json"])
        .spawn()
        .unwrap();
    happen(&slow, vec![slow_op("write", 20); 5], 0);
    let o = child.wait_with_output().unwrap();
    assert!(o.status.success());
    assert_eq!(stdout(&o).lines().count(), 2);
    assert_eq!(stderr(&o), "nfscope: 2 shown, 0 left out\n");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (url, slow) = agent();
    let mut child = nfscope(&["--url", &url]).spawn().unwrap();
    let mut heading = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut heading)
        .unwrap();
    assert!(heading.starts_with("TIME "), "{heading}");
    happen(&slow, vec![slow_op("write", 20)], 0);
    let o = child.wait_with_output().unwrap();
    assert!(o.status.success());
    assert_eq!(
        stderr(&o),
        "nfscope: no phases: turned off by --no-phases, or see `nfscope check`\n"
    );
}

#[test]
fn a_closed_pipe_is_noticed_without_operations() {
    let (url, _slow) = agent();
    let mut child = nfscope(&["--url", &url, "--json"]).spawn().unwrap();
    drop(child.stdout.take());
    let o = child.wait_with_output().unwrap();
    assert!(o.status.success());
    assert_eq!(stderr(&o), "");
}

#[test]
fn an_unread_pipe_does_not_keep_slow_from_ending() {
    let (url, slow) = agent();
    let mut child = nfscope(&["--url", &url, "--limit", "10000"])
        .spawn()
        .unwrap();
    happen(&slow, vec![slow_op("write", 20); 5000], 0);
    while !slow.lock().unwrap().batch.ops.is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(500));
    kill(&child, "-TERM");
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_help_names_every_column_of_a_line() {
    let help = stdout(&nfscope(&["--help"]).output().unwrap());
    let (_, line) = help.split_once("A line:\n").unwrap();
    let names = line.lines().take(2).flat_map(str::split_whitespace);
    let heading = Table::default().heading(WIDE).unwrap();
    assert_eq!(
        names.collect::<Vec<_>>(),
        heading.split_whitespace().collect::<Vec<_>>()
    );
}

#[test]
fn a_server_that_is_no_agent_is_not_called_an_older_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        // The stream, and then the snapshot that an older agent would have.
        for _ in 0..2 {
            let (mut s, _) = listener.accept().unwrap();
            let request = BufReader::new(&s).lines();
            assert!(request.map_while(Result::ok).any(|l| l.is_empty()));
            s.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
        }
    });
    let o = nfscope(&["--url", &url]).output().unwrap();
    server.join().unwrap();
    assert_eq!(o.status.code(), Some(1));
    assert!(
        stderr(&o).starts_with(&format!(
            "error: {url} does not answer like an nfscope agent"
        )),
        "{}",
        stderr(&o)
    );
}

#[test]
fn a_refusal_of_the_agent_is_quoted_and_its_end_is_an_error() {
    let refusing = Fake::new();
    refusing.slow.lock().unwrap().refuses = Some("no room for a ring");
    let url = format!("http://{}", attached(refusing));
    let o = nfscope(&["--url", &url]).output().unwrap();
    assert_eq!(o.status.code(), Some(1));
    assert_eq!(
        stderr(&o),
        format!("error: the agent at {url} refuses: no room for a ring\n")
    );

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let child = nfscope(&["--url", &url]).spawn().unwrap();
    let (mut s, _) = listener.accept().unwrap();
    s.read_exact(&mut [0; 20]).unwrap();
    s.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"left_out\":1}\n")
        .unwrap();
    drop(s);
    let o = child.wait_with_output().unwrap();
    assert_eq!(o.status.code(), Some(1));
    assert_eq!(
        stderr(&o).lines().collect::<Vec<_>>()[1..],
        [
            "nfscope: 0 shown, 1 left out",
            &format!("error: the agent at {url} has ended")
        ]
    );
}

#[test]
fn wrong_flags_are_refused_before_a_request_is_made() {
    let (url, slow) = agent();
    for (args, why) in [
        (
            ["--op", "write,comit"],
            "no operation is called `comit`; did you mean `commit`?",
        ),
        (
            ["--min-latency", "10x"],
            "give a duration such as 500ms, 2s, 5m or 1h",
        ),
        (["--client", "nfs1"], "give an IP address without port"),
        (["--limit", "0"], "give a number from 1 to 10000"),
    ] {
        let o = nfscope(&[&["--url", &url], &args[..]].concat())
            .output()
            .unwrap();
        assert_eq!(o.status.code(), Some(2));
        assert!(stderr(&o).contains(why), "{}", stderr(&o));
    }
    assert!(slow.lock().unwrap().asked.is_empty());
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}");
    let o = nfscope(&["--url", &url]).output().unwrap();
    assert_eq!(
        stderr(&o),
        format!("error: no agent at {url}: start one with `nfscope agent`\n")
    );
    let gone = serve(|| anyhow::bail!("no probes"));
    let url = format!("http://{gone}");
    let o = nfscope(&["--url", &url]).output().unwrap();
    assert_eq!(
        stderr(&o),
        format!("error: the agent at {url} refuses: attaching\n")
    );
}
