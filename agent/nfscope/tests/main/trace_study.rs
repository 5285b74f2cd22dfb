//! `nfscope trace` without a server: import, show, export, compare, fit.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn trace(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    command.current_dir(directory).arg("trace").args(args);
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(directory: &Path, args: &[&str]) -> String {
    let output = trace(directory, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn error(directory: &Path, args: &[&str]) -> String {
    let output = trace(directory, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Calls and replies as nfsdump prints them: two readers, of which one reads in sequence.
fn nfsdump() -> String {
    let mut out = String::new();
    for i in 0..2000_u64 {
        let (at, xid, client) = (1_000_000 + i * 5, i + 1, 0x30 + i % 2);
        let offset = match i % 2 {
            0 => i / 2 * 8192,
            _ => i * 7919 % 1000 * 8192,
        };
        out += &format!(
            "{at}.000000 {client:x}.0320 99.0801 T C3 {xid:x} 6 read fh {:x} off {offset:x} count 2000 euid 0 con = 82 len = 130\n",
            0xa000 + i % 2
        );
        out += &format!(
            "{at}.004000 99.0801 {client:x}.0320 T R3 {xid:x} 6 read OK ftype 1 size 800000 count 2000 eof 0 status=0 pl = 8192 con = 82 len = 400\n"
        );
    }
    out + "garbage\n"
}

#[test]
fn a_published_trace_is_imported_described_exported_compared_and_fitted() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::File::create(here.join("old.txt"))
        .unwrap()
        .write_all(nfsdump().as_bytes())
        .unwrap();
    let from = ["import", "--from", "nfsdump", "old.txt", "old.trace"];
    let output = trace(here, &from);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("line 4001 cannot be read"), "{said}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("2000 operations") && said.contains("1 lines"),
        "{said}"
    );
    assert!(error(here, &from).contains("old.trace exists; fix:"));

    let show = text(here, &["show", "old.trace", "--html", "load.html"]);
    assert!(
        show.starts_with("! 1 operations are missing (unreadable_line)"),
        "{show}"
    );
    assert!(show.contains("2000 operations in 2h 46m"), "{show}");
    assert!(show.contains("of 2 clients"), "{show}");
    let json: serde_json::Value =
        serde_json::from_str(&text(here, &["show", "old.trace", "--json"])).unwrap();
    assert_eq!(json["mix"][0]["op"], "read");
    assert_eq!(json["files"]["reads"]["sequential"], 999);
    assert_eq!(json["read_sizes"][0]["from"], 8192);
    let page = std::fs::read_to_string(here.join("load.html")).unwrap();
    assert!(
        page.contains("Limits of this trace") && page.contains("<rect"),
        "{page}"
    );

    text(here, &["export", "old.trace", "new.txt"]);
    text(here, &["import", "--from", "text", "new.txt", "new.trace"]);
    let compared = text(here, &["compare", "old.trace", "new.trace", "--json"]);
    let compared: serde_json::Value = serde_json::from_str(&compared).unwrap();
    for quantity in compared["quantities"].as_array().unwrap() {
        let distance = &quantity["distance"];
        assert!(distance.is_null() || *distance == 0.0, "{quantity}");
    }

    // A read in 5 s is too little for a job.
    assert!(error(here, &["fit", "old.trace", "like.fio"]).contains("fix:"));
}

#[test]
fn a_busy_trace_becomes_a_workload_that_nfscope_reads() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let header = nfscope_trace::Header::new(nfscope_trace::Host::Server, "test");
    let header = nfscope_trace::Header {
        clients: (0..nfscope_trace::example::CLIENTS)
            .map(|i| format!("c{i}"))
            .collect(),
        ..header
    };
    let mut out = Vec::new();
    let operations = nfscope_trace::example::mixed(1).take(20_000).map(Ok);
    nfscope_trace::convert::export(&header, operations, &mut out).unwrap();
    std::fs::write(here.join("busy.txt"), out).unwrap();
    text(
        here,
        &["import", "--from", "text", "busy.txt", "busy.trace"],
    );
    let said = text(here, &["fit", "busy.trace", "like.fio"]);
    assert!(
        said.contains("it differs from the trace") && said.contains("KS 0."),
        "{said}"
    );
    let path = here.join("like.fio");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    let shown = command
        .args(["workload", "show"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(
        shown.status.success(),
        "{}",
        String::from_utf8_lossy(&shown.stderr)
    );
    assert_eq!(shown.stdout, std::fs::read(&path).unwrap());
    assert!(error(here, &["fit", "busy.trace", "like.fio"]).contains("exists"));
}

#[test]
fn files_that_are_no_traces_are_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::write(here.join("text"), "hello, this is not a trace").unwrap();
    for command in [
        &["show", "text"][..],
        &["compare", "text", "text"],
        &["export", "text"],
    ] {
        let error = error(here, command);
        assert!(
            error.contains("text: no trace") && error.contains("fix:"),
            "{error}"
        );
    }
    assert!(error(here, &["show", "none"]).contains("none"));
    let import = ["import", "--from", "nfsdump", "text", "out.trace"];
    assert!(error(here, &import).contains("no operation in the form nfsdump"));
    assert!(!here.join("out.trace").exists());
    let output = trace(here, &["import", "--from", "pcap", "text", "out.trace"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("nfsdump") && said.contains("tshark"),
        "{said}"
    );
}
