//! A cause that was not measured is not ruled out.
//!
//! A host whose kernel refuses a probe lacks families of metrics. Each recorded window of a server with a bottleneck is diagnosed
//! without each of its families in turn. A cause that shows in the whole window may then be unknown, and must not be ruled out. No
//! sentence may then have a number of that family, or deny what the whole window does not deny.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use lab::Kernel;
use lab::scenarios::{judged_in_every_run, recorded};
use nfscope_diagnose::evaluate;
use nfscope_model::finding::{Diagnosis, Kind, Verdict};
use nfscope_model::{Snapshot, Window};
use serde::Deserialize;
use serde_json::Value;

/// Share of each kind; `None` if the diagnosis cannot know it.
fn shares(diagnosis: &Diagnosis) -> BTreeMap<Kind, Option<f64>> {
    let found = diagnosis.findings.iter().map(|f| (f.kind, Some(f.share)));
    let others = diagnosis.ruled_out.iter().map(|r| (r.kind, r.share));
    found.chain(others).collect()
}

/// The window without a family. `json` is the window as measured, and does not change.
fn without(window: &Window, json: &mut Value, family: &str) -> Result<Window> {
    let removed = families(json)?.remove(family);
    let delta = Snapshot::deserialize(&*json)?;
    if let Some(removed) = removed {
        families(json)?.insert(family.to_owned(), removed);
    }
    Ok(Window {
        length: window.length,
        delta,
    })
}

fn families(json: &mut Value) -> Result<&mut serde_json::Map<String, Value>> {
    json["families"].as_object_mut().context("no families")
}

#[test]
fn a_cause_that_was_not_measured_is_not_ruled_out_and_nothing_is_said_of_it() -> Result<()> {
    let mut wrong = BTreeSet::new();
    for scenario in judged_in_every_run(Kernel::V6_12)? {
        let window = recorded::read(Kernel::V6_12, &scenario.name)?;
        let whole = evaluate(&window, &[]);
        let names: Vec<_> = window
            .delta
            .all()
            .map(|(name, _)| name.to_owned())
            .collect();
        let mut json = serde_json::to_value(&window.delta)?;
        for family in names {
            let partial = evaluate(&without(&window, &mut json, &family)?, &[]);
            let known = shares(&partial);
            wrong.extend(said_of_nothing(&whole, &family, &partial));
            // A server is healthy whatever this host's own mounts and the durability of its writes are like.
            let of_requests = |kind| !matches!(kind, Kind::SlowMount | Kind::UnsafeWrites);
            let had_trouble = whole.findings.iter().any(|f| of_requests(f.kind));
            if had_trouble && partial.verdict == Verdict::Healthy {
                wrong.insert(format!("healthy without {family} ({})", scenario.name));
            }
            for found in &whole.findings {
                if let Some(Some(share)) = known.get(&found.kind)
                    && *share < found.share / 2.0
                {
                    wrong.insert(format!(
                        "{} without {family} ({})",
                        found.kind.as_str(),
                        scenario.name
                    ));
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// Beginnings of sentences that deny an event.
const DENIES: [&str; 5] = ["no ", "almost no", "nothing ", "none ", "less than 1 %"];
/// Beginning of a sentence with a measured fraction of the time.
const NO_FREE_THREAD: &str = "no thread was free for";
/// Names in evidence that stand for other measurements: the requests in hand, and shares of the diagnosis.
const OF_MORE: [&str; 2] = [
    "nfscope_oldest_request_seconds",
    "nfscope_bottleneck_score_ratio",
];

/// All sentences of a diagnosis, each with its family if that is known.
fn sentences(d: &Diagnosis) -> Vec<(Option<&str>, &str)> {
    let found = d.findings.iter().flat_map(|f| {
        let evidence = f.evidence.iter();
        evidence.map(|e| (Some(e.metric.as_str()), e.text.as_str()))
    });
    let summaries = d.findings.iter().map(|f| (None, f.summary.as_str()));
    let ruled_out = d.ruled_out.iter().map(|r| (None, r.why.as_str()));
    let others = d
        .warnings
        .iter()
        .chain(&d.outside)
        .map(|s| (None, s.as_str()));
    found
        .chain(summaries)
        .chain(ruled_out)
        .chain(others)
        .collect()
}

/// Sentences about a window without a family that have numbers of it, or deny what the whole window does not deny.
fn said_of_nothing(whole: &Diagnosis, family: &str, partial: &Diagnosis) -> Vec<String> {
    let told: BTreeSet<_> = sentences(whole)
        .into_iter()
        .flat_map(|(_, s)| s.split("; "))
        .collect();
    let mut wrong = Vec::new();
    for (of, sentence) in sentences(partial) {
        if of == Some(family) && !OF_MORE.contains(&family) {
            wrong.push(format!("{family}: evidence: {sentence}"));
        }
        // Clauses have facts of their own: one may be known although another is not.
        for clause in sentence.split("; ") {
            let denies =
                DENIES.iter().any(|d| clause.starts_with(d)) && !clause.starts_with(NO_FREE_THREAD);
            let nothing = [" 0 bytes", " 0 ns", "NaN ", "inf "];
            let nothing = nothing.iter().any(|n| clause.contains(n));
            if (denies || nothing) && !told.contains(clause) {
                wrong.push(format!("{family}: {sentence}"));
            }
        }
    }
    let resources = |d: &Diagnosis| -> BTreeSet<String> {
        d.headroom.iter().map(|h| h.resource.clone()).collect()
    };
    let new = &resources(partial) - &resources(whole);
    wrong.extend(new.iter().map(|r| format!("{family}: utilization of {r}")));
    wrong
}
