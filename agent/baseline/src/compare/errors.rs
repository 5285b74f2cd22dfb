//! Errors, calls without a proper answer and replays.

use crate::compare::labels::operation;
use crate::compare::result::{Caveat, Subject};
use crate::series::SeriesSet;
use nfscope_model::family as f;
use nfscope_text::units::{many, percent};
use std::collections::BTreeMap;

/// Statuses that are answers, or ask the client to wait: a file that does not exist, or exists already, is not a failure of the server.
const ANSWERS: [&str; 8] = [
    "noent", "exist", "same", "not_same", "notempty", "denied", "delay", "jukebox",
];

/// Most operations whose failures per second are compared, too: each additional comparison weakens all tests. The share that failed is
/// compared for every operation.
pub(super) const WITH_RATE: usize = 4;

/// Most operations whose failures have a caveat each; another caveat has the number of the others.
const MAX_CAVEATS: usize = 4;

/// Least share of failures, and least difference between both sides, from which on durations of an operation are not those of the same
/// work.
const MATTERS: f64 = 0.01;

fn is_failure([_, _, status]: [&str; 3]) -> bool {
    !ANSWERS.contains(&status)
}

/// Per window: operations that failed, and all of them; `None` if the operation was not timed. An operation that never failed has no series
/// of errors.
pub(super) fn of(c: &SeriesSet, version: &str, op: &str) -> Option<(Vec<f64>, Vec<f64>)> {
    let all = c
        .histograms(&f::OP_DURATION, |l| l == [version, op])?
        .counts;
    let failed = c.numbers(&f::OP_ERRORS, |l| l[..2] == [version, op] && is_failure(l));
    let failed = failed.unwrap_or_else(|| vec![0.0; all.len()]);
    Some((failed, all))
}

/// Per window: calls without a proper answer for this reason, and these with all requests that were timed.
pub(super) fn dropped(c: &SeriesSet, reason: &str) -> Option<(Vec<f64>, Vec<f64>)> {
    let dropped = unless_unmeasured(c, c.numbers(&f::RPC_DROPPED, |[r]| r == reason))?;
    let all = requests(c)?.into_iter().zip(&dropped).map(|(a, d)| a + d);
    let all = all.collect();
    Some((dropped, all))
}

/// Per window: calls that clients had retransmitted and that the server answered from its cache, and all requests.
pub(super) fn replays(c: &SeriesSet) -> Option<(Vec<f64>, Vec<f64>)> {
    let replays = unless_unmeasured(c, c.numbers(&f::REPLY_CACHE, |[r]| r == "hit"))?;
    Some((replays, requests(c)?))
}

fn requests(c: &SeriesSet) -> Option<Vec<f64>> {
    Some(c.histograms(&f::RPC_DURATION, |_| true)?.counts)
}

/// A missing series counts as zero if requests were timed.
fn unless_unmeasured(c: &SeriesSet, numbers: Option<Vec<f64>>) -> Option<Vec<f64>> {
    let timed = !c.labels(&f::RPC_DURATION).is_empty();
    numbers.or_else(|| timed.then(|| vec![0.0; c.lengths.len()]))
}

/// Subjects that failed in any of these recordings, the most frequent first.
pub(super) fn subjects(all: &[&SeriesSet]) -> Vec<Subject> {
    let mut failed: BTreeMap<[String; 2], f64> = BTreeMap::new();
    let mut dropped: BTreeMap<String, f64> = BTreeMap::new();
    let mut replays = 0.0;
    for c in all {
        for (labels, n) in c.sums(&f::OP_ERRORS) {
            if is_failure(labels) && n > 0.0 {
                let key = [labels[0].to_owned(), labels[1].to_owned()];
                *failed.entry(key).or_default() += n;
            }
        }
        for ([reason], n) in c.sums(&f::RPC_DROPPED) {
            if n > 0.0 {
                *dropped.entry(reason.to_owned()).or_default() += n;
            }
        }
        replays += c.total(&f::REPLY_CACHE, |[r]| r == "hit");
    }
    let mut failed: Vec<_> = failed.into_iter().collect();
    failed.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut subjects: Vec<_> = failed
        .into_iter()
        .map(|([version, op], _)| Subject::Errors { version, op })
        .collect();
    subjects.extend(
        dropped
            .into_keys()
            .map(|reason| Subject::Dropped { reason }),
    );
    if replays > 0.0 {
        subjects.push(Subject::Replays);
    }
    subjects
}

/// Returns true if the subject is the failures of an operation.
pub(super) fn is_of_operation(subject: &Subject) -> bool {
    matches!(subject, Subject::Errors { .. })
}

/// Share of an operation that failed.
pub(super) fn share(c: &SeriesSet, version: &str, op: &str) -> f64 {
    of(c, version, op).map_or(0.0, |(failed, all)| {
        failed.iter().sum::<f64>() / all.iter().sum::<f64>().max(1.0)
    })
}

/// Share of all operations of these versions that failed.
pub fn share_of_all(c: &SeriesSet, version: Option<&str>) -> f64 {
    let of = |v: &str| version.is_none_or(|wanted| wanted == v);
    let failed = c.total(&f::OP_ERRORS, |l| of(l[0]) && is_failure(l));
    let all = c.histograms(&f::OP_DURATION, |[v, _]| of(v));
    failed / all.map_or(1.0, |s| s.count()).max(1.0)
}

/// Effect of failures on the meaning of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failures {
    /// Failures are as many as before, or hardly any.
    Same,
    /// More failures: shorter durations are no better.
    More,
    /// Fewer failures: longer durations are no worse.
    Fewer,
}

/// Compares shares of failures.
pub(super) fn failures(before: f64, after: f64) -> Failures {
    match after - before {
        d if d > MATTERS => Failures::More,
        d if d < -MATTERS => Failures::Fewer,
        _ => Failures::Same,
    }
}

/// Caveats about operations of which a relevant share failed: their durations include the failures.
pub(super) fn caveats(before: &SeriesSet, after: &SeriesSet, say: &mut impl FnMut(Caveat)) {
    let mut told = 0;
    for subject in subjects(&[before, after]) {
        let Subject::Errors { version, op } = subject else {
            continue;
        };
        let [b, a] = [before, after].map(|c| share(c, &version, &op));
        if b.max(a) <= MATTERS {
            continue;
        }
        told += 1;
        if told <= MAX_CAVEATS {
            let statuses: Vec<_> = statuses(&[before, after], &version, &op);
            say(Caveat {
                kind: "errors",
                text: format!(
                    "{} of {} failed before, {} after ({}). Its durations include the failures",
                    percent(b),
                    operation(&version, &op),
                    percent(a),
                    statuses.join(", ")
                ),
            });
        }
    }
    if told > MAX_CAVEATS {
        say(Caveat {
            kind: "errors",
            text: format!(
                "more than {} of {} failed, too. Their durations include the failures",
                percent(MATTERS),
                many((told - MAX_CAVEATS) as f64, "more operation")
            ),
        });
    }
}

/// Statuses of an operation's failures, the most frequent first.
fn statuses(all: &[&SeriesSet], version: &str, op: &str) -> Vec<String> {
    let mut by_status: BTreeMap<&str, f64> = BTreeMap::new();
    for c in all {
        for (labels, n) in c.sums(&f::OP_ERRORS) {
            if labels[..2] == [version, op] && is_failure(labels) && n > 0.0 {
                *by_status.entry(labels[2]).or_default() += n;
            }
        }
    }
    let mut all: Vec<_> = by_status.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.into_iter()
        .take(3)
        .map(|(status, _)| status.to_owned())
        .collect()
}
