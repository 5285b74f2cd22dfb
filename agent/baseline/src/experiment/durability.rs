//! Levels of a factor that differ in the durability of acknowledged writes.

use crate::durability::{CACHE, DIFFERS, Direction, Durability};
use crate::experiment::plan::{Factor, Plan};
use crate::experiment::result::RunData;
use nfscope_stats::experiment::Run;
use nfscope_text::units::percent;

/// Sentences about each factor whose levels differ in durability, and about unknown durability. Runs and data are in the order of the runs.
pub(super) fn differs(plan: &Plan, runs: &[Run], data: &[RunData]) -> Vec<String> {
    let mut all = Vec::new();
    for (i, factor) in plan.factors.iter().enumerate() {
        let level = |at: usize| {
            let of = runs.iter().zip(data);
            let of = of.filter(move |(run, _)| run.levels.at(i) == at);
            Durability::merged(of.map(|(_, d)| &d.durability))
        };
        // Each level is compared with the first one.
        let others = 1..factor.levels.len();
        all.extend(others.filter_map(|at| between(factor, at, [level(0), level(at)])));
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

/// Sentence about the first level of a factor and another one, if their durability differs or may differ.
fn between(factor: &Factor, other: usize, [low, high]: [Durability; 2]) -> Option<String> {
    let (change, lossy) = match (low.change(&high), high.change(&low)) {
        (Some(change), _) if change.direction == Direction::More => (change, 0),
        (Some(change), _) => (change, 1),
        (None, change) => (change?, 0),
    };
    let level = |i: usize| format!("{}={}", factor.name, factor.levels[i * other]);
    let why = match (change.unflushed, change.direction) {
        (Some(device), _) => format!(
            "with {}, {device} is never asked to flush its write cache, as it is with {}: {CACHE}",
            level(lossy),
            level(1 - lossy)
        ),
        (None, Direction::Unknown) => format!("it is not known with {}", level(lossy)),
        (None, Direction::Less | Direction::More) => {
            let risk = |d: &Durability, i| {
                let share = d.at_risk().map_or("an unknown share".to_owned(), percent);
                format!("{share} with {}", level(i))
            };
            return Some(format!(
                "Durability differs between the levels of {}. Of the writes that clients took for durable a crash of the server loses \
                 {}, {}. What {} gains, alone and with other factors, may be the price of these writes.",
                factor.name,
                risk(&low, 0),
                risk(&high, 1),
                factor.name
            ));
        }
    };
    Some(format!(
        "Durability may differ between the levels of {}: {why}. What is shorter there may be shorter because of that.",
        factor.name
    ))
}
