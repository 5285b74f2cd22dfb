//! Time that a cause added, by phase.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use nfscope_model::{Snapshot, family};

/// Least share of the added time in the cause's own phases, and the share that no other phase may reach.
const MOST: f64 = 0.8;
const LITTLE: f64 = 0.2;
/// Least share of the first of two phases: the larger part.
const MORE: f64 = 0.5;

/// Attempts of a check that the host, or the kernel, may disturb.
pub const ATTEMPTS: usize = 3;

/// State of the cause during a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    On,
    Off,
}

impl Cause {
    /// The value for on or off.
    pub fn choose<T>(self, on: T, off: T) -> T {
        match self {
            Cause::On => on,
            Cause::Off => off,
        }
    }
}

/// Operations, or requests, whose time is compared.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// Operations of this version with this name.
    Op(&'a str, &'a str),
    /// Requests of this version.
    Rpc(&'a str),
}

impl Of<'_> {
    fn count(self, seen: &Snapshot) -> u64 {
        let histogram = match self {
            Of::Op(version, op) => seen.hist(&family::OP_DURATION, [version, op]),
            Of::Rpc(version) => seen.hist(&family::RPC_DURATION, [version]),
        };
        histogram.map_or(0, |h| h.count())
    }

    fn phases(self, seen: &Snapshot) -> BTreeMap<String, f64> {
        match self {
            Of::Op(version, op) => {
                lab::reconcile::by_last_label(seen, &family::OP_PHASE.info, |l| {
                    l[0] == version && l[1] == op
                })
            }
            Of::Rpc(version) => {
                lab::reconcile::by_last_label(seen, &family::RPC_PHASE.info, |l| l[0] == version)
            }
        }
    }
}

/// Runs the same load without and with a cause, and checks that the added time is in this phase, and in no other.
///
/// A disturbed check is repeated. The host may take CPUs away from the machine at any time, and one thread of the emulator plays all
/// of them. A wait of a tenth of a second may therefore be in any phase once. A probe that does not distinguish causes fails every
/// time.
pub fn is_in(
    phase: &str,
    what: &str,
    of: Of,
    run: impl FnMut(Cause) -> Result<Snapshot>,
) -> Result<()> {
    found(&[phase], what, of, run)
}

/// Checks a cause whose time two phases share, most of it in the first.
pub fn is_in_both(
    (more, less): (&str, &str),
    what: &str,
    of: Of,
    run: impl FnMut(Cause) -> Result<Snapshot>,
) -> Result<()> {
    found(&[more, less], what, of, run)
}

fn found(
    phases: &[&str],
    what: &str,
    of: Of,
    mut run: impl FnMut(Cause) -> Result<Snapshot>,
) -> Result<()> {
    let mut wrong = String::new();
    for _ in 0..ATTEMPTS {
        let (without, with) = (run(Cause::Off)?, run(Cause::On)?);
        match compare(phases, what, of, &without, &with) {
            Ok(()) => return Ok(()),
            Err(why) => wrong = why,
        }
        println!("{what}: {wrong}");
    }
    bail!("{what}: {wrong}")
}

fn compare(
    phases: &[&str],
    what: &str,
    of: Of,
    without: &Snapshot,
    with: &Snapshot,
) -> Result<(), String> {
    let (n, m) = (of.count(without), of.count(with));
    // From 7.x on the kernel may skip the end of a request, which is made up for when its thread takes the next one; a thread that
    // ends does not.
    let apart = if matches!(of, Of::Rpc(_)) { 2 } else { 0 };
    assert!(
        n > 0 && n.abs_diff(m) <= apart,
        "{what}: {n} {of:?} without it, {m} with it"
    );
    let (before, after) = (of.phases(without), of.phases(with));
    let added: BTreeMap<&str, f64> = after
        .iter()
        .map(|(name, s)| (name.as_str(), s - before.get(name).unwrap_or(&0.0)))
        .collect();
    let total: f64 = added.values().sum();
    let shares: Vec<String> = added
        .iter()
        .map(|(name, s)| format!("{name} {:+.1} %", s / total * 100.0))
        .collect();
    let before = before.values().sum::<f64>();
    println!(
        "{what}: {n} {of:?}, {before:.3} s without, {total:+.3} s: {}",
        shares.join(", ")
    );
    // Without added time there was no cause, and the load proves nothing.
    if total < before / 2.0 {
        return Err(format!("only {total} s were added to {before} s"));
    }
    let together = phases.iter().filter_map(|p| added.get(p)).sum::<f64>() / total;
    if together < MOST {
        return Err(format!("{phases:?} have {together:.3} of what was added"));
    }
    for (name, seconds) in added {
        let share = seconds / total;
        let right = match phases.iter().position(|p| *p == name) {
            Some(0) => share >= MORE,
            Some(_) => true,
            None => share < LITTLE,
        };
        if !right {
            return Err(format!("{name} has {share:.3} of what was added"));
        }
    }
    Ok(())
}
