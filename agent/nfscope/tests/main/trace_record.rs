//! `nfscope trace record` against an agent in this process, and what its file has.

use crate::fixture::serve::attached;
use crate::fixture::{Fake, Slow, slow_op};
use nfscope_model::{OpArguments, SlowOp};
use nfscope_trace::{Operation, Reader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn record(url: &str, out: &Path, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_nfscope"))
        .args(["trace", "record", "--url", url])
        .args(more)
        .arg(out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Has these happen once the recorder listens.
fn happen(slow: &Mutex<Slow>, ops: Vec<SlowOp>, left_out: u64) {
    let begun = Instant::now();
    while !matches!(slow.lock().unwrap().asked.last(), Some(Some(_))) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody listens");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut slow = slow.lock().unwrap();
    slow.batch.ops.extend(ops);
    slow.batch.left_out += left_out;
}

fn agent() -> (String, Arc<Mutex<Slow>>) {
    let source = Fake::new();
    let slow = source.slow.clone();
    (format!("http://{}", attached(source)), slow)
}

/// Ends the recorder, and returns what it said.
fn interrupt(child: Child) -> String {
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

fn write(file: u64, offset: u64) -> SlowOp {
    SlowOp {
        arguments: OpArguments {
            handle: Some(file),
            offset: Some(offset),
            length: Some(4096),
            ..OpArguments::default()
        },
        ..slow_op("write", 20)
    }
}

#[test]
fn a_trace_has_each_operation_without_names_and_the_number_of_those_that_are_missing() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("load.trace");
    let (url, slow) = agent();
    let child = record(&url, &out, &[]);
    happen(&slow, vec![write(7, 0), write(7, 4096), write(8, 0)], 5);
    while !slow.lock().unwrap().batch.ops.is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = interrupt(child);
    assert!(said.contains("3 operations, 5 lost"), "{said}");
    assert!(said.contains("cannot claim"), "{said}");
    let reader = Reader::open(&out).unwrap();
    let header = reader.header().clone();
    assert_eq!((header.total_dropped(), header.clients.len()), (5, 1));
    assert!(header.recorded.is_some_and(|r| !r.salt.is_empty()));
    let operations: Vec<Operation> = reader.map(Result::unwrap).collect();
    assert_eq!(operations.len(), 3);
    assert_eq!(operations[0].file, operations[1].file);
    assert_ne!(operations[0].file, operations[2].file);
    assert_eq!(operations[1].offset, Some(4096));
    let bytes = std::fs::read(&out).unwrap();
    for name in ["192.0.2.7", "/srv/home"] {
        let found = bytes.windows(name.len()).any(|w| w == name.as_bytes());
        assert!(!found, "{name} is in the file");
    }
}

#[test]
fn a_recording_overwrites_no_file_and_cannot_be_made_of_a_client() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("kept");
    std::fs::write(&out, "kept").unwrap();
    let (url, _slow) = agent();
    for (more, why) in [
        (&[][..], "overwrites no file"),
        (&["--client"], "add RPCs up"),
    ] {
        let output = record(&url, &out, more).wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "kept");
}
