//! Rules about NFSv4 clients.

use super::answer::State;
use super::tests::{good, said};

fn info(state: &str) -> String {
    format!("address: \"10.9.1.3:800\"\nminor version: 2\n{state}session slots: 64\n")
}

/// Kernels before 5.14 print no callback state. UNKNOWN is no state either.
#[test]
fn a_callback_whose_state_is_not_known_is_not_good() {
    let files = good();
    let second = "/proc/fs/nfsd/clients/8/info";
    for state in ["", "callback state: UNKNOWN\n"] {
        files.add(second, &info(state));
        let unknown = "whether callbacks reach 1 client of 2 is not known";
        assert_eq!(
            said(&files.examine(), "callbacks"),
            [
                (State::Unknown, unknown.to_owned()),
                (State::Good, "no broken path to 1 client of NFSv4".into()),
            ]
        );
    }
    // The server sends no callback to a client that is not confirmed any more.
    for status in ["courtesy", "expirable"] {
        files.add(
            second,
            &info(&format!("status: {status}\ncallback state: DOWN\n")),
        );
        let found = said(&files.examine(), "callbacks");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, State::Good, "{found:?}");
    }
}

#[test]
fn clients_beyond_those_that_are_read_are_counted() {
    let files = good();
    for id in 100..2101 {
        let text = info("callback state: UP\n");
        files.add(&format!("/proc/fs/nfsd/clients/{id}/info"), &text);
    }
    let findings = files.examine();
    for rule in ["callbacks", "mounts", "slots"] {
        let found = said(&findings, rule);
        let beyond = "2 clients beyond the first 2000";
        assert!(
            found
                .iter()
                .any(|(s, says)| *s == State::Unknown && says.starts_with(beyond)),
            "{rule}: {found:?}"
        );
    }
}

#[test]
fn sessions_that_all_have_a_single_slot_have_no_others() {
    let files = good();
    let client = "/proc/fs/nfsd/clients/7/info";
    files.add(client, "minor version: 2\nsession slots: 1\n");
    let alone = "1 session of 1 with a single slot";
    let found = said(&files.examine(), "slots");
    assert_eq!(found, [(State::Consider, alone.to_owned())]);
    files.add(client, "minor version: 2\nsession slots: 1 64\n");
    let two = "1 session of 2 with a single slot, the others with up to 64";
    let found = said(&files.examine(), "slots");
    assert_eq!(found, [(State::Consider, two.to_owned())]);
}
