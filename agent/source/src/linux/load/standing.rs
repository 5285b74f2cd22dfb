//! States of programs: the hook that each one attaches to, and the reason if it is not the first.

use super::plan;
use super::program::{Build, Probe, Program, Variant, Way};
use super::refusal::Refusal;
use crate::linux::host::facts::Facts;
use nfscope_model::{ProbeState, ProbeStatus};
use std::collections::BTreeMap;

/// The kernel's refusals, by the names of the programs in the object.
pub(super) type Refused = BTreeMap<String, Refusal>;

/// Way in which a program is to be loaded: the first that the kernel has not refused.
pub(super) fn chosen(p: &Program, build: Build, on: Variant, refused: &Refused) -> Option<Way> {
    let mut ways = p.ways(build, on).into_iter();
    ways.find(|way| !refused.contains_key(way.name))
}

/// Status of each program of a loaded probe.
pub(super) fn statuses(
    probe: &'static Probe,
    facts: &Facts,
    on: Variant,
    build: Build,
    refused: &Refused,
) -> Vec<ProbeStatus> {
    let of = |p| {
        stands(p, build, on, refused, || {
            plan::attached(probe, p, build, facts, on)
        })
    };
    let programs = probe.programs_of(build, on);
    programs
        .map(|p| {
            let (hook, state, Refusal { reason, fix }) = of(p);
            status(probe, p, state, &reason, &fix, hook)
        })
        .collect()
}

/// Hook of a program, its state, and the reason if it is not attached by its first choice. `attached` gives the state of a program that is.
fn stands(
    p: &Program,
    build: Build,
    on: Variant,
    refused: &Refused,
    attached: impl FnOnce() -> (ProbeState, String),
) -> (String, ProbeState, Refusal) {
    let ways = p.ways(build, on);
    let way = chosen(p, build, on, refused);
    let why_not = ways.iter().take_while(|w| way.as_ref() != Some(*w));
    let mut why_not: Vec<_> = why_not
        .filter_map(|w| Some((w, refused.get(w.name)?)))
        .collect();
    // Refusals with the same words are reported once: the kernel may allow no program at all.
    why_not.dedup_by(|a, b| a.1 == b.1);
    let reason = match why_not.as_slice() {
        [(_, why)] if way.is_none() => why.reason.clone(),
        all => {
            let each = all
                .iter()
                .map(|(w, why)| format!("{}: {}", w.hook, why.reason));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    let fix = why_not.iter().map(|(_, why)| &why.fix);
    let fix = fix.max_by_key(|fix| fix.len()).cloned().unwrap_or_default();
    match way {
        None => (
            p.hook(build),
            ProbeState::Unsupported,
            Refusal { reason, fix },
        ),
        Some(way) if !reason.is_empty() => {
            let fix = String::new();
            (way.hook, ProbeState::Fallback, Refusal { reason, fix })
        }
        Some(way) => {
            let (state, reason) = attached();
            let fix = String::new();
            (way.hook, state, Refusal { reason, fix })
        }
    }
}

/// Status of a program in this state.
pub(super) fn status(
    probe: &Probe,
    p: &Program,
    state: ProbeState,
    reason: &str,
    fix: &str,
    hook: String,
) -> ProbeStatus {
    ProbeStatus {
        probe: probe.word.into(),
        program: p.name.into(),
        hook,
        gives: p.gives.into(),
        required: p.required,
        state,
        reason: reason.into(),
        fix: fix.into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::linux::load::program_table::PROBES;

    pub const ON: Variant = Variant {
        preemptible: false,
        books: true,
        write_delegations: true,
        directory_delegations: true,
        casts: true,
    };

    fn refusal(reason: &str) -> Refusal {
        Refusal {
            reason: reason.into(),
            fix: String::new(),
        }
    }

    /// State of the program of arrivals if these programs are refused.
    fn arrivals(on: Variant, refused: &[(&str, &str)]) -> (String, ProbeState, String) {
        let programs = PROBES[0].programs.iter();
        let p = programs.rev().find(|p| p.name == "nfsd_arrive").unwrap();
        let refused = refused.iter();
        let refused = refused.map(|(name, why)| (name.to_string(), refusal(why)));
        let attached = || (ProbeState::Attached, String::new());
        let (hook, state, why) = stands(p, Build::Btf, on, &refused.collect(), attached);
        (hook, state, why.reason)
    }

    #[test]
    fn of_alternatives_the_first_that_the_kernel_takes_is_attached() {
        let (tp, entry) = ("tp_btf/svcsock_data_ready", "fentry/svc_data_ready");
        let calls = Variant { casts: false, ..ON };
        for (on, hook) in [(ON, tp), (calls, entry)] {
            let attached = (hook.to_owned(), ProbeState::Attached, String::new());
            assert_eq!(arrivals(on, &[]), attached);
        }
        let typed = (
            "nfsd_arrive",
            "R1 is of type sock but sock_common is expected",
        );
        let why = format!("{entry}: {}", typed.1);
        let fallback = (tp.to_owned(), ProbeState::Fallback, why);
        assert_eq!(arrivals(calls, &[typed]), fallback);
        // The refused program was not tried, so that no reason is reported.
        assert_eq!(arrivals(ON, &[typed]).1, ProbeState::Attached);
        let missing = ("nfsd_arrive_tp", "not found");
        let fallback = (
            entry.to_owned(),
            ProbeState::Fallback,
            format!("{tp}: not found"),
        );
        assert_eq!(arrivals(ON, &[missing]), fallback);
        let (_, state, why) = arrivals(ON, &[missing, typed]);
        assert_eq!(state, ProbeState::Unsupported);
        assert_eq!(why, format!("{tp}: not found; {entry}: {}", typed.1));
        let denied = [("nfsd_arrive_tp", "-EPERM"), ("nfsd_arrive", "-EPERM")];
        assert_eq!(arrivals(ON, &denied).2, "-EPERM");
    }
}
