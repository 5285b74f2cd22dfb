//! Tests of [`super`].

use super::*;
use crate::view::Client;
use nfscope_api::query::QueryString;

fn press(app: &mut App, keys: &str) -> Action {
    let press = |c| app.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    keys.chars().map(press).last().unwrap()
}

fn code(app: &mut App, code: KeyCode) -> Action {
    app.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn letters_are_text_while_a_filter_is_typed() {
    let mut app = App::default();
    assert_eq!(press(&mut app, "/qx"), Action::None);
    assert_eq!(app.selection.text, "qx");
    code(&mut app, KeyCode::Backspace);
    code(&mut app, KeyCode::Enter);
    assert_eq!((app.selection.text.as_str(), &app.typing), ("q", &None));
    press(&mut app, "/a");
    assert_eq!(code(&mut app, KeyCode::Esc), Action::None);
    assert_eq!((app.selection.text.as_str(), &app.typing), ("", &None));
    assert_eq!(code(&mut app, KeyCode::Esc), Action::Quit);
}

#[test]
fn escape_ends_a_filter_before_it_ends_the_program() {
    for keys in ["v", "/x\n", "v/x\n"] {
        let mut app = App::default();
        for c in keys.chars() {
            match c {
                '\n' => code(&mut app, KeyCode::Enter),
                c => press(&mut app, &c.to_string()),
            };
        }
        assert!(app.is_filtered());
        assert_eq!(code(&mut app, KeyCode::Esc), Action::None, "{keys:?}");
        assert_eq!(app.selection, Selection::default());
        assert_eq!(code(&mut app, KeyCode::Esc), Action::Quit);
    }
    // The key q ends the program at once, also while a version is selected.
    let mut app = App::default();
    assert_eq!(press(&mut app, "vq"), Action::Quit);
}

#[test]
fn keys_change_the_interval_and_stop_at_its_ends() {
    let mut app = App::default();
    let seconds = |s| Action::Interval(Duration::from_secs_f64(s));
    assert_eq!(press(&mut app, "+"), seconds(5.0));
    assert_eq!(press(&mut app, "--"), seconds(1.0));
    assert_eq!(press(&mut app, "-"), seconds(0.5));
    assert_eq!(press(&mut app, "-"), Action::None);
    // 1.5 s is none of the lengths: the next longer one follows.
    app.interval = Duration::from_millis(1500);
    assert_eq!(press(&mut app, "="), seconds(2.0));
    app.interval = Duration::from_secs(3600);
    assert_eq!(press(&mut app, "+"), Action::None);
    assert_eq!(press(&mut app, "-"), seconds(600.0));
}

/// Query of `/breakdown` that the screen wants.
fn wanted(app: &App) -> Option<String> {
    app.wants_breakdown().map(Query::to_query)
}

#[test]
fn who_is_shown_alone_is_broken_down_by_operation() {
    let mut app = App::default();
    app.set_interval(Duration::from_secs(5));
    let mut shown = View::default();
    for (name, share) in [("192.0.2.7", 0.6), ("other", 0.4)] {
        shown.clients.push(Client {
            name: None,
            client: name.into(),
            rate: 1.0,
            share: Some(share),
            seconds: Some(share),
            mean: None,
            read_per_s: None,
            written_per_s: None,
            ops_per_request: None,
            rtt: None,
            min_rtt: None,
        });
    }
    app.take(shown);
    press(&mut app, "4");
    assert_eq!(wanted(&app), None);
    code(&mut app, KeyCode::Enter);
    let of = |seconds| {
        Some(format!(
            "by=version%2Cop&where=client%3A192.0.2.7&interval={seconds}s&rows=200"
        ))
    };
    assert_eq!(wanted(&app), of(5));
    press(&mut app, "+");
    assert_eq!(wanted(&app), of(10));
    press(&mut app, " ");
    assert_eq!(wanted(&app), None);
    press(&mut app, " ");
    // A result for the selected client must not change the break-down panel.
    app.take_breakdown(Err(anyhow::anyhow!("no room")));
    let empty = |b: &Breakdown| b.table(&Selection::default()).empty;
    assert_eq!(empty(app.counted().unwrap()), "no room");
    assert_ne!(empty(&app.breakdown), "no room");
    code(&mut app, KeyCode::Esc);
    assert_eq!(wanted(&app), None);
    // The row `other` has no operations that a filter could select.
    press(&mut app, "j");
    code(&mut app, KeyCode::Enter);
    assert_eq!(app.subject, Some(Subject::Client("other".into())));
    assert_eq!(wanted(&app), None);
    // Another panel ends the view of one client.
    code(&mut app, KeyCode::Esc);
    press(&mut app, "k");
    code(&mut app, KeyCode::Enter);
    assert_eq!(wanted(&app), of(10));
    press(&mut app, "1");
    assert_eq!(wanted(&app), None);
}

#[test]
fn the_interval_is_that_of_the_panel_of_break_downs_too() {
    let mut app = App::default();
    press(&mut app, "6");
    for (seconds, interval) in [(0.5, "1s"), (30.0, "30s"), (600.0, "1m")] {
        app.set_interval(Duration::from_secs_f64(seconds));
        let wanted = wanted(&app).unwrap();
        assert!(
            wanted.contains(&format!("&interval={interval}&")),
            "{wanted}"
        );
    }
}

#[test]
fn escape_ends_the_filters_of_a_break_down_before_it_ends_the_program() {
    let mut app = App {
        tab: Tab::By,
        breakdown: Breakdown::new(Query::from_query("by=op&where=op:write").unwrap()),
        ..App::default()
    };
    assert_eq!(code(&mut app, KeyCode::Esc), Action::None);
    assert_eq!(wanted(&app).as_deref(), Some("by=op&interval=1s&rows=200"));
    assert_eq!(code(&mut app, KeyCode::Esc), Action::Quit);
}

#[test]
fn versions_come_round() {
    let mut app = App::default();
    let mut seen = Vec::new();
    for _ in 0..5 {
        press(&mut app, "v");
        seen.push(app.selection.version.clone().unwrap_or("all".into()));
    }
    assert_eq!(seen, ["3", "4.0", "4.1", "4.2", "all"]);
}

#[test]
fn help_takes_the_keys_that_would_change_what_is_behind_it() {
    let mut app = App::default();
    press(&mut app, "?n3");
    assert_eq!((app.help, app.tab), (true, Tab::Operations));
    assert_eq!(app.selection, Selection::default());
    assert_eq!(press(&mut app, "q"), Action::None);
    assert!(!app.help);
    assert_eq!(press(&mut app, "q"), Action::Quit);
}

#[test]
fn a_pause_ends_with_the_latest_window() {
    let of = |seconds| View {
        window_seconds: seconds,
        ..View::default()
    };
    let mut app = App::default();
    app.take(of(1.0));
    press(&mut app, " ");
    app.take(of(2.0));
    app.take(of(3.0));
    assert_eq!(app.view().unwrap().window_seconds, 1.0);
    press(&mut app, " ");
    assert_eq!(app.view().unwrap().window_seconds, 3.0);
    press(&mut app, "  ");
    assert_eq!(app.view().unwrap().window_seconds, 3.0);
}

#[test]
fn scrolling_ends_at_the_last_page() {
    let mut app = App::default();
    let extent = |lines, scroll| Extent {
        lines,
        page: 10,
        scroll,
        ..Extent::default()
    };
    app.fit(extent(30, 0));
    code(&mut app, KeyCode::PageDown);
    assert_eq!(app.scroll, 9);
    code(&mut app, KeyCode::End);
    code(&mut app, KeyCode::Down);
    assert_eq!(app.scroll, 20);
    app.fit(extent(12, app.scroll));
    assert_eq!(app.scroll, 2);
    press(&mut app, "2");
    assert_eq!((app.tab, app.scroll), (Tab::Threads, 0));
}

#[test]
fn the_mouse_presses_what_is_drawn_and_scrolls_three_lines() {
    let mut app = App::default();
    let at = |x, press| Hit {
        area: Rect::new(x, 5, 10, 1),
        press,
    };
    let extent = Extent {
        lines: 50,
        page: 10,
        hits: vec![
            at(0, Press::Sort(Key::P99)),
            at(5, Press::Panel(Tab::Disks)),
            at(20, Press::Panel(Tab::Slow)),
        ],
        ..Extent::default()
    };
    let mut event = |app: &mut App, kind, column, row| {
        app.fit(Extent {
            scroll: app.scroll,
            ..extent.clone()
        });
        app.mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        });
    };
    let down = MouseEventKind::Down(MouseButton::Left);
    // Two overlap at this column: the first one counts. A second press reverses the order.
    for reverse in [false, true] {
        event(&mut app, down, 7, 5);
        let now = (app.selection.key, app.selection.reverse, app.tab);
        assert_eq!(now, (Key::P99, reverse, Tab::Operations));
    }
    for (column, row, tab) in [
        (12, 5, Tab::Disks),
        (12, 6, Tab::Disks),
        (29, 5, Tab::Slow),
        (30, 5, Tab::Slow),
    ] {
        event(&mut app, down, column, row);
        assert_eq!(app.tab, tab, "{column} {row}");
    }
    event(&mut app, MouseEventKind::ScrollDown, 0, 0);
    event(&mut app, MouseEventKind::ScrollDown, 0, 0);
    event(&mut app, MouseEventKind::ScrollUp, 0, 0);
    assert_eq!(app.scroll, 3);
    assert_eq!(press(&mut app, "M"), Action::Mouse(false));
    assert_eq!(press(&mut app, "M"), Action::Mouse(true));
}

#[test]
fn findings_and_slow_operations_are_wanted_while_they_are_on_the_screen() {
    let mut app = App::default();
    assert!(!app.wants_findings() && app.wants_slow().is_none());
    press(&mut app, "7");
    assert!(app.wants_findings());
    press(&mut app, "8>");
    let over = |app: &App| app.wants_slow().map(|f| f.over.as_millis());
    assert_eq!(over(&app), Some(100));
    press(&mut app, "<<<");
    assert_eq!(over(&app), Some(1));
    press(&mut app, " ");
    assert_eq!(over(&app), None);
    press(&mut app, " 1");
    assert_eq!((over(&app), app.wants_findings()), (None, false));
    // A large screen shows findings beside another panel.
    app.fit(Extent {
        several: true,
        ..Extent::default()
    });
    assert!(app.wants_findings());
}

#[test]
fn sorting_steps_and_jumps() {
    let mut app = App::default();
    press(&mut app, "sr");
    assert_eq!(
        (app.selection.key, app.selection.reverse),
        (Key::Rate, true)
    );
    press(&mut app, "e");
    assert_eq!(
        (app.selection.key, app.selection.reverse),
        (Key::Errors, false)
    );
    press(&mut app, "tS");
    assert_eq!(app.selection.key, Key::Name);
}
