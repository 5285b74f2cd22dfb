//! Test of `lab conformance`, with two small programs in place of the suites: they have the suites' command lines and send a few
//! calls. docs/develop/tests.md has the results of the suites themselves.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Result, ensure};
use lab::conformance::{self, Options};
use lab::{Agent, Server};

/// Stand-in for pynfs: sends a NULL, and a COMPOUND without a SEQUENCE.
const TESTSERVER: &str = r#"#!/usr/bin/python3
import socket, struct, sys

host, path = sys.argv[1].split(":")
assert path == "/run/exp" and sys.argv[2:] == ["--maketree", "all"], sys.argv
connection = socket.create_connection((host, 2049))

def call(procedure, body):
    head = struct.pack(">10I", 7, 0, 2, 100003, 4, procedure, 0, 0, 0, 0)
    message = head + body
    connection.sendall(struct.pack(">I", 0x80000000 | len(message)) + message)
    length = struct.unpack(">I", connection.recv(4, socket.MSG_WAITALL))[0] & 0x7fffffff
    return connection.recv(length, socket.MSG_WAITALL)

call(0, b"")
minor = 1 if "4.1" in __import__("os").getcwd() else 0
call(1, struct.pack(">6I", 0, minor, 3, 24, 10, 24))
print("Of those: 0 Skipped, 1 Failed, 0 Warned, 1 Passed")
sys.exit(1)
"#;

/// Stand-in for cthon04: makes and removes files.
const RUNTESTS: &str = r#"#!/bin/sh
test "$*" = "-a -f" || exit 9
mkdir -p "$NFSTESTDIR" && cd "$NFSTESTDIR" || exit 9
for n in 1 2 3 4; do echo $n >file-$n; done
cat file-* >/dev/null
mv file-1 other && ls -l >/dev/null && rm -f other file-*
cd / && rmdir "$NFSTESTDIR"
echo "All tests completed"
"#;

/// The counts of both stand-ins. No client may have the server mounted.
pub fn suites_are_counted(server: &Server, agent: &Agent) -> Result<()> {
    let dir = server.dir().join("stand-ins");
    let put = |path: &str, text: &str| -> Result<()> {
        let file = dir.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&file))?;
        fs::write(&file, text)?;
        Ok(fs::set_permissions(
            &file,
            fs::Permissions::from_mode(0o755),
        )?)
    };
    put("pynfs/nfs4.0/testserver.py", TESTSERVER)?;
    put("pynfs/nfs4.1/testserver.py", TESTSERVER)?;
    put("cthon/runtests", RUNTESTS)?;
    let options = Options {
        pynfs: Some(dir.join("pynfs")),
        cthon: Some(dir.join("cthon")),
        kernel: server.kernel(),
        export: "ext4".to_owned(),
        minutes: 5,
    };
    let text = conformance::all(server, agent, &options)?;
    println!("{text}");
    for says in [
        "pynfs nfs4.0: ",
        "pynfs nfs4.1: ",
        "| Of those: 0 Skipped, 1 Failed, 0 Warned, 1 Passed",
        "cthon04 over 3: ",
        "cthon04 over 4.2: ",
        "| All tests completed",
        "every kind of operation: as many as the kernel has counted",
    ] {
        ensure!(text.contains(says), "{says}: {text}");
    }
    server.client(0).unmount_all()
}
