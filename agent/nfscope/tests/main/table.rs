//! Plain page and JSON of `nfscope top`, whole.

use crate::fixture::busy::window;
use crate::fixture::{golden, snapshot, status};
use nfscope_model::{ProbeState, Snapshot, Window, family};
use nfscope_tui::{TerminalStyle, View, WIDE, plain};

const PIPE: TerminalStyle = TerminalStyle {
    color: false,
    utf8: true,
};

fn page(window: &Window, width: usize, style: TerminalStyle) -> String {
    plain(&View::of(window, "nfs1"), width, style)
}

#[test]
fn the_page_of_a_busy_server_is_the_golden_file() {
    golden("top.txt", &page(&window(), 100, PIPE));
    let terminal = TerminalStyle {
        color: true,
        ..PIPE
    };
    golden("top.color.txt", &page(&window(), 120, terminal));
    let c = TerminalStyle {
        utf8: false,
        ..PIPE
    };
    golden("top.ascii.txt", &page(&window(), 80, c));
}

#[test]
fn a_page_without_phases_clients_and_exports_is_the_golden_file() {
    let old = snapshot(3).since(&snapshot(1));
    golden("top.old.txt", &page(&old, 80, PIPE));
}

#[test]
fn many_pools_show_the_busiest() {
    let mut w = snapshot(3).since(&snapshot(1));
    for (pool, used) in [("1", 15.0), ("2", 1.0), ("3", 0.5)] {
        w.delta.gauge(&family::THREADS, [pool], 8.0);
        w.delta.gauge(&family::THREADS_BUSY, [pool], 7.0);
        w.delta.counter(&family::THREAD_BUSY, [pool], used);
    }
    golden("top.pools.txt", &page(&w, 160, PIPE));
}

#[test]
fn a_page_without_timed_operations_has_the_reason() {
    let mut s = Snapshot::default();
    let why = "module nfsd is not loaded";
    s.probes = vec![status("dispatch", true, ProbeState::Waiting, why)];
    golden(
        "top.waiting.txt",
        &page(&s.since(&Snapshot::default()), 80, PIPE),
    );
}

#[test]
fn json_of_top_is_the_golden_file() {
    let view = View::of(&window(), "nfs1");
    let text = serde_json::to_string_pretty(&view).unwrap() + "\n";
    golden("top.json", &text);
}

#[test]
fn long_names_are_shortened_with_a_mark_unless_wide() {
    let mut w = window();
    let long = "/srv/".to_owned() + &"x".repeat(5000);
    w.delta.counter(&family::EXPORT_OPS, [&long], 10.0);
    let bounded = page(&w, 300, PIPE);
    assert!(
        bounded.lines().all(|l| l.chars().count() <= 120),
        "{bounded}"
    );
    assert!(bounded.contains("xxx…"), "{bounded}");
    let wide = page(&w, WIDE, PIPE);
    assert!(wide.contains(&long) && !wide.contains('…'));
    for head in ["ERR/S", "QUEUE P50", "IN FLIGHT", "RTT"] {
        assert!(wide.contains(head), "{head}");
    }
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for width in [0, 1, 20, 60, 79, 80, 200] {
        let text = page(&window(), width, PIPE);
        assert!(text.lines().all(|l| l.chars().count() <= width), "{width}");
    }
}
