//! Device, client, figure and first action of an active finding: the labels of `nfscope_finding_info`.
//!
//! Each combination of labels is a series of its own in Prometheus. The labels are therefore made when a finding begins, and once more when
//! its operations have been counted: an episode has two combinations at most, or three if it becomes critical. Figures in them are those of
//! that time. Names of clients are in none of them: a client or the owner of a reverse zone chooses them, and a name that changes would begin
//! other series.

use crate::attribution::{slow_intent_log, slowest_disk};
use crate::breakdown::Breakdown;
use crate::talkers::Talkers;
use nfscope_model::finding::{Evidence, Finding, Kind, Severity};
use nfscope_text::console::one_line;

/// Most characters of a sentence in a label. Sentences with long paths of exports are cut.
const MOST_CHARACTERS: usize = 400;
/// Least part of the time from which on a client is a label.
const MIN_CLIENT_PART: f64 = 0.25;

/// Labels of a finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    device: String,
    client: String,
    text: String,
    action: String,
}

fn bounded(text: &str) -> String {
    let mut all: String = one_line(text).chars().take(MOST_CHARACTERS).collect();
    if text.chars().count() > MOST_CHARACTERS {
        all += "...";
    }
    all
}

/// Device, volume or pool that a finding is about.
fn device(kind: Kind, b: &Breakdown) -> Option<&str> {
    match kind {
        Kind::SlowDisk => slowest_disk(b).map(|(disk, _)| disk.device.as_str()),
        Kind::SlowIntentLog => slow_intent_log(b).map(|log| log.volume.as_str()),
        Kind::WriteThrottle => b.zfs_throttle.first().map(|pool| pool.name.as_str()),
        _ => None,
    }
}

/// Sentence with the figure of a finding, and a second one about its device if the first one does not name it. Evidence about requests in
/// hand names files, which metrics must not.
fn figure(finding: &Finding, device: &str) -> String {
    let mut evidence = finding.evidence.iter().map(|e| e.text.as_str());
    let first = evidence
        .next()
        .filter(|_| finding.kind != Kind::StuckRequests);
    let Some(first) = first else {
        return finding.summary.clone();
    };
    let named = |text: &&str| !device.is_empty() && text.contains(device);
    match evidence.find(named).filter(|_| !named(&first)) {
        Some(second) => format!("{first}; {second}"),
        None => first.to_owned(),
    }
}

impl Subject {
    /// Labels of a finding that begins.
    pub(crate) fn of(finding: &Finding, b: &Breakdown) -> Subject {
        let device = device(finding.kind, b).unwrap_or_default();
        let mut subject = Subject {
            device: bounded(device),
            client: String::new(),
            text: bounded(&figure(finding, device)),
            action: String::new(),
        };
        subject.set_action(finding);
        subject
    }

    /// Adds the client and the sentence about it.
    pub(crate) fn add(&mut self, who: &Talkers, sentence: Option<&Evidence>) {
        let client = who.client.first().filter(|c| c.share >= MIN_CLIENT_PART);
        if let Some(client) = client {
            self.client = bounded(&client.value);
        }
        if let Some(sentence) = sentence {
            self.text = format!("{}; {}", self.text, bounded(&sentence.text));
        }
    }

    /// Takes the first action of a finding.
    pub(crate) fn set_action(&mut self, finding: &Finding) {
        self.action = bounded(finding.advice.first().map_or("", String::as_str));
    }

    /// Values in the order of the family's labels.
    pub(crate) fn labels(&self, kind: Kind, severity: Severity) -> [&str; 6] {
        [
            kind.as_str(),
            severity.as_str(),
            &self.device,
            &self.client,
            &self.text,
            &self.action,
        ]
    }
}
