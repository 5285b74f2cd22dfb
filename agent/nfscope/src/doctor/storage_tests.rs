//! Rules about logs and datasets.

use super::answer::State;
use super::examine;
use super::tests::{exported, good, said};
use nfscope_model::host_report::{Exported, PROPERTIES_UNKNOWN};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_log_on_a_rotating_disk_is_to_be_considered() {
    let files = good();
    let disk = files.path("/sys/devices/sda");
    files.add("/sys/devices/sda/queue/rotational", "1\n");
    files.add("/sys/devices/sda/sda1/partition", "1\n");
    fs::create_dir_all(files.path("/sys/class/block")).unwrap();
    symlink(disk.join("sda1"), files.path("/sys/class/block/sda1")).unwrap();
    let with = |e: Exported| {
        let mut host = files.host();
        host.exported = vec![e];
        said(&examine(&host), "log")
    };
    let shared = || {
        exported(
            "ext4",
            "sda1",
            Some(false),
            "shares the file system's device",
        )
    };
    let (state, says) = &with(shared())[0];
    assert_eq!(*state, State::Consider);
    assert!(says.contains("rotating disk"), "{says}");
    files.add("/sys/devices/sda/queue/rotational", "0\n");
    assert_eq!(with(shared())[0].0, State::Good);
    let pool = exported(
        "zfs",
        "tank",
        Some(false),
        "shares the file system's device",
    );
    assert_eq!(with(pool)[0].0, State::Unknown, "a pool is no device");
    assert_eq!(
        with(exported("tmpfs", "0:40", None, "none"))[0].0,
        State::Good
    );
}

#[test]
fn a_log_of_its_own_is_looked_at_by_its_devices() {
    let files = good();
    files.add("/sys/class/block/sdc/queue/rotational", "0\n");
    files.add("/sys/class/block/dm-0/queue/rotational", "1\n");
    files.add("/dev/dm-0", "");
    fs::create_dir_all(files.path("/dev/mapper")).unwrap();
    symlink("../dm-0", files.path("/dev/mapper/log")).unwrap();
    let with = |log: &str| {
        let mut host = files.host();
        host.exported = vec![exported("zfs", "tank", Some(true), log)];
        said(&examine(&host), "log")[0].0
    };
    assert_eq!(with("on /dev/sdc"), State::Good);
    assert_eq!(with("on sdc, /dev/mapper/log"), State::Consider);
    assert_eq!(with("on sdc, /dev/gone"), State::Unknown);
}

#[test]
fn a_btrfs_has_its_log_on_all_of_its_devices() {
    let files = good();
    files.add("/sys/class/block/sdb/queue/rotational", "0\n");
    files.add("/sys/class/block/sdc/queue/rotational", "1\n");
    let with = || {
        let mut host = files.host();
        let log = "shares the file system's device";
        host.exported = vec![exported("btrfs", "sdb", Some(false), log)];
        said(&examine(&host), "log").remove(0)
    };
    assert_eq!(with().0, State::Unknown, "its other devices are not known");
    files.add("/sys/fs/btrfs/features/raid56", "0\n");
    files.add("/sys/fs/btrfs/1-2/devices/sdb/size", "9\n");
    assert_eq!(with().0, State::Good);
    files.add("/sys/fs/btrfs/1-2/devices/sdc/size", "9\n");
    let (state, says) = with();
    assert_eq!(state, State::Consider);
    assert!(says.contains("(sdb, sdc), which"), "{says}");
}

#[test]
fn properties_of_a_dataset_are_unsafe_a_choice_or_not_known() {
    let files = good();
    let with = |warnings: &[&str], fix: &str| {
        let mut e = exported("zfs", "tank", Some(true), "on sdc");
        e.warnings = warnings.iter().map(|w| (*w).to_owned()).collect();
        e.fix = fix.to_owned();
        let mut host = files.host();
        host.exported = vec![e];
        let all = examine(&host).into_iter().filter(|f| f.rule == "zfs");
        all.map(|f| (f.state, f.how)).collect::<Vec<_>>()
    };
    let both = with(
        &[
            "sync=disabled: writes are acknowledged without being durable",
            "logbias=throughput: data goes around the log device",
            "exported async: writes are acknowledged before they are durable",
        ],
        "zfs set sync=standard tank; zfs set logbias=latency tank; export /srv with the option sync",
    );
    assert_eq!(
        both,
        [
            (State::Change, "zfs set sync=standard tank".to_owned()),
            (State::Consider, "zfs set logbias=latency tank".to_owned()),
        ]
    );
    let no_answer = format!("{PROPERTIES_UNKNOWN}: `zfs` did not answer within 3 s");
    let how = "see whether `zfs get sync,logbias tank` and `zpool status` answer here";
    assert_eq!(with(&[&no_answer], how), [(State::Unknown, how.to_owned())]);
    assert_eq!(with(&[], ""), [(State::Good, String::new())]);
}
