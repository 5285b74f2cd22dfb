//! Mutated texts of the kernel and of the scripts: clients choose names in them, and they may be cut anywhere.

#[allow(
    clippy::disallowed_methods,
    reason = "shared with a crate that has no other"
)]
#[path = "../../nfscope/tests/fixture/mutate.rs"]
mod mutate;

use crate::illumos::fuzzed;
use crate::lossless;
use crate::mounts::{Mounts, unescape};
use crate::own_process;
use mutate::{fuzz, fuzz_text};

#[test]
#[cfg(target_os = "linux")]
fn texts_of_procfs() {
    use crate::linux::host::procfs::KernelCounts;
    use crate::linux::host::{cpu, diskstats, kstat, mountstats, task};
    let nfsd = ["rc 0 1 2\nio 10 20\nrpc 5 0 0 0 0\nproc3 22 1 2 3\nproc4ops 76 0 0 0 1\n"];
    fuzz_text("nfsd", &nfsd, |text| {
        let counts = KernelCounts::parse(text);
        // Sums of any numbers that the file has.
        let _ = (counts.calls(), counts.v3(), counts.v4());
    });
    let mounts = [
        "device nfs1:/a\\040b mounted on /mnt/a with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2\n\tper-op statistics\n\
         \t     READ: 5 5 0 1000 5000 0 3 3 0\ndevice proc mounted on /proc with fstype proc\n",
    ];
    fuzz_text("mountstats", &mounts, |text| drop(mountstats::parse(text)));
    let disks =
        [" 254 0 vda 11 2 3 4 5 6 7 8 9 1234 11 0 0 0\n 259 0 nvme0n1 1 1 1 1 1 1 1 1 1 77 1\n"];
    fuzz_text("diskstats", &disks, |text| drop(diskstats::parse(text)));
    let cpus = ["cpu  9 8 7 600 5 4\ncpu0 1 1 1 300 1\ncpu1 1 1 1 300 1\nintr 5 0\n"];
    fuzz_text("stat of CPUs", &cpus, |text| {
        cpu::parse(text);
    });
    fuzz_text("stat of a thread", &["812 (nfsd) D 2 0 0 0 -1"], |text| {
        task::parse(text);
    });
    let stack = ["[<0>] io_schedule+0x46/0x80\n[<0>] nfsd_vfs_write+0x10d/0x1d0 [nfsd]\n"];
    fuzz_text("stack of a thread", &stack, |text| drop(task::frames(text)));
    let process = [
        "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 2 0 4321 1048576 256 18446744073709551615",
    ];
    fuzz_text("stat of a process", &process, own_process::fuzzed);
    let stats = ["9 1 0x01 7 2160 5 6\nname type data\nzil_commit_count 4 12\nhits 4 7\n"];
    fuzz_text("kstat of ZFS", &stats, |text| drop(kstat::parse(text)));
}

/// Clients make handles, and choose the names of what they have open.
#[test]
#[cfg(target_os = "linux")]
fn what_clients_send() {
    use crate::linux::host::file_handle::{Handle, parse_list};
    use crate::linux::host::file_id::{FileId, FileSystem};
    use crate::linux::host::{exports, nfs4_state};
    let uuid: Vec<u8> = (0..40).collect();
    let handles: Vec<Vec<u8>> = [(6, 1), (7, 0x4d), (0, 0x81), (1, 2), (3, 1)]
        .map(|(fsid, id)| [&[1, 0, fsid, id], &uuid[..]].concat())
        .into();
    let handles: Vec<_> = handles.iter().map(Vec::as_slice).collect();
    fuzz("file handles", &handles, |raw| {
        let file = Handle::parse(raw).and_then(|h| h.file);
        let short = raw.split_first().map(|(kind, id)| FileId::whole(*kind, id));
        for file in file.iter().chain(&short) {
            for fs in [
                "ext4", "xfs", "btrfs", "zfs", "tmpfs", "ocfs2", "gfs2", "nfs4",
            ] {
                let fs = FileSystem {
                    kind: fs.into(),
                    ..FileSystem::default()
                };
                let _ = file.name(Some(&fs)).to_string();
            }
        }
    });
    let etab = ["/srv\t192.0.2.0/24(rw,async,wdelay)\n/srv\\040x *(ro,sync)\n# comment\n"];
    fuzz_text("etab", &etab, |text| drop(exports::etab_paths(text)));
    let list = [
        "#domain fsidtype fsid [path]\n* 6 0x0102030405060708090a0b0c0d0e0f10 /srv/a\\040b\n* 1 0x00000000 /\n",
    ];
    fuzz_text("list of exports", &list, |text| {
        parse_list(text).for_each(drop)
    });
    let clients: [&[u8]; 2] = [
        b"clientid: 0x3b1a\nstatus: courtesy\nseconds from last renew: 97\nname: \"Linux\"\ncallback state: DOWN\nadmin-revoked states: 2\n",
        b"- 0x1: { type: open, access: rw, deny: --, superblock: \"fd:10:1\", filename: \"a\xe9\" }\n- 0x3: { type: deleg, access: wa }\n",
    ];
    fuzz("clients of NFSv4", &clients, nfs4_state::fuzzed);
}

#[test]
fn tables_of_mounts() {
    let linux = [
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n25 1 0:22 / /tank\\040a rw - zfs tank rw\n",
    ];
    fuzz_text("mountinfo", &linux, |text| {
        let mounts = Mounts::parse_mountinfo(text);
        mounts.on("/mnt2/x");
        mounts.iter().for_each(|m| drop(m.option("rw")));
    });
    let illumos = ["tank/a\t/tank/a\tzfs\trw,devices,dev=4010002\t1600000000\n"];
    fuzz_text("mnttab", &illumos, |text| {
        Mounts::parse_mnttab(text).on("/tank/a/b");
    });
    let escapes: [&[u8]; 2] = [b"a\\040b\\134\\777", b"\xff\\x41\\xff\\\xe9\\x"];
    fuzz("escapes", &escapes, |bytes| {
        let text = lossless::text(bytes);
        assert_eq!(lossless::bytes(&text), bytes);
        drop(unescape(&text));
    });
}

/// Text of a script means the same however it is cut.
#[test]
fn texts_of_scripts() {
    let frames: [&[u8]; 2] = [
        b"@hello\tnfs\n@begin\t1000000000\n@c\tops\twrite\t4\n@g\tbusy\t-1\n@h\top\twrite\n 1 | 4\n@end\n",
        b"@slow\tsecret\twrite\t4.1\t1\t2\t3\n@begin\t2\n@c\ta\t1\n@end\n",
    ];
    let mut random = 0;
    fuzz("frames", &frames, |text| {
        random += 1;
        let cut = text.len() * (random % 7) / 7;
        assert_eq!(
            fuzzed::frames(&[text]),
            fuzzed::frames(&[&text[..cut], &text[cut..]])
        );
    });
    fuzz("slow operations", &frames, |text| {
        let _ = fuzzed::slow(text);
    });
    let kstat: [&[u8]; 1] =
        [b"zfs:0:tank:reads\t7\nnfs:3:rfsproccnt_v3:write\t9\nunix:0:x:snaptime\t1.5\n"];
    fuzz("kstat", &kstat, |text| {
        let _ = fuzzed::kstat(text);
    });
}
