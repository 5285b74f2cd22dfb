use super::text::render;
use super::*;
use crate::header::Host;
use crate::operation::{Op, Version};

fn header() -> Header {
    let mut header = Header::new(Host::Server, "test");
    header.clients = (0..crate::example::CLIENTS)
        .map(|i| format!("c{i}"))
        .collect();
    header
}

fn io(at: u64, client: u32, op: Op, file: u64, offset: u64) -> Operation {
    let mut o = Operation::new(at, client, Version::V3, op);
    (o.file, o.offset, o.length) = (Some(file), Some(offset), Some(4096));
    o.status = Some(0);
    o.stability = Some(Stability::Unstable).filter(|_| o.op.is_write());
    o
}

fn load(operations: Vec<Operation>) -> Load {
    describe(&header(), operations.into_iter().map(Ok)).unwrap()
}

#[test]
fn operations_are_placed_after_the_one_before_them_in_their_file_and_direction() {
    let read = |offset| io(0, 0, Op::READ, 1, offset);
    let mut all = vec![
        read(0),
        read(4096),
        read(8192),
        read(65_536),
        read(10 << 20),
    ];
    // A write in between and another file do not disturb the sequence.
    all.insert(2, io(0, 0, Op::WRITE, 1, 1 << 30));
    all.insert(3, io(0, 0, Op::READ, 2, 0));
    let places = load(all).files.reads;
    let expected = Places {
        sequential: 2,
        near: 1,
        random: 1,
    };
    assert_eq!(places, expected);
    assert_eq!(places.sequential_part(), Some(0.75));
}

#[test]
fn sharing_counts_files_by_their_clients() {
    let all = vec![
        io(0, 0, Op::READ, 1, 0),
        io(0, 0, Op::WRITE, 1, 0),
        io(0, 0, Op::READ, 2, 0),
        io(0, 1, Op::READ, 2, 0),
        io(0, 0, Op::WRITE, 3, 0),
        io(0, 1, Op::READ, 3, 0),
        io(0, 0, Op::WRITE, 4, 0),
        io(0, 1, Op::WRITE, 4, 0),
    ];
    let sharing = load(all).files.sharing;
    let expected = Sharing {
        one_client: 1.0,
        read_by_several: 1.0,
        written_by_one_read_by_others: 1.0,
        written_by_several: 1.0,
    };
    assert_eq!(sharing, expected);
}

#[test]
fn a_commit_has_the_unstable_writes_before_it_in_its_file() {
    let write = |file, offset| io(0, 0, Op::WRITE, file, offset);
    let commit = |file| io(0, 0, Op::COMMIT, file, 0);
    let mut stable = write(1, 0);
    stable.stability = Some(Stability::FileSync);
    let all = vec![
        write(1, 0),
        write(1, 4096),
        write(2, 0),
        stable,
        commit(1),
        commit(1),
    ];
    let commits = load(all).files.commits;
    assert_eq!(commits.writes.mean(), Some(2.0));
    assert_eq!(commits.bytes.mean(), Some(8192.0));
    assert_eq!((commits.without_writes, commits.writes_left), (1, 1));
}

#[test]
fn arrivals_at_random_have_a_dispersion_of_one_and_bursts_more() {
    let mut random = 1;
    let mut at = 0.0;
    let poisson = (0..200_000).map(|_| {
        random = sketch::mix(random);
        at += -((random >> 11) as f64 / (1_u64 << 53) as f64)
            .max(1e-12)
            .ln()
            * 1e6;
        io(at as u64, 0, Op::READ, 1, 0)
    });
    let bursts = load(poisson.collect()).bursts;
    for b in &bursts[..2] {
        assert!((b.dispersion.unwrap() - 1.0).abs() < 0.1, "{b:?}");
    }
    assert_eq!(bursts[3].dispersion.is_some(), true);
    let together = (0..200_000).map(|i| io(i / 100 * 100_000_000, 0, Op::READ, 1, 0));
    let bursts = load(together.collect()).bursts;
    assert!(bursts[0].dispersion.unwrap() > 50.0, "{bursts:?}");
    assert_eq!(bursts[1].dispersion, Some(0.0));
    // Less than ten whole minutes.
    assert_eq!(bursts[4].dispersion, None);
}

#[test]
fn a_working_set_has_each_block_once_however_long_the_trace_is() {
    let all =
        (0..100_000_u64).map(|i| io(i * 10_000_000_000, 0, Op::READ, i % 4, (i % 1000) << 20));
    let load = load(all.collect());
    let course = &load.course;
    assert!(course.intervals.len() <= 128, "{}", course.intervals.len());
    let total: u64 = course.intervals.iter().map(|i| i.operations).sum();
    assert_eq!(total, 100_000);
    assert!((course.files - 4.0).abs() < 0.1, "{}", course.files);
    // 1000 blocks: file and offset repeat together.
    let blocks = course.bytes / 65_536.0;
    assert!((blocks / 1000.0 - 1.0).abs() < 0.07, "{blocks}");
}

#[test]
fn too_many_files_are_sampled_and_the_text_says_so_first() {
    let all = (0..600_000_u64).map(|i| io(i, 0, Op::READ, i / 2, i % 2 * 4096));
    let load = load(all.collect());
    assert_eq!(load.files.followed_one_in, 2);
    let files = load.files.sharing.one_client;
    assert!((files / 300_000.0 - 1.0).abs() < 0.02, "{files}");
    assert_eq!(load.files.reads.random, 0);
    let text = render(&load);
    assert!(
        text.starts_with("! the files are too many to follow"),
        "{text}"
    );
}

#[test]
fn drops_and_samples_are_said_before_all_else() {
    let mut header = header();
    header.sampled_one_in = 10;
    header.count_dropped("buffer_full", Some("write"), 17);
    let all = vec![io(0, 0, Op::READ, 1, 0)];
    let load = describe(&header, all.into_iter().map(Ok)).unwrap();
    let text = render(&load);
    assert!(
        text.starts_with("! 1 of 10 file handles was recorded"),
        "{text}"
    );
    assert!(
        text.contains("17 write are missing (buffer_full)"),
        "{text}"
    );
}

#[test]
fn a_mixed_load_has_every_part_of_the_description() {
    let operations = crate::example::mixed(4).take(50_000);
    let load = describe(&header(), operations.map(Ok)).unwrap();
    let text = render(&load);
    for part in [
        "Mix",
        "READ sizes",
        "WRITE sizes",
        "A COMMIT makes durable",
        "Sequence",
        "by their clients",
        "Working set",
        "Bursts",
        "Clients",
        "Hot files",
        "Failures",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let count: u64 = load.mix.iter().map(|k| k.operations).sum();
    assert_eq!(count, 50_000);
    let json = serde_json::to_value(&load).unwrap();
    assert_eq!(json["operations"], 50_000);
    assert!(json["read_sizes"][0]["from"].is_u64());
}
