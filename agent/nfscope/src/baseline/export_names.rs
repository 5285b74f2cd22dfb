//! Pseudonyms for `nfscope baseline export --anonymise`, for the labels that contain names.
//!
//! Every other label has a value of a fixed set. A series is left out if such a label has another value, or if this release does not know
//! its family.

use crate::report::names::{Pseudonyms, is_word, release};
use anyhow::Context;
use nfscope_baseline::recording::{CLASSIC, Recording, SeriesKey};
use nfscope_baseline::store::Store;
use nfscope_model::family;
use std::path::Path;

/// Name of the recording in the file. The name in the store may reveal the server's owner.
const NAME: &str = "anonymous";
/// Prefix of a host's pseudonym.
const HOST: &str = "host-";

/// Replaces the names in the labels of a series. Returns false if a label has a value that no rule covers.
fn replace(names: &mut Pseudonyms, series: &mut SeriesKey) -> bool {
    let Some(info) = family::ALL.iter().find(|f| f.name == series.family) else {
        return false;
    };
    // A label that this release does not know has no rule.
    if series.labels.len() > info.labels.len() {
        return false;
    }
    let labels = info.labels.iter().zip(&mut series.labels);
    labels.into_iter().all(|(label, value)| {
        match label.name {
            "client" => *value = names.name("client-", value),
            "export" => *value = names.name("/export-", value),
            "mount" => *value = names.name("mount-", value),
            "dataset" => *value = names.name("dataset-", value),
            "volume" | "device" => *value = names.volume(value),
            // Commits of private builds identify their builder.
            "revision" => value.clear(),
            _ => return value.is_empty() || is_word(value),
        }
        true
    })
}

/// ZFS pool of a series: its volume, if the series is of a ZFS file system, or of ZFS only and therefore without a label `fs`.
fn pool(series: &SeriesKey) -> Option<&str> {
    let info = family::ALL.iter().find(|f| f.name == series.family)?;
    let value = |name: &str| {
        let at = info.labels.iter().position(|l| l.name == name)?;
        series.labels.get(at).map(String::as_str)
    };
    let volume = value("volume")?;
    matches!(value("fs"), None | Some("zfs")).then_some(volume)
}

/// Assigns pseudonyms to the names in these recordings, in order.
fn number<'a>(all: impl Iterator<Item = (&'a str, &'a [SeriesKey])> + Clone) -> Pseudonyms {
    let mut names = Pseudonyms::default();
    for (_, series) in all.clone() {
        series
            .iter()
            .filter_map(pool)
            .for_each(|p| names.add_pool(p));
    }
    for (host, series) in all {
        names.name(HOST, host);
        for one in series {
            replace(&mut names, &mut one.clone());
        }
    }
    names
}

/// Pseudonyms of a store, assigned over all its recordings, the earliest first. A name has the same one in every export of the store.
fn pseudonyms(store: &Store) -> anyhow::Result<Pseudonyms> {
    let mut all = Vec::new();
    for entry in store.list()? {
        // A damaged recording cannot be exported, so its names need no pseudonym.
        let series = store.series(&entry).unwrap_or_default();
        all.push((entry.metadata.host, series));
    }
    Ok(number(all.iter().map(|(host, s)| (host.as_str(), &s[..]))))
}

/// Returns the recording with pseudonyms, and the number of series that were left out. Equal input gives equal output.
fn anonymous(mut recording: Recording, names: &mut Pseudonyms) -> (Recording, usize) {
    let before = recording.series.len();
    recording.series.retain_mut(|s| replace(names, s));
    let kept: std::collections::HashSet<u32> = recording.series.iter().map(|s| s.id).collect();
    for window in &mut recording.windows {
        window.samples.retain(|(id, _)| kept.contains(id));
    }
    let metadata = &mut recording.metadata;
    metadata.name = NAME.to_owned();
    metadata.host = names.name(HOST, &metadata.host);
    metadata.kernel = metadata.kernel.take().map(|k| release(&k));
    metadata.agent = release(&metadata.agent);
    metadata
        .labels
        .retain(|key, value| (key.as_str(), value.as_str()) == CLASSIC);
    let lost = before - recording.series.len();
    (recording, lost)
}

/// Writes one baseline with pseudonyms to a file. Returns the number of its windows, and of the series that were left out.
///
/// # Errors
/// When there is no such baseline, when the file exists and `force` is false, or when it cannot be written.
pub(super) fn export(
    store: &Store,
    name: &str,
    file: &Path,
    force: bool,
) -> anyhow::Result<(usize, usize)> {
    let recording = store.recording(name)?;
    let (recording, lost) = anonymous(recording, &mut pseudonyms(store)?);
    let dir = tempfile::tempdir().context("no directory for temporary files (TMPDIR)")?;
    let mut between = Store::create(&dir.path().join("anonymous.db"))?;
    between.put(&recording)?;
    between.export(NAME, file, force)?;
    Ok((recording.windows.len(), lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_baseline::recording::{Metadata, RecordedWindow, Sample};
    use std::time::Duration;

    const SECRETS: [&str; 8] = [
        "nfs-payroll",
        "payroll",
        "10.9.1.2",
        "/srv/board",
        "tank/board",
        "boardpool",
        "server.example:/x",
        "6.12.57-payroll",
    ];

    fn series(id: u32, family: &family::Info, labels: &[&str]) -> SeriesKey {
        SeriesKey {
            id,
            family: family.name.to_owned(),
            labels: labels.iter().map(|l| (*l).to_owned()).collect(),
        }
    }

    fn recording() -> Recording {
        let series = vec![
            series(1, &family::CLIENT_OPS.info, &["10.9.1.2"]),
            series(2, &family::CLIENT_OPS.info, &["other"]),
            series(3, &family::EXPORT_DEVICE.info, &["/srv/board", "sda1"]),
            series(4, &family::EXPORT_DEVICE.info, &["/srv/board", "boardpool"]),
            series(
                5,
                &family::ZFS_DATASET.info,
                &["boardpool", "tank/board", "standard", "latency"],
            ),
            series(6, &family::HOST_READ_ERRORS.info, &["/srv/board"]),
            SeriesKey {
                id: 7,
                family: "nfscope_of_tomorrow".into(),
                labels: vec!["payroll".into()],
            },
        ];
        let samples = (1..=7)
            .map(|id| (id, Sample::Counter(f64::from(id))))
            .collect();
        Recording {
            metadata: Metadata {
                name: "payroll".into(),
                began_ms: 1_800_000_000_000,
                host: "nfs-payroll".into(),
                kernel: Some("6.12.57-payroll".into()),
                agent: "0.1.0 (53ef379fad77)".into(),
                interval: Duration::from_secs(10),
                labels: [("who", "payroll"), CLASSIC]
                    .map(|(k, v)| (k.to_owned(), v.to_owned()))
                    .into(),
            },
            series,
            windows: vec![RecordedWindow {
                began_ms: 1_800_000_000_000,
                length: Duration::from_secs(10),
                samples,
            }],
        }
    }

    /// Recording with the pseudonyms of a store that has no other.
    fn alone(recording: Recording) -> (Recording, usize) {
        let (host, series) = (recording.metadata.host.clone(), recording.series.clone());
        let mut names = number([(host.as_str(), &series[..])].into_iter());
        anonymous(recording, &mut names)
    }

    fn labels(recording: &Recording) -> Vec<String> {
        let all = recording.series.iter();
        all.map(|s| s.labels.join(" ")).collect()
    }

    #[test]
    fn no_name_stays_and_every_number_does() {
        let (out, lost) = alone(recording());
        let text = format!("{out:?}");
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert_eq!(
            lost, 2,
            "a table with a path, and a family of another release"
        );
        assert_eq!(
            labels(&out),
            [
                "client-1",
                "other",
                "/export-1 sda1",
                "/export-1 volume-1",
                "volume-1 dataset-1 standard latency"
            ]
        );
        let numbers: Vec<_> = out.windows[0].samples.iter().map(|(id, _)| *id).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(out.metadata.kernel.as_deref(), Some("6.12.57"));
        assert_eq!(
            (out.metadata.host.as_str(), out.metadata.agent.as_str()),
            ("host-1", "0.1.0")
        );
        assert!(out.metadata.has_few_edges() && out.metadata.labels.len() == 1);
        assert_eq!(alone(recording()).0, out, "the same each time");
    }

    /// Exports from before and after a change stay comparable by client and host.
    #[test]
    fn a_name_has_one_pseudonym_in_all_exports_of_a_store() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::create(&dir.path().join("baselines.db")).unwrap();
        let clients = |name: &str, began_ms: i64, host: &str, clients: &[&str]| {
            let mut made = recording();
            made.metadata.name = name.to_owned();
            made.metadata.began_ms = began_ms;
            made.metadata.host = host.to_owned();
            made.series = (1..)
                .zip(clients)
                .map(|(id, client)| series(id, &family::CLIENT_OPS.info, &[*client]))
                .collect();
            let known = clients.len();
            made.windows[0].samples.truncate(known);
            made
        };
        store
            .put(&clients("after", 3, "nfs1", &["c", "b", "d"]))
            .unwrap();
        store
            .put(&clients("before", 1, "nfs1", &["b", "c"]))
            .unwrap();
        store
            .put(&clients("other", 2, "nfs2", &["a", "b"]))
            .unwrap();
        let exported = |name: &str| {
            let file = dir.path().join(name);
            export(&store, name, &file, false).unwrap();
            let out = Store::read(&file).unwrap().recording(NAME).unwrap();
            (out.metadata.host.clone(), labels(&out).join(" "))
        };
        let of = |host: &str, clients: &str| (host.to_owned(), clients.to_owned());
        assert_eq!(exported("before"), of("host-1", "client-1 client-2"));
        assert_eq!(
            exported("after"),
            of("host-1", "client-2 client-1 client-4")
        );
        assert_eq!(exported("other"), of("host-2", "client-3 client-1"));
    }

    /// Before OpenZFS 2.2, the volume `all` means all pools. A pool whose name looks like a disk's is still a name, in every label.
    #[test]
    fn every_zfs_pool_has_a_pseudonym_but_all_pools_together() {
        let mut made = recording();
        made.series = vec![
            series(1, &family::EXPORT_DEVICE.info, &["/srv/board", "hdd"]),
            series(2, &family::ZFS_ZIL_COMMITS.info, &["all"]),
            series(3, &family::ZFS_TXG_SYNC.info, &["hdd"]),
            series(4, &family::LOG_SEPARATE.info, &["zfs", "sdx"]),
            series(5, &family::LOG_SEPARATE.info, &["ext4", "sdb1"]),
            series(6, &family::BLOCK_FUA.info, &["sdb"]),
        ];
        let (out, lost) = alone(made);
        assert_eq!(lost, 0);
        assert_eq!(
            labels(&out),
            [
                "/export-1 volume-1",
                "all",
                "volume-1",
                "zfs volume-2",
                "ext4 sdb1",
                "sdb"
            ]
        );
    }

    #[test]
    fn the_commit_of_a_build_is_left_out() {
        let mut made = recording();
        made.series = vec![series(
            1,
            &family::BUILD_INFO.info,
            &["0.1.0", "53ef379fad77"],
        )];
        let (out, lost) = alone(made);
        assert_eq!((lost, labels(&out)), (0, vec!["0.1.0 ".to_owned()]));
    }

    /// Labels without a rule would be exported unchanged.
    #[test]
    fn every_label_of_every_family_is_a_name_or_a_word_of_a_set() {
        let names = [
            "client", "export", "mount", "dataset", "volume", "device", "revision",
        ];
        let words = [
            "version",
            "op",
            "status",
            "stability",
            "phase",
            "upcall",
            "wait",
            "reason",
            "slots",
            "state",
            "type",
            "end",
            "pool",
            "procedure",
            "answer",
            "transport",
            "which",
            "result",
            "fs",
            "target",
            "sync",
            "logbias",
            "kind",
            "change",
            "probe",
            "stage",
            "direction",
            "source",
            "program",
            "map",
            "table",
            "part",
        ];
        for label in family::ALL.iter().flat_map(|f| f.labels) {
            assert!(
                names.contains(&label.name) || words.contains(&label.name),
                "{}",
                label.name
            );
        }
    }
}
