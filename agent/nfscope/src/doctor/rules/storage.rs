//! File systems below the exports: logs, barriers and access times.

use crate::doctor::answer::{Answer, State};
use crate::doctor::host::{Host, Missing};
use crate::doctor::rule::Rule;
use nfscope_model::host_report::{Exported, PROPERTIES_UNKNOWN};
use nfscope_source::etab;
use std::collections::BTreeMap;

/// Properties of the ZFS datasets below exports.
pub const ZFS: Rule = Rule {
    name: "zfs",
    why: "With sync=disabled writes are acknowledged before they are durable. With logbias=throughput a log device is not used for data: \
          that is meant for datasets whose throughput matters more than the latency of a durable write.",
    source: "zfsprops(7), sync and logbias",
    look: |host| {
        let on_zfs = host.exported.iter().filter(|e| e.fs == "zfs");
        on_zfs.flat_map(properties).collect()
    },
};

/// Answers about the dataset of one export.
fn properties(e: &Exported) -> Vec<Answer> {
    let answers: Vec<_> = (e.warnings.iter())
        .filter_map(|warning| {
            let says = format!("{}: {warning}", e.path);
            if warning.starts_with(PROPERTIES_UNKNOWN) {
                return Some(Answer::unknown(says, fix_of(e, "see whether `zfs get")));
            }
            match warning.split_once('=')?.0 {
                "sync" => Some(Answer::change(says, fix_of(e, "zfs set sync="))),
                // zfsprops(7) recommends it for datasets whose throughput matters more than the latency of a durable write.
                "logbias" => Some(Answer::consider(says, fix_of(e, "zfs set logbias="))),
                _ => None,
            }
        })
        .collect();
    match answers.is_empty() {
        true => vec![Answer::good(format!(
            "{}: neither sync=disabled nor a log that is gone around",
            e.path
        ))],
        false => answers,
    }
}

/// Fix of an export that begins with these words; all its fixes if none does.
fn fix_of<'a>(e: &'a Exported, begin: &str) -> &'a str {
    let mut fixes = e.fix.split("; ");
    fixes.find(|f| f.starts_with(begin)).unwrap_or(&e.fix)
}

/// Writable exports with `sync`, each with its path, file system and log. Exports whose file system is not known are left out.
fn exported(host: &Host) -> Result<Vec<(String, &Exported)>, Missing> {
    let text = host.etab()?;
    let mut durable: BTreeMap<String, bool> = BTreeMap::new();
    for line in etab::lines(&text).filter(|l| l.options.contains(&"rw")) {
        *durable.entry(line.path).or_default() |= line.options.contains(&"sync");
    }
    let exported = |path: &String| host.exported.iter().find(|e| e.path == *path);
    let found = durable.iter().filter(|(_, sync)| **sync);
    Ok(found
        .filter_map(|(path, _)| Some((path.clone(), exported(path)?)))
        .collect())
}

/// Logs on rotating disks.
pub const LOG: Rule = Rule {
    name: "log",
    why: "A write that must be durable waits for the file system's journal or intent log. On a rotating disk that is a turn of the disk, \
          beside all other requests to it.",
    source: "Documentation/filesystems/ext4/journal.rst; xfs(5), logdev; zpoolconcepts(7), log; queue/rotational in /sys",
    look: |host| match exported(host) {
        Err(Missing::Absent(_)) => Vec::new(),
        Err(e) => vec![e.answer()],
        Ok(all) => {
            // Exports of one file system share its log, and an answer.
            let mut volumes: BTreeMap<&str, (Vec<String>, &Exported)> = BTreeMap::new();
            for (path, e) in all {
                let same = volumes.entry(&e.volume).or_insert((Vec::new(), e));
                same.0.push(path);
            }
            let each = volumes.values();
            each.map(|(paths, e)| log_of(host, &paths.join(", "), e))
                .collect()
        }
    },
};

fn log_of(host: &Host, paths: &str, e: &Exported) -> Answer {
    let mut place = format!("{paths}: {} on {}, log {}", e.fs, e.volume, e.log);
    let turns = match e.separate {
        Some(true) => any_rotates(host, &log_devices(host, &e.log)),
        None if e.log == "none" => return Answer::good(place),
        None => {
            return Answer::unknown(
                place,
                "run `nfscope doctor` as root, with the file system mounted",
            );
        }
        Some(false) if e.fs == "btrfs" => match btrfs_devices(host, &e.volume) {
            Some(all) => {
                if all.len() > 1 {
                    place += &format!(" ({})", all.join(", "));
                }
                any_rotates(host, &all)
            }
            // A single rotating disk is enough for an answer. If this device does not rotate, other disks of the pool may.
            None => rotates(host, &e.volume).filter(|turns| *turns),
        },
        Some(false) => rotates(host, &e.volume),
    };
    match turns {
        Some(true) => Answer::consider(
            format!(
                "{place}, which the kernel calls a rotating disk (a virtual disk may say so wrongly)"
            ),
            "a log on a device with flash and power-loss protection: `nfscope what-if` estimates from a load what that would be worth",
        ),
        Some(false) => Answer::good(format!("{place}, which is no rotating disk")),
        None => Answer::unknown(
            format!("{place}; whether its disks rotate is not known"),
            "see `lsblk -o NAME,ROTA`, and for a pool `zpool status`",
        ),
    }
}

/// Kernel names of a log's own devices. ZFS and mount options name paths, which may be symbolic links: `/dev/mapper/log`.
fn log_devices(host: &Host, log: &str) -> Vec<String> {
    let all = log.strip_prefix("on ").unwrap_or(log).split(", ");
    let name = |device: &str| match device.strip_prefix("/dev/") {
        Some(rest) => host.end_of(device).unwrap_or_else(|| rest.to_owned()),
        None => device.to_owned(),
    };
    all.map(name).collect()
}

/// Kernel names of all devices of the btrfs that contains `one`; `None` if /sys does not list it.
fn btrfs_devices(host: &Host, one: &str) -> Option<Vec<String>> {
    let systems = host.names("/sys/fs/btrfs").ok()?;
    let mut devices = (systems.iter())
        .filter_map(|uuid| host.names(&format!("/sys/fs/btrfs/{uuid}/devices")).ok());
    devices.find(|all| all.iter().any(|d| d == one))
}

/// Returns true if a device rotates, false if none does, and `None` if that is not known.
fn any_rotates(host: &Host, devices: &[String]) -> Option<bool> {
    let each: Vec<_> = devices.iter().map(|d| rotates(host, d)).collect();
    match each.contains(&Some(true)) {
        true => Some(true),
        false => each.into_iter().collect::<Option<Vec<_>>>().map(|_| false),
    }
}

/// Returns true for a rotating disk, and for a partition of one; `None` if /sys does not say.
fn rotates(host: &Host, device: &str) -> Option<bool> {
    let of = |queue: String| match host.text(&queue).ok()?.trim() {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    };
    let directory = format!("/sys/class/block/{device}");
    // A partition has no queue. Its disk is the parent directory in /sys.
    of(format!("{directory}/queue/rotational"))
        .or_else(|| of(format!("{directory}/../queue/rotational")))
}

/// Answers about the mounts below the exports, each mount once.
fn mounts(
    host: &Host,
    look: impl Fn(&str, &nfscope_source::mounts::Mount) -> Answer,
) -> Vec<Answer> {
    let (etab, mounts) = match (host.etab(), host.mounts()) {
        (Ok(etab), Ok(mounts)) => (etab, mounts),
        (Err(Missing::Absent(_)), _) => return Vec::new(),
        (Err(e), _) | (_, Err(e)) => return vec![e.answer()],
    };
    let mut seen = BTreeMap::new();
    for line in etab::lines(&etab) {
        if let Some(mount) = mounts.on(&line.path) {
            seen.entry(mount.point.clone())
                .or_insert_with(|| look(&mount.point, mount));
        }
    }
    seen.into_values().collect()
}

/// Joins the good answers of mounts into one.
fn joined(answers: Vec<Answer>, good: &str) -> Vec<Answer> {
    let (fine, mut rest): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|a| a.state == State::Good);
    if !fine.is_empty() {
        let all: Vec<_> = fine.into_iter().map(|a| a.says).collect();
        rest.push(Answer::good(format!("{good}: {}", all.join(", "))));
    }
    rest
}

/// File systems that are mounted without barriers.
pub const BARRIER: Rule = Rule {
    name: "barrier",
    why: "Without barriers the file system does not make disks write their volatile caches. After a loss of power, acknowledged writes \
          are lost, and the file system may be damaged, unless these caches survive it.",
    source: "ext4(5), barrier; btrfs(5), nobarrier",
    look: |host| {
        let look = |point: &str, mount: &nfscope_source::mounts::Mount| {
            let off = ["nobarrier", "barrier=0"]
                .into_iter()
                .find(|o| mount.flag(o));
            match off {
                // ext4(5) and btrfs(5) allow it for write caches that survive a loss of power. The kernel does not know whether they do.
                Some(option) => Answer::consider(
                    format!("{point} ({}) is mounted with {option}", mount.fs),
                    "unless the write cache of each disk below survives a loss of power (battery, capacitors): remove the option from \
                     /etc/fstab, and mount it again",
                ),
                None => Answer::good(point),
            }
        };
        joined(mounts(host, look), "no mount without barriers")
    },
};

/// Access times that are updated at every READ.
pub const ATIME: Rule = Rule {
    name: "atime",
    why: "Each READ changes the file's time of access, so that reading writes. With relatime that happens once a day and file.",
    source: "mount(8), strictatime and relatime; zfsprops(7), atime and relatime",
    look: |host| {
        let look = |point: &str, mount: &nfscope_source::mounts::Mount| match [
            "noatime", "relatime", "ro",
        ]
        .into_iter()
        .find(|o| mount.flag(o))
        {
            Some(option) => Answer::good(format!("{point} {option}")),
            None => Answer::consider(
                format!(
                    "{point} ({}) writes the time of access at each reading",
                    mount.fs
                ),
                match mount.fs.as_str() {
                    "zfs" => format!("zfs set relatime=on {}", mount.source),
                    _ => format!("mount -o remount,relatime {point}, and the same in /etc/fstab"),
                },
            ),
        };
        joined(mounts(host, look), "no time of access at each reading")
    },
};
