//! `nfscope experiment table`: configurations beside each other, and whether more rounds are needed.

use super::experiment_analyse::measured_where_there;
use super::experiment_file::{PlanFile, Until};
use super::experiment_plans::{read, recorded};
use super::experiment_response::Asked;
use crate::cli::experiment::TableArgs;
use nfscope_baseline::experiment::{
    Measured, Plan, Table, table, table_csv, table_markdown, table_text, widest,
};
use nfscope_baseline::store::{Entry, Store};
use nfscope_stats::Looks;
use nfscope_text::console::{json, print, say};
use nfscope_text::units::percent;
use std::path::Path;

/// Prints the table of an experiment.
pub(super) fn run(args: &TableArgs) -> anyhow::Result<()> {
    let path = &args.store.path;
    let plan = read(path, &args.name)?;
    let (_, made) = of(path, &plan, &args.responses, args.columns.as_deref())?;
    Ok(print(&match (args.json, args.markdown, args.csv) {
        (true, ..) => json(&made)?,
        (_, true, _) => table_markdown(&made),
        (.., true) => table_csv(&made),
        _ => table_text(&made),
    })?)
}

/// Prints the table that a plan file asks for.
pub(super) fn of_file(store: &Path, file: &PlanFile) -> anyhow::Result<()> {
    let Some(wanted) = &file.table else {
        return Ok(());
    };
    let (_, made) = of(
        store,
        &file.plan,
        &wanted.responses,
        wanted.columns.as_deref(),
    )?;
    Ok(print(&table_text(&made))?)
}

fn of(
    path: &Path,
    plan: &Plan,
    responses: &[String],
    columns: Option<&str>,
) -> anyhow::Result<(Vec<Measured>, Table)> {
    let entries = recorded(path, plan)?;
    let store = Store::open(path)?;
    let done: Vec<&Entry> = entries.iter().flatten().collect();
    let asked = responses.iter().map(|r| Asked::any(r, &store, &done));
    let asked: Vec<Asked> = asked.collect::<anyhow::Result<_>>()?;
    let responses = measured_where_there(&store, &entries, &asked)?;
    let made = table(plan, &responses, columns).map_err(anyhow::Error::msg)?;
    Ok((responses, made))
}

/// Whether every interval is as narrow as it should be; `None` where another round may make it so. The looks are those that a campaign
/// without a pause would have had: one that has ended is not begun again.
///
/// # Errors
/// When the runs cannot be read.
pub(super) fn is_enough(
    store: &Path,
    file: &PlanFile,
    until: &Until,
) -> anyhow::Result<Option<bool>> {
    let Some(wanted) = &file.table else {
        return Ok(Some(true));
    };
    let (responses, _) = of(store, &file.plan, &wanted.responses, None)?;
    let blocks = file.plan.runs()?.into_iter().map(|run| run.block + 1);
    let rounds = blocks.max().unwrap_or(0);
    let mut looks = Looks::at_runs();
    let mut enough = false;
    for made in 1..=rounds {
        if enough || !looks.is_due(made) {
            continue;
        }
        let found = widest(&file.plan, &responses, made);
        let (width, independent) = found.unwrap_or((f64::INFINITY, 0.0));
        if width.is_finite() && made == rounds {
            say(&format!(
                "{made} rounds: the widest interval is ± {}",
                percent(width)
            ));
        }
        enough = looks.enough(made, independent, width <= until.ci);
    }
    Ok(match enough {
        true => Some(true),
        false => (rounds >= until.replicates).then_some(false),
    })
}
