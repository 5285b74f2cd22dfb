//! Exported filesystems, for `nfscope check`: what each is, where its log lies, and what can be told of it.

use crate::linux::host::log_device as log_place;
use crate::linux::host::log_device::Place;
use crate::linux::host::log_types as log_kind;
use crate::linux::host::mounts::{Mount, Mounts, unescape};
use crate::linux::host::procfs::DeviceNames;
use crate::linux::read::zfs;
use nfscope_model::ProbeStatus;
use nfscope_model::host_report::Exported;
use std::fs;

/// What exportfs(8) has told the kernel's helpers; the kernel's own list knows only what somebody has asked for.
const ETAB: &str = "/var/lib/nfs/etab";

/// Every exported path once.
pub fn list(probes: &[ProbeStatus]) -> Vec<Exported> {
    let etab = fs::read_to_string(ETAB).unwrap_or_default();
    let mounts = Mounts::read();
    let mut devices = DeviceNames::default();
    etab_paths(&etab)
        .into_iter()
        .map(|(path, lax)| one(path, lax, &mounts, probes, &mut devices))
        .collect()
}

fn one(
    path: String,
    lax: bool,
    mounts: &Mounts,
    probes: &[ProbeStatus],
    devices: &mut DeviceNames,
) -> Exported {
    let Some(mount) = mounts.on(&path) else {
        return Exported {
            path,
            ok: false,
            measured: "nothing is mounted there".into(),
            ..Exported::default()
        };
    };
    let volume = volume(mount, devices);
    let log = log_place::of(mount, &volume, devices);
    let mut warnings = match mount.fs.as_str() {
        "zfs" => dataset_warnings(&mount.source, &log),
        _ => Vec::new(),
    };
    if lax {
        warnings.push((
            "exported async: writes are acknowledged before they are durable, whatever the log does".into(),
            format!("export {path} with the option sync"),
        ));
    }
    let (ok, measured) = measured(&mount.fs, &log, probes);
    let (separate, log) = match log {
        Place::Separate(devices) => (Some(true), format!("on {}", devices.join(", "))),
        Place::Shared => (Some(false), "shares the filesystem's device".to_owned()),
        Place::None => (None, "none".to_owned()),
        Place::Unknown(why) => (None, format!("not known: {why}")),
    };
    let (texts, fixes): (Vec<_>, Vec<_>) = warnings.into_iter().unzip();
    Exported {
        path,
        fs: mount.fs.clone(),
        volume,
        log,
        separate,
        ok: ok && texts.is_empty(),
        measured,
        warnings: texts,
        fix: fixes.join("; "),
    }
}

/// Paths of exportfs's table (exports(5), one line for each client), and whether one of them is exported async.
fn etab_paths(text: &str) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let Some((path, client)) = line.split_once(['\t', ' ']) else {
            continue;
        };
        let options = client.split_once('(').map_or("", |(_, o)| o);
        let lax = options
            .trim_end_matches(')')
            .split(',')
            .any(|o| o == "async");
        let path = unescape(path);
        match found.iter_mut().find(|(p, _)| *p == path) {
            Some((_, l)) => *l |= lax,
            None => found.push((path, lax)),
        }
    }
    found
}

/// As the metrics name it: the block device, or the ZFS pool.
fn volume(m: &Mount, devices: &mut DeviceNames) -> String {
    match m.fs.as_str() {
        "zfs" => m.source.split('/').next().unwrap_or_default().to_owned(),
        // Not the source: it may lie in another mount namespace, or be `/dev/root`, which nothing has.
        _ if m.dev >> 20 != 0 => devices.name(m.dev),
        // The mount of a btrfs has a number that is no device's.
        _ => devices
            .of_file(&m.source)
            .unwrap_or_else(|| m.source.clone()),
    }
}

/// What a dataset's properties do to its log, and the fix.
fn dataset_warnings(dataset: &str, log: &Place) -> Vec<(String, String)> {
    let properties = ["get", "-H", "-o", "property,value", "sync,logbias", dataset];
    let text = zfs::ask("zfs", &properties).unwrap_or_default();
    let is = |property: &str, value: &str| {
        text.lines()
            .any(|l| l.split_once('\t') == Some((property, value)))
    };
    let mut warnings = Vec::new();
    if is("sync", "disabled") {
        warnings.push((
            "sync=disabled: writes are acknowledged without being durable".to_owned(),
            format!("zfs set sync=standard {dataset}"),
        ));
    }
    if is("logbias", "throughput") && matches!(log, Place::Separate(_)) {
        warnings.push((
            "logbias=throughput: data goes around the log device".to_owned(),
            format!("zfs set logbias=latency {dataset}"),
        ));
    }
    warnings
}

/// What the probes tell of such a filesystem's log here.
fn measured(fs: &str, log: &Place, probes: &[ProbeStatus]) -> (bool, String) {
    let (word, figures) = match (log_kind::of_type(fs), fs) {
        (Some(kind), _) => (kind.probe, kind.figures()),
        (None, "zfs") => ("zfs", log_kind::ALL_FIGURES),
        (None, "tmpfs" | "ramfs") => {
            return (true, "nothing to wait for: it lives in memory".into());
        }
        _ => {
            let why = "no log waits: they count as disk or lock";
            return (false, why.into());
        }
    };
    if *log == Place::None {
        return (true, "no log waits: a sync write waits for its disk".into());
    }
    let of_it: Vec<_> = probes.iter().filter(|p| p.probe == word).collect();
    match (
        of_it.iter().filter(|p| p.state.measures()).count(),
        of_it.len(),
    ) {
        (0, _) => (
            false,
            format!("its log is not measured: see probe {word} below"),
        ),
        (n, all) if n < all => (false, format!("a part: see probe {word} below")),
        _ => (true, format!("{figures}; the log's part of each operation")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::ProbeState;

    #[test]
    fn what_is_measured_of_a_log_is_what_its_probe_tells() {
        let programs = |probe: &str, states: &[ProbeState]| -> Vec<_> {
            let program = |&state| ProbeStatus {
                probe: probe.into(),
                program: String::new(),
                hook: String::new(),
                gives: String::new(),
                required: false,
                state,
                reason: String::new(),
                fix: String::new(),
            };
            states.iter().map(program).collect()
        };
        use ProbeState::{Attached, Fallback, Unsupported};
        let says = |fs, log, probe, states: &[_]| measured(fs, &log, &programs(probe, states));
        let all = "log waits, commits and bytes; the log's part of each operation";
        for (fs, probe) in [("ext4", "jbd2"), ("ext3", "jbd2"), ("zfs", "zfs")] {
            let up = says(fs, Place::Shared, probe, &[Attached, Fallback]);
            assert_eq!(up, (true, all.into()), "{fs}");
        }
        let (ok, btrfs) = says("btrfs", Place::Shared, "btrfs", &[Attached]);
        assert!(
            ok && btrfs.starts_with("log waits and commits; "),
            "{btrfs}"
        );
        let part = says("xfs", Place::Shared, "xfs", &[Attached, Unsupported]);
        assert_eq!(part, (false, "a part: see probe xfs below".into()));
        let none = says("xfs", Place::Shared, "xfs", &[Unsupported]);
        assert!(!none.0 && none.1.contains("not measured"), "{}", none.1);
        let (ok, _) = says("ext4", Place::None, "jbd2", &[]);
        assert!(ok, "without a log there is nothing to wait for");
    }

    #[test]
    fn exports_are_listed_once_and_async_ones_are_seen() {
        let etab = "/srv\t*(rw,sync,no_subtree_check)\n/srv\t10.0.0.0/8(ro,async,wdelay)\n\
                    /a\\040b\t*(rw,sync)\n# nothing\n";
        assert_eq!(
            etab_paths(etab),
            [("/srv".to_owned(), true), ("/a b".to_owned(), false)]
        );
    }
}
