//! Comparison of measurements over the rounds.

use super::attach::{ALL, With};
use super::context_switches::Switches;
use super::load::{Case, Measure};
use super::median::median;
use super::results::Measured;
use super::table::thousands;

/// Figure over the rounds.
#[derive(Debug, PartialEq)]
pub(super) struct Figure {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Figure {
    pub fn of(mut numbers: Vec<f64>) -> Option<Figure> {
        let median = median(&mut numbers);
        Some(Figure {
            median,
            least: *numbers.first()?,
            most: *numbers.last()?,
        })
    }

    fn minus(self, base: f64) -> Figure {
        Figure {
            median: self.median - base,
            least: self.least - base,
            most: self.most - base,
        }
    }

    /// The median, with the lowest and the highest figure if they differ.
    pub fn show(&self) -> String {
        let round = |x: f64| thousands(x.round());
        let (least, most) = (round(self.least), round(self.most));
        if least == most {
            return round(self.median);
        }
        format!("{} ({least} to {most})", round(self.median))
    }

    /// The median alone.
    pub fn short(&self) -> String {
        thousands(self.median.round())
    }
}

/// Repeated operation of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Operation(Case),
    Switch,
}

impl Subject {
    pub fn name(self) -> String {
        match self {
            Subject::Operation(case) => case.name(),
            Subject::Switch => "switch of an unrelated task".to_owned(),
        }
    }

    fn samples(self, all: &[Measured], with: With) -> Vec<f64> {
        let all = all.iter().filter(|measured| measured.with == with);
        match self {
            Subject::Operation(case) => all
                .flat_map(|measured| &measured.measures)
                .filter(|measure| measure.case == case)
                .map(Measure::per_op)
                .collect(),
            Subject::Switch => all
                .filter_map(|measured| measured.switches.as_ref())
                .map(Switches::per_switch)
                .collect(),
        }
    }
}

/// Instructions of a subject alone, and those that each program adds.
#[derive(Debug)]
pub(super) struct Row {
    pub subject: Subject,
    pub alone: Figure,
    pub no_phases: Option<Figure>,
    pub agent: Option<Figure>,
    /// Instructions that phases add to the agent without them, round by round.
    pub phases: Option<Figure>,
    pub peer: Option<Figure>,
    pub off_cpu: Option<Figure>,
    pub empty: Option<Figure>,
    pub entered: Option<Figure>,
    pub breakdown: Option<Figure>,
}

impl Row {
    pub fn new(all: &[Measured], subject: Subject) -> Option<Row> {
        let samples = |with| subject.samples(all, with);
        let alone = Figure::of(samples(With::Nothing))?;
        let added = |with| Figure::of(samples(with)).map(|f| f.minus(alone.median));
        let without = samples(With::NoPhases);
        let with = samples(With::Agent).into_iter();
        let phases = with.zip(without).map(|(with, without)| with - without);
        Some(Row {
            subject,
            no_phases: added(With::NoPhases),
            agent: added(With::Agent),
            phases: Figure::of(phases.collect()),
            peer: added(With::Bpftrace),
            off_cpu: added(With::OffCpu),
            empty: added(With::Empty),
            entered: added(With::Entered),
            breakdown: added(With::BrokenDown(ALL)),
            alone,
        })
    }

    /// Share of the figure in the subject's own cost.
    pub fn share(&self, figure: &Figure) -> f64 {
        figure.median / self.alone.median
    }
}

/// Measured share of a limit, with its spread.
pub(super) struct Verdict {
    pub measured: f64,
    pub least: f64,
    pub most: f64,
}

impl Verdict {
    /// Share of a figure in the whole.
    pub fn of(figure: &Figure, whole: f64) -> Verdict {
        Verdict {
            measured: figure.median / whole,
            least: figure.least / whole,
            most: figure.most / whole,
        }
    }

    /// Verdict on the limit: met or missed, and a note if the spread contains the limit.
    pub fn show(&self, limit: f64) -> String {
        let unsure = self.least <= limit && limit < self.most;
        let word = if self.measured <= limit {
            "met"
        } else {
            "MISSED"
        };
        format!("{word}{}", if unsure { ", within the spread" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn measured(with: With, per_switch: u64) -> Measured {
        Measured {
            with,
            measures: Vec::new(),
            switches: Some(Switches {
                switches: 10,
                ns: 10 * per_switch,
                tenths: vec![per_switch as f64; 10],
                programs: BTreeMap::new(),
            }),
        }
    }

    #[test]
    fn phases_are_what_they_add_round_by_round() {
        let all = [
            measured(With::Nothing, 1000),
            measured(With::NoPhases, 1005),
            measured(With::Agent, 1100),
            measured(With::Nothing, 1002),
            measured(With::NoPhases, 1025),
            measured(With::Agent, 1122),
        ];
        let row = Row::new(&all, Subject::Switch).expect("it was measured alone");
        let figure = |median, least, most| {
            Some(Figure {
                median,
                least,
                most,
            })
        };
        assert_eq!(row.alone.median, 1001.0);
        assert_eq!(row.no_phases, figure(14.0, 4.0, 24.0));
        assert_eq!(row.agent, figure(110.0, 99.0, 121.0));
        assert_eq!(row.phases, figure(96.0, 95.0, 97.0));
        assert_eq!(row.off_cpu, None);
        assert_eq!(Row::new(&[], Subject::Switch).map(|row| row.alone), None);
    }

    #[test]
    fn a_spread_is_shown_where_there_is_one() {
        let show = |numbers: &[f64]| Figure::of(numbers.to_vec()).map(|f| f.show());
        assert_eq!(show(&[1234.4]).as_deref(), Some("1,234"));
        assert_eq!(show(&[3.0, 1.0, 2.0]).as_deref(), Some("2 (1 to 3)"));
        assert_eq!(show(&[]), None);
    }

    #[test]
    fn a_verdict_says_where_the_spread_disagrees() {
        let verdict = Verdict {
            measured: 0.021,
            least: 0.018,
            most: 0.024,
        };
        assert_eq!(verdict.show(0.02), "MISSED, within the spread");
        assert_eq!(verdict.show(0.03), "met");
        assert_eq!(verdict.show(0.01), "MISSED");
    }
}
