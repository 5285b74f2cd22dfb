//! `nfscope top` in a pseudo-terminal: keys, and what the screen then shows.

use crate::fixture::busy::busy;
use crate::fixture::pty::{Terminal, is_color, sgr};
use crate::fixture::serve::serve;
use crate::fixture::{histogram, slow_op};
use nfscope_model::breakdown::Moved;
use nfscope_model::{
    BreakdownBatch, BreakdownRow, BreakdownWant, ProbeStatus, Scheme, SlowBatch, SlowFilter,
    Snapshot,
};
use nfscope_source::Source;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Source of a busy server, one second later at each reading. Its client 192.0.2.7 has 30 WRITEs and 10 COMMITs between two readings of the
/// break-down.
#[derive(Default)]
struct Busy(u64);

impl Source for Busy {
    fn snapshot(&mut self) -> Snapshot {
        self.0 += 1;
        busy(self.0)
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        busy(1).probes
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        SlowBatch {
            ops: vec![slow_op("write", 12)],
            left_out: 0,
        }
    }

    fn watch_breakdown(&mut self, _: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        Ok(BreakdownBatch::default())
    }

    fn take_breakdown(&mut self) -> BreakdownBatch {
        let row = |op: &str, count| BreakdownRow {
            keys: ["192.0.2.7", "/srv/münchen", op, "4.2", "", ""].map(str::to_owned),
            times: histogram(Scheme::TIME, &[(0.004, count)]),
            moved: Moved {
                read: 0,
                written: 65_536 * count,
            },
        };
        BreakdownBatch {
            rows: vec![row("write", 30), row("commit", 10)],
            ..BreakdownBatch::default()
        }
    }
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn top(env: &[(&str, &str)]) -> Terminal {
    let address = serve(|| Ok(Box::<Busy>::default()));
    Terminal::start(&url(address), env, None)
}

#[test]
fn keys_change_the_panel_the_order_the_filter_and_the_pause() {
    let t = top(&[]);
    t.shows("getattr");
    t.shows("SHARE▼");
    t.shows("k lock");
    assert!(t.screen.lock().unwrap().screen().alternate_screen());
    t.press("2");
    t.shows("QUEUE P99");
    t.press("\t");
    t.shows("IN FLIGHT");
    t.press("4");
    t.shows("192.0.2.7");
    t.press("5");
    t.shows("unsupported");
    // Panels of the agent's findings, and of single slow operations.
    t.press("7");
    t.shows("no finding is active");
    t.press("8");
    t.shows("< > change this");
    // Mouse click on the name of a panel, in the SGR encoding (mode 1006): columns and lines count from 1.
    let line = t.wait("the panels", |s| s.contains(" 3 Disks"));
    let y = line.lines().position(|l| l.contains(" 3 Disks")).unwrap();
    let x = line.lines().nth(y).unwrap().find(" 3 Disks").unwrap();
    t.press(&format!("\x1b[<0;{};{}M", x + 2, y + 1));
    t.shows("IN FLIGHT");
    // `M` switches mouse reporting off, so that the terminal itself can select text.
    t.press("M");
    t.press("1?");
    t.shows("PHASES of an operation");
    t.press("\x1b[6~");
    t.shows("PHASES of a request");
    t.press("q");
    t.shows("SHARE▼");
    t.press("o");
    t.shows("OPS/S▼");
    t.press("r");
    t.shows("OPS/S▲");
    t.press("/comm");
    t.wait("commit alone", |s| {
        s.contains("commit") && !s.contains("getattr")
    });
    t.press("\rvv");
    t.shows("none of 3 rows passes the filter");
    t.press(" ");
    t.shows("PAUSED");
    t.press(" vvv/\x1b");
    t.wait("all", |s| s.contains("getattr") && !s.contains("PAUSED"));
    t.resize(15, 60);
    t.shows("1 Ops");
    t.resize(4, 20);
    t.shows("too small");
    t.resize(40, 120);
    t.shows("1 Operations");
    t.press("q");
    let (status, bytes) = t.ended();
    assert!(status.success());
    assert!(sgr(&bytes).iter().any(is_color));
    // Mouse modes are switched off at the end, and bracketed paste (2004) was never switched on.
    let text = String::from_utf8_lossy(&bytes);
    for mode in ["?1000", "?1002", "?1003", "?1006"] {
        let last = |way: char| text.rfind(&format!("{mode}{way}"));
        assert!(last('h').is_some() && last('h') < last('l'), "{mode}");
    }
    assert!(!text.contains("?2004h"));
}

#[test]
fn wide_screens_have_history_and_one_client_has_its_operations() {
    let t = top(&[]);
    for (rows, columns) in [(24, 80), (40, 120), (60, 200)] {
        t.resize(rows, columns);
        // History from the second window on, and where there is room. A key that is pressed while crossterm (0.29) reads a change of size
        // waits for the next key. So no key is pressed before the head reaches the new edge.
        let wide = columns > 80;
        let text = t.wait("this size", |s| {
            let head = s.lines().next().map_or(0, |l| l.trim_end().chars().count());
            let drawn = !wide || head == usize::from(columns);
            drawn && s.contains("getattr") && s.contains("TIME HISTORY") == wide
        });
        let widest = text.lines().map(|l| l.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{text}");
        println!("{text}");
    }
    t.shows("every 250 ms");
    t.press("+");
    t.shows("every 500 ms");
    t.press("4j\r");
    t.shows("nfscope slow --client 2001:db8::17 --min-latency 0");
    // Client without slow or counted operations.
    t.shows("None ended while nfscope listened");
    t.shows("no such operations in this interval");
    t.press("\r");
    t.press("k\r");
    t.shows("nfscope slow --client 192.0.2.7 --min-latency 0");
    let text = t.wait("what it does", |s| {
        s.contains("SEEN and PHASES are of ") && s.contains("OPS/S is of every operation")
    });
    assert!(text.contains("12.0 ms") && text.contains("write"), "{text}");
    // Counted operations: three of four are WRITEs, and none is left out.
    let counted = text.lines().find(|l| l.starts_with("4.2  commit"));
    assert!(counted.is_some_and(|l| l.contains("25.0 %")), "{text}");
    // History is that of the whole server, and is not shown for a client.
    let heads = text.lines().filter(|l| l.starts_with("VER "));
    let heads: Vec<_> = heads.collect();
    assert_eq!(heads.len(), 2, "{text}");
    assert!(!heads.iter().any(|l| l.contains("HISTORY")), "{text}");
    println!("{text}");
    // Panel of an export with the same operations: the command counts them by client and operation.
    t.press("\r");
    t.press("G");
    t.press("k");
    t.press("\r");
    t.shows("nfscope top --by client,op --where export=/srv/münchen");
    t.shows("75.0 %");
    // Escape goes back, then removes the filter, and ends the program at last.
    // Separate writes: an escape with letters directly behind it is another key.
    t.press("\x1b");
    t.wait("everybody", |s| !s.contains("OPERATIONS OF THIS"));
    t.press("/2001\r");
    t.wait("one client", |s| !s.contains("192.0.2.7"));
    t.press("\x1b");
    t.shows("192.0.2.7");
    t.press("\x1b");
    assert!(t.ended().0.success());
}

#[test]
fn escape_and_ctrl_c_end_top() {
    for key in ["\x1b", "\x03"] {
        let t = top(&[]);
        t.shows("getattr");
        t.press(key);
        assert!(t.ended().0.success());
    }
}

#[test]
fn signals_give_the_terminal_back() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let t = top(&[]);
        t.shows("getattr");
        kill_process(Pid::from_child(&t.child), signal).unwrap();
        assert!(t.ended().0.success(), "{signal:?}");
    }
}

#[test]
fn a_stop_key_without_a_shell_has_no_effect() {
    // Orphaned process group: without a shell above it a job cannot be stopped from its terminal.
    let t = top(&[]);
    t.shows("getattr");
    t.press("\x1a2");
    t.shows("QUEUE P99");
    t.press("q");
    assert!(t.ended().0.success());
}

#[test]
fn top_takes_the_terminal_again_after_sigcont() {
    let t = top(&[]);
    t.shows("getattr");
    let id = Pid::from_child(&t.child);
    kill_process(id, Signal::STOP).unwrap();
    // Changes that a shell makes to a terminal in between.
    t.screen
        .lock()
        .unwrap()
        .process(b"\x1b[2J\x1b[?1049l\x1b[?25h");
    let raw = tcgetattr(&t.pts).unwrap();
    let mut cooked = raw.clone();
    cooked.local_modes = t.modes;
    tcsetattr(&t.pts, OptionalActions::Now, &cooked).unwrap();
    kill_process(id, Signal::CONT).unwrap();
    t.shows("getattr");
    t.press("4");
    t.shows("192.0.2.7");
    assert_eq!(tcgetattr(&t.pts).unwrap().local_modes, raw.local_modes);
    t.press("q");
    assert!(t.ended().0.success());
}

#[test]
fn no_color_sends_no_colour() {
    let t = top(&[("NO_COLOR", "1")]);
    t.shows("lllll");
    for key in ["2", "3", "4", "5", "?"] {
        t.press(key);
    }
    t.shows("KEYS");
    t.press("qq");
    let (_, bytes) = t.ended();
    let colors: Vec<_> = sgr(&bytes).into_iter().filter(is_color).collect();
    assert_eq!(colors, [0; 0]);
}

#[test]
fn another_locale_gets_ascii() {
    let t = top(&[("LANG", "C")]);
    t.shows("SHAREv");
    t.shows("11.7 us");
    t.press("4");
    t.shows("/srv/m?nchen");
    t.press("q");
    assert!(t.ended().1.is_ascii());
}

#[test]
fn keys_are_read_from_the_terminal_if_stdin_is_no_terminal() {
    let address = serve(|| Ok(Box::<Busy>::default()));
    let t = Terminal::start(&url(address), &[], Some(Stdio::null()));
    t.shows("getattr");
    t.press("3");
    t.shows("IN FLIGHT");
    t.press("q");
    assert!(t.ended().0.success());
}

#[test]
fn a_dumb_terminal_gets_plain_tables() {
    let t = top(&[("TERM", "dumb")]);
    t.wait("two tables", |s| {
        s.matches("nfscope  127").count() >= 2 || s.contains("EXPORT")
    });
    let bytes = t.bytes.lock().unwrap().clone();
    assert!(!bytes.contains(&0x1b), "{}", t.text());
}

/// Agent that can go away: it answers `/snapshot` until it is stopped.
struct Agent {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    fn start(listener: TcpListener) -> Agent {
        let end = Arc::new(AtomicBool::new(false));
        let ended = end.clone();
        let thread = std::thread::spawn(move || {
            for (n, stream) in (1..).zip(listener.incoming()) {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 1024]);
                let body = serde_json::to_string(&busy(n)).unwrap();
                let head = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
                let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
            }
        });
        Agent {
            end,
            thread: Some(thread),
        }
    }

    fn stop(mut self, address: SocketAddr) {
        self.end.store(true, Ordering::SeqCst);
        let _ = std::net::TcpStream::connect(address);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn top_keeps_its_window_while_the_agent_is_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let agent = Agent::start(listener);
    let t = Terminal::start(&url(address), &[], None);
    t.shows("getattr");
    agent.stop(address);
    let text = t.shows("AGENT GONE");
    assert!(text.contains("trying again: no agent at"), "{text}");
    // Last window: it stays, and keys work.
    assert!(text.contains("getattr"), "{text}");
    t.press("4");
    t.shows("192.0.2.7");
    let agent = Agent::start(TcpListener::bind(address).unwrap());
    t.wait("news", |s| !s.contains("AGENT GONE"));
    t.press("1");
    // Window of a second of the new agent, without the gap.
    t.shows("last 1.00 s");
    t.press("q");
    assert!(t.ended().0.success());
    agent.stop(address);
}

/// Agent that has no room for another break-down at first.
#[test]
fn a_refused_break_down_is_requested_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let lines = [
            r#"{"header":{"host":"nas","by":["client","op"],"where":[],"interval_seconds":1.0,"max_rows":200,"kernel_bytes":1}}"#,
            r#"{"at":1.0,"seconds":1.0,"by":["client","op"],"rows":[{"client":"192.0.2.9","op":"rename","count":1,"sum_seconds":0.1,"buckets":[[0.1,1]]}],"other":{"count":0,"sum_seconds":0.0,"buckets":[]},"evicted":0,"cost_seconds":0.0}"#,
        ];
        let (mut asked, mut open) = (0, Vec::new());
        for (n, stream) in (1..).zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap_or(0);
            if !String::from_utf8_lossy(&request[..length]).starts_with("GET /breakdown?") {
                let body = serde_json::to_string(&busy(n)).unwrap();
                let head = "HTTP/1.0 200 OK\r\nContent-Type: application/json";
                let _ = write!(
                    stream,
                    "{head}\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                continue;
            }
            asked += 1;
            if asked < 3 {
                let head = "HTTP/1.0 503 Service Unavailable\r\nContent-Length: 17";
                let _ = write!(stream, "{head}\r\n\r\n8 listen already\n");
                continue;
            }
            let head = "HTTP/1.0 200 OK\r\nContent-Type: application/x-ndjson";
            let _ = write!(stream, "{head}\r\n\r\n{}\n", lines.join("\n"));
            open.push(stream);
        }
    });
    let t = Terminal::start(&url(address), &[], None);
    t.shows("getattr");
    t.press("6");
    t.shows("8 listen already");
    t.shows("192.0.2.9");
    t.press("q");
    assert!(t.ended().0.success());
}

#[test]
fn a_slow_agent_does_not_hold_up_a_key() {
    let address = serve(|| Ok(Box::<Busy>::default()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let slow = listener.local_addr().unwrap();
    // Proxy that forwards snapshots until the screen shows one. Then it accepts connections and sends nothing.
    let seen = Arc::new(AtomicBool::new(false));
    let silent_from = seen.clone();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if silent_from.load(Ordering::SeqCst) {
                silent.push(stream);
                continue;
            }
            let _ = stream.read(&mut [0; 1024]);
            let answer = crate::fixture::serve::get(address, "/snapshot", "Connection: close\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let t = Terminal::start(&url(slow), &[], None);
    t.shows("getattr");
    seen.store(true, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(600));
    let pressed = Instant::now();
    t.press("4");
    t.shows("192.0.2.7");
    assert!(pressed.elapsed() < Duration::from_secs(5));
    t.press("q");
    assert!(t.ended().0.success());
}
