//! `nfscope demo`: its output from the recorded day that the program carries, and no file is left behind.

use crate::fixture::said;
use std::process::Command;

/// Output of a part of the demonstration. The directory for temporary files must be empty afterwards.
fn demo(part: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    demo.args(["demo", part]).env("TMPDIR", directory.path());
    let (code, text, errors) = said(&demo.output().unwrap());
    assert_eq!(code, 0, "{errors}");
    assert!(
        text.starts_with("This is no server. Each window adds up copies of some of eight windows"),
        "{text}"
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    text
}

#[test]
fn each_incident_of_the_demonstration_has_its_cause() {
    let text = demo("diagnose");
    let of_incidents: Vec<_> = text.split("\n20").skip(1).collect();
    assert_eq!(of_incidents.len(), 3, "{text}");
    for (text, (what, cause)) in of_incidents.iter().zip([
        ("three nfsd threads", "(thread_starvation, "),
        ("a disk that takes 20 ms", "(slow_disk, "),
        ("a journal on a disk of 8 ms", "(slow_intent_log, "),
    ]) {
        let first = text.lines().find(|l| l.starts_with("1. "));
        assert!(
            text.contains(what) && first.is_some_and(|l| l.contains(cause)),
            "{text}"
        );
        // Clients: windows of the past have them, too.
        assert!(text.contains("Who used the server"), "{text}");
    }
}

#[test]
fn the_demonstration_shows_tables_and_a_comparison_without_an_agent() {
    let text = demo("top");
    assert_eq!(text.matches("coverage 100.0 %").count(), 3, "{text}");
    let text = demo("compare");
    let write = text.split("\nWRITE 3\n").nth(1).unwrap_or_default();
    let mean = write.lines().find(|l| l.trim_start().starts_with("mean"));
    assert!(mean.is_some_and(|l| l.contains("better")), "{text}");
}
