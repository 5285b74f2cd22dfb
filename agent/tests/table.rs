//! The table of `nfscope top`, whole.
#![allow(clippy::unwrap_used)]

mod fixture;

use fixture::{golden, snapshot, status};
use nfscope::model::{ProbeState, Snapshot, Window, family};
use nfscope::top::{Screen, render};

const SMALL: Screen = Screen {
    width: 80,
    height: 24,
    color: false,
};

fn window() -> Window {
    snapshot(3).since(&snapshot(1))
}

#[test]
fn a_busy_server() {
    golden("top.txt", &render(&window(), "nfs1", SMALL));
    let wide = Screen {
        width: 120,
        color: true,
        ..SMALL
    };
    golden("top.color.txt", &render(&window(), "nfs1", wide));
}

#[test]
fn many_pools_show_the_busiest() {
    let mut w = window();
    for (pool, used) in [("1", 15.0), ("2", 1.0), ("3", 0.5)] {
        w.delta.gauge(&family::THREADS, [pool], 8.0);
        w.delta.gauge(&family::THREADS_BUSY, [pool], 7.0);
        w.delta.counter(&family::THREAD_BUSY, [pool], used);
    }
    let wide = Screen {
        width: 160,
        ..SMALL
    };
    golden("top.pools.txt", &render(&w, "nfs1", wide));
}

#[test]
fn what_is_not_timed_says_why() {
    let mut s = Snapshot::default();
    s.probes = vec![status(
        "dispatch",
        true,
        ProbeState::Waiting,
        "module nfsd is not loaded",
    )];
    golden(
        "top.waiting.txt",
        &render(&s.since(&Snapshot::default()), "nfs1", SMALL),
    );
}

#[test]
fn a_low_screen_keeps_the_operations() {
    let low = Screen { height: 9, ..SMALL };
    golden("top.low.txt", &render(&window(), "nfs1", low));
}

#[test]
fn fits_any_screen() {
    for width in [0, 1, 20, 79, 80, 200] {
        for height in [0, 1, 3, 7, 12, 24, 100] {
            let text = render(
                &window(),
                "nfs1",
                Screen {
                    width,
                    height,
                    color: false,
                },
            );
            assert!(text.lines().count() <= height, "{width}x{height}");
            assert!(
                text.lines().all(|l| l.chars().count() <= width),
                "{width}x{height}"
            );
        }
    }
}
