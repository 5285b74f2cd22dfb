//! Phases add up to the time of their operations and requests, and to no more than the kernel's own times of the threads: run and
//! waited.

use anyhow::Result;
use lab::reconcile::losses_are_explained;
use nfscope_model::{Sample, Snapshot, family, phase};

use crate::coverage::{CountedLoad, VERSIONS};

const CLOSE: f64 = 0.01;
/// Least fraction of the threads' run and wait time that must be in operations. In this load six tenths of the run time are, and four
/// to six tenths of the wait time.
const LEAST_CPU: f64 = 0.4;
const LEAST_RUNQUEUE: f64 = 0.2;

pub fn phases_add_up(of: &CountedLoad) -> Result<()> {
    let seen = &of.seen;
    losses_are_explained(&of.after, seen, of.operations)?;
    every_op(seen);
    every_version(seen);
    clients_and_exports(seen);
    as_the_kernel_says(
        seen,
        of.threads.ran().as_secs_f64(),
        of.threads.waited().as_secs_f64(),
    );
    Ok(())
}

fn every_op(seen: &Snapshot) {
    let mut versions = Vec::new();
    for series in seen.series(&family::OP_DURATION.info) {
        let Sample::Histogram(h) = &series.sample else {
            continue;
        };
        if h.count() == 0 {
            continue;
        }
        let [version, op] = &series.labels[..] else {
            continue;
        };
        let phases = lab::reconcile::by_last_label(seen, &family::OP_PHASE.info, |l| {
            l[0] == *version && l[1] == *op
        });
        // Rare phases have a series once they have occurred.
        for name in phase::OF_OP {
            let there = phases.contains_key(name) || phase::RARE.contains(&name);
            assert!(there, "v{version} {op} has no {name}: {phases:?}");
        }
        adds_up(
            &format!("v{version} {op}, {} of them", h.count()),
            h.sum,
            &phases,
        );
        versions.push(version.as_str());
    }
    for version in VERSIONS {
        assert!(versions.contains(&version), "no operation of v{version}");
    }
}

fn every_version(seen: &Snapshot) {
    for version in VERSIONS {
        let residence = seen.hist(&family::RPC_DURATION, [version]);
        let residence = residence.map_or(0.0, |h| h.sum);
        let phases =
            lab::reconcile::by_last_label(seen, &family::RPC_PHASE.info, |l| l[0] == version);
        assert_eq!(
            phases.len(),
            phase::OF_RPC.len(),
            "v{version} requests: {phases:?}"
        );
        adds_up(&format!("v{version} requests"), residence, &phases);
        println!("v{version} requests: {residence:.3} s: {phases:.3?}");
    }
}

/// Checks that each operation belongs to a client and an export.
fn clients_and_exports(seen: &Snapshot) {
    let all = lab::reconcile::merged(seen, &family::OP_DURATION.info, |_| true);
    let (count, seconds) = all.map_or((0.0, 0.0), |h| (h.count() as f64, h.sum));
    for (whole, families) in [
        (count, [&family::CLIENT_OPS.info, &family::EXPORT_OPS.info]),
        (
            seconds,
            [
                &family::CLIENT_OP_SECONDS.info,
                &family::EXPORT_OP_SECONDS.info,
            ],
        ),
    ] {
        for family in families {
            let parts = lab::reconcile::by_last_label(seen, family, |_| true);
            adds_up(family.name, whole, &parts);
        }
    }
}

fn adds_up(what: &str, whole: f64, phases: &std::collections::BTreeMap<String, f64>) {
    let parts: f64 = phases.values().sum();
    assert!(
        (parts - whole).abs() <= CLOSE * whole,
        "{what}: {whole} s, but phases of {parts} s: {phases:?}"
    );
    assert!(
        phases.values().all(|s| *s >= 0.0),
        "{what}: a phase of less than nothing: {phases:?}"
    );
}

/// Compares with the kernel's own times of each thread. Operations cannot have more than these; the rest is time to receive, decode
/// and reply, which the RPC phases bound from above, and to look for work.
fn as_the_kernel_says(seen: &Snapshot, ran: f64, waited: f64) {
    let ops = lab::reconcile::by_last_label(seen, &family::OP_PHASE.info, |_| true);
    let rpcs = lab::reconcile::by_last_label(seen, &family::RPC_PHASE.info, |_| true);
    let of = |phase: &str| ops.get(phase).copied().unwrap_or(0.0);
    println!(
        "operations {ops:.3?}, requests {rpcs:.3?}; threads ran {ran:.3} s, waited {waited:.3} s"
    );
    println!(
        "cpu {:.1} % of run time, runqueue {:.1} % of run delay",
        of("cpu") / ran * 100.0,
        of("runqueue") / waited * 100.0
    );
    for phase in ["cpu", "runqueue", "log", "disk", "lock"] {
        assert!(of(phase) > 0.0, "no {phase} at all: {ops:?}");
    }
    assert!(
        (LEAST_CPU * ran..=ran).contains(&of("cpu")),
        "{ops:?}, but the threads ran {ran} s"
    );
    assert!(
        (LEAST_RUNQUEUE * waited..=waited).contains(&of("runqueue")),
        "{ops:?}, but the threads waited {waited} s"
    );
}
