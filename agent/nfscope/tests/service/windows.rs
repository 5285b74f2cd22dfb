//! Bound of the memory that unread responses of `/windows` take.

use crate::fixture::Fake;
use crate::fixture::serve::{HANG, Kept, attached_with, get, send};
use crate::memory;
use nfscope_model::{Snapshot, Window, family as f};
use nfscope_serve::names::Names;
use nfscope_serve::service::archive::Archive;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

const WINDOWS: u64 = 60;
/// Bytes of a response from the history, roughly: more than socket buffers take for a client that does not read.
const ANSWER: usize = WINDOWS as usize * 50 * 4000;

/// Ten minutes of a server with export paths of the largest length.
fn history(directory: &Path, ended: SystemTime) -> Archive {
    let archive =
        Archive::open(directory, 1, Duration::from_secs(86_400), Names::default()).unwrap();
    for at in 1..=WINDOWS {
        let mut delta = Snapshot::new(Duration::from_secs(10 * at));
        for i in 0..50 {
            let name = format!("/{i}/{}", "x".repeat(3995));
            delta.counter(&f::EXPORT_OPS, [&name], 1.0);
        }
        let window = Window {
            length: Duration::from_secs(10),
            delta,
        };
        let at = ended - Duration::from_secs(10 * (WINDOWS - at));
        // Retry while the queue of the archive is full: the disk may be slower than this loop.
        while archive.keep(&window, at).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    archive
}

#[test]
fn clients_that_do_not_read_their_windows_leave_memory_for_others() {
    let _alone = memory();
    let directory = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let kept = Kept {
        history: Some(history(directory.path(), now)),
        ..Kept::default()
    };
    let a = attached_with(kept, Fake::new());
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let path = format!("/windows?from={}&to={}", now - 3600, now + 60);
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut idle = Vec::new();
    let begun = Instant::now();
    // The archive answers `busy` until it has written the windows from above.
    while get(a, &path, "").contains("busy") {
        assert!(begun.elapsed() < HANG);
    }
    // Clients read the header of their response only, so the agent keeps the body in memory.
    let refused = loop {
        assert!(begun.elapsed() < HANG && idle.len() * ANSWER < 200 << 20);
        let mut from = BufReader::with_capacity(512, send(a, request.as_bytes()));
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert!(from.read_until(b'\n', &mut head).unwrap() > 0);
        }
        let head = String::from_utf8(head).unwrap();
        match head.starts_with("HTTP/1.1 200 ") {
            true => idle.push(from),
            false => break head,
        }
    };
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("retry-after: 2\r\n"), "{refused}");
    assert!(idle.len() >= 2, "{}", idle.len());
    assert!(get(a, "/metrics", "").starts_with("HTTP/1.1 200 "));
    drop(idle);
    while !get(a, &path, "").starts_with("HTTP/1.1 200 ") {
        assert!(begun.elapsed() < HANG);
        std::thread::sleep(Duration::from_millis(50));
    }
}
