//! `nfscope stuck` and `/stuck` as a user sees them: the program runs against an agent in the process of the test.

use crate::fixture::serve::{attached, get};
use crate::fixture::{golden, said};
use nfscope::stuck::page_of;
use nfscope_model::{
    HeldRequest, HeldRequests, Laundromat, ProbeStatus, SlowBatch, SlowFilter, Snapshot,
    Unacknowledged,
};
use nfscope_source::Source;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// Source with these requests in hand.
struct Holds(HeldRequests);

impl Source for Holds {
    fn snapshot(&mut self) -> Snapshot {
        Snapshot::default()
    }

    fn held(&mut self, over: Duration) -> HeldRequests {
        let mut all = self.0.clone();
        all.over_seconds = over.as_secs_f64();
        all.requests.retain(|r| r.seconds > all.over_seconds);
        all
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        Vec::new()
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        SlowBatch::default()
    }
}

fn request(seconds: f64, op: &str, stack: &[&str]) -> HeldRequest {
    HeldRequest {
        thread: 812,
        seconds,
        version: "4.2".into(),
        op: op.into(),
        wait: "disk".into(),
        client: Some("192.0.2.7".into()),
        export: Some(format!("/srv/{}\u{1b}[2J", "x".repeat(60))),
        inode: Some(4711),
        xid: Some(0x0b5f_0c11),
        stack: stack.iter().map(|f| (*f).to_owned()).collect(),
    }
}

fn some() -> HeldRequests {
    HeldRequests {
        host: "nfs1".into(),
        over_seconds: 1.0,
        unknown: None,
        requests: vec![
            request(
                12.3,
                "write",
                &["io_schedule", "folio_wait_bit", "nfsd_write"],
            ),
            HeldRequest {
                thread: 9,
                seconds: 1.5,
                wait: "upcall".into(),
                ..HeldRequest::default()
            },
        ],
        left_out: 3,
        laundromat: Some(Laundromat {
            idle_seconds: Some(34.0),
            running_seconds: None,
        }),
        unacknowledged: Some(Vec::new()),
    }
}

fn program(held: HeldRequests, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nfscope"))
        .args(["stuck", "--url", &url(held)])
        .args(arguments)
        .output()
        .unwrap();
    said(&output)
}

fn url(held: HeldRequests) -> String {
    format!("http://{}", agent(held))
}

fn agent(held: HeldRequests) -> SocketAddr {
    attached(Holds(held))
}

#[test]
fn pages_of_stuck_are_the_golden_file() {
    let mut text = page_of(&some(), false);
    text += &page_of(&some(), true);
    let mut bare = some();
    bare.left_out = 0;
    bare.requests.remove(0);
    text += &page_of(&bare, false);
    bare.requests.clear();
    text += &page_of(&bare, false);
    bare.laundromat = Some(Laundromat {
        idle_seconds: Some(400.0),
        running_seconds: Some(310.0),
    });
    text += &page_of(&bare, false);
    bare.laundromat = None;
    text += &page_of(&bare, false);
    bare.unknown = Some("NFS operations are not timed here; `nfscope check` says why".into());
    text += &page_of(&bare, false);
    golden("stuck.txt", &text);
}

#[test]
fn stuck_has_an_exit_code_for_none_some_and_unknown() {
    let (code, out, err) = program(some(), &[]);
    assert_eq!((code, &*err), (2, ""), "{out}");
    assert!(out.contains("io_schedule < folio_wait_bit"), "{out}");
    let (code, out, _) = program(some(), &["--over", "1m"]);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains("no request is in hand for 60.0 s or longer"),
        "{out}"
    );
    // Reply that a client does not acknowledge; and a host that cannot see replies.
    let mut late = some();
    late.unacknowledged = Some(vec![Unacknowledged {
        client: "10.9.0.2".into(),
        bytes: 262_400.0,
        seconds: 25.0,
        retransmissions: 7.0,
        zero_window_bytes: 0.0,
    }]);
    let (code, out, _) = program(late, &["--over", "1m"]);
    assert_eq!(code, 2, "{out}");
    assert!(
        out.contains("256 KiB of replies to 10.9.0.2 have not been acknowledged for at least 25.0 s; TCP has sent the oldest 7 times again"),
        "{out}"
    );
    let mut unseen = some();
    unseen.unacknowledged = None;
    let (code, out, _) = program(unseen, &["--over", "1m"]);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains("replies on their way to clients are not seen"),
        "{out}"
    );
    let mut unknown = some();
    (unknown.requests, unknown.unknown) = (Vec::new(), Some("why".into()));
    let (code, out, _) = program(unknown, &[]);
    assert_eq!((code, &*out), (1, "unknown: why\n"));
}

#[test]
fn json_of_stuck_is_the_response_of_the_agent() {
    let (code, out, _) = program(some(), &["--json", "--over", "2s"]);
    assert_eq!(code, 2, "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
    let answer: HeldRequests = serde_json::from_str(&out).unwrap();
    assert_eq!(answer.over_seconds, 2.0);
    assert_eq!(answer.requests, some().requests[..1]);
    let agent = agent(some());
    let page = get(agent, "/stuck?over=100ms", "");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("\"left_out\":3"),
        "{page}"
    );
    // Response for another age, soon after the first one.
    let page = get(agent, "/stuck?over=2s", "");
    assert!(page.contains("\"over_seconds\":2.0"), "{page}");
    let page = get(agent, "/stuck?ovre=1s", "");
    assert!(
        page.starts_with("HTTP/1.1 400") && page.contains("did you mean"),
        "{page}"
    );
}
