//! What requests wait for around their operations: a thread, a processor, somebody to take the reply.

use crate::attribution::{FEW, IDLE, LONG, Queue};
use crate::breakdown::{mean, part, sum};
use crate::rules::{Case, Judged, NO_PHASES, evidence, percent};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::{many, seconds};

/// A pool that has no free thread for less of the time is not too small.
const SATURATED: f64 = 0.2;

pub fn threads(case: &Case) -> Judged {
    let a = case.a;
    let waited = case.c.queue.threads;
    let share = case.share(waited);
    let saturated = a.saturated.unwrap_or(0.0);
    let each = mean(a.queue, a.requests);
    let mut proof = vec![
        evidence(
            &f::RPC_PHASE.info,
            each,
            Some(LONG),
            format!(
                "a request waits {} for a thread on average{}",
                seconds(each),
                a.queue_p99
                    .map(|p| format!(", p99 {}", seconds(p)))
                    .unwrap_or_default()
            ),
        ),
        evidence(
            &f::THREADS_SATURATED.info,
            saturated,
            Some(SATURATED),
            format!(
                "of {} none was free for {} of the time",
                many(a.threads, "thread"),
                percent(saturated)
            ),
        ),
    ];
    proof.extend(idle(case));
    // By Little's law: requests that were in a thread or waited for one, at a time.
    let wanted = a.rate(a.occupied() + a.queue);
    let mut advice = vec![format!(
        "more threads: {wanted:.0} requests at a time are in a thread or wait for one. In /etc/nfs.conf: [nfsd] \
         threads={}, then systemctl restart nfs-server; at once: rpc.nfsd {0}",
        (wanted * 1.25).ceil().max(a.threads + 1.0)
    )];
    if let Some(limit) = a.thread_limit.filter(|l| *l > a.threads) {
        advice.push(format!(
            "the pools may grow to {limit} by themselves, but not fast enough: raise their minimum (nfsdctl threads -m)"
        ));
    }
    Judged {
        kind: Kind::ThreadStarvation,
        share: a.saturated.map(|_| share),
        holds: a.requests >= FEW && saturated >= SATURATED && each >= LONG,
        worst: Severity::Critical,
        summary: format!(
            "{} of the time that requests spend in the server goes into waiting for one of {}, and these wait for \
             nothing slow",
            percent(share),
            many(a.threads, "thread")
        ),
        evidence: proof,
        advice,
        otherwise: match (a.saturated, blame(&case.c.queue)) {
            (None, _) => "busy threads cannot be counted here; `nfscope check` says why".into(),
            (_, Some(what)) if case.share(a.queue) >= 0.1 => format!(
                "requests wait for a thread for {} of residence, but because {what}: more threads would not help",
                percent(case.share(a.queue))
            ),
            _ => format!("no thread was free for {} of the time", percent(saturated)),
        },
    }
}

/// What else keeps threads, where that is most of the queue.
fn blame(q: &Queue) -> Option<&'static str> {
    let all = [
        (q.log, "they wait for the log"),
        (q.disk, "they wait for disks"),
        (q.lock, "they wait for each other"),
        (q.processors, "they do not get to run"),
        (q.reply, "clients do not take replies"),
    ];
    let (most, what) = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    (most > q.threads).then_some(what)
}

fn idle(case: &Case) -> Option<Evidence> {
    let (idle, n) = (case.a.idle?, case.a.processors?);
    let text = format!(
        "{} of the time of {} was idle",
        percent(idle),
        many(n, "processor")
    );
    Some(evidence(&f::CPU_IDLE.info, idle, Some(IDLE), text))
}

pub fn processors(case: &Case) -> Judged {
    let a = case.a;
    let waited = case.c.runqueue + case.c.queue.processors;
    let share = case.share(waited);
    let told = a.phases.is_some_and(|p| p.runqueue.is_some());
    let mut proof: Vec<_> = idle(case).into_iter().collect();
    if case.c.runqueue > 0.0 {
        let inside = case.share(case.c.runqueue);
        let text = format!(
            "operations wait for a processor for {} of residence",
            percent(inside)
        );
        proof.push(evidence(&f::OP_PHASE.info, inside, None, text));
    }
    let queued = case.share(case.c.queue.processors);
    if queued >= 0.01 {
        let text = format!(
            "{} of residence is requests that wait for a thread which does not get to run",
            percent(queued)
        );
        proof.push(evidence(&f::RPC_PHASE.info, queued, None, text));
    }
    Judged {
        kind: Kind::CpuSaturation,
        share: told.then_some(share),
        holds: a.requests >= FEW && waited > 0.0,
        worst: Severity::Critical,
        summary: format!(
            "{} of the time that requests spend in the server goes into waiting for a processor",
            percent(share)
        ),
        evidence: proof,
        advice: vec![
            "see what else runs here (top, pidstat) and move it, or give it less priority".into(),
            "more or faster processors; in a virtual machine look at steal time".into(),
            "more nfsd threads would not help: they would wait for the same processors".into(),
        ],
        otherwise: match (a.phases, a.idle) {
            (None, _) => NO_PHASES.into(),
            (_, Some(idle)) => format!(
                "operations wait for a processor for {} of residence; {} of the processors' time was idle",
                percent(case.share(a.phases.and_then(|p| p.runqueue).unwrap_or(0.0))),
                percent(idle)
            ),
            _ => "waits for a processor are short".into(),
        },
    }
}

pub fn reply(case: &Case) -> Judged {
    let a = case.a;
    let share = case.share(case.c.reply + case.c.queue.reply);
    let each = mean(a.reply, a.requests);
    let text = format!(
        "handing a reply over takes {} on average: the socket's buffer is full until the client has taken more",
        seconds(each)
    );
    let mut proof = vec![evidence(&f::RPC_PHASE.info, each, Some(LONG), text)];
    if let Some((name, rtt)) = (a.clients.iter())
        .filter_map(|c| Some((&c.name, c.rtt?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
    {
        let text = format!(
            "the longest round trip is {} to {name}{}",
            seconds(rtt),
            match rtt {
                far if far >= 10e-3 => ": the network is part of it",
                _ => ": the network is near, so that the client itself is slow to read",
            }
        );
        proof.push(evidence(&f::CLIENT_RTT.info, rtt, None, text));
    }
    if let Some(c) = a.clients.first() {
        let all = sum(a.clients.iter().map(|c| c.seconds));
        let of = part(c.seconds, all);
        let text = format!("{} has {} of the operations' time", c.name, percent(of));
        proof.push(evidence(&f::CLIENT_OP_SECONDS.info, of, None, text));
    }
    Judged {
        kind: Kind::SlowReply,
        share: Some(share),
        holds: a.requests >= FEW && case.c.reply > 0.0,
        worst: Severity::Critical,
        summary: format!(
            "{} of the time that requests spend in the server goes into replies that wait for the client or the network",
            percent(share)
        ),
        evidence: proof,
        advice: vec![
            "look at the network to the clients: speed, losses (nstat TcpRetransSegs), duplex, a link that is full".into(),
            "look at the clients: one that is busy or swaps does not read".into(),
            "a server behind a long link needs larger socket buffers: net.ipv4.tcp_wmem".into(),
        ],
        otherwise: format!(
            "handing a reply over takes {} on average",
            seconds(each)
        ),
    }
}
