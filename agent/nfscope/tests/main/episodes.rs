//! Episodes of the agent's findings: their severity, the clients behind them, the labels for alerts, and the body of `/findings`.

use crate::fixture::tale::{QUIET, Tale, added, slow_log};
use crate::fixture::{golden, status};
use nfscope_diagnose::Counted;
use nfscope_diagnose::tracker::{Change, Counts, Episode, FindingTracker};
use nfscope_model::breakdown::{Keys, Moved};
use nfscope_model::finding::{Kind, Severity};
use nfscope_model::{Snapshot, family as f};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

/// The same server, whose requests wait for the log for a third of their time.
fn weaker_log() -> Tale {
    Tale {
        requests: 500,
        lock: 18e-3,
        ..slow_log()
    }
}

struct Agent {
    tracker: FindingTracker,
    at: SystemTime,
    sum: Snapshot,
}

impl Agent {
    fn new() -> Agent {
        Agent {
            tracker: FindingTracker::default(),
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000),
            sum: Snapshot::default(),
        }
    }

    fn window(&mut self, tale: &Tale) -> Vec<Change> {
        self.at += Duration::from_secs(10);
        self.sum = added(&self.sum, tale);
        self.sum.probes = vec![status("nfsd_op_end", true, tale.state(), "")];
        self.tracker.step(self.sum.clone(), self.at)
    }

    fn episode(&self, kind: Kind) -> Episode {
        let mut all = self.tracker.report().active.into_iter();
        all.find(|e| e.finding.kind == kind).unwrap()
    }

    /// Labels of `nfscope_finding_info` of this kind.
    fn info(&self, kind: Kind) -> Vec<Vec<String>> {
        let mut s = Snapshot::default();
        self.tracker.describe_active(&mut s);
        let all = s.series(&f::FINDING_INFO.info).iter();
        let all = all.map(|series| series.labels.to_vec());
        all.filter(|l| l[0] == kind.as_str()).collect()
    }
}

fn counts() -> Counts {
    let mut counted = Counted {
        length: 5.0,
        ..Counted::default()
    };
    for (client, op, user, file, count, seconds, written) in [
        ("192.0.2.7", "write", "1000", "12", 180, 2.16, 737_280),
        ("192.0.2.8", "write", "1001", "13", 60, 0.72, 245_760),
        ("192.0.2.8", "getattr", "1001", "13", 900, 0.1, 0),
    ] {
        let keys: Keys = [client, "/srv", op, "", user, file].map(str::to_owned);
        counted.add(keys, count, seconds, Moved { read: 0, written });
    }
    Counts {
        counted,
        paths: HashMap::from([(("/srv".into(), "12".into()), "/srv/db".into())]),
        not_known: Vec::new(),
        at: 1_000_045.0,
    }
}

#[test]
fn an_episode_keeps_who_is_behind_it_until_it_has_cleared_and_beyond() {
    let mut agent = Agent::new();
    agent.window(&QUIET);
    assert!(!agent.tracker.wait_for_counts());
    for _ in 0..3 {
        agent.window(&slow_log());
    }
    assert!(agent.tracker.wait_for_counts());
    agent.tracker.answer(&counts());
    assert!(!agent.tracker.wait_for_counts());
    agent.window(&slow_log());
    let sentence = "client 192.0.2.7 has 75 % of the 2.88 s that 240 WRITE operations took in 5.00 s, export /srv 100 %";
    let told = |e: &Episode| {
        e.finding
            .evidence
            .iter()
            .filter(|e| e.text == sentence)
            .count()
    };
    let episode = agent.episode(Kind::SlowIntentLog);
    assert_eq!(told(&episode), 1, "{episode:#?}");
    let report = serde_json::to_string_pretty(&agent.tracker.report()).unwrap();
    golden("findings.json", &(report + "\n"));
    for _ in 0..2 {
        agent.window(&QUIET);
    }
    let report = agent.tracker.report();
    let ended = (report.history.iter()).find(|e| e.finding.kind == Kind::SlowIntentLog);
    let ended = ended.unwrap();
    assert_eq!((told(ended), &ended.who), (1, &episode.who));
    // Begin, answer and end of an episode are handed out to be kept. The last state is all of it.
    let kept: Vec<_> = agent.tracker.take_changed().collect();
    let kept = kept
        .iter()
        .filter(|e| e.finding.kind == Kind::SlowIntentLog);
    let kept: Vec<_> = kept.map(|e| (e.who.is_some(), e.ended.is_some())).collect();
    assert_eq!(kept, [(false, false), (true, false), (true, true)]);
    assert_eq!(agent.tracker.take_changed().count(), 0);
}

#[test]
fn users_and_files_can_be_taken_out_of_a_report() {
    let mut agent = Agent::new();
    for _ in 0..4 {
        agent.window(&slow_log());
    }
    agent.tracker.answer(&counts());
    let mut report = agent.tracker.report();
    report.who().for_each(|who| who.remove_private());
    let text = serde_json::to_string(&report).unwrap();
    assert!(
        text.contains("192.0.2.7") && !text.contains("/srv/db"),
        "{text}"
    );
    assert!(!text.contains("\"1000\""), "{text}");
}

#[test]
fn the_severity_of_an_episode_rises_and_never_falls() {
    let mut agent = Agent::new();
    for _ in 0..2 {
        agent.window(&QUIET);
    }
    let mut changes = Vec::new();
    for tale in [
        &weaker_log(),
        &weaker_log(),
        &slow_log(),
        &slow_log(),
        &weaker_log(),
    ] {
        changes.extend(agent.window(tale));
    }
    let of_log: Vec<_> = (changes.iter())
        .filter_map(|c| match c {
            Change::Began(Kind::SlowIntentLog, severity, _) => Some(("began", *severity)),
            Change::Rose(Kind::SlowIntentLog, _) => Some(("rose", Severity::Critical)),
            _ => None,
        })
        .collect();
    assert_eq!(
        of_log,
        [("began", Severity::Warning), ("rose", Severity::Critical)],
        "{changes:?}"
    );
    let episode = agent.episode(Kind::SlowIntentLog);
    assert_eq!(episode.finding.severity, Severity::Critical);
    assert_eq!(agent.info(Kind::SlowIntentLog)[0][1], "critical");
    let said = changes
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        said.contains("finding slow_intent_log is active (warning): "),
        "{said}"
    );
    assert!(
        said.contains("finding slow_intent_log has become critical: "),
        "{said}"
    );
}

/// Each text is a series in Prometheus, so that figures of each window must not be in it.
#[test]
fn an_episode_has_few_texts_for_alerts_and_no_names() {
    let mut agent = Agent::new();
    agent.window(&QUIET);
    assert_eq!(agent.info(Kind::SlowIntentLog), Vec::<Vec<String>>::new());
    let mut texts = Vec::new();
    for n in 0..20 {
        let slower = Tale {
            log: 12e-3 + f64::from(n) * 1e-3,
            ..slow_log()
        };
        agent.window(&slower);
        if n == 5 {
            agent.tracker.answer(&counts());
        }
        let info = agent.info(Kind::SlowIntentLog);
        assert!(info.len() <= 1);
        texts.extend(info);
    }
    texts.dedup();
    let [first, counted] = &texts[..] else {
        panic!("{texts:#?}")
    };
    assert_eq!(first[..4], ["slow_intent_log", "critical", "sda", ""]);
    assert!(
        first[4].starts_with("a wait for the log of ext4 on sda takes "),
        "{first:?}"
    );
    assert_eq!(counted[3], "192.0.2.7");
    let who = "; client 192.0.2.7 has 75 % of the 2.88 s that 240 WRITE operations took in 5.00 s, export /srv 100 %";
    assert_eq!(counted[4], format!("{}{who}", first[4]));
    assert!(!counted[5].is_empty());
    for text in [&first[4], &counted[4]] {
        assert!(
            !text.contains("/srv/db") && text.chars().count() < 820,
            "{text}"
        );
    }
    for _ in 0..2 {
        agent.window(&QUIET);
    }
    assert_eq!(agent.info(Kind::SlowIntentLog), Vec::<Vec<String>>::new());
}

#[test]
fn episodes_of_an_earlier_run_come_behind_those_of_this_one() {
    let mut agent = Agent::new();
    for _ in 0..4 {
        agent.window(&slow_log());
    }
    agent.tracker.answer(&counts());
    let kept = serde_json::to_string(&agent.episode(Kind::SlowIntentLog)).unwrap();
    let mut earlier: Episode = serde_json::from_str(&kept).unwrap();
    assert!(earlier.who.is_some());
    earlier.end(1_000_050.0);
    let mut next = Agent::new();
    next.tracker.remember(vec![earlier.clone()]);
    let report = next.tracker.report();
    assert_eq!((report.active.len(), report.history.len()), (0, 1));
    assert_eq!(report.history[0].ended, Some(1_000_050.0));
    assert!(
        report.history[0].finding.summary.contains(" was spent "),
        "{report:?}"
    );
}
