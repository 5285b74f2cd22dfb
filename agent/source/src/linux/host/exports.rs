//! Exported file systems, for `nfscope check`: type and volume, and the location of the log.

use crate::etab::{self, ETAB, Line};
use crate::host_table;
use crate::linux::host::device_names::DeviceNames;
use crate::linux::host::log_device::{self, Location};
use crate::linux::host::zfs_tools;
use crate::mounts::{MOUNTINFO, Mount, Mounts};
use nfscope_model::host_report::{Exported, Fact, PROPERTIES_UNKNOWN};

/// Measured parts of a log, by the file system's type and the log's location: true for all parts, and a text.
pub type Measured<'a> = &'a dyn Fn(&str, &Location) -> (bool, String);

/// All exported paths, each once.
pub fn list(measured: Measured) -> Vec<Exported> {
    let etab = host_table::read(ETAB).unwrap_or_default();
    let mounts = Mounts::read();
    let mut devices = DeviceNames::default();
    etab_paths(&etab)
        .into_iter()
        .map(|p| one(p.path, p.asynchronous, &mounts, measured, &mut devices))
        .collect()
}

fn one(
    path: String,
    lax: bool,
    mounts: &Mounts,
    measured: Measured,
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
    let log = log_device::locate(mount, &volume, devices);
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
    let (ok, measured) = measured(&mount.fs, &log);
    let (separate, log) = match log {
        Location::Separate(devices) => (Some(true), format!("on {}", devices.join(", "))),
        Location::Shared => (Some(false), "shares the file system's device".to_owned()),
        Location::None => (None, "none".to_owned()),
        Location::Unknown(why) => (None, format!("not known: {why}")),
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

/// Number of lines of the host's tables that are left out, because they do not have the tables' form; `None` without any.
pub fn left_out() -> Option<Fact> {
    let text = |path| host_table::read(path).unwrap_or_default();
    let left = left_out_of(&text(MOUNTINFO), &text(ETAB));
    let tables: Vec<_> = [MOUNTINFO, ETAB]
        .iter()
        .zip(left)
        .filter(|(_, lines)| *lines > 0)
        .map(|(table, lines)| format!("{lines} of {table}"))
        .collect();
    (!tables.is_empty()).then(|| Fact {
        name: "lines left out".into(),
        value: tables.join(", "),
        ok: false,
        fix: "look at these files: their other lines are read, and exports of these lines are not known".into(),
    })
}

fn left_out_of(mountinfo: &str, etab: &str) -> [usize; 2] {
    let mounts = Mounts::parse_mountinfo(mountinfo).iter().count();
    let of_form = |line: &&str| line.starts_with('#') || line.contains(['\t', ' ']);
    let lines = |text: &str| text.lines().filter(|l| !l.is_empty()).count();
    [
        lines(mountinfo).saturating_sub(mounts),
        lines(etab) - etab.lines().filter(of_form).count(),
    ]
}

/// A path in exportfs's table.
#[derive(Debug, PartialEq, Eq)]
pub struct EtabPath {
    /// The path.
    pub path: String,
    /// True if a client may write to it.
    pub writable: bool,
    /// True if a client may write to it, and is answered before its data is durable.
    pub asynchronous: bool,
}

/// Paths of exportfs's table, each once.
pub fn etab_paths(text: &str) -> Vec<EtabPath> {
    let mut found: Vec<EtabPath> = Vec::new();
    for Line { path, options, .. } in etab::lines(text) {
        let has = |option| options.contains(&option);
        let writable = has("rw");
        let asynchronous = writable && has("async");
        match found.iter_mut().find(|p| p.path == path) {
            Some(p) => {
                p.writable |= writable;
                p.asynchronous |= asynchronous;
            }
            None => found.push(EtabPath {
                path,
                writable,
                asynchronous,
            }),
        }
    }
    found
}

/// Volume of a mount, as the metrics name it: the block device, or the ZFS pool.
fn volume(m: &Mount, devices: &mut DeviceNames) -> String {
    match m.fs.as_str() {
        "zfs" => m.source.split('/').next().unwrap_or_default().to_owned(),
        // The mount's source is not used: it may lie in another mount namespace, or be `/dev/root`, which does not exist.
        _ if m.dev >> 20 != 0 => devices.name(m.dev),
        // The device number of a btrfs mount belongs to no device.
        _ => devices
            .of_file(&m.source)
            .unwrap_or_else(|| m.source.clone()),
    }
}

/// Effects of a dataset's properties on its log, each with a fix.
fn dataset_warnings(dataset: &str, log: &Location) -> Vec<(String, String)> {
    let properties = ["get", "-H", "-o", "property,value", "sync,logbias", dataset];
    warnings_of(&zfs_tools::answer("zfs", &properties), dataset, log)
}

/// Effects of the properties that `zfs get` prints, or the reason why they are not known.
fn warnings_of(
    answer: &Result<String, String>,
    dataset: &str,
    log: &Location,
) -> Vec<(String, String)> {
    let value = |property: &str| {
        let mut lines = answer.as_ref().map_or("", String::as_str).lines();
        lines.find_map(|l| l.strip_prefix(property)?.strip_prefix('\t'))
    };
    let (Some(sync), Some(logbias)) = (value("sync"), value("logbias")) else {
        let why = match answer {
            Err(why) => why.as_str(),
            Ok(_) => "`zfs get` does not print them",
        };
        return vec![(
            format!("{PROPERTIES_UNKNOWN}: {why}"),
            format!("see whether `zfs get sync,logbias {dataset}` and `zpool status` answer here"),
        )];
    };
    let mut warnings = Vec::new();
    if sync == "disabled" {
        warnings.push((
            "sync=disabled: writes are acknowledged without being durable".to_owned(),
            format!("zfs set sync=standard {dataset}"),
        ));
    }
    if logbias == "throughput" && matches!(log, Location::Separate(_)) {
        warnings.push((
            "logbias=throughput: data goes around the log device".to_owned(),
            format!("zfs set logbias=latency {dataset}"),
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lossless;

    /// A line with other content does not hide the other lines.
    #[test]
    fn a_line_that_is_not_of_the_form_is_left_out_alone_and_counted() {
        let etab =
            b"/a\t*(rw,sync)\n\xff\xfe\n/caf\xe9\\040x\t*(rw,sync)\n# c\n\0\n/b\t*(rw,async)\n/cut";
        let text = lossless::text(etab);
        let paths: Vec<_> = etab_paths(&text).into_iter().map(|p| p.path).collect();
        assert_eq!(paths, ["/a", "/caf\\xe9 x", "/b"]);
        let mountinfo = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 8:2 / /b r";
        assert_eq!(left_out_of(mountinfo, &text), [1, 3]);
        assert_eq!(left_out_of("", ""), [0, 0]);
    }

    /// No answer of `zfs` is not the answer that all is well.
    #[test]
    fn properties_that_zfs_does_not_print_are_not_known() {
        let log = Location::Separate(vec!["sdc".into()]);
        let texts = |answer: Result<&str, &str>| -> Vec<String> {
            let answer = answer.map(str::to_owned).map_err(str::to_owned);
            let all = warnings_of(&answer, "tank/x", &log);
            all.into_iter().map(|(text, _)| text).collect()
        };
        let none = Vec::<String>::new();
        assert_eq!(texts(Ok("sync\tstandard\nlogbias\tlatency\n")), none);
        let both = texts(Ok("sync\tdisabled\nlogbias\tthroughput\n"));
        assert!(both[0].starts_with("sync=disabled"), "{both:?}");
        assert!(both[1].starts_with("logbias=throughput"), "{both:?}");
        for answer in [
            Err("`zfs` failed (exit status: 1)"),
            Ok(""),
            Ok("sync\tstandard\n"),
        ] {
            let unknown = texts(answer);
            assert_eq!(unknown.len(), 1, "{answer:?}");
            assert!(unknown[0].starts_with(PROPERTIES_UNKNOWN), "{unknown:?}");
        }
    }

    #[test]
    fn exports_are_listed_once_and_async_ones_are_seen() {
        let etab = "/srv\t*(rw,sync,no_subtree_check)\n/srv\t10.0.0.0/8(rw,async,wdelay)\n\
                    /a\\040b\t*(rw,sync)\n# nothing\n/iso\t*(ro,async)\n";
        let all = etab_paths(etab);
        let all: Vec<_> = (all.iter())
            .map(|p| (p.path.as_str(), p.writable, p.asynchronous))
            .collect();
        assert_eq!(
            all,
            [
                ("/srv", true, true),
                ("/a b", true, false),
                ("/iso", false, false)
            ]
        );
    }
}
