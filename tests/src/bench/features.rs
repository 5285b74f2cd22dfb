//! Costs of single features of the agent, in its programs: the cost of a whole operation varies by more than these.

use clap::ValueEnum;

use super::attach::{ALL, Beside, With};
use super::figures::Figure;
use super::load::{Case, Measure};
use super::options::Options;
use super::results::Measured;
use super::table::{Out, thousands};

/// Labels of break-downs, each with its column.
pub(super) const BREAKDOWNS: [(&str, &str); 3] = [
    ("by=client,op", "break-down by client, op"),
    ("by=client,op,file", "by client, op, file"),
    (ALL, "by all"),
];

/// Programs that run when state is granted, recalled or returned, and when a connection comes or goes.
const RARE: [&str; 7] = [
    "nfsd_deleg",
    "nfsd_layout",
    "nfsd_launder",
    "nfsd_accept",
    "nfsd_closing",
    "nfsd_detach",
    "nfsd_upcall",
];

/// Text with the instructions in all programs with this attached, request by request.
pub(super) fn told(all: &[Measured], with: With) -> String {
    let (cases, of): (_, &dyn Fn(Case) -> Option<Figure>) = match with {
        With::ClientView => (Case::of_client_view(), &|case| {
            of_mounts(all, case, "client_")
        }),
        _ => (Case::of_features(), &|case| figure(all, with, case)),
    };
    let short = |case| of(case).map_or_else(|| "-".to_owned(), |f| f.short());
    cases.into_iter().map(short).collect::<Vec<_>>().join(" ")
}

fn figure(all: &[Measured], with: With, case: Case) -> Option<Figure> {
    figure_of(all, with, case, in_programs)
}

/// Figure over the measurements with `with` and of `case`.
fn figure_of(
    all: &[Measured],
    with: With,
    case: Case,
    of: impl Fn(&Measure) -> f64,
) -> Option<Figure> {
    let all = all.iter().filter(|measured| measured.with == with);
    let measures = all.flat_map(|measured| &measured.measures);
    let ours = measures.filter(|measure| measure.case == case);
    Figure::of(ours.map(of).collect())
}

pub(super) fn show(out: &mut Out, options: &Options, all: &[Measured]) {
    out.paragraph(&format!(
        "Instructions per request in the agent's programs on Linux {}, {} requests each; what each feature adds, which is \
         in the first column for those that are always there.",
        options.kernel,
        thousands(options.ops as f64)
    ));
    let mut head = vec!["request", "programs take"];
    head.extend(Beside::value_variants().iter().map(|beside| beside.name()));
    head.extend(BREAKDOWNS.map(|(_, column)| column));
    let rows: Vec<_> = Case::of_features()
        .into_iter()
        .filter_map(|case| row(all, case))
        .collect();
    out.table(&head, 1, &rows);
    let of_requests = all
        .iter()
        .filter(|measured| measured.with != With::ClientView);
    let (mut requests, mut runs) = (0, 0);
    for measure in of_requests.flat_map(|measured| &measured.measures) {
        requests += measure.ops;
        runs += rare(measure);
    }
    out.paragraph(&format!(
        "Programs of delegations, layouts, the laundromat, upcalls and of connections that come and go ran {} times in {} requests.",
        thousands(runs as f64),
        thousands(requests as f64)
    ));
    let mounts = |case: Case| {
        let of = |programs| of_mounts(all, case, programs);
        Some(vec![
            case.name(),
            of("client_")?.show(),
            of(RPC_END)?.show(),
        ])
    };
    let rows: Vec<_> = Case::of_client_view()
        .into_iter()
        .filter_map(mounts)
        .collect();
    if !rows.is_empty() {
        out.paragraph(
            "Instructions per RPC of a mount in the programs of --client: all of them, and the one at its end.",
        );
        out.table(&["RPC", "programs of --client take", "its end"], 1, &rows);
    }
}

/// Program at the end of each RPC. Without its runs the measurement saw no mount, and would look cheap.
const RPC_END: &str = "client_rpc_end";

/// True if every RPC was seen.
pub(super) fn sees_mounts(measure: &Measure) -> bool {
    let mut programs = measure.programs.iter();
    programs.any(|(name, program)| name.starts_with(RPC_END) && program.runs >= measure.ops)
}

/// Cost of the probe of mounts for an RPC, in programs whose names begin with `programs`.
fn of_mounts(all: &[Measured], case: Case, programs: &str) -> Option<Figure> {
    figure_of(all, With::ClientView, case, |measure| {
        let all = measure.programs.iter();
        let ours = all.filter(|(name, _)| name.starts_with(programs));
        ours.map(|(_, program)| program.ns).sum::<u64>() as f64 / measure.calls as f64
    })
}

fn row(all: &[Measured], case: Case) -> Option<Vec<String>> {
    let of = |with: With| figure(all, with, case);
    let agent = of(With::Agent)?;
    let mut row = vec![case.name(), agent.show()];
    let difference = |more: Option<f64>, less: Option<f64>| match (more, less) {
        (Some(more), Some(less)) => thousands((more - less).round()),
        _ => "-".to_owned(),
    };
    let median = |with: With| of(with).map(|figure| figure.median);
    for beside in Beside::value_variants() {
        let without = median(With::Without(*beside));
        row.push(difference(Some(agent.median), without));
    }
    for (by, _) in BREAKDOWNS {
        row.push(difference(median(With::BrokenDown(by)), Some(agent.median)));
    }
    Some(row)
}

/// Instructions of all programs for each operation, without programs that run for a reading of the agent.
fn in_programs(measure: &Measure) -> f64 {
    let programs = measure.programs.values();
    let of_requests = programs.filter(|program| program.runs * 2 >= measure.ops);
    let ns: u64 = of_requests.map(|program| program.ns).sum();
    ns as f64 / measure.ops as f64
}

fn rare(measure: &Measure) -> u64 {
    let is_rare = |name: &str| RARE.iter().any(|rare| name.starts_with(rare));
    let programs = measure.programs.iter();
    programs
        .filter(|(name, _)| is_rare(name))
        .map(|(_, program)| program.runs)
        .sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::load::Program;
    use super::*;

    fn measured(with: With, ns: u64) -> Measured {
        let program = |ns| Program { runs: 10, ns };
        let measure = |case| Measure {
            case,
            ops: 10,
            ns: 1_000_000,
            tenths: Vec::new(),
            calls: 10,
            programs: BTreeMap::from([
                ("nfsd_run#1".to_owned(), program(ns)),
                ("nfsd_deleg_r#2".to_owned(), program(0)),
            ]),
        };
        Measured {
            with,
            measures: Case::of_features().into_iter().map(measure).collect(),
            switches: None,
        }
    }

    #[test]
    fn a_feature_costs_what_programs_take_more_with_it() {
        let all = [
            measured(With::Agent, 15_000),
            measured(With::Agent, 15_020),
            measured(With::Agent, 15_010),
            measured(With::Without(Beside::Slots), 14_710),
            measured(With::BrokenDown("by=client,op"), 17_010),
        ];
        let case = Case::of_features()[0];
        let shown = row(&all, case).expect("it was measured");
        let numbers: Vec<&str> = shown[1..].iter().map(String::as_str).collect();
        let expected = ["1,501 (1,500 to 1,502)", "30", "-", "-", "200", "-", "-"];
        assert_eq!(numbers, expected);
        assert_eq!(all[0].measures.iter().map(rare).sum::<u64>(), 6 * 10);
        assert_eq!(row(&all[3..], case), None);
        let mounted = Case::of_client_view()[0];
        assert_eq!(of_mounts(&all, mounted, "client_"), None);
        let program = |runs, ns| Program { runs, ns };
        let of_mount = Measure {
            case: mounted,
            ops: 10,
            ns: 1_000_000,
            tenths: Vec::new(),
            calls: 10,
            programs: BTreeMap::from([
                ("client_rpc_end#3".to_owned(), program(10, 5_000)),
                ("client_sleep#4".to_owned(), program(10, 1_000)),
                ("nfsd_run#5".to_owned(), program(10, 9_000)),
            ]),
        };
        assert!(sees_mounts(&of_mount) && !sees_mounts(&all[0].measures[0]));
        let all = [Measured {
            with: With::ClientView,
            measures: vec![of_mount],
            switches: None,
        }];
        let told = |programs| of_mounts(&all, mounted, programs).map(|f| f.median);
        assert_eq!([told("client_"), told(RPC_END)], [Some(600.0), Some(500.0)]);
    }
}
