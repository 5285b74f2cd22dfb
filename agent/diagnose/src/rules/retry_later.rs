//! `retry_later`: operations are answered with NFS4ERR_DELAY or NFS3ERR_JUKEBOX. Their clients wait and ask again. That time passes
//! outside the server and is in no phase, so that a client that is put off for ever looks like an idle one.

use crate::breakdown::{Breakdown, part, sum};
use crate::put_off::PutOff;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::rules::recall_evidence;
use crate::thresholds::{BEGIN_SHARE, END_SHARE, FELT_SECONDS, MIN_PUT_OFF};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::seconds;

/// What a Linux client waits at least before it asks again: NFS4_POLL_RETRY_MIN (fs/nfs/nfs4proc.c), which doubles with each
/// answer up to 15 s, and NFS_JUKEBOX_RETRY_TIME (include/linux/nfs_fs.h).
const DELAY_SECONDS: f64 = 0.1;
const JUKEBOX_SECONDS: f64 = 5.0;
/// The evidence names so many operations.
const NAMED: usize = 3;

/// NFSv3, whose clients wait longer.
fn is_jukebox(p: &PutOff) -> bool {
    p.version == "3"
}

/// The operation is answered in no other way: somebody asks again and again. Once that is known, one answer is enough, because a
/// client asks ever more seldom.
fn always(p: &PutOff, active: bool) -> bool {
    p.count >= if active { 1.0 } else { MIN_PUT_OFF } && p.count >= p.of
}

/// What Linux clients have waited outside the server, at least.
fn waited(p: &PutOff) -> f64 {
    p.count
        * if is_jukebox(p) {
            JUKEBOX_SECONDS
        } else {
            DELAY_SECONDS
        }
}

/// The same where a client that asks again and again is taken to wait all the time.
fn lost(b: &Breakdown, p: &PutOff, active: bool) -> f64 {
    match always(p, active) {
        true => waited(p).max(b.length),
        false => waited(p),
    }
}

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let active = context.active.contains(&Kind::RetryLater);
    let mut all: Vec<_> = (b.put_off.iter())
        .map(|p| (p, lost(b, p, active)))
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let lost = sum(all.iter().map(|(_, lost)| *lost));
    let at_least = sum(all.iter().map(|(p, _)| waited(p)));
    let share = part(lost, b.residence + lost);
    let answers = match sum(all.iter().map(|(p, _)| p.count)) {
        1.0 => "1 operation was".to_owned(),
        n => format!("{n:.0} operations were"),
    };
    let told = format!(
        "{answers} answered with the request to try again later: Linux clients wait for {} at least, outside the server",
        seconds(at_least)
    );
    let threshold = if active { END_SHARE } else { BEGIN_SHARE };
    RuleResult {
        kind: Kind::RetryLater,
        share: Some(share),
        of_threads: 0.0,
        condition: share >= threshold && (active || lost >= FELT_SECONDS),
        max_severity: Severity::Critical,
        summary: told.clone(),
        evidence: [
            evidence_for(&all, active),
            b.recalls
                .as_ref()
                .map(recall_evidence::all)
                .unwrap_or_default(),
        ]
        .concat(),
        advice: advice(b.illumos),
        ruled_out_reason: match all.is_empty() {
            true => "no operation was answered with the request to try again later".into(),
            false => told,
        },
    }
}

fn advice(illumos: bool) -> Vec<String> {
    let texts = match illumos {
        true => [
            "look for a client that does not return a delegation: nfscope slow shows the paths of its files, and a client that stays silent loses it after the lease time",
            "the server answers so, too, when the file system fetches data from slower storage: check that",
        ],
        false => [
            "look for a client that does not return a delegation: /proc/fs/nfsd/clients/*/states lists who holds what, and a client that stays silent loses it after the lease time",
            "nfsd answers so, too, when rpc.mountd does not answer, without memory, and when the file system fetches data from slower storage: check those",
        ],
    };
    texts.map(str::to_owned).into()
}

fn evidence_for(all: &[(&PutOff, f64)], active: bool) -> Vec<Evidence> {
    let mut texts = Vec::new();
    for (p, _) in all.iter().take(NAMED) {
        let status = if is_jukebox(p) {
            "NFS3ERR_JUKEBOX"
        } else {
            "NFS4ERR_DELAY"
        };
        let how_many = match always(p, active) {
            true => format!("all {:.0}", p.count.max(p.of)),
            false => format!("{:.0} of {:.0}", p.count, p.of.max(p.count)),
        };
        let text = format!(
            "{how_many} {} operations over NFSv{} were answered with {status} ({})",
            p.op.to_uppercase(),
            p.version,
            percent(part(p.count, p.of.max(p.count)))
        );
        texts.push(evidence(&f::OP_ERRORS.info, p.count, None, text));
    }
    texts
}
