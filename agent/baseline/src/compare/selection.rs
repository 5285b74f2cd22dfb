//! Selects the subjects of a comparison: operations with a relevant share of the time, failures, and waits of operations.

use crate::compare::errors;
use crate::compare::labels;
use crate::compare::result::Subject;
use crate::series::SeriesSet;
use crate::workload;
use nfscope_model::{Histogram, family as f};
use nfscope_text::units::percent;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the time on both sides below which operations are left out: each additional comparison weakens all tests.
const MIN_SHARE: f64 = 0.02;

/// Most intent logs that are compared.
const MAX_LOGS: usize = 4;

pub(super) struct Subjects {
    /// Subjects in order of importance.
    pub kept: Vec<Subject>,
    pub left_out: Vec<String>,
}

pub(super) fn choose(all: &[&SeriesSet]) -> Subjects {
    let mut shares: BTreeMap<[String; 2], f64> = BTreeMap::new();
    for c in all {
        for (key, share) in of_time(c) {
            let s = shares.entry(key).or_default();
            *s = s.max(share);
        }
    }
    let mut shares: Vec<_> = shares.into_iter().collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    kept.extend(errors::subjects(all));
    let failing = workload::failing(all).into_iter();
    kept.extend(failing.map(|job| Subject::WorkloadErrors { job }));
    let parts = workload::parts(all).into_iter();
    kept.extend(parts.map(|p| Subject::Workload {
        job: p.job,
        operation: p.operation,
    }));
    for ([version, op], share) in shares {
        if share >= MIN_SHARE {
            kept.push(Subject::Op { version, op });
        } else if share > 0.0 {
            let name = labels::operation(&version, &op);
            left_out.push(format!("{name} ({})", percent(share)));
        }
    }
    let (waited, hardly) = logs(all);
    kept.extend(waited);
    left_out.extend(hardly);
    let versions: BTreeSet<String> = all.iter().flat_map(|c| versions(c)).collect();
    let requests = versions.into_iter();
    kept.extend(requests.map(|version| Subject::Requests { version }));
    kept.push(Subject::Queue);
    kept.push(Subject::SyncWrites);
    Subjects { kept, left_out }
}

/// All subjects of a recording, however small their share of the time is.
pub(super) fn every(c: &SeriesSet) -> Vec<Subject> {
    let all = [c];
    let mut kept = choose(&all).kept;
    kept.extend(
        of_time(c)
            .into_iter()
            .map(|([version, op], _)| Subject::Op { version, op }),
    );
    let logs = c.totals(&f::LOG_WAIT).into_iter();
    kept.extend(logs.map(|([fs, volume], _)| Subject::Log {
        fs: fs.to_owned(),
        volume: volume.to_owned(),
    }));
    kept.sort();
    kept.dedup();
    kept
}

/// Share of each operation in the time of all operations.
fn of_time(c: &SeriesSet) -> Vec<([String; 2], f64)> {
    let ops = c.totals(&f::OP_DURATION);
    let all: f64 = ops.iter().map(|(_, h)| h.sum).sum();
    let share = |h: &Histogram| h.sum / all.max(f64::MIN_POSITIVE);
    let ops = ops.into_iter();
    ops.map(|(labels, h)| (labels.map(str::to_owned), share(&h)))
        .collect()
}

/// Versions with a relevant share of the requests.
fn versions(c: &SeriesSet) -> Vec<String> {
    let requests = c.totals(&f::RPC_DURATION);
    let all: u64 = requests.iter().map(|(_, h)| h.count()).sum();
    let least = MIN_SHARE * all.max(1) as f64;
    let matter = requests.iter().filter(|(_, h)| h.count() as f64 >= least);
    matter.map(|([version], _)| (*version).to_owned()).collect()
}

/// Intent logs in order of the time that requests waited for them, and the names of those with hardly any waits.
fn logs(all: &[&SeriesSet]) -> (Vec<Subject>, Vec<String>) {
    let mut waited: BTreeMap<[String; 2], f64> = BTreeMap::new();
    for c in all {
        for (labels, h) in c.totals(&f::LOG_WAIT) {
            *waited.entry(labels.map(str::to_owned)).or_default() += h.sum;
        }
    }
    let all: f64 = waited.values().sum();
    let mut waited: Vec<_> = waited.into_iter().filter(|(_, s)| *s > 0.0).collect();
    waited.sort_by(|a, b| b.1.total_cmp(&a.1));
    let few = waited
        .iter()
        .take(MAX_LOGS)
        .filter(|(_, s)| *s >= MIN_SHARE * all)
        .count();
    let hardly = waited.split_off(few);
    (
        waited
            .into_iter()
            .map(|([fs, volume], _)| Subject::Log { fs, volume })
            .collect(),
        hardly
            .into_iter()
            .map(|([fs, volume], s)| format!("log of {fs} {volume} ({})", percent(s / all)))
            .collect(),
    )
}
