//! Pseudonyms for `nfscope baseline export --anonymise`, by a list of labels that have names.
//!
//! Every other label has words of a fixed set. A series with another word in such a label is left out, as is one of a family that this
//! release does not have.

use crate::report::names::{Pseudonyms, is_word, release};
use anyhow::Context;
use nfscope_baseline::recording::{CLASSIC, Recording};
use nfscope_baseline::store::Store;
use nfscope_model::family;
use std::path::Path;

/// Name of the recording in the file: that of the store may say whose server it is.
const NAME: &str = "anonymous";

/// Returns the recording without names, and the number of series that it has lost. Equal recordings become equal ones.
fn anonymous(mut recording: Recording) -> (Recording, usize) {
    let mut names = Pseudonyms::default();
    let before = recording.series.len();
    recording.series.retain_mut(|series| {
        let Some(info) = family::ALL.iter().find(|f| f.name == series.family) else {
            return false;
        };
        let labels = info.labels.iter().zip(&mut series.labels);
        labels.into_iter().all(|(label, value)| {
            match label.name {
                "client" => *value = names.name("client-", value),
                "export" => *value = names.name("/export-", value),
                "mount" => *value = names.name("mount-", value),
                "dataset" => *value = names.name("dataset-", value),
                "volume" | "device" => *value = names.volume(value),
                _ => return value.is_empty() || is_word(value),
            }
            true
        })
    });
    let kept: std::collections::HashSet<u32> = recording.series.iter().map(|s| s.id).collect();
    for window in &mut recording.windows {
        window.samples.retain(|(id, _)| kept.contains(id));
    }
    let metadata = &mut recording.metadata;
    metadata.name = NAME.to_owned();
    metadata.host = names.name("host-", &metadata.host);
    metadata.kernel = metadata.kernel.take().map(|k| release(&k));
    metadata.agent = release(&metadata.agent);
    metadata
        .labels
        .retain(|key, value| (key.as_str(), value.as_str()) == CLASSIC);
    let lost = before - recording.series.len();
    (recording, lost)
}

/// Writes one baseline without names to a file of its own. Returns its windows, and how many series it has lost.
///
/// # Errors
/// When there is no such baseline, when the file is there and `force` is not, or when it cannot be written.
pub(super) fn export(
    store: &Store,
    name: &str,
    file: &Path,
    force: bool,
) -> anyhow::Result<(usize, usize)> {
    let (recording, lost) = anonymous(store.recording(name)?);
    let dir = tempfile::tempdir().context("no directory for temporary files (TMPDIR)")?;
    let mut between = Store::create(&dir.path().join("anonymous.db"))?;
    between.put(&recording)?;
    between.export(NAME, file, force)?;
    Ok((recording.windows.len(), lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_baseline::recording::{Metadata, RecordedWindow, Sample, SeriesKey};
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

    #[test]
    fn no_name_stays_and_every_number_does() {
        let (out, lost) = anonymous(recording());
        let text = format!("{out:?}");
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert_eq!(
            lost, 2,
            "a table with a path, and a family of another release"
        );
        let labels: Vec<_> = out.series.iter().map(|s| s.labels.join(" ")).collect();
        assert_eq!(
            labels,
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
        assert_eq!(anonymous(recording()).0, out, "the same each time");
    }

    /// A label without a rule would be printed as it is.
    #[test]
    fn every_label_of_every_family_is_a_name_or_a_word_of_a_set() {
        let names = ["client", "export", "mount", "dataset", "volume", "device"];
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
            "revision",
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
