//! The panel of findings: their evidence, their advice, and changes with a predicted gain.

use crate::panel;
use crate::spans::{Line, Tone};
use crate::view::View;
use nfscope_model::finding::Finding;
use nfscope_text::timestamp::local;
use nfscope_text::units::percent;
use nfscope_text::wrap::wrap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::time::{Duration, SystemTime};

/// Width of a paragraph: longer lines are hard to read.
const WIDEST: usize = 120;
/// Most findings of the past.
const MOST_PAST: usize = 20;

/// Answer of `/findings`, as far as the panel shows it.
#[derive(Debug, Clone, Deserialize)]
pub struct FindingsReport {
    /// Active findings, the largest share first.
    active: Vec<Episode>,
    /// Cleared findings, the latest first.
    history: Vec<Episode>,
    /// Predicted gains, which the panel takes from the window; absent until the agent has computed them.
    #[serde(default)]
    worth: Option<IgnoredAny>,
    /// Reason why no gain is predicted.
    #[serde(default)]
    worth_unknown: Option<String>,
}

/// Time in which a finding was active.
#[derive(Debug, Clone, Deserialize)]
struct Episode {
    /// Seconds since 1970.
    began: f64,
    /// Seconds since 1970; `None` while it is active.
    ended: Option<f64>,
    worst_share: f64,
    finding: Finding,
}

/// A time in the reader's time zone; `?` for a number that is none.
fn clock(seconds: f64) -> String {
    let since = Duration::try_from_secs_f64(seconds).ok();
    let at = since.and_then(|d| SystemTime::UNIX_EPOCH.checked_add(d));
    at.map_or_else(|| "?".to_owned(), local)
}

/// Adds a paragraph.
fn say(lines: &mut Vec<Line>, width: usize, lead: &str, text: &str) {
    let mut out = String::new();
    wrap(&mut out, width.min(WIDEST), lead, text);
    lines.extend(out.lines().map(|l| Line::of(Tone::Plain, l)));
}

/// Headings, and the lines below them: a section for each active finding, then what a change would be worth, then earlier findings.
pub(super) fn sections(
    view: &View,
    report: Option<&Result<FindingsReport, String>>,
    width: usize,
) -> Vec<(Line, Vec<Line>)> {
    let head = |text: String| Line::of(Tone::Head, text);
    let report = match report {
        None => return vec![(head("FINDINGS".into()), vec![])],
        Some(Err(why)) => {
            let mut lines = Vec::new();
            say(&mut lines, width, "  ", why);
            return vec![(head("FINDINGS".into()), lines)];
        }
        Some(Ok(report)) => report,
    };
    let mut out = Vec::new();
    for episode in &report.active {
        let finding = &episode.finding;
        let title = format!(
            "{}  {}",
            finding.kind.title().to_uppercase(),
            percent(finding.share)
        );
        let mut lines = Vec::new();
        let since = format!("since {}: {}", clock(episode.began), finding.summary);
        say(&mut lines, width, "  ", &since);
        for (lead, texts) in [
            (
                "evidence",
                finding.evidence.iter().map(|e| &e.text).collect(),
            ),
            ("advice", finding.advice.iter().collect::<Vec<_>>()),
        ] {
            for (i, text) in texts.into_iter().enumerate() {
                let lead = if i == 0 { lead } else { "" };
                say(&mut lines, width, &format!("  {lead:<9} "), text);
            }
        }
        out.push((Line::of(Tone::Alarm, title), lines));
    }
    if report.active.is_empty() {
        let line = Line::of(Tone::Dim, "  no finding is active");
        out.push((head("FINDINGS".into()), vec![line]));
    } else {
        let mut lines = Vec::new();
        for change in &view.changes {
            let text = panel::change(change);
            say(&mut lines, width, "  ", &text);
        }
        if lines.is_empty() {
            let text = match (&report.worth_unknown, &report.worth) {
                (Some(why), _) => format!("no estimate: {why}"),
                (None, None) => "not computed yet".to_owned(),
                (None, Some(_)) => {
                    "no change of threads, CPUs, disks or the log is predicted to gain much"
                        .to_owned()
                }
            };
            say(&mut lines, width, "  ", &text);
        }
        out.push((head("WHAT IF (nfscope what-if)".into()), lines));
    }
    if !report.history.is_empty() {
        let mut lines = Vec::new();
        for episode in report.history.iter().take(MOST_PAST) {
            let text = format!(
                "{} to {}, up to {}: {}",
                clock(episode.began),
                episode.ended.map_or_else(String::new, clock),
                percent(episode.worst_share),
                episode.finding.summary
            );
            say(&mut lines, width, "  ", &text);
        }
        out.push((head("EARLIER".into()), lines));
    }
    out
}
