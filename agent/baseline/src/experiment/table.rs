//! The table of a campaign: each configuration with its interval, and its ratio to the first configuration by pairs within rounds.

use crate::beside::{Beside, judge, over_rounds};
use crate::experiment::plan::Plan;
use crate::experiment::result::{Measured, Unit};
use nfscope_stats::experiment::Run;
use nfscope_stats::mean_interval::Interval;
use nfscope_stats::{Change, MIN_EFFECT, are_alike, paired, paired_rounds};
use serde::Serialize;
use std::collections::BTreeMap;

/// Least number of rounds for an interval.
const MIN_ROUNDS: usize = 3;
/// Most cells that a caveat names.
const MOST_NAMED: usize = 6;

/// Tables of all responses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Name of the experiment.
    pub name: String,
    /// Most rounds of a cell.
    pub rounds: usize,
    /// Factor whose levels are columns; `None` if each response is a column.
    pub by: Option<String>,
    /// Factors of the rows.
    pub factors: Vec<String>,
    /// Table of each response.
    pub responses: Vec<ResponseTable>,
    /// Comparisons that p values are corrected for.
    pub comparisons: usize,
    /// Caveats for the reader.
    pub caveats: Vec<String>,
}

/// Table of one response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResponseTable {
    /// Name of the response.
    pub response: String,
    /// Unit of the response.
    pub unit: Unit,
    /// Levels of the columns; a single one without a name if no factor has columns.
    pub columns: Vec<String>,
    /// Configurations; the others are compared with the first one.
    pub rows: Vec<TableRow>,
}

/// A configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableRow {
    /// `version=4.1 nconnect=4`
    pub configuration: String,
    /// Level of each factor of the rows.
    pub levels: Vec<String>,
    /// Cell of each column: the mean of the rounds, with half of its 95 % interval from three rounds on; `None` without a run.
    pub cells: Vec<Option<Cell>>,
    /// Geometric mean of the columns; `None` with one column, or if a cell has no run.
    pub geometric_mean: Option<f64>,
    /// Ratio to the first configuration, by pairs within rounds and over all columns.
    pub ratio: Option<f64>,
    /// Ends of the ratio's 95 % interval; `None` for fewer than six rounds.
    pub interval: Option<[f64; 2]>,
    /// Corrected p value of a difference beyond 2 %.
    pub p: Option<f64>,
    /// True if there is evidence of a difference beyond 2 %, by the corrected p value.
    pub found: bool,
    /// Smallest ratio above 1 that this number of rounds finds in four of five campaigns; `None` unless nothing was found.
    pub finds: Option<f64>,
}

/// A configuration at one level of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cell {
    /// Mean over the rounds.
    #[serde(flatten)]
    pub mean: Interval,
    /// Number of rounds.
    pub rounds: usize,
}

/// Values of each cell by its row and column, each with its round.
struct Grid {
    rows: Vec<Vec<usize>>,
    columns: Vec<usize>,
    values: BTreeMap<(usize, usize), BTreeMap<usize, f64>>,
}

impl Grid {
    /// `by` is the factor of the columns.
    fn of(plan: &Plan, runs: &[Run], m: &Measured, by: Option<usize>) -> Grid {
        let counts = plan.counts();
        let others: Vec<usize> = (0..counts.len()).filter(|i| Some(*i) != by).collect();
        let mut rows = Vec::new();
        let mut values: BTreeMap<(usize, usize), BTreeMap<usize, f64>> = BTreeMap::new();
        let all = plan.combinations().unwrap_or_default();
        let row_of =
            |run: &Run| -> Vec<usize> { others.iter().map(|i| run.levels.at(*i)).collect() };
        for levels in all {
            let row = row_of(&Run { block: 0, levels });
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        let made = (1..).zip(runs);
        let made = made.filter(|(number, _)| !m.missing.contains(number));
        for ((_, run), data) in made.zip(&m.runs) {
            let Some(row) = rows.iter().position(|r| *r == row_of(run)) else {
                continue;
            };
            let column = by.map_or(0, |i| run.levels.at(i));
            let cell = values.entry((row, column)).or_default();
            cell.insert(run.block, data.response);
        }
        Grid {
            rows,
            columns: (0..by.map_or(1, |i| counts[i])).collect(),
            values,
        }
    }

    fn cell(&self, row: usize, column: usize) -> Vec<f64> {
        let values = self.values.get(&(row, column));
        values.map_or(Vec::new(), |v| v.values().copied().collect())
    }

    /// Levels of cells whose interval is wider because neighbouring rounds are correlated.
    fn widened(&self, plan: &Plan, by: Option<usize>) -> Vec<String> {
        let cells = self.values.iter().filter(|(_, values)| {
            let values: Vec<f64> = values.values().copied().collect();
            values.len() >= MIN_ROUNDS && are_alike(&values)
        });
        let named = cells.map(|((row, column), _)| {
            let column = by.map(|i| (&plan.factors[i], *column));
            let levels = named_levels(plan, by, &self.rows[*row]).into_iter();
            let levels = levels.map(|(f, l)| format!("{f}={l}"));
            let of_column = column.map(|(f, at)| format!("{}={}", f.name, f.level(at)));
            levels.chain(of_column).collect::<Vec<_>>().join(" ")
        });
        named.collect()
    }

    /// Mean of the logarithms of all cells, for each round that has all cells.
    fn means(&self) -> Vec<f64> {
        let mut means: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (round, v) in self.values.values().flatten() {
            means.entry(*round).or_default().push(v.ln());
        }
        let whole = means.values().filter(|of| of.len() == self.values.len());
        whole
            .map(|of| of.iter().sum::<f64>() / of.len() as f64)
            .collect()
    }

    /// Logarithms of a row's ratio to the first row: the mean of all columns, for each round that has all cells of both rows.
    fn differences(&self, row: usize) -> Vec<f64> {
        let value = |row, column, round| self.values.get(&(row, column))?.get(&round).copied();
        let rounds = self.values.values().flat_map(|v| v.keys());
        let rounds: std::collections::BTreeSet<usize> = rounds.copied().collect();
        let of = |round: usize| {
            let each = self.columns.iter().map(|c| {
                let ratio = value(row, *c, round)?.ln() - value(0, *c, round)?.ln();
                ratio.is_finite().then_some(ratio)
            });
            let each: Vec<f64> = each.collect::<Option<_>>()?;
            Some(each.iter().sum::<f64>() / each.len() as f64)
        };
        rounds.into_iter().filter_map(of).collect()
    }
}

/// Tables of these responses, with the levels of this factor as columns.
///
/// # Errors
/// When there is no such factor or design.
pub fn table(plan: &Plan, responses: &[Measured], by: Option<&str>) -> Result<Table, String> {
    let runs = plan.runs().map_err(|e| e.to_string())?;
    let by = by.map(|name| plan.factor_named(name)).transpose()?;
    let (mut tables, mut changes) = (Vec::new(), Vec::new());
    for m in responses {
        let grid = Grid::of(plan, &runs, m, by);
        let rows = (0..grid.rows.len()).map(|row| one_row(plan, &grid, row, by));
        let (rows, of): (Vec<TableRow>, Vec<Option<Change>>) = rows.unzip();
        changes.push(of);
        tables.push(ResponseTable {
            response: m.name.clone(),
            unit: m.unit,
            columns: by.map_or(vec![String::new()], |i| plan.factors[i].levels.clone()),
            rows,
        });
    }
    let tested = tables.iter_mut().zip(&changes);
    let tested = tested.flat_map(|(t, of)| t.rows.iter_mut().zip(of));
    let mut tested: Vec<(&mut TableRow, Change)> =
        tested.filter_map(|(row, c)| Some((row, (*c)?))).collect();
    let changes: Vec<(Change, f64)> = tested.iter().map(|(_, c)| (*c, 1.0)).collect();
    let comparisons = changes.len();
    for ((row, _), judged) in tested.iter_mut().zip(judge(&changes)) {
        row.p = Some(judged.p);
        row.found = judged.found;
        row.finds = (!judged.found).then_some(judged.finds);
    }
    let cells = tables.iter().flat_map(|t| &t.rows).flat_map(|r| &r.cells);
    let rounds = cells.flatten().map(|c| c.rounds).max().unwrap_or(0);
    let missing = responses.iter().filter(|m| !m.missing.is_empty());
    let missing = missing.map(|m| {
        let (missing, all) = (m.missing.len(), runs.len());
        format!(
            "{}: {missing} of {all} runs are missing or have none",
            m.name
        )
    });
    let waves = responses.iter().filter_map(|m| {
        let named = Grid::of(plan, &runs, m, by).widened(plan, by);
        (!named.is_empty()).then(|| {
            format!(
                "{}: neighbouring rounds of {} resemble each other, so that a disturbance lasts for several. These intervals are wider \
                 for it, and may hold in fewer than 95 % of such campaigns. Ratios are of pairs within rounds",
                m.name,
                listed(&named)
            )
        })
    });
    let caveats = missing.chain(waves);
    Ok(Table {
        name: plan.name.clone(),
        rounds,
        by: by.map(|i| plan.factors[i].name.clone()),
        factors: (plan.factors.iter().enumerate())
            .filter(|(i, _)| Some(*i) != by)
            .map(|(_, f)| f.name.clone())
            .collect(),
        responses: tables,
        comparisons,
        caveats: caveats.collect(),
    })
}

/// Names of the factors, without the factor `by`, with their levels in a row.
fn named_levels(plan: &Plan, by: Option<usize>, row: &[usize]) -> Vec<(String, String)> {
    let factors = plan.factors.iter().enumerate();
    let factors = factors.filter(|(i, _)| Some(*i) != by);
    let named = factors.zip(row);
    named
        .map(|((_, f), at)| (f.name.clone(), f.level(*at)))
        .collect()
}

/// First of these names, and the number of the others.
fn listed(names: &[String]) -> String {
    let (told, more) = names.split_at(names.len().min(MOST_NAMED));
    match more.len() {
        0 => told.join(", "),
        n => format!("{} and {n} more", told.join(", ")),
    }
}

fn one_row(plan: &Plan, grid: &Grid, row: usize, by: Option<usize>) -> (TableRow, Option<Change>) {
    let cells = grid.columns.iter().map(|column| {
        let values = grid.cell(row, *column);
        let mean = over_rounds(&values, MIN_ROUNDS)?;
        let rounds = values.len();
        Some(Cell { mean, rounds })
    });
    let cells: Vec<Option<Cell>> = cells.collect();
    let means: Option<Vec<f64>> = cells.iter().map(|c| Some((*c)?.mean.mean.ln())).collect();
    let means = means.filter(|m| m.len() > 1 && m.iter().all(|v| v.is_finite()));
    let differences = match row {
        0 => Vec::new(),
        _ => grid.differences(row),
    };
    let beside = Beside::of(&differences);
    let levels = named_levels(plan, by, &grid.rows[row]);
    let words: Vec<_> = levels.iter().map(|(f, l)| format!("{f}={l}")).collect();
    let row = TableRow {
        configuration: words.join(" "),
        levels: levels.into_iter().map(|(_, l)| l).collect(),
        geometric_mean: means.map(|m| (m.iter().sum::<f64>() / m.len() as f64).exp()),
        cells,
        ratio: beside.ratio,
        interval: beside.interval,
        p: None,
        found: false,
        finds: None,
    };
    (row, beside.change)
}

/// Half the width of the widest interval of any cell in the first `rounds`, as a part of its mean, and the fewest independent rounds.
/// `None` with too few rounds, and for values that have no logarithm.
///
/// Disturbances that last longer than a round affect all its cells. Independent rounds are therefore those of the series of the means of
/// rounds: a campaign that ends as soon as an interval is narrow must have seen it. A disturbance of one cell alone widens its interval.
pub fn widest(plan: &Plan, responses: &[Measured], rounds: usize) -> Option<(f64, f64)> {
    let runs = plan.runs().ok()?;
    let mut widest = (0.0f64, f64::INFINITY);
    for m in responses {
        let mut grid = Grid::of(plan, &runs, m, None);
        for cell in grid.values.values_mut() {
            cell.retain(|round, _| *round < rounds);
        }
        for cell in grid.values.values() {
            let logarithms: Vec<f64> = cell.values().map(|v| v.ln()).collect();
            if !logarithms.iter().all(|l| l.is_finite()) {
                return None;
            }
            let r = paired_rounds(&logarithms, MIN_EFFECT)?.ratio;
            widest.0 = widest.0.max((r.high - r.low) / 2.0 / r.value);
        }
        let (_, stretches) = paired(&grid.means(), 0.0, MIN_EFFECT)?;
        widest.1 = widest.1.min(stretches);
    }
    widest.0.is_finite().then_some(widest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::{Fraction, factor};
    use crate::experiment::table_text::{csv, markdown, text};
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use rand_distr::{Distribution, StandardNormal};

    fn plan(rounds: usize) -> Plan {
        let of = |name: &str, levels: &[&str]| {
            factor(name, levels.iter().map(|l| (*l).to_owned()).collect()).unwrap()
        };
        Plan {
            name: "four".into(),
            factors: vec![
                of("version", &["4.0", "4.1"]),
                of("processes", &["10", "20", "50"]),
            ],
            replicates: rounds,
            fraction: Fraction::Full,
            foldover: false,
            centre: 0,
            seed: 3,
            more: Vec::new(),
        }
    }

    /// Throughput that grows with the square root of processes; 4.1 has this factor; rounds differ by 20 %, blocks by 5 %.
    fn measured(plan: &Plan, factor: f64, seed: u64) -> Measured {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut z = || -> f64 { StandardNormal.sample(&mut random) };
        let rounds: Vec<f64> = (0..200).map(|_| 0.2 * z()).collect();
        let runs = plan.runs().unwrap().into_iter().map(|run| {
            let more = if run.levels.at(0) == 1 { factor } else { 1.0 };
            let processes = [10.0f64, 20.0, 50.0][run.levels.at(1)];
            100.0 * processes.sqrt() * more * (rounds[run.block] + 0.05 * z()).exp()
        });
        Measured::of_loads(runs)
    }

    #[test]
    fn a_table_has_curves_ratios_and_all_formats() {
        let plan = plan(8);
        let m = measured(&plan, 1.3, 5);
        let t = table(&plan, std::slice::from_ref(&m), Some("processes")).unwrap();
        let rows = &t.responses[0].rows;
        assert_eq!((rows.len(), t.rounds, t.comparisons), (2, 8, 1));
        assert_eq!(rows[1].configuration, "version=4.1");
        assert_eq!((rows[0].ratio, rows[0].p), (None, None));
        let [low, high] = rows[1].interval.unwrap();
        // Differences between rounds cancel within pairs.
        assert!(low < 1.3 && 1.3 < high && high - low < 0.15, "{rows:?}");
        assert!(rows[1].found && rows[1].finds.is_none());
        let cells: Vec<f64> = rows[0].cells.iter().map(|c| c.unwrap().mean.mean).collect();
        let product: f64 = cells.iter().product();
        assert!((rows[0].geometric_mean.unwrap() / product.cbrt() - 1.0).abs() < 1e-12);
        let shown = text(&t);
        for part in [
            "processes=10",
            "GEO MEAN",
            "version=4.1 *",
            "95 % CI",
            "8 rounds",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let shown = markdown(&t);
        assert!(shown.contains("| version=4.1 * |"), "{shown}");
        assert_eq!(shown.lines().filter(|l| l.starts_with("| ---")).count(), 1);
        let shown = csv(&t);
        assert_eq!(shown.lines().count(), 7, "{shown}");
        assert!(
            shown.starts_with("response,version,processes,rounds,mean,low,high,ratio,"),
            "{shown}"
        );
        // Without a factor of columns each response is one.
        let other = Measured {
            name: "latency_seconds of the load".into(),
            unit: Unit::Seconds,
            ..measured(&plan, 1.0, 6)
        };
        let t = table(&plan, &[m, other], None).unwrap();
        let shown = text(&t);
        assert_eq!((t.responses[0].rows.len(), t.comparisons), (6, 10));
        assert!(
            shown.contains("  mbs") && shown.contains("latency_seconds"),
            "{shown}"
        );
        assert!(table(&plan, &[], Some("nconnect")).is_err());
    }

    /// Without a difference a ratio is found in at most 5 % of campaigns, by the bound of four standard errors. A ratio of 1.1 is found in
    /// most.
    #[test]
    fn campaigns_find_what_is_there() {
        let plan = plan(8);
        let found = |factor: f64| {
            let of = |seed| {
                let m = measured(&plan, factor, seed);
                let t = table(&plan, &[m], Some("processes")).unwrap();
                usize::from(t.responses[0].rows[1].found)
            };
            (0..1000u64).map(of).sum::<usize>()
        };
        let (none, some) = (found(1.0), found(1.1));
        println!("found without a difference in {none}, with 1.1 in {some} of 1000");
        assert!(none <= 77 && some >= 800, "{none} {some}");
    }

    /// The cell with the wider interval is named, and no other, even if the mean of all cells shows no wave.
    #[test]
    fn a_cell_with_a_wider_interval_is_named() {
        let plan = plan(24);
        let runs = plan.runs().unwrap();
        let mut random = SmallRng::seed_from_u64(9);
        let mut z = || -> f64 { StandardNormal.sample(&mut random) };
        let noise: Vec<f64> = (0..runs.len()).map(|_| 0.5 * z()).collect();
        let mut m = measured(&plan, 1.0, 1);
        for ((run, data), own) in runs.iter().zip(&mut m.runs).zip(noise) {
            // The slow cell has six rounds up and six down. Other cells change in each round, and by more.
            let slow = if run.block / 6 % 2 == 0 { 1.0 } else { -1.0 };
            let fast = if run.block % 2 == 0 { 1.0 } else { -1.0 };
            let is_slow = run.levels.at(0) == 1 && run.levels.at(1) == 2;
            data.response = 100.0 + if is_slow { 4.0 * slow } else { 10.0 * fast } + own;
        }
        assert!(!are_alike(&Grid::of(&plan, &runs, &m, None).means()));
        let caveats = |by| table(&plan, std::slice::from_ref(&m), by).unwrap().caveats;
        for by in [None, Some("processes")] {
            let all = caveats(by);
            let [one] = &all[..] else { panic!("{all:?}") };
            assert!(
                one.contains("rounds of version=4.1 processes=50 resemble") && !one.contains("4.0"),
                "{one}"
            );
        }
        let wide = table(&plan, std::slice::from_ref(&m), None).unwrap();
        let half = |row: usize| {
            let cell = wide.responses[0].rows[row].cells[0].unwrap();
            cell.mean.half_width.unwrap()
        };
        // The deviation of this cell is 4, and half of the interval by Student's t would be 2.07 standard errors.
        let mut rows = wide.responses[0].rows.iter();
        let slow = rows.position(|r| r.configuration == "version=4.1 processes=50");
        assert!(half(slow.unwrap()) > 1.5 * 2.07 * 4.0 / 24f64.sqrt());
        // A steady campaign has no caveat.
        let steady = measured(&plan, 1.0, 3);
        let t = table(&plan, &[steady], None).unwrap();
        assert_eq!(t.caveats, Vec::<String>::new());
    }

    #[test]
    fn few_cells_are_named() {
        let names: Vec<String> = (0..8).map(|i| format!("a={i}")).collect();
        assert_eq!(listed(&names[..2]), "a=0, a=1");
        assert_eq!(listed(&names), "a=0, a=1, a=2, a=3, a=4, a=5 and 2 more");
    }

    /// The widest interval is that of a cell, and is known from six rounds on.
    #[test]
    fn the_widest_interval_ends_a_campaign() {
        let few = plan(5);
        assert_eq!(widest(&few, &[measured(&few, 1.0, 1)], usize::MAX), None);
        let many = plan(40);
        let (width, rounds) = widest(&many, &[measured(&many, 1.0, 1)], usize::MAX).unwrap();
        assert!(
            (0.03..0.2).contains(&width) && rounds > 10.0,
            "{width} {rounds}"
        );
    }
}
