//! The screen of `nfscope top`, cell by cell.

use crate::fixture::busy::window;
use crate::fixture::{golden, snapshot, status};
use nfscope::tui::{App, Link, TerminalStyle, View, draw};
use nfscope_model::{ProbeState, Snapshot, family};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
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

/// Its letters, line by line.
fn letters(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    let rows = rows.map(|row| {
        let row: String = row.iter().map(|c| c.symbol()).collect();
        row.trim_end().to_owned() + "\n"
    });
    rows.collect()
}

/// Its letters, and how they are set off: from column to column, below each line.
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
fn operations_at_three_sizes() {
    for size in [(80, 24), (120, 40), (60, 15)] {
        let name = format!("screen.{}x{}.txt", size.0, size.1);
        golden(&name, &letters(&buffer(&mut app(), NO_COLOR, size)));
    }
}

#[test]
fn colours() {
    let buffer = buffer(&mut app(), COLOR, (80, 24));
    golden("screen.color.txt", &styles(&buffer));
}

#[test]
fn without_colours_there_is_none() {
    for keys in ["", "2", "3", "4", "5", "?", " ", "/x"] {
        let mut app = app();
        press(&mut app, keys);
        let text = styles(&buffer(&mut app, NO_COLOR, (80, 24)));
        assert!(!text.contains(" fg ") && !text.contains(" bg "), "{text}");
    }
}

#[test]
fn ascii() {
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
fn every_panel() {
    let mut text = String::new();
    for keys in ["2", "3", "4", "5"] {
        let mut app = app();
        press(&mut app, keys);
        text += &letters(&buffer(&mut app, NO_COLOR, (80, 24)));
    }
    golden("screen.panels.txt", &text);
}

#[test]
fn help_in_whole() {
    let mut app = app();
    press(&mut app, "?");
    golden(
        "screen.help.txt",
        &letters(&buffer(&mut app, NO_COLOR, (80, 46))),
    );
    // On a usual screen it scrolls to its end.
    buffer(&mut app, NO_COLOR, (80, 24));
    for _ in 0..3 {
        press(&mut app, "↓");
    }
    let text = letters(&buffer(&mut app, NO_COLOR, (80, 24)));
    assert!(text.contains("not measured on this host"), "{text}");
}

/// The names in the second column, from the top.
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
fn orders_and_filters() {
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
fn news_of_the_agent() {
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
fn fits_any_screen() {
    let mut old = App::default();
    old.take(View::of(&snapshot(3).since(&snapshot(1)), "nfs1"));
    for app in [&mut app(), &mut old, &mut App::default()] {
        for keys in ["1", "2", "3", "4", "5", "?", "?/", "w"] {
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
