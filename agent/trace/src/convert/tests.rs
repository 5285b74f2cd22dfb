use super::{Form, ImportError, Imported, TSHARK, export, import};
use crate::example;
use crate::format::{Reader, Writer};
use crate::header::{Header, Host};
use crate::operation::{Operation, Stability, Version};
use std::fs::File;
use std::path::Path;

fn reader(file: File) -> Reader {
    Reader::new(file, Path::new("a.trace")).unwrap()
}

fn imported(form: Form, text: &str) -> Result<(Imported, Header, Vec<Operation>), ImportError> {
    let header = Header::new(Host::Network, "test");
    let mut writer = Writer::new(tempfile::tempfile().unwrap(), header).unwrap();
    let imported = import(form, text.as_bytes(), &mut writer)?;
    let reader = reader(writer.finish().unwrap());
    let header = reader.header().clone();
    Ok((imported, header, reader.map(Result::unwrap).collect()))
}

#[test]
fn text_comes_back_as_it_was() {
    let mut header = Header::new(Host::Server, "nfscope 1");
    header.began = 1_700_000_000_000_000_000;
    header.sampled_one_in = 4;
    header.clients = (0..example::CLIENTS).map(|i| format!("c{i}")).collect();
    let mut writer = Writer::new(tempfile::tempfile().unwrap(), header.clone()).unwrap();
    for operation in example::mixed(5).take(2000) {
        writer.push(operation).unwrap();
    }
    let mut text = Vec::new();
    let first = reader(writer.finish().unwrap());
    export(&header, first, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (count, read, operations) = imported(Form::Text, &text).unwrap();
    assert_eq!((count.operations, count.unreadable), (2000, 0));
    assert_eq!(read, header);
    let mut again = Vec::new();
    export(&read, operations.into_iter().map(Ok), &mut again).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), text);

    let damaged = text.replacen("\tread\t", "\tre ad\t", 1) + "1\t2\n";
    let (count, header, _) = imported(Form::Text, &damaged).unwrap();
    assert_eq!(count.unreadable, 2);
    let (line, reason) = count.first_unreadable.unwrap();
    assert!(
        line > 3 && reason.contains("op \"re ad\""),
        "{line} {reason}"
    );
    assert_eq!(header.dropped[0].reason, "unreadable_line");
    assert!(imported(Form::Text, "hello\n").is_err());
    assert!(imported(Form::Text, "# nfscope trace 1\n# {}\n").is_err());
}

/// Lines as nfsdump prints them, made for this test.
const NFSDUMP: &str = "\
1004562602.021187 30.0320 31.0801 T C3 47fe3a0f 3 lookup fh a1b2c3 name \"a b\" euid 18a euid 18b con = 130 len = 168
1004562602.021987 31.0801 30.0320 T R3 47fe3a0f 3 lookup OK fh d4e5f6 ftype 1 mode 1a4 size 3000 mtime 1004562000.000001 ftype 2 size 200 status=0 pl = 236 con = 82 len = 294
1004562602.030000 30.0320 31.0801 T C3 47fe3a10 6 read fh d4e5f6 off 1000 count 2000 euid 18a con = 82 len = 130
1004562602.031000 31.0801 30.0320 T R3 47fe3a10 6 read OK ftype 1 size 3000 count 1fff eof 0 status=0 pl = 8192 con = 82 len = 400
1004562602.040000 32.0320 31.0801 U C3 1 7 write fh d4e5f6 off 2000 count 1000 stable U con = 130 len = 400
this line is garbage
1004562602.050000 31.0801 32.0320 U R3 1 7 write 1c status=1c con = 82 len = 90
1004562602.060000 32.0320 31.0801 U C3 2 15 commit file d4e5f6 off 0 count 0 con = 82 len = 100
1004562602.070000 31.0801 32.0320 U R3 99 1 getattr OK size 5 con = 82 len = 100
";

#[test]
fn nfsdump_is_read_in_calls_and_replies() {
    let (count, header, operations) = imported(Form::Nfsdump, NFSDUMP).unwrap();
    assert_eq!(count.operations, 4);
    assert_eq!((count.unanswered, count.without_call), (1, 1));
    let first = Some((6, "fewer than 8 words".to_owned()));
    assert_eq!((count.unreadable, count.first_unreadable), (1, first));
    assert_eq!(header.began, 1_004_562_602_021_187_000);
    assert_eq!(header.clients, ["c0", "c1"]);
    let [lookup, read, write, commit] = &operations[..] else {
        panic!("{operations:?}");
    };
    assert_eq!((lookup.arrival, lookup.duration), (0, Some(800_000)));
    assert_eq!(lookup.version, Version::V3);
    assert_eq!((lookup.other, lookup.size), (read.file, Some(0x3000)));
    assert_ne!(lookup.file, lookup.other);
    assert_eq!((read.offset, read.length), (Some(0x1000), Some(0x1fff)));
    assert_eq!((write.client, write.status), (1, Some(0x1c)));
    assert_eq!(write.stability, Some(Stability::Unstable));
    assert_eq!((commit.file, commit.duration), (read.file, None));
    assert_eq!(commit.status, None);
    // Neither names nor handles are in the file.
    let all = format!("{header:?} {operations:?}");
    assert!(!all.contains("a b") && !all.contains("d4e5f6"), "{all}");
}

/// Text as ds2txt prints it, made for this test.
const DATASERIES: &str = "\
# Extent Types ...
# Extent, type='Trace::NFS::common'
packet_at source source_port dest dest_port is_udp is_request nfs_version transaction_id op_id operation rpc_status payload_length record_id
1253831523212739 3a163121 790 01c633c7 2049 TCP request V3 21ff6e38 3 lookup null 56 0
1253831523213739 01c633c7 2049 3a163121 790 TCP response V3 21ff6e38 3 lookup 0 216 1
1253831523220000 3a163121 790 01c633c7 2049 TCP request V3 21ff6e39 6 read null 56 2
1253831523230000 01c633c7 2049 3a163121 790 TCP response V3 21ff6e39 6 read 0 8300 3
1253831523240000 3a163121 790 01c633c7 2049 TCP request V9 21ff6e40 6 read null 56 4
# Extent, type='Trace::NFS::attr-ops'
request_id reply_id filename filehandle lookup_dir_filehandle typeid type mode hard_link_count uid gid file_size used_bytes access_time modify_time inode_change_time
0 1 secret d4e5f6 a1b2c3 1 file 1a4 1 0 0 12288 12288 0 0 0
2 3 null d4e5f6 null 1 file 1a4 1 0 0 12288 12288 0 0 0
# Extent, type='Trace::NFS::read-write'
request_id reply_id filehandle is_read offset bytes
2 3 d4e5f6 true 4096 8192
";

#[test]
fn dataseries_is_joined_by_the_numbers_of_requests() {
    let (count, header, operations) = imported(Form::Dataseries, DATASERIES).unwrap();
    assert_eq!((count.operations, count.unreadable), (2, 1));
    assert_eq!(count.first_unreadable, Some((8, "nfs_version".to_owned())));
    assert_eq!(header.clients, ["c0"]);
    let [lookup, read] = &operations[..] else {
        panic!("{operations:?}");
    };
    // 1000 units of 4295 / 2^32 seconds.
    assert_eq!(lookup.duration, Some(1_000_008));
    assert_eq!((lookup.other, lookup.size), (read.file, Some(12_288)));
    assert_eq!((read.offset, read.length), (Some(4096), Some(8192)));
    assert_eq!(read.status, None);
    assert!(lookup.file.is_some() && lookup.file != read.file);
}

/// Fields as tshark 4.0 printed them of packets that were made for this test, but for the last line; `|` stands for a tab.
const TSHARK_FIELDS: &str = "\
1700000000.000000000|192.0.2.1|192.0.2.9|||0x00000001|0|3,3||6||0x6165078a|8192|4096||||||||||
1700000000.002000000|192.0.2.9|192.0.2.1|||0x00000001|1|3,3||6||||1000||0|99999|||||||
1700000000.005000000|192.0.2.1|192.0.2.9|||0x00000002|0|3,3||7||0x6165078a|0|512|2|||||||||
1700000000.009000000|192.0.2.9|192.0.2.1|||0x00000002|1|3,3||7||||512||0|99999|||||||
1700000000.020000000|192.0.2.1|192.0.2.9|||0x00000003|0|4,4|2||22,38,9|0x6165078a||||||65536||256||0||
1700000000.026000000|192.0.2.9|192.0.2.1|||0x00000003|1|4,4|||22,38,9||||||||256|||0|0,0,0,0|65792
1700000000.030000000|192.0.2.1|192.0.2.9|||0x00000004|0|4,4|2||22,25,9|0x6165078a||||||4096|8192|||||
1700000000.036000000|192.0.2.9|192.0.2.1|||0x00000004|1|4,4|||22,25,9||||||||||300||0,0,0,0|65792
1700000000.040000000|||2001:db8::1|2001:db8::9|0x00000005,0x00000006|0|3,3||7,7||||||||||||||
";

#[test]
fn fields_of_tshark_are_read_for_both_versions() {
    let text = TSHARK_FIELDS.replace('|', "\t");
    let (count, header, operations) = imported(Form::Tshark, &text).unwrap();
    assert_eq!(header.clients, ["c0"]);
    let reason = "several RPC messages in one packet".to_owned();
    assert_eq!(count.first_unreadable, Some((9, reason)));
    assert_eq!((count.operations, count.unanswered), (8, 0));
    let [read, write, putfh, write4, getattr, _, read4, _] = &operations[..] else {
        panic!("{operations:?}");
    };
    assert_eq!(read.duration, Some(2_000_000));
    assert_eq!((read.offset, read.length), (Some(8192), Some(1000)));
    assert_eq!((read.status, read.size), (Some(0), Some(99_999)));
    assert_eq!((write.offset, write.length), (Some(0), Some(512)));
    assert_eq!(write.stability, Some(Stability::FileSync));
    assert_eq!(write4.version, Version::V4_2);
    assert_eq!((putfh.file, write4.file), (read.file, read.file));
    assert_eq!((write4.offset, write4.length), (Some(65_536), Some(256)));
    assert_eq!(write4.stability, Some(Stability::Unstable));
    assert_eq!((write4.compound, read4.compound), (Some(1), Some(2)));
    assert_eq!((getattr.size, getattr.status), (Some(65_792), Some(0)));
    assert_eq!((read4.offset, read4.length), (Some(4096), Some(300)));
    assert!(read.file.is_some());
}

#[test]
fn the_command_of_tshark_prints_the_fields_that_are_read() {
    assert_eq!(TSHARK.matches("-e ").count(), super::tshark_fields());
    let (count, ..) = imported(Form::Tshark, "1\t2\n").unwrap();
    assert_eq!(count.unreadable, 1);
}

#[test]
fn a_line_without_end_takes_no_more_memory_than_a_long_one() {
    let text = "x".repeat(5 << 20) + "\n" + NFSDUMP;
    let (count, ..) = imported(Form::Nfsdump, &text).unwrap();
    assert_eq!((count.operations, count.unreadable), (4, 2));
    let reason = "the line is longer than 1 MiB".to_owned();
    assert_eq!(count.first_unreadable, Some((1, reason)));
}
