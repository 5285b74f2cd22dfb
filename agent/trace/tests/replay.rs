//! Replays against a server of this process, which keeps a tree of files and everything that it was asked for.
#![allow(clippy::unwrap_used)]

use nfscope_trace::replay::{Credentials, Options, Pace, Ports, Replay, Report};
use nfscope_trace::{Error, Op, Operation, Stability, Version};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A call: procedure, file, offset and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked(u32, u64, u64, u32);

#[derive(Default)]
struct Tree {
    /// Names and directory of each file but the root; sizes of files that are none.
    files: BTreeMap<u64, (u64, String, Option<u64>)>,
    next: u64,
    asked: Vec<Asked>,
    /// Names that were made in the root.
    in_root: Vec<String>,
}

impl Tree {
    fn find(&self, directory: u64, name: &str) -> Option<u64> {
        let mut all = self.files.iter();
        all.find(|(_, f)| f.0 == directory && f.1 == name)
            .map(|(id, _)| *id)
    }
}

struct Args<'a>(&'a [u8]);

impl<'a> Args<'a> {
    fn u32(&mut self) -> u32 {
        let (head, rest) = self.0.split_at(4);
        self.0 = rest;
        u32::from_be_bytes(head.try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    fn opaque(&mut self) -> &'a [u8] {
        let n = self.u32() as usize;
        let (head, rest) = self.0.split_at(n.next_multiple_of(4));
        self.0 = rest;
        &head[..n]
    }

    fn handle(&mut self) -> u64 {
        u64::from_be_bytes(self.opaque().try_into().unwrap())
    }

    fn name(&mut self) -> String {
        String::from_utf8(self.opaque().to_vec()).unwrap()
    }
}

fn handle(id: u64) -> Vec<u8> {
    [&8u32.to_be_bytes()[..], &id.to_be_bytes()].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_be_bytes()).collect()
}

/// Results of a call.
fn answer(tree: &mut Tree, program: u32, procedure: u32, a: &mut Args<'_>) -> Vec<u8> {
    const NOENT: u32 = 2;
    if program == 100_005 {
        return [words(&[0]), handle(0), words(&[1, 1])].concat();
    }
    if procedure == 0 {
        return Vec::new();
    }
    let file = a.handle();
    let mut asked = Asked(procedure, file, 0, 0);
    let results = match procedure {
        3 => match tree.find(file, &a.name()) {
            Some(id) => [words(&[0]), handle(id), words(&[0, 0])].concat(),
            None => words(&[NOENT, 0]),
        },
        6 => {
            (asked.2, asked.3) = (a.u64(), a.u32());
            let data = vec![0; asked.3 as usize];
            [words(&[0, 0, asked.3, 1, asked.3]), data].concat()
        }
        7 => {
            (asked.2, asked.3) = (a.u64(), a.u32());
            let size = tree.files.get_mut(&file).unwrap().2.as_mut().unwrap();
            *size = (*size).max(asked.2 + u64::from(asked.3));
            words(&[0, 0, 0, asked.3, 2, 0, 0])
        }
        8..=11 => {
            let name = a.name();
            let id = tree.find(file, &name).unwrap_or_else(|| {
                tree.next += 1;
                tree.next
            });
            if file == 0 {
                tree.in_root.push(name.clone());
            }
            tree.files
                .insert(id, (file, name, (procedure != 9).then_some(0)));
            [words(&[0, 1]), handle(id), words(&[0, 0, 0])].concat()
        }
        12 | 13 => match tree.find(file, &a.name()) {
            Some(id) => {
                tree.files.remove(&id);
                words(&[0, 0, 0])
            }
            None => words(&[NOENT, 0, 0]),
        },
        16 => {
            let mut all = words(&[0, 0, 0, 0]);
            for (id, (_, name, _)) in tree.files.iter().filter(|(_, f)| f.0 == file) {
                all.extend(words(&[1]));
                all.extend(id.to_be_bytes());
                all.extend(words(&[name.len() as u32]));
                all.extend(name.as_bytes());
                all.resize(all.len().next_multiple_of(4), 0);
                all.extend(id.to_be_bytes());
            }
            all.extend(words(&[0, 1]));
            all
        }
        18 => words(&[0, 0, 0, 0, 0, 0, 0, 1 << 30]),
        19 => words(&[0, 0, 65_536, 0, 0, 32_768, 0, 0, 0]),
        21 => {
            (asked.2, asked.3) = (a.u64(), a.u32());
            words(&[0, 0, 0, 0, 0])
        }
        _ => words(&[0, 0, 0, 0]),
    };
    tree.asked.push(asked);
    results
}

fn serve(mut stream: TcpStream, tree: &Mutex<Tree>) -> Option<()> {
    loop {
        let mut head = [0; 4];
        stream.read_exact(&mut head).ok()?;
        let mut call = vec![0; (u32::from_be_bytes(head) & 0x7fff_ffff) as usize];
        stream.read_exact(&mut call).ok()?;
        let mut a = Args(&call);
        let xid = a.u32();
        a.u64();
        let (program, _, procedure) = (a.u32(), a.u32(), a.u32());
        for _ in 0..2 {
            a.u32();
            a.opaque();
        }
        let results = answer(&mut tree.lock().unwrap(), program, procedure, &mut a);
        let reply = [words(&[xid, 1, 0, 0, 0, 0]), results].concat();
        let head = 0x8000_0000 | reply.len() as u32;
        stream.write_all(&[words(&[head]), reply].concat()).ok()?;
    }
}

/// Port of a new server, and what it keeps.
fn server() -> (u16, Arc<Mutex<Tree>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let tree = Arc::new(Mutex::new(Tree::default()));
    let kept = tree.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let tree = tree.clone();
            thread::spawn(move || serve(stream.unwrap(), &tree));
        }
    });
    (port, kept)
}

fn options(port: u16, pace: Pace) -> Options {
    Options {
        target: "127.0.0.1:/export".parse().unwrap(),
        ports: Ports {
            nfs: Some(port),
            mount: Some(port),
        },
        who: Credentials { uid: 7, gid: 7 },
        pace,
        times: 1,
        max_connections: 8,
        sparse: false,
        keep: true,
        directory: "replay".to_owned(),
    }
}

fn op(at_ms: u64, client: u32, name: &str, file: u64) -> Operation {
    Operation {
        file: Some(file),
        status: Some(0),
        duration: Some(500_000),
        ..Operation::new(
            at_ms * 1_000_000,
            client,
            Version::V3,
            Op::named(name).unwrap(),
        )
    }
}

fn range(at_ms: u64, client: u32, name: &str, file: u64, offset: u64, length: u32) -> Operation {
    Operation {
        offset: Some(offset),
        length: Some(length),
        stability: (name == "write").then_some(Stability::Unstable),
        ..op(at_ms, client, name, file)
    }
}

fn create(at_ms: u64, client: u32, directory: u64, file: u64) -> Operation {
    Operation {
        other: Some(file),
        ..op(at_ms, client, "create", directory)
    }
}

fn replay(operations: &[Operation], options: &Options) -> anyhow::Result<Report> {
    let read = || operations.iter().cloned().map(Ok::<_, Error>);
    Replay::plan(read())?.run(read(), options, |_| {})
}

/// A file that exists, and one that is made, written by two clients, made durable and read.
fn load() -> Vec<Operation> {
    vec![
        range(0, 0, "read", 50, 8192, 4096),
        create(1, 0, 1, 51),
        range(2, 0, "write", 51, 0, 4096),
        range(3, 1, "write", 51, 4096, 4096),
        range(4, 0, "commit", 51, 0, 0),
        range(5, 1, "read", 51, 0, 8192),
        op(6, 0, "getattr", 51),
    ]
}

/// Calls of these procedures that came after the image was made.
fn asked(tree: &Mutex<Tree>, procedures: &[u32]) -> Vec<Asked> {
    let tree = tree.lock().unwrap();
    let all = tree.asked.iter().copied();
    all.filter(|a| procedures.contains(&a.0)).collect()
}

#[test]
fn each_operation_is_issued_once_with_its_range_and_files_get_their_sizes() {
    for pace in [Pace::Open { speed: 100.0 }, Pace::Closed] {
        let (port, tree) = server();
        let report = replay(&load(), &options(port, pace)).unwrap();
        assert_eq!((report.recorded, report.issued), (7, 7), "{report:?}");
        assert!(
            report
                .operations
                .iter()
                .all(|o| o.issued == o.recorded && o.other_status == 0)
        );
        let reads = asked(&tree, &[6]);
        assert_eq!(
            reads.iter().map(|a| (a.2, a.3)).collect::<Vec<_>>().len(),
            2
        );
        let tree = tree.lock().unwrap();
        let mut sizes: Vec<_> = tree.files.values().filter_map(|f| f.2).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [8192, 12_288]);
        assert_eq!(tree.in_root, ["replay"]);
    }
}

#[test]
fn a_closed_loop_keeps_the_order_of_a_file_across_clients() {
    let mut operations = vec![create(0, 0, 1, 51)];
    for n in 0..200 {
        operations.push(range(1 + n, n as u32 % 3, "write", 51, n * 4096, 4096));
    }
    operations.push(range(300, 0, "commit", 51, 0, 0));
    let (port, tree) = server();
    replay(&operations, &options(port, Pace::Closed)).unwrap();
    let on_file: Vec<_> = asked(&tree, &[7, 21]).iter().map(|a| (a.0, a.2)).collect();
    let mut expected: Vec<_> = (0..200).map(|n| (7, n * 4096)).collect();
    expected.push((21, 0));
    assert_eq!(on_file, expected);
}

#[test]
fn an_open_loop_keeps_the_recorded_times_and_counts_late_calls() {
    let operations: Vec<_> = (0..10).map(|n| op(20 * n, 0, "getattr", 1)).collect();
    let (port, _) = server();
    let report = replay(&operations, &options(port, Pace::Open { speed: 2.0 })).unwrap();
    assert!(report.seconds >= 0.09, "{report:?}");
    assert!(report.late.is_some_and(|late| late <= 10));
    assert!(report.lateness_seconds.is_some());
}

#[test]
fn copies_have_their_own_files() {
    let (port, tree) = server();
    let mut options = options(port, Pace::Closed);
    options.times = 3;
    let report = replay(&load(), &options).unwrap();
    assert_eq!(report.issued, 21);
    let tree = tree.lock().unwrap();
    assert_eq!(tree.files.values().filter(|f| f.2 == Some(8192)).count(), 3);
}

#[test]
fn nothing_remains_unless_it_is_kept() {
    let (port, tree) = server();
    let mut options = options(port, Pace::Closed);
    options.keep = false;
    replay(&load(), &options).unwrap();
    assert!(tree.lock().unwrap().files.is_empty());
}

#[test]
fn an_operation_without_a_counterpart_is_listed_with_the_reason() {
    let mut lock = op(0, 0, "lock", 1);
    lock.version = Version::V4_2;
    let mut blind = op(1, 0, "read", 2);
    blind.version = Version::V4_1;
    let (port, _) = server();
    let report = replay(
        &[lock, blind, op(2, 0, "null", 1)],
        &options(port, Pace::Closed),
    )
    .unwrap();
    let reasons: Vec<_> = report
        .left_out
        .iter()
        .map(|l| (&l.op[..], l.reason))
        .collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].1.contains("state of NFSv4"));
    assert!(reasons[1].1.contains("no offset"));
    assert_eq!(report.issued, 1);
}

#[test]
fn a_trace_that_needs_more_room_than_there_is_begins_nothing() {
    let (port, tree) = server();
    let huge = range(0, 0, "read", 5, 1 << 40, 4096);
    let why = replay(&[huge], &options(port, Pace::Closed)).unwrap_err();
    assert!(why.to_string().contains("--sparse"), "{why}");
    assert!(tree.lock().unwrap().files.is_empty());
}

#[test]
fn a_server_that_answers_with_something_else_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream
                .unwrap()
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            thread::sleep(Duration::from_millis(1));
        }
    });
    assert!(replay(&load(), &options(port, Pace::Closed)).is_err());
}
