//! Attaches probes in a child of this process, and keeps what it attached: maps, programs and links are descriptors.
//!
//! The child loads one object after the other and hands each over at once. A probe at which it dies or hangs therefore takes no other with
//! it: another child goes on with the next probe.

use super::child::Child;
use super::handover::{self, Report};
use super::loader::{self, Kinds};
use super::maps::Shared;
use super::object::Loaded;
use super::program::Probe;
use super::refusal::Refusal;
use crate::linux::host::facts::Facts;
use nfscope_model::ProbeStatus;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Time for one probe. It takes a tenth of a second, and many seconds on an emulated machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Time for a child to end that reports nothing more.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A probe, its loaded object, and the status of every program.
pub type Attached = (&'static Probe, Option<Loaded>, Vec<ProbeStatus>);

/// Loads and attaches these probes, in this order.
pub fn attach(
    probes: impl IntoIterator<Item = &'static Probe>,
    facts: &Facts,
    shared: &Shared,
) -> Vec<Attached> {
    let probes: Vec<_> = probes.into_iter().collect();
    attach_by(&probes, facts, shared, PATIENCE, loader::load)
}

/// Loads a probe, in the child.
type Load = fn(&'static Probe, &Facts, &Shared, &mut Kinds) -> (Option<Loaded>, Vec<ProbeStatus>);

fn attach_by(
    probes: &[&'static Probe],
    facts: &Facts,
    shared: &Shared,
    patience: Duration,
    load: Load,
) -> Vec<Attached> {
    let mut done: Vec<Attached> = Vec::new();
    while let Some(rest) = probes.get(done.len()..).filter(|rest| !rest.is_empty()) {
        let all = |socket: &UnixStream| {
            let mut kinds = Kinds::default();
            for probe in rest {
                let (loaded, states) = load(probe, facts, shared, &mut kinds);
                // The parent alone detaches the programs: the child drops no link.
                let loaded = ManuallyDrop::new(loaded);
                handover::send(socket, loaded.as_ref(), &states, shared.books())?;
            }
            Ok(())
        };
        let mut child = match Child::start(patience, all) {
            Ok(child) => child,
            Err(e) => {
                let why = Refusal {
                    reason: format!("probes attach in a process of their own, and none starts: {e}"),
                    fix: "raise the limits of processes and of memory (TasksMax, LimitNPROC, MemoryMax), then restart the agent"
                        .into(),
                };
                let failed =
                    |p: &&'static Probe| (*p, None, loader::failed(p, facts, shared, &why));
                done.extend(rest.iter().map(failed));
                break;
            }
        };
        for probe in rest {
            match handover::receive(&child.socket) {
                Ok((report, descriptors)) => {
                    done.push(take(probe, report, descriptors, facts, shared));
                }
                Err(e) => {
                    let why = lost(&mut child, &e, patience);
                    done.push((probe, None, loader::failed(probe, facts, shared, &why)));
                    break;
                }
            }
        }
    }
    done
}

/// Keeps the objects that the child attached.
fn take(
    probe: &'static Probe,
    report: Report,
    descriptors: Vec<std::os::fd::OwnedFd>,
    facts: &Facts,
    shared: &Shared,
) -> Attached {
    if !report.books {
        shared.without_books();
    }
    match report.take(probe, descriptors) {
        (states, Ok(loaded)) => {
            if probe.word == "nfsd" {
                shared.settle(loaded.is_some());
            }
            (probe, loaded, states)
        }
        (_, Err(e)) => {
            let why = Refusal {
                reason: format!("what was attached cannot be taken over: {e:#}"),
                fix: "run as root or with CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN".into(),
            };
            (probe, None, loader::failed(probe, facts, shared, &why))
        }
    }
}

/// Reason why a child reported nothing more.
fn lost(child: &mut Child, error: &io::Error, patience: Duration) -> Refusal {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Refusal {
            reason: format!(
                "the process that attaches has not loaded it in {} s",
                patience.as_secs_f64()
            ),
            fix: "look for what keeps the kernel busy (`dmesg`, `top`), then restart the agent"
                .into(),
        },
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            let how = child.ending(END_TIMEOUT);
            Refusal {
                reason: format!(
                    "the process that attaches {} while it loaded it",
                    how.as_deref().unwrap_or("went silent")
                ),
                fix: "look for its end in `dmesg` (out of memory?) and for who ends processes, then restart the agent"
                    .into(),
            }
        }
        _ => Refusal {
            reason: format!("the process that attaches cannot hand over what it loaded: {error}"),
            fix: String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::load::program_table::PROBES;
    use nfscope_model::ProbeState;
    use rustix::process::{Signal, getpid, kill_process};

    fn probe(word: &str) -> &'static Probe {
        PROBES.iter().find(|p| p.word == word).unwrap()
    }

    const ORDER: [&str; 3] = ["zfs", "block", "nfsd"];

    /// States of all probes, with a child that handles probe block in another way.
    fn states(patience: Duration, load: Load) -> Vec<Vec<ProbeStatus>> {
        let facts = Facts::default();
        let shared = Shared::create(64);
        let done = attach_by(&ORDER.map(probe), &facts, &shared, patience, load);
        let words: Vec<_> = done.iter().map(|(p, ..)| p.word).collect();
        assert_eq!(words, ORDER);
        done.into_iter().map(|(.., states)| states).collect()
    }

    /// Checks that the other probes report as always: without BTF nothing loads.
    fn others_are_as_ever(states: &[Vec<ProbeStatus>]) {
        for states in [&states[0], &states[2]] {
            assert!(!states.is_empty());
            for s in states {
                assert!(s.reason.starts_with("this kernel has no BTF"), "{s:?}");
            }
        }
    }

    #[test]
    fn a_child_that_is_killed_takes_one_probe_with_it() {
        let states = states(Duration::from_secs(60), |probe, facts, shared, kinds| {
            if probe.word == "block" {
                kill_process(getpid(), Signal::KILL).unwrap();
            }
            loader::load(probe, facts, shared, kinds)
        });
        others_are_as_ever(&states);
        assert!(!states[1].is_empty());
        for s in &states[1] {
            assert_eq!(s.state, ProbeState::Unsupported);
            assert_eq!(
                s.reason,
                "the process that attaches was ended by signal 9 while it loaded it"
            );
            assert!(s.fix.ends_with("restart the agent"), "{}", s.fix);
        }
    }

    #[test]
    fn a_child_that_panics_or_hangs_does_so_alone() {
        let panics = states(Duration::from_secs(60), |probe, facts, shared, kinds| {
            // A resumed panic, because the hook of `panic!` would write to this test's output.
            if probe.word == "block" {
                std::panic::resume_unwind(Box::new(()));
            }
            loader::load(probe, facts, shared, kinds)
        });
        others_are_as_ever(&panics);
        let why = "the process that attaches ended with code 1 while it loaded it";
        assert!(panics[1].iter().all(|s| s.reason == why), "{panics:?}");

        let hangs = states(Duration::from_secs(2), |probe, facts, shared, kinds| {
            if probe.word == "block" {
                std::thread::sleep(Duration::from_secs(3600));
            }
            loader::load(probe, facts, shared, kinds)
        });
        others_are_as_ever(&hangs);
        let why = "the process that attaches has not loaded it in 2 s";
        assert!(hangs[1].iter().all(|s| s.reason == why), "{hangs:?}");
    }
}
