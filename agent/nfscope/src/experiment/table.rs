//! `nfscope experiment table`: configurations side by side.

use crate::experiment::analyse::measured_where_there;
use crate::experiment::cli::TableArgs;
use crate::experiment::file::PlanFile;
use crate::experiment::plans::{read, recorded};
use crate::experiment::response::Asked;
use nfscope_baseline::experiment::{
    Measured, Plan, Table, table, table_csv, table_markdown, table_text,
};
use nfscope_baseline::store::{Entry, Store};
use nfscope_text::console::{json, print};
use std::path::Path;

/// Prints the table of an experiment.
pub(super) fn run(args: &TableArgs) -> anyhow::Result<()> {
    let path = &args.store.path;
    let plan = read(path, &args.name)?;
    let made = of(path, &plan, &args.responses, args.columns.as_deref())?;
    Ok(print(&match (args.json, args.markdown, args.csv) {
        (true, ..) => json(&made)?,
        (_, true, _) => table_markdown(&made),
        (.., true) => table_csv(&made),
        _ => table_text(&made),
    })?)
}

/// Prints the table that a plan file asks for, if any.
pub(super) fn of_file(store: &Path, file: &PlanFile) -> anyhow::Result<()> {
    let Some(wanted) = &file.table else {
        return Ok(());
    };
    let columns = wanted.columns.as_deref();
    let made = of(store, &file.plan, &wanted.responses, columns)?;
    Ok(print(&table_text(&made))?)
}

fn of(
    store: &Path,
    plan: &Plan,
    responses: &[String],
    columns: Option<&str>,
) -> anyhow::Result<Table> {
    let responses = measured(store, plan, responses)?;
    table(plan, &responses, columns).map_err(anyhow::Error::msg)
}

/// Values of the table's responses in all recorded runs; empty if the plan file has no table.
///
/// # Errors
/// When the runs cannot be read.
pub(super) fn responses(store: &Path, file: &PlanFile) -> anyhow::Result<Vec<Measured>> {
    match &file.table {
        Some(wanted) => measured(store, &file.plan, &wanted.responses),
        None => Ok(Vec::new()),
    }
}

fn measured(path: &Path, plan: &Plan, responses: &[String]) -> anyhow::Result<Vec<Measured>> {
    let entries = recorded(path, plan)?;
    let store = Store::open(path)?;
    let done: Vec<&Entry> = entries.iter().flatten().collect();
    let asked = responses.iter().map(|r| Asked::any(r, &store, &done));
    let asked: Vec<Asked> = asked.collect::<anyhow::Result<_>>()?;
    measured_where_there(&store, &entries, &asked)
}
