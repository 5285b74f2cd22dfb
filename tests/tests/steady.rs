//! Two windows of one steady server agree: a longer one finds what a shorter one finds.
//!
//! The agent judges ten seconds, and `nfscope diagnose` a minute. Each recorded window is taken for a server that goes on like that: all
//! counts grow with the length, and what is true at one moment stays. A threshold that is a number of events in a window would be another
//! one for each length.

use anyhow::{Result, ensure};
use lab::Kernel;
use lab::scenarios::{judged_in_every_run, recorded};
use nfscope_diagnose::evaluate;
use nfscope_model::finding::{Diagnosis, Kind};
use nfscope_model::{Sample, Series, Snapshot, Window};
use std::time::Duration;

/// The window of a server that goes on like that for `times` as long.
fn longer(w: &Window, times: u32) -> Window {
    let mut delta = Snapshot::new(w.delta.at);
    delta.host = w.delta.host.clone();
    delta.kernel = w.delta.kernel.clone();
    delta.probes = w.delta.probes.clone();
    delta.held = w.delta.held.clone();
    for (info, all) in w.delta.filled() {
        for series in all {
            let sample = match &series.sample {
                Sample::Counter(v) => Sample::Counter(v * f64::from(times)),
                Sample::Gauge(v) => Sample::Gauge(*v),
                Sample::Histogram(h) => {
                    let mut h = h.clone();
                    h.counts.iter_mut().for_each(|n| *n *= u64::from(times));
                    h.sum *= f64::from(times);
                    Sample::Histogram(h)
                }
            };
            let labels = series.labels.clone();
            delta.add(info, Series { labels, sample });
        }
    }
    Window {
        length: w.length * times,
        delta,
    }
}

/// Half of a window: of an odd number of events the first half has one more.
fn half(w: &Window, first: bool) -> Window {
    let mut delta = longer(w, 1).delta;
    let mut halved = Snapshot::new(delta.at);
    std::mem::swap(&mut halved.host, &mut delta.host);
    std::mem::swap(&mut halved.probes, &mut delta.probes);
    std::mem::swap(&mut halved.held, &mut delta.held);
    for (info, all) in delta.filled() {
        for series in all {
            let sample = match &series.sample {
                Sample::Counter(v) => Sample::Counter(v / 2.0),
                Sample::Gauge(v) => Sample::Gauge(*v),
                Sample::Histogram(h) => {
                    let mut h = h.clone();
                    let before: u64 = h.counts.iter().sum();
                    // By turns, so that neither half has all that is left over.
                    let mut more = first;
                    for n in &mut h.counts {
                        let odd = *n % 2;
                        *n = *n / 2 + if more { odd } else { 0 };
                        more ^= odd == 1;
                    }
                    let after: u64 = h.counts.iter().sum();
                    h.sum *= after as f64 / before.max(1) as f64;
                    Sample::Histogram(h)
                }
            };
            let labels = series.labels.clone();
            halved.add(info, Series { labels, sample });
        }
    }
    Window {
        length: w.length / 2,
        delta: halved,
    }
}

/// Share from which on a finding is clear of the threshold, 25 %: the other window has it, too, with any share.
const CLEAR_SHARE: f64 = 0.30;

/// Share of stuck requests is time in hand as a part of all time: it is another one of a longer window.
const OF_A_MOMENT: Kind = Kind::StuckRequests;

/// Differences between two windows of one server: clear findings of either that the other does not have, or with another severity.
fn differences(one: &Diagnosis, other: &Diagnosis) -> Vec<String> {
    let mut all = Vec::new();
    for (has, lacks) in [(one, other), (other, one)] {
        let clear = has.findings.iter().filter(|f| f.share >= CLEAR_SHARE);
        for f in clear.filter(|f| f.kind != OF_A_MOMENT) {
            let there = lacks.finding(f.kind).map(|f| f.severity);
            if there != Some(f.severity) {
                all.push(format!(
                    "{} with {:.3} is {:?} in {} s, and {there:?} in {} s",
                    f.kind.as_str(),
                    f.share,
                    f.severity,
                    has.window_seconds,
                    lacks.window_seconds
                ));
            }
        }
    }
    all
}

#[test]
fn agent_and_command_find_the_same_of_a_steady_server() -> Result<()> {
    let mut wrong = Vec::new();
    for kernel in Kernel::ZFS {
        for scenario in judged_in_every_run(kernel)? {
            let w = recorded::read(kernel, &scenario.name)?;
            let to_ten = (10.0 / w.length.as_secs_f64()).ceil().max(1.0) as u32;
            let agent = longer(&w, to_ten);
            let command = longer(&agent, 6);
            let [first, second] = [true, false].map(|first| half(&agent, first));
            let [agent, command, first, second] =
                [agent, command, first, second].map(|w| evaluate(&w, &[]));
            for (what, one, other) in [
                ("ten seconds and a minute", &agent, &command),
                ("ten seconds and their first half", &agent, &first),
                ("ten seconds and their second half", &agent, &second),
                ("both halves", &first, &second),
            ] {
                let differ = differences(one, other);
                wrong.extend(
                    differ
                        .iter()
                        .map(|d| format!("{kernel} {}, {what}: {d}", scenario.name)),
                );
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Shares on both sides of the limit agree, and a clear finding that the other window lacks does not.
#[test]
fn a_clear_finding_is_sought_among_all_of_the_other_window() -> Result<()> {
    let w = recorded::read(Kernel::V6_12, "log-8ms")?;
    let with_share = |share: f64| {
        let mut d = evaluate(&w, &[]);
        d.findings.retain(|f| f.kind == Kind::SlowIntentLog);
        d.findings.iter_mut().for_each(|f| f.share = share);
        d
    };
    let [above, below] = [0.301, 0.299].map(with_share);
    ensure!(above.findings.len() == 1, "{:#?}", above.findings);
    ensure!(differences(&above, &below).is_empty());
    ensure!(differences(&below, &above).is_empty());
    let none = Diagnosis {
        findings: Vec::new(),
        ..above.clone()
    };
    ensure!(differences(&above, &none).len() == 1);
    ensure!(differences(&none, &above).len() == 1);
    ensure!(differences(&below, &none).is_empty());
    Ok(())
}

/// A window that is told once must be told of the same length.
#[test]
fn halves_add_up_to_their_window() -> Result<()> {
    let w = recorded::read(Kernel::V6_12, "log-8ms")?;
    let requests = |w: &Window| evaluate(w, &[]).requests;
    let [first, second] = [true, false].map(|first| half(&w, first));
    ensure!(requests(&first) + requests(&second) == requests(&w));
    ensure!(w.length - (first.length + second.length) < Duration::from_nanos(2));
    ensure!(requests(&longer(&w, 3)) == 3.0 * requests(&w));
    Ok(())
}
