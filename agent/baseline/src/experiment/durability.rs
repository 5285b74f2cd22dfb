//! Levels of a factor that differ in the durability of acknowledged writes.

use crate::durability::{Direction, Durability};
use crate::experiment::plan::Plan;
use crate::experiment::result::RunData;
use nfscope_stats::experiment::Run;
use nfscope_text::units::percent;

/// Shares of writes at risk that differ by more than this differ.
const DIFFERS: f64 = 0.01;

/// Sentences on each factor whose levels differ, and on unknown durability. Runs and data are in the order of the runs.
pub(super) fn differs(plan: &Plan, runs: &[Run], data: &[RunData]) -> Vec<String> {
    let mut all = Vec::new();
    for (i, factor) in plan.factors.iter().enumerate() {
        let level = |high: bool| {
            let of = runs.iter().zip(data);
            let of = of.filter(move |(run, _)| (run.levels >> i & 1 == 1) == high);
            Durability::merged(of.map(|(_, d)| &d.durability))
        };
        let [low, high] = [level(false), level(true)];
        let [low_name, high_name] = &factor.levels;
        let (change, unknown) = match (low.change(&high), high.change(&low)) {
            (Some(change), _) => (change, high_name),
            (None, Some(change)) => (change, low_name),
            (None, None) => continue,
        };
        let risk = |d: &Durability, level: &str| {
            let share = d.at_risk().map_or("an unknown share".to_owned(), percent);
            format!("{share} with {}={level}", factor.name)
        };
        let both = format!("{}, {}", risk(&low, low_name), risk(&high, high_name));
        all.push(match change.direction {
            Direction::Unknown => format!(
                "Durability may differ between the levels of {}: it is not known with {}={unknown}. What is shorter there may be \
                 shorter because of that.",
                factor.name, factor.name
            ),
            Direction::Less | Direction::More => format!(
                "Durability differs between the levels of {}. Of the writes that clients took for durable a crash of the server loses \
                 {both}. What {} gains, alone and with other factors, may be the price of these writes.",
                factor.name, factor.name
            ),
        });
    }
    let each: Vec<f64> = data.iter().filter_map(|d| d.durability.at_risk()).collect();
    let (low, high) = each
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    if all.is_empty() && high > low + DIFFERS {
        all.push(format!(
            "Durability differs between runs: a crash of the server loses {} to {} of the writes that clients took for durable. What is \
             shorter in a run may be shorter because of that.",
            percent(low),
            percent(high)
        ));
    }
    let unknown = data.iter().find_map(|d| d.durability.unknown());
    if let (true, Some(why)) = (all.is_empty(), unknown) {
        all.push(format!(
            "Whether acknowledged writes were durable is not known in all runs: {why}."
        ));
    }
    all
}
