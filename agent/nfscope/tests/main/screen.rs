//! Screen of `nfscope top`, cell by cell.

use crate::fixture::busy::{busy, window};
use crate::fixture::{golden, slow_op, snapshot, status};
use nfscope_api::slow_line::Line;
use nfscope_model::{HeldRequest, ProbeState, Snapshot, family};
use nfscope_tui::{
    App, FindingsReport, Key, Link, Sample, Subject, Tab, TerminalStyle, View, draw,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

const COLOR: TerminalStyle = TerminalStyle {
    color: true,
    utf8: true,
};
const NO_COLOR: TerminalStyle = TerminalStyle {
    color: false,
    ..COLOR
};
const ASCII: TerminalStyle = TerminalStyle {
    color: false,
    utf8: false,
};

fn app() -> App {
    let mut app = App::default();
    app.take(View::of(&window(), "nfs1"));
    app
}

fn press(app: &mut App, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '↓' => KeyCode::PageDown,
            c => KeyCode::Char(c),
        };
        app.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn buffer(app: &mut App, style: TerminalStyle, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut extent = Default::default();
    let frame = terminal.draw(|f| {
        let area = f.area();
        extent = draw(app, style, area, f.buffer_mut());
    });
    let buffer = frame.unwrap().buffer.clone();
    app.fit(extent);
    buffer
}

/// Letters of a screen, line by line.
fn letters(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    let rows = rows.map(|row| {
        let row: String = row.iter().map(|c| c.symbol()).collect();
        row.trim_end().to_owned() + "\n"
    });
    rows.collect()
}

/// Letters of a screen, and below each line its styles: columns from and to, colours, modifiers.
fn styles(buffer: &Buffer) -> String {
    let mut out = String::new();
    let width = usize::from(buffer.area.width);
    for (row, text) in buffer.content.chunks(width).zip(letters(buffer).lines()) {
        let _ = writeln!(out, "{text}");
        let mut x = 0;
        for run in row.chunk_by(|a, b| a.style() == b.style()) {
            let (s, to) = (run[0].style(), x + run.len());
            let mut how = String::new();
            for (name, color) in [("fg", s.fg), ("bg", s.bg)] {
                if let Some(color) = color.filter(|c| c.to_string() != "Reset") {
                    let _ = write!(how, " {name} {color}");
                }
            }
            if !s.add_modifier.is_empty() {
                let _ = write!(how, " {:?}", s.add_modifier);
            }
            if !how.is_empty() {
                let _ = writeln!(out, "    {x}..{to}{how}");
            }
            x = to;
        }
    }
    out
}

#[test]
fn operations_are_drawn_at_three_sizes() {
    for size in [(80, 24), (120, 40), (60, 15)] {
        let name = format!("screen.{}x{}.txt", size.0, size.1);
        golden(&name, &letters(&buffer(&mut app(), NO_COLOR, size)));
    }
}

#[test]
fn colours_of_the_screen_are_the_golden_file() {
    let buffer = buffer(&mut app(), COLOR, (80, 24));
    golden("screen.color.txt", &styles(&buffer));
}

#[test]
fn a_terminal_without_colours_gets_none() {
    for keys in ["", "2", "3", "4", "5", "?", " ", "/x"] {
        let mut app = app();
        press(&mut app, keys);
        let text = styles(&buffer(&mut app, NO_COLOR, (80, 24)));
        assert!(!text.contains(" fg ") && !text.contains(" bg "), "{text}");
    }
}

#[test]
fn a_screen_without_utf8_is_ascii() {
    let mut text = String::new();
    for keys in ["", "4", "?"] {
        let mut app = app();
        press(&mut app, keys);
        text += &letters(&buffer(&mut app, ASCII, (80, 24)));
    }
    assert!(text.is_ascii());
    golden("screen.ascii.txt", &text);
}

#[test]
fn every_panel_is_drawn() {
    let mut text = String::new();
    for keys in ["2", "3", "4", "5"] {
        let mut app = app();
        press(&mut app, keys);
        text += &letters(&buffer(&mut app, NO_COLOR, (80, 24)));
    }
    golden("screen.panels.txt", &text);
}

/// Screen after ten windows: operations per second grow in each window, and halve in the last one.
fn after_ten_windows() -> App {
    let at = |i: usize, total: u64| {
        let mut s = busy(total);
        s.at = Duration::from_secs(100 + i as u64);
        s
    };
    let totals = [1, 2, 4, 7, 11, 16, 22, 29, 37, 46, 51];
    let mut app = App::default();
    for (i, pair) in totals.windows(2).enumerate() {
        let window = at(i + 1, pair[1]).since(&at(i, pair[0]));
        app.take(View::of(&window, "nfs1"));
    }
    app
}

#[test]
fn wide_screens_show_history() {
    let mut text = String::new();
    for (keys, style, size) in [
        ("", NO_COLOR, (120, 16)),
        ("P", NO_COLOR, (200, 16)),
        ("P", ASCII, (200, 16)),
        ("2", NO_COLOR, (200, 16)),
        ("3", NO_COLOR, (200, 20)),
        ("4", NO_COLOR, (200, 16)),
        ("", NO_COLOR, (80, 16)),
    ] {
        let mut app = after_ten_windows();
        press(&mut app, keys);
        text += &letters(&buffer(&mut app, style, size));
    }
    golden("screen.history.txt", &text);
}

#[test]
fn history_begins_anew_after_a_gap_and_stands_still_in_a_pause() {
    let has = |app: &mut App| {
        let text = letters(&buffer(app, NO_COLOR, (200, 16)));
        text.contains("TIME HISTORY")
    };
    let mut app = after_ten_windows();
    assert!(has(&mut app));
    press(&mut app, " ");
    let paused = letters(&buffer(&mut app, NO_COLOR, (200, 16)));
    app.take(View::of(&window(), "nfs1"));
    assert_eq!(letters(&buffer(&mut app, NO_COLOR, (200, 16))), paused);
    press(&mut app, " ");
    assert_ne!(letters(&buffer(&mut app, NO_COLOR, (200, 16))), paused);
    app.news(Link::Begun);
    app.take(View::of(&window(), "nfs1"));
    assert!(!has(&mut app));
}

#[test]
fn one_client_is_drawn_with_its_requests_and_operations() {
    let mut w = window();
    w.delta.held = [("192.0.2.7", "write"), ("192.0.2.8", "read")]
        .map(|(client, op)| HeldRequest {
            thread: 812,
            seconds: 3.2,
            version: "3".into(),
            op: op.into(),
            wait: "disk".into(),
            client: Some(client.into()),
            export: Some("/srv/münchen".into()),
            inode: Some(4711),
            xid: Some(0x0b5f_0c11),
            stack: vec!["io_schedule".into()],
        })
        .into();
    let mut app = App::default();
    app.take(View::of(&w, "nfs1"));
    let mut text = String::new();
    for keys in ["4", "\n", "\n", "G\n", "\n"] {
        press(&mut app, keys);
        text += &letters(&buffer(&mut app, NO_COLOR, (100, 20)));
    }
    press(&mut app, "g\n");
    let heard = [
        slow_op("write", 12),
        slow_op("commit", 3),
        slow_op("write", 4),
    ];
    let length = Duration::from_millis(300);
    for client in ["192.0.2.8", "192.0.2.7"] {
        let client = client.parse().unwrap();
        app.take_sample(Sample::of(client, length, 1000, &heard));
        text += &letters(&buffer(&mut app, NO_COLOR, (120, 24)));
    }
    // Break-down of every operation, and then the reason why there is none.
    for line in [
        r#"{"header":{"host":"nas","by":["version","op"],"where":["client:192.0.2.7"],"interval_seconds":2.0,"max_rows":200,"kernel_bytes":8388608}}"#,
        r#"{"at":1.0,"seconds":2.0,"by":["version","op"],"rows":[{"version":"4.2","op":"write","count":1200,"sum_seconds":4.8,"buckets":[[0.004,1150],[0.02,50]]},{"version":"4.2","op":"commit","count":600,"sum_seconds":1.2,"buckets":[[0.002,600]]}],"other":{"count":0,"sum_seconds":0.0,"buckets":[]},"evicted":0,"cost_seconds":0.002}"#,
    ] {
        app.take_breakdown(Ok(serde_json::from_str(line).unwrap()));
    }
    text += &letters(&buffer(&mut app, NO_COLOR, (120, 28)));
    app.take_breakdown(Err(anyhow::anyhow!("8 listen already")));
    text += &letters(&buffer(&mut app, NO_COLOR, (120, 28)));
    golden("screen.client.txt", &text);
    // Marked row: it stays marked in every order of the rows.
    let mut app = App::default();
    app.take(View::of(&w, "nfs1"));
    press(&mut app, "4");
    for keys in ["", "n", "r", "/2001"] {
        press(&mut app, keys);
        let marked = styles(&buffer(&mut app, NO_COLOR, (100, 20)));
        let marked: Vec<_> = marked.lines().collect();
        let rows = marked
            .windows(2)
            .filter(|l| l[1].contains("0..100 REVERSED"));
        assert_eq!(rows.count(), 1, "{keys}: {marked:#?}");
    }
}

#[test]
fn clients_are_found_by_address_and_by_name() {
    let named = |address: &str| (address == "192.0.2.7").then(|| "db1.example".to_owned());
    let view = View::of(&window(), "nfs1").naming(named);
    let mut app = App::default();
    app.take(view);
    press(&mut app, "4");
    let rows = |app: &mut App| {
        let text = letters(&buffer(app, NO_COLOR, (100, 24)));
        let named = text.lines().filter(|l| l.starts_with("192.0.2.7 db1"));
        (
            named.count(),
            text.lines().filter(|l| l.starts_with("local")).count(),
        )
    };
    assert_eq!(rows(&mut app).0, 1);
    for filter in ["/DB1", "/192.0.2.7"] {
        press(&mut app, filter);
        app.key(KeyCode::Enter.into());
        assert_eq!(rows(&mut app), (1, 0), "{filter}");
        app.key(KeyCode::Esc.into());
    }
}

#[test]
fn the_marked_row_stays_on_the_screen() {
    let mut w = window();
    for i in 0..50 {
        let client = format!("198.51.100.{i}");
        w.delta.counter(&family::CLIENT_OPS, [&client], 10.0);
    }
    let mut app = App::default();
    app.take(View::of(&w, "nfs1"));
    press(&mut app, "4n");
    for (keys, name) in [("↓↓", "198.51.100.3"), ("G", "none"), ("g", "192.0.2.7")] {
        buffer(&mut app, NO_COLOR, (80, 24));
        for key in keys.chars() {
            press(&mut app, &key.to_string());
            buffer(&mut app, NO_COLOR, (80, 24));
        }
        let styled = styles(&buffer(&mut app, NO_COLOR, (80, 24)));
        let lines: Vec<_> = styled.lines().collect();
        let marked = lines.windows(2).find(|l| l[1].contains("0..80 REVERSED"));
        let marked = marked.unwrap_or_else(|| panic!("{keys}: {styled}"));
        println!("{}", marked[0]);
        assert!(marked[0].starts_with(name), "{keys}: {}", marked[0]);
    }
}

/// Report of an agent with a finding that is active and one that has cleared, and with these fields on gains.
fn report(gains: Value) -> FindingsReport {
    let finding = |kind: &str, summary: &str| {
        json!({"kind": kind, "severity": "critical", "share": 0.67, "summary": summary,
            "evidence": [{"text": "61.2 s of waits for the log of /srv/vm", "metric": "m", "value": 1.0, "limit": null},
                {"text": "log writes take 48.0 ms (p99)\u{1b}[2J", "metric": "m", "value": 1.0, "limit": null}],
            "advice": ["move the log of /srv/vm to a device that makes a write durable in less than a millisecond, or "
                .to_owned() + "let clients write asynchronously where losing the last seconds is acceptable"]})
    };
    let episode = |kind, summary, ended: Option<f64>| json!({"began": 1.8e9, "ended": ended, "worst_share": 0.7, "finding": finding(kind, summary)});
    let mut text = json!({
        "active": [episode("slow_intent_log", "67 % of request time is spent waiting for the journal", None)],
        "history": [episode("slow_disk", "40 % of request time was spent waiting for sdb", Some(1.800_000_1e9))],
        "last_window": null,
    });
    (text.as_object_mut().unwrap()).extend(gains.as_object().unwrap().clone());
    serde_json::from_value(text).unwrap()
}

#[test]
fn a_finding_has_evidence_advice_and_its_past() {
    let mut app = app();
    press(&mut app, "7");
    assert!(!letters(&buffer(&mut app, NO_COLOR, (100, 30))).contains("FINDINGS\n"));
    app.take_findings(Err("no agent at http://nfs1:9943".into()));
    let text = letters(&buffer(&mut app, NO_COLOR, (100, 30)));
    assert!(text.contains("no agent at http://nfs1:9943"), "{text}");
    let unknown = json!({"worth_unknown": "the model does not match this server"});
    app.take_findings(Ok(report(unknown)));
    let text = letters(&buffer(&mut app, NO_COLOR, (100, 40)));
    println!("{text}");
    for part in [
        "SLOW JOURNAL OR INTENT LOG  67.0 %",
        ": 67 % of request time is spent waiting for the journal",
        "evidence  61.2 s of waits",
        "advice    move the log",
        "WHAT IF",
        "no estimate: the model does not match this server",
        "EARLIER",
        "up to 70.0 %: 40 % of request time was spent waiting for sdb",
    ] {
        // A line is folded at the width of the screen.
        let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(folded.contains(&words), "{part}: {text}");
    }
    for (gains, says) in [
        (json!({}), "not computed yet"),
        (json!({"worth": []}), "is predicted to gain much"),
    ] {
        app.take_findings(Ok(report(gains)));
        let shown = letters(&buffer(&mut app, NO_COLOR, (100, 40)));
        assert!(shown.contains(says), "{says}: {shown}");
        assert_eq!(shown.contains("gain much"), says.contains("gain much"));
    }
    // Texts come from the agent: control characters in them must not reach the terminal.
    assert!(!text.contains('\u{1b}'));
    assert!(text.lines().all(|l| l.chars().count() <= 100));
}

#[test]
fn slow_operations_are_rows_with_names_of_their_clients() {
    let mut app = app();
    press(&mut app, "8");
    let text = letters(&buffer(&mut app, NO_COLOR, (140, 20)));
    assert!(
        text.contains("none so far took 10.0 ms or longer"),
        "{text}"
    );
    let named = |address: &str| (address == "192.0.2.7").then(|| "db1".to_owned());
    for op in [slow_op("write", 12), slow_op("commit", 300)] {
        app.take_slow(Ok(Line::Op(Box::new(op))), named);
    }
    app.take_slow(Ok(Line::LeftOut { left_out: 7 }), named);
    let text = letters(&buffer(&mut app, NO_COLOR, (140, 20)));
    println!("{text}");
    let rows: Vec<_> = text
        .lines()
        .filter(|l| l.contains("192.0.2.7 db1"))
        .collect();
    assert!(
        rows[0].contains("300 ms") && rows[1].contains("65.5 kB"),
        "{text}"
    );
    assert!(text.contains("7 left out"), "{text}");
    press(&mut app, "/db1");
    app.key(KeyCode::Enter.into());
    app.take_slow(Err(anyhow::anyhow!("8 listen already")), named);
    let text = letters(&buffer(&mut app, NO_COLOR, (140, 20)));
    assert!(
        text.contains("no more come: 8 listen already") && text.contains("db1"),
        "{text}"
    );
}

#[test]
fn a_large_screen_has_several_panels() {
    let mut app = after_ten_windows();
    let unknown = json!({"worth_unknown": "the model does not match this server"});
    app.take_findings(Ok(report(unknown)));
    let large = letters(&buffer(&mut app, NO_COLOR, (200, 60)));
    golden("screen.200x60.txt", &zoneless(&large));
    for (keys, has, lacks) in [
        ("4", " 1 Operations ", None),
        ("z", "CLIENT ", Some("OPERATION ")),
        ("z?", "KEYS", Some("CLIENT ")),
    ] {
        press(&mut app, keys);
        let text = letters(&buffer(&mut app, NO_COLOR, (200, 60)));
        // The line of panels has all names.
        let below = text.lines().skip(5).collect::<Vec<_>>().join("\n");
        assert!(below.contains(has.trim()), "{keys}: {text}");
        assert!(lacks.is_none_or(|l| !below.contains(l)), "{keys}: {text}");
    }
}

/// Text without its times of day, which are those of the reader's time zone.
fn zoneless(text: &str) -> String {
    let date = text.find("since 20").map(|at| at + "since ".len());
    let date = date.map(|at| text[at..at + "2027-01-15 08:00:00".len()].to_owned());
    match date {
        Some(date) => text.replace(&date, "YYYY-MM-DD HH:MM:SS"),
        None => text.to_owned(),
    }
}

/// Presses the left button on the first cell of this text.
fn press_on(app: &mut App, text: &str, size: (u16, u16)) {
    let screen = letters(&buffer(app, NO_COLOR, size));
    let (y, line) = (screen.lines().enumerate())
        .find(|(_, l)| l.contains(text))
        .unwrap_or_else(|| panic!("{text}: {screen}"));
    let x = line[..line.find(text).unwrap()].chars().count();
    app.mouse(MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: x as u16,
        row: y as u16,
        modifiers: KeyModifiers::NONE,
    });
}

#[test]
fn the_mouse_chooses_panels_columns_and_rows() {
    let size = (120, 40);
    let mut app = app();
    press_on(&mut app, "P99", size);
    assert_eq!(
        names(&letters(&buffer(&mut app, NO_COLOR, size))),
        ["write", "commit", "getattr"]
    );
    press_on(&mut app, "P99", size);
    assert_eq!(
        names(&letters(&buffer(&mut app, NO_COLOR, size))),
        ["getattr", "commit", "write"]
    );
    press_on(&mut app, "4 Clients", size);
    assert_eq!(app.tab, Tab::Clients);
    press_on(&mut app, "/srv/münchen", size);
    assert_eq!(app.chosen, Some(Subject::Export("/srv/münchen".into())));
    press_on(&mut app, "/srv/münchen", size);
    assert_eq!(app.subject, app.chosen);
    // A panel beside the chosen one, on a large screen.
    press_on(&mut app, "1 Operations", size);
    press_on(&mut app, "DEV P50", (200, 60));
    assert_eq!((app.tab, app.selection.key), (Tab::Operations, Key::P50));
    press_on(&mut app, " 3 Logs, disks", (200, 60));
    assert_eq!(app.tab, Tab::Disks);
}

#[test]
fn the_help_is_drawn_whole_and_scrolls_to_its_end() {
    let mut app = app();
    press(&mut app, "?");
    golden(
        "screen.help.txt",
        &letters(&buffer(&mut app, NO_COLOR, (80, 56))),
    );
    // Usual screen: the help scrolls to its end.
    buffer(&mut app, NO_COLOR, (80, 24));
    for _ in 0..3 {
        press(&mut app, "↓");
    }
    let text = letters(&buffer(&mut app, NO_COLOR, (80, 24)));
    assert!(text.contains("not measured on this host"), "{text}");
}

/// Names in the second column, from the top.
fn names(text: &str) -> Vec<&str> {
    let rows = text
        .lines()
        .skip_while(|l| !l.contains("OPERATION"))
        .skip(1);
    let name = |l: &&str| l.starts_with(['3', '4']);
    let rows = rows.take_while(name);
    rows.filter_map(|l| l.split_whitespace().nth(1)).collect()
}

#[test]
fn keys_choose_the_order_and_the_filter_of_operations() {
    for (keys, expected) in [
        ("", &["write", "commit", "getattr"][..]),
        ("r", &["getattr", "commit", "write"]),
        ("o", &["getattr", "write", "commit"]),
        ("p", &["commit", "write", "getattr"]),
        ("n", &["commit", "getattr", "write"]),
        ("e", &["write", "commit", "getattr"]),
        ("v", &["commit"]),
        ("vv", &[]),
        ("/T\n", &["write", "commit", "getattr"]),
        ("/MM", &["commit"]),
    ] {
        let mut app = app();
        press(&mut app, keys);
        let text = letters(&buffer(&mut app, NO_COLOR, (80, 24)));
        assert_eq!(names(&text), expected, "{keys}\n{text}");
    }
}

#[test]
fn many_operations_scroll_below_their_heading() {
    let mut w = window();
    let all = w.delta.hist(&family::OP_DURATION, ["4.2", "write"]);
    let write = all.unwrap().clone();
    for i in 10..60 {
        let name = format!("op{i}");
        w.delta
            .histogram(&family::OP_DURATION, ["4.1", &name], write.clone());
    }
    let mut app = App::default();
    app.take(View::of(&w, "nfs1"));
    press(&mut app, "nv");
    press(&mut app, "vv");
    buffer(&mut app, NO_COLOR, (80, 24));
    press(&mut app, "↓");
    let text = letters(&buffer(&mut app, NO_COLOR, (80, 24)));
    assert_eq!(names(&text).first(), Some(&"op25"), "{text}");
    for _ in 0..9 {
        press(&mut app, "↓");
    }
    let text = letters(&buffer(&mut app, NO_COLOR, (80, 24)));
    assert_eq!(names(&text).last(), Some(&"op59"), "{text}");
    press(&mut app, "k");
    let text = letters(&buffer(&mut app, NO_COLOR, (80, 24)));
    assert_eq!(names(&text).last(), Some(&"op58"), "{text}");
}

#[test]
fn the_state_of_the_agent_is_drawn() {
    let mut text = String::new();
    let mut begun = App::default();
    text += &letters(&buffer(&mut begun, NO_COLOR, (80, 8)));
    begun.link = Link::Attaching;
    text += &letters(&buffer(&mut begun, NO_COLOR, (80, 8)));
    let mut gone = app();
    gone.link = Link::Gone {
        why: "no agent at http://nfs1:9943: start one with `nfscope agent`".into(),
        since: Duration::from_secs(12),
    };
    text += &letters(&buffer(&mut gone, NO_COLOR, (80, 12)));
    let mut paused = app();
    press(&mut paused, " v/mm");
    text += &letters(&buffer(&mut paused, NO_COLOR, (80, 12)));
    let mut s = Snapshot::default();
    let why = "module nfsd is not loaded";
    s.probes = vec![status("dispatch", true, ProbeState::Waiting, why)];
    let mut untimed = App::default();
    untimed.take(View::of(&s.since(&Snapshot::default()), "nfs1"));
    text += &letters(&buffer(&mut untimed, NO_COLOR, (80, 10)));
    golden("screen.news.txt", &text);
}

#[test]
fn every_panel_fits_screens_of_any_size() {
    let mut old = App::default();
    old.take(View::of(&snapshot(3).since(&snapshot(1)), "nfs1"));
    for app in [&mut app(), &mut old, &mut App::default()] {
        for keys in ["1", "2", "3", "4", "5", "7", "8", "?", "?/", "w"] {
            press(app, keys);
            for width in [0, 1, 23, 24, 40, 79, 300] {
                for height in [0, 1, 4, 5, 7, 8, 13, 14, 100] {
                    buffer(app, COLOR, (width, height));
                    press(app, "↓");
                }
            }
        }
    }
}
