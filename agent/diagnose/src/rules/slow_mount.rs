//! `slow_mount`: RPCs of one of this host's own NFS mounts take long: in this client, in the network, or behind it. Only an agent that
//! probes mounts measures that.

use crate::breakdown::part;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::{MIN_COUNT, SLOW_MOUNT_SECONDS};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_model::window_mounts::WindowMount;
use nfscope_text::units::seconds;

/// Label of mounts and procedures beyond the limit of series.
const OTHER: &str = "other";

/// Time of a mount's RPCs by place, in seconds of all of them together.
#[derive(Debug, Clone, Copy)]
struct Parts {
    rpcs: f64,
    backlog: f64,
    /// Least time in the network: the time that the connection takes when nothing waits. `None` if it is not known.
    network: Option<f64>,
    /// Rest of the round trip: the server, and waits in the network.
    server: f64,
    completion: f64,
}

impl Parts {
    fn of(m: &WindowMount) -> Parts {
        let all = m.total();
        let network = m.network.map(|n| (n * all.rpcs).min(all.round_trip));
        Parts {
            rpcs: all.rpcs,
            backlog: all.backlog,
            network,
            server: all.round_trip - network.unwrap_or(0.0),
            completion: all.completion,
        }
    }

    fn total(&self) -> f64 {
        self.backlog + self.network.unwrap_or(0.0) + self.server + self.completion
    }

    fn mean(&self) -> f64 {
        part(self.total(), self.rpcs)
    }

    /// Largest part, and its place.
    fn largest(&self) -> (Where, f64) {
        let parts = [
            (Where::Server, self.server),
            (Where::Client, self.backlog + self.completion),
            (Where::Network, self.network.unwrap_or(0.0)),
        ];
        let most = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.unwrap_or((Where::Server, 0.0))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Where {
    Client,
    Network,
    Server,
}

pub fn rule(context: &Context) -> RuleResult {
    let enough = |m: &&WindowMount| m.total().rpcs >= MIN_COUNT;
    let mounts = context.breakdown.mounts.iter().filter(enough);
    let all = mounts.map(|m| (m, Parts::of(m)));
    // The slow mount in which most time is spent; if none is slow, the slowest.
    let slow = |p: &Parts| p.mean() >= SLOW_MOUNT_SECONDS;
    let rank = |p: &Parts| (slow(p), if slow(p) { p.total() } else { p.mean() });
    let worst = all.max_by(|(_, a), (_, b)| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let Some((mount, parts)) = worst else {
        let (share, why) = match context.breakdown.mounts_are_seen {
            false => (
                None,
                "RPCs of this host's own mounts are not counted (agent --client)",
            ),
            true => (Some(0.0), "no mount of this host had enough RPCs"),
        };
        return result(share, false, String::new(), why.to_owned());
    };
    if parts.total() == 0.0 {
        let why = "the times of RPCs are not measured on this host; `nfscope check` shows why";
        return result(None, false, String::new(), why.to_owned());
    }
    let (place, most) = parts.largest();
    let summary = sentence(mount, &parts);
    let share = Some(part(most, parts.total()));
    let mut found = result(share, slow(&parts), summary.clone(), summary);
    found.evidence = evidence_for(mount, &parts);
    found.advice = advice(mount, place);
    found
}

fn result(
    share: Option<f64>,
    condition: bool,
    summary: String,
    ruled_out_reason: String,
) -> RuleResult {
    RuleResult {
        kind: Kind::SlowMount,
        share,
        of_threads: 0.0,
        condition,
        max_severity: Severity::Warning,
        summary,
        evidence: Vec::new(),
        advice: Vec::new(),
        ruled_out_reason,
    }
}

/// Sentence about the parts of the time, which add up.
fn sentence(m: &WindowMount, p: &Parts) -> String {
    let each = |s: f64| seconds(part(s, p.rpcs));
    let behind = match p.network {
        Some(network) => format!(
            "the network takes {} of it, the server and queues on the way {}",
            each(network),
            each(p.server)
        ),
        None => format!("the network and the server take {} of it", each(p.server)),
    };
    let whose = match m.mount.as_str() {
        OTHER => "mounts without series of their own".to_owned(),
        mount => format!("{mount} (NFSv{})", m.version),
    };
    format!(
        "RPCs of {whose} take {} on average: {behind}, waiting in this client {}, and the rest of this client's work {}",
        seconds(p.mean()),
        each(p.backlog),
        each(p.completion)
    )
}

fn evidence_for(m: &WindowMount, p: &Parts) -> Vec<Evidence> {
    let mut all = vec![evidence(
        &f::VIEW_STAGE.info,
        p.mean(),
        Some(SLOW_MOUNT_SECONDS),
        format!(
            "{:.0} RPCs took {} on average (threshold: {})",
            p.rpcs,
            seconds(p.mean()),
            seconds(SLOW_MOUNT_SECONDS)
        ),
    )];
    let most = m
        .ops
        .iter()
        .max_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    if let Some(op) = most {
        let share = part(op.seconds(), p.total());
        let (what, has) = match op.op.as_str() {
            OTHER => ("procedures without series of their own".to_owned(), "have"),
            op => (op.to_uppercase(), "has"),
        };
        let text = format!(
            "{what} {has} {} of that time: {:.0} RPCs of {}",
            percent(share),
            op.rpcs,
            seconds(part(op.seconds(), op.rpcs))
        );
        all.push(evidence(&f::VIEW_STAGE.info, share, None, text));
    }
    let slots = m.slot_wait.filter(|s| *s > 0.0 && p.backlog > 0.0);
    if let Some(slots) = slots {
        let share = part(slots, p.backlog).min(1.0);
        let text = format!(
            "{} of the waiting in this client was for a free slot of the NFSv4 session",
            percent(share)
        );
        all.push(evidence(&f::VIEW_SLOT_WAIT.info, share, None, text));
    }
    if let Some(rtt) = m.network {
        let text = format!(
            "the lowest round-trip time of its TCP connection is {}",
            seconds(rtt)
        );
        all.push(evidence(&f::VIEW_NETWORK.info, rtt, None, text));
    }
    if m.retransmits > 0.0 {
        let text = format!("requests were sent once more: {:.0}", m.retransmits);
        all.push(evidence(
            &f::VIEW_RETRANSMITS.info,
            m.retransmits,
            None,
            text,
        ));
    }
    all
}

fn advice(m: &WindowMount, place: Where) -> Vec<String> {
    let text = match place {
        Where::Client if m.version.starts_with("4.") && m.slot_wait.is_some_and(|s| s > 0.0) => {
            "this client waits for slots of its session: raise max_session_slots of module nfs and mount anew; the server may grant fewer than are asked for"
        }
        Where::Client => {
            "this client waits before it sends: mount with nconnect=4 for more connections, and look at its CPUs and at the network's bandwidth"
        }
        Where::Network => {
            "the network's distance is most of each RPC: only fewer round trips help, so keep files open, flatten paths, and let the client cache longer (actimeo, lookupcache)"
        }
        Where::Server => {
            "run nfscope diagnose on the server: what takes long there, or in a queue on the way, has most of this time"
        }
    };
    vec![text.to_owned()]
}

#[cfg(test)]
mod tests {
    use crate::evaluate;
    use nfscope_model::finding::{Diagnosis, Kind, Verdict};
    use nfscope_model::{Histogram, Scheme, Snapshot, Window, family as f};
    use std::time::Duration;

    const MOUNT: [&str; 2] = ["10.9.0.1:/", "4.1"];

    /// A hundred WRITEs with these milliseconds of backlog, round trip and completion each.
    fn client(backlog: f64, round_trip: f64, network: Option<f64>, slots: f64) -> Diagnosis {
        client_of(MOUNT, "write", [backlog, round_trip], network, slots)
    }

    fn client_of(
        mount: [&str; 2],
        op: &str,
        [backlog, round_trip]: [f64; 2],
        network: Option<f64>,
        slots: f64,
    ) -> Diagnosis {
        let mut delta = Snapshot::default();
        let op = [mount[0], mount[1], op];
        delta.counter(&f::VIEW_RPCS, op, 100.0);
        for (stage, ms) in [
            ("backlog", backlog),
            ("round_trip", round_trip),
            ("completion", 0.1),
        ] {
            delta.counter(&f::VIEW_STAGE, [op[0], op[1], op[2], stage], ms / 10.0);
        }
        delta.gauge(&f::VIEW_SOURCE_INFO, ["tracepoints"], 1.0);
        if let Some(ms) = network {
            delta.gauge(&f::VIEW_NETWORK, mount, ms / 1e3);
        }
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[50] = 90;
        h.sum = slots / 10.0;
        delta.histogram(&f::VIEW_SLOT_WAIT, mount, h);
        let length = Duration::from_secs(10);
        evaluate(&Window { length, delta }, &[])
    }

    #[test]
    fn the_parts_of_a_slow_mount_add_up_in_a_sentence() {
        let d = client(0.4, 42.5, Some(14.0), 0.0);
        assert_eq!(d.verdict, Verdict::Findings);
        let found = d.finding(Kind::SlowMount).unwrap();
        assert_eq!(
            found.summary,
            "RPCs of 10.9.0.1:/ (NFSv4.1) take 43.0 ms on average: the network takes 14.0 ms of it, the server and queues on \
             the way 28.5 ms, waiting in this client 400 µs, and the rest of this client's work 100 µs"
        );
        assert!((found.share - 28.5 / 43.0).abs() < 1e-9);
        assert!(found.advice[0].starts_with("run nfscope diagnose on the server"));
        let texts: Vec<_> = found.evidence.iter().map(|e| e.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "100 RPCs took 43.0 ms on average (threshold: 10.0 ms)",
                "WRITE has 100 % of that time: 100 RPCs of 43.0 ms",
                "the lowest round-trip time of its TCP connection is 14.0 ms",
            ]
        );
    }

    #[test]
    fn each_place_has_its_advice() {
        let advice = |d: Diagnosis| d.finding(Kind::SlowMount).unwrap().advice[0].clone();
        assert!(advice(client(30.0, 5.0, Some(0.1), 29.0)).contains("max_session_slots"));
        assert!(advice(client(30.0, 5.0, Some(0.1), 0.0)).contains("nconnect"));
        assert!(advice(client(0.1, 15.0, Some(14.0), 0.0)).contains("fewer round trips"));
        let unknown = client(0.1, 15.0, None, 0.0);
        let found = unknown.finding(Kind::SlowMount).unwrap();
        assert!(
            found
                .summary
                .contains("the network and the server take 15.0 ms of it")
        );
    }

    #[test]
    fn what_has_no_series_of_its_own_is_told_so() {
        let d = client_of(["other", "other"], "other", [0.1, 15.0], None, 0.0);
        let found = d.finding(Kind::SlowMount).unwrap();
        let says = "RPCs of mounts without series of their own take 15.2 ms on average";
        assert!(found.summary.starts_with(says), "{}", found.summary);
        let says = "procedures without series of their own have 100 % of that time";
        let texts = || found.evidence.iter().map(|e| &e.text);
        assert!(texts().any(|t| t.starts_with(says)), "{found:?}");
    }

    #[test]
    fn a_quick_mount_and_a_host_without_mounts_are_no_finding() {
        let d = client(0.1, 1.0, Some(0.2), 0.0);
        assert!(d.finding(Kind::SlowMount).is_none());
        let why = |d: &Diagnosis| {
            let r = d.ruled_out.iter().find(|r| r.kind == Kind::SlowMount);
            r.unwrap().why.clone()
        };
        assert!(
            why(&d).starts_with("RPCs of 10.9.0.1:/ (NFSv4.1) take 1.20 ms"),
            "{}",
            why(&d)
        );
        let none = Window {
            length: Duration::from_secs(10),
            delta: Snapshot::default(),
        };
        let d = evaluate(&none, &[]);
        assert_eq!(d.share(Kind::SlowMount), None);
        assert!(why(&d).contains("--client"));
        // An agent that probes mounts, on a host without any.
        let mut delta = Snapshot::default();
        delta.gauge(&f::VIEW_SOURCE_INFO, ["tracepoints"], 1.0);
        let length = Duration::from_secs(10);
        let d = evaluate(&Window { length, delta }, &[]);
        assert_eq!(d.share(Kind::SlowMount), Some(0.0));
    }
}
