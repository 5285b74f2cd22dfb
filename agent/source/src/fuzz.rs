//! Texts of the kernel and of the scripts, mutated: clients choose names in them, and they may be cut anywhere.

#[path = "../../nfscope/tests/fixture/mutate.rs"]
mod mutate;

use crate::illumos::fuzzed;
use crate::mounts::{Mounts, unescape};
use mutate::{QUICK, fuzz, fuzz_text};

#[test]
#[cfg(target_os = "linux")]
fn texts_of_procfs() {
    use crate::linux::host::exports::etab_paths;
    use crate::linux::host::kstat;
    use crate::linux::host::procfs::KernelCounts;
    let nfsd = ["rc 0 1 2\nio 10 20\nrpc 5 0 0 0 0\nproc3 22 1 2 3\nproc4ops 76 0 0 0 1\n"];
    fuzz_text("nfsd", QUICK, &nfsd, |text| {
        let counts = KernelCounts::parse(text);
        // Sums of whatever the file has.
        let _ = (counts.calls(), counts.v3(), counts.v4());
    });
    let etab = ["/srv\t192.0.2.0/24(rw,async,wdelay)\n/srv\\040x *(ro,sync)\n# comment\n"];
    fuzz_text("etab", QUICK, &etab, |text| drop(etab_paths(text)));
    let stats = ["9 1 0x01 7 2160 5 6\nname type data\nzil_commit_count 4 12\nhits 4 7\n"];
    fuzz_text("kstat of ZFS", QUICK, &stats, |text| {
        drop(kstat::parse(text))
    });
}

#[test]
fn tables_of_mounts() {
    let linux = [
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n25 1 0:22 / /tank\\040a rw - zfs tank rw\n",
    ];
    fuzz_text("mountinfo", QUICK, &linux, |text| {
        let mounts = Mounts::parse_mountinfo(text);
        mounts.on("/mnt2/x");
        mounts.iter().for_each(|m| drop(m.option("rw")));
    });
    let illumos = ["tank/a\t/tank/a\tzfs\trw,devices,dev=4010002\t1600000000\n"];
    fuzz_text("mnttab", QUICK, &illumos, |text| {
        Mounts::parse_mnttab(text).on("/tank/a/b");
    });
    fuzz_text("escapes", QUICK, &["a\\040b\\134\\777"], |text| {
        drop(unescape(text))
    });
}

/// What a script prints means the same however it is cut.
#[test]
fn texts_of_scripts() {
    let frames: [&[u8]; 2] = [
        b"@hello\tnfs\n@begin\t1000000000\n@c\tops\twrite\t4\n@g\tbusy\t-1\n@h\top\twrite\n 1 | 4\n@end\n",
        b"@slow\tsecret\twrite\t4.1\t1\t2\t3\n@begin\t2\n@c\ta\t1\n@end\n",
    ];
    let mut random = 0;
    fuzz("frames", QUICK, &frames, |text| {
        random += 1;
        let cut = text.len() * (random % 7) / 7;
        assert_eq!(
            fuzzed::frames(&[text]),
            fuzzed::frames(&[&text[..cut], &text[cut..]])
        );
    });
    fuzz("slow operations", QUICK, &frames, |text| {
        let _ = fuzzed::slow(text);
    });
    let kstat: [&[u8]; 1] =
        [b"zfs:0:tank:reads\t7\nnfs:3:rfsproccnt_v3:write\t9\nunix:0:x:snaptime\t1.5\n"];
    fuzz("kstat", QUICK, &kstat, |text| {
        let _ = fuzzed::kstat(text);
    });
}

#[test]
fn runs_can_be_repeated() {
    let mut all = Vec::new();
    fuzz("twice", 50, &[b"sample"], |input| all.push(input.to_vec()));
    let mut again = Vec::new();
    fuzz("twice", 50, &[b"sample"], |input| {
        again.push(input.to_vec())
    });
    assert_eq!(all, again);
    assert!(all.iter().filter(|input| *input != b"sample").count() > 25);
}
