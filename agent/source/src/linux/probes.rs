//! The probes of this agent: their loaded objects, and the state of each program.

use super::load::attach::Attached;
use super::load::object::Loaded;
use super::load::program::Probe;
use super::load::program_table::PROBES;
use crate::source::Options;
use nfscope_model::{ProbeState, ProbeStatus};
use std::collections::BTreeMap;

/// Probes that an agent with these options attaches, in the order in which they attach.
pub fn planned(options: &Options) -> impl Iterator<Item = &'static Probe> + use<> {
    in_order(left_out(options))
}

/// All probes, in the order in which they attach.
pub fn all_in_order() -> impl Iterator<Item = &'static Probe> {
    in_order(&[])
}

/// Probes to leave out: those for phases alone, if phases are off (probes of logs also measure the waits of threads), and those of a
/// client, if it is not observed.
fn left_out(options: &Options) -> &'static [&'static str] {
    match (options.phases, options.client) {
        (true, true) => &[],
        (false, true) => &["sched"],
        (true, false) => &["client", "recall"],
        (false, false) => &["sched", "client", "recall"],
    }
}

/// All probes but those left out, in the order in which they attach. The first of the table comes last: operations are timed once all
/// probes for their waits are attached. `sched` comes before all others: it decides how waits are measured, which log probes follow.
fn in_order(left_out: &[&str]) -> impl Iterator<Item = &'static Probe> {
    let mut probes: Vec<_> = PROBES.iter().collect();
    probes.retain(|p| !left_out.contains(&p.word));
    probes.reverse();
    probes.sort_by_key(|p| p.word != "sched");
    probes.into_iter()
}

/// Loaded objects by the name of the probe, and the status of every program in the order of the table.
pub struct Probes {
    /// Objects of the probes that are attached.
    pub loaded: BTreeMap<&'static str, Loaded>,
    /// Status of every program, of probes that are not attached, too.
    pub states: Vec<ProbeStatus>,
}

impl Probes {
    /// Joins the results of attaching. Probes attach in the opposite order of the table.
    pub fn join(attached: Vec<Attached>) -> Probes {
        let (mut loaded, mut states) = (BTreeMap::new(), Vec::new());
        for (probe, l, mut s) in attached {
            loaded.extend(l.map(|l| (probe.word, l)));
            s.append(&mut states);
            states = s;
        }
        Probes { loaded, states }
    }

    /// Object of an attached probe.
    pub fn get(&self, word: &str) -> Option<&Loaded> {
        self.loaded.get(word)
    }

    /// Bytes of kernel memory of all probes. Maps that probes share count once, as those of the first of the table.
    pub fn kernel_memory(&self) -> u64 {
        let of = |(word, l): (&&str, &Loaded)| l.kernel_memory(*word == PROBES[0].word);
        self.loaded.iter().map(of).sum()
    }

    /// Programs of a probe.
    pub fn programs(&self, word: &str) -> impl Iterator<Item = &ProbeStatus> {
        self.states.iter().filter(move |p| p.probe == word)
    }

    /// True if a program measures.
    pub fn attached(&self, program: &str) -> bool {
        let is = |p: &ProbeStatus| p.program == program && p.state.measures();
        self.states.iter().any(is)
    }

    /// Replaces the states of a probe's programs.
    pub fn set_states(&mut self, probe: &Probe, states: Vec<ProbeStatus>) {
        let place = self
            .states
            .iter()
            .position(|p| p.probe == probe.word)
            .unwrap_or(self.states.len());
        self.states.retain(|p| p.probe != probe.word);
        self.states.splice(place..place, states);
    }

    /// States of a probe's programs after the admin has detached it.
    pub fn set_detached(&mut self, probe: &Probe) {
        let word = probe.word;
        let mut states: Vec<_> = self.programs(word).cloned().collect();
        for s in &mut states {
            s.state = ProbeState::Detached;
            s.reason =
                format!("detached by `nfscope detach`; `nfscope attach {word}` brings it back");
            s.fix = "it attaches by itself when the module is loaded anew".into();
        }
        self.set_states(probe, states);
    }

    /// State of a probe in a line.
    pub fn status_line(&self, probe: &Probe) -> String {
        let word = probe.word;
        let all = self.programs(word).count();
        let up = self.programs(word).filter(|p| p.state.measures()).count();
        let why = self
            .programs(word)
            .find(|p| !p.reason.is_empty() && !matches!(p.state, ProbeState::Fallback));
        match why {
            Some(p) if up == 0 => format!("{word}: {}: {}", p.state.as_str(), p.reason),
            _ if all == 0 && word == "sched" => format!("{word}: left out by --no-phases"),
            _ if all == 0 => format!("{word}: left out without --client"),
            _ => format!("{word}: {up} of {all} programs attached"),
        }
    }
}
