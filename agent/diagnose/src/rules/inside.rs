//! What operations wait for inside a thread: the log, disks, locks.

use crate::attribution::{FEW, LONG, SLOW, disk_wait, lock_wait, slow_log, slowest_disk};
use crate::breakdown::{Log, mean, part};
use crate::rules::{Case, Judged, NO_PHASES, evidence, percent};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::seconds;

/// What a thread's wait for something slow keeps from the requests behind it.
fn queued(case: &Case, behind: f64, what: &str) -> Option<Evidence> {
    let share = case.share(behind);
    (share >= 0.01).then(|| {
        let text = format!(
            "{} of residence is requests that wait for a thread while the threads wait for {what}",
            percent(share)
        );
        evidence(&f::RPC_PHASE.info, share, None, text)
    })
}

fn place(log: &Log) -> &'static str {
    match log.separate {
        Some(true) => " (on a device of its own)",
        Some(false) => " (beside the data)",
        None => "",
    }
}

pub fn log(case: &Case) -> Judged {
    let a = case.a;
    let told = a.phases.is_some_and(|p| p.log.is_some());
    let slow = slow_log(a);
    let charged = case.c.log + case.c.queue.log;
    let share = case.share(charged);
    let mut proof = Vec::new();
    let mut advice = Vec::new();
    if let Some(log) = slow {
        let each = log.waits.mean().unwrap_or(0.0);
        let p99 = log.waits.quantile(0.99).unwrap_or(0.0);
        proof.push(evidence(
            &f::LOG_WAIT.info,
            each,
            Some(SLOW),
            format!(
                "a wait for the log of {} on {}{} takes {} on average, p99 {}; {} or more is slow",
                log.fs,
                log.volume,
                place(log),
                seconds(each),
                seconds(p99),
                seconds(SLOW)
            ),
        ));
        if let Some((op, spent)) = a.most(|p| p.log.unwrap_or(0.0)) {
            let share = part(spent, op.seconds);
            let text = format!(
                "{} over {} takes {} on average, {} of it for the log",
                op.op.to_uppercase(),
                op.version,
                seconds(mean(op.seconds, op.count)),
                percent(share)
            );
            proof.push(evidence(&f::OP_PHASE.info, share, None, text));
        }
        proof.extend(queued(case, case.c.queue.log, "the log"));
        advice = remedies(case, log);
    }
    Judged {
        kind: Kind::SlowIntentLog,
        share: told.then_some(share),
        holds: slow.is_some(),
        worst: Severity::Critical,
        summary: format!(
            "{} of the time that requests spend in the server goes into waiting for the log",
            percent(share)
        ),
        evidence: proof,
        advice,
        otherwise: match (told, slow, a.logs.first()) {
            (false, _, _) if a.phases.is_none() => NO_PHASES.into(),
            (false, _, _) => {
                "waits for the log are not told apart here; `nfscope check` says why".into()
            }
            (_, Some(_), _) => format!("waits for the log are {} of residence", percent(share)),
            (_, None, Some(l)) if l.waits.count() as f64 >= FEW => format!(
                "a wait for the log takes {} on average",
                seconds(l.waits.mean().unwrap_or(0.0))
            ),
            _ => "next to nothing waited for a log".into(),
        },
    }
}

fn remedies(case: &Case, log: &Log) -> Vec<String> {
    let own = match log.fs.as_str() {
        "zfs" => format!(
            "give the pool a log device: zpool add {} log mirror DEVICE DEVICE (SSDs whose cache survives a power failure)",
            log.volume
        ),
        "xfs" => "put the XFS log on a device of its own: mkfs.xfs -l logdev=DEVICE, mount -o logdev=DEVICE (an SSD whose \
                  cache survives a power failure)"
            .into(),
        "btrfs" => "btrfs keeps its log beside the data: put the whole filesystem on faster devices".into(),
        _ => "put the journal on a device of its own: mke2fs -O journal_dev DEVICE, tune2fs -J device=DEVICE (an SSD whose \
              cache survives a power failure)"
            .into(),
    };
    let mut out = vec![match log.separate {
        Some(true) => "the log's own device is the slow part: look at its panel among the disks, and take one whose cache \
                       survives a power failure (a flush then costs nothing)"
            .into(),
        _ => own,
    }];
    let (past, all) = case.a.past_log;
    if log.fs == "zfs" && log.separate == Some(true) && part(past, all) > 0.1 {
        out.push(format!(
            "{} of what is committed goes past the log device: zfs set logbias=latency on the dataset",
            percent(part(past, all))
        ));
    }
    out.push("have clients make more durable at a time: larger writes, fewer fsyncs".into());
    out.push("more nfsd threads would not help: they would wait for the same log".into());
    out
}

pub fn disk(case: &Case) -> Judged {
    let a = case.a;
    let wait = disk_wait(a);
    let share = case.share(case.c.disk + case.c.queue.disk);
    let holds = case.c.disk > 0.0;
    let mut proof = Vec::new();
    if let (true, Some((op, each))) = (holds, wait) {
        let text = format!(
            "one {} over {} waits {} for disks on average; {} or more is slow",
            op.op.to_uppercase(),
            op.version,
            seconds(each),
            seconds(SLOW)
        );
        proof.push(evidence(&f::OP_PHASE.info, each, Some(SLOW), text));
        if let Some((d, m)) = slowest_disk(a) {
            let text = format!("a {} of {} takes {} on average", d.op, d.device, seconds(m));
            proof.push(evidence(&f::BLOCK_DEVICE.info, m, None, text));
        }
        proof.extend(queued(case, case.c.queue.disk, "disks"));
    }
    Judged {
        kind: Kind::SlowDisk,
        share: a.phases.map(|_| share),
        holds,
        worst: Severity::Critical,
        summary: format!(
            "{} of the time that requests spend in the server goes into waiting for disks",
            percent(share)
        ),
        evidence: proof,
        advice: vec![
            "for reads: more memory for the page cache (or ARC), a read cache, faster disks".into(),
            "for writes: look which device is slow among the disks, and whether something else uses it".into(),
            "more nfsd threads would not make the disks faster; they help only where many disks share the work".into(),
        ],
        otherwise: match (a.phases, wait) {
            (None, _) => NO_PHASES.into(),
            (_, Some((op, each))) => format!(
                "one {} waits {} for disks on average",
                op.op.to_uppercase(),
                seconds(each)
            ),
            (_, None) => "no operation waited for disks".into(),
        },
    }
}

pub fn lock(case: &Case) -> Judged {
    let a = case.a;
    let most = lock_wait(a);
    let share = case.share(case.c.lock + case.c.queue.lock);
    let mut proof = Vec::new();
    if let Some((op, each)) = most {
        let text = format!(
            "one {} over {} sleeps {} on average for something that is neither log nor disk, {} of its time",
            op.op.to_uppercase(),
            op.version,
            seconds(each),
            percent(part(op.phases.lock, op.seconds))
        );
        proof.push(evidence(&f::OP_PHASE.info, each, Some(LONG), text));
        proof.extend(queued(case, case.c.queue.lock, "each other"));
    }
    let mut advice = vec![
        "see which operations and which files: nfscope slow; changes in one directory, and writes to one file, go one after the other"
            .to_owned(),
        "spread what is changed at once over more directories or files".into(),
    ];
    if case.c.log > 0.0 {
        advice.insert(
            0,
            "who holds such a lock may himself wait for the slow log: make the log faster first"
                .into(),
        );
    }
    Judged {
        kind: Kind::LockContention,
        share: a.phases.map(|_| share),
        holds: case.c.lock > 0.0,
        worst: Severity::Critical,
        summary: format!(
            "{} of the time that requests spend in the server goes into waiting for each other",
            percent(share)
        ),
        evidence: proof,
        advice,
        otherwise: match a.phases {
            None => NO_PHASES.into(),
            Some(p) => format!(
                "waits for each other are {} of residence{}",
                percent(case.share(p.lock)),
                most.map_or(String::new(), |(op, each)| format!(
                    ", {} for each {}",
                    seconds(each),
                    op.op.to_uppercase()
                ))
            ),
        },
    }
}
