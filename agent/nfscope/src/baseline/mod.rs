//! `nfscope baseline` and `nfscope capacity`.

pub mod cli;
pub(crate) mod compare;
mod export_names;
pub(crate) mod import;
pub(crate) mod open;
pub mod record;

use crate::cli::{BaselineCommand, CapacityArgs, CheckStoreArgs, ShowArgs};
use anyhow::Context;
use nfscope_baseline::capacity;
use nfscope_baseline::series::Grid;
use nfscope_baseline::store::Store;
use nfscope_baseline::{changes, list, series, show, summary, window};
use nfscope_model::family;
use nfscope_text::console::{self, one_line, print, say};
use nfscope_text::units;
use nfscope_whatif::{Prediction, fullest, render_fullest};
use serde::Serialize;

/// Runs a command of `nfscope baseline`; returns the exit code.
///
/// # Errors
/// When the command fails; the error says what to do.
pub fn run(command: &BaselineCommand) -> anyhow::Result<u8> {
    match command {
        BaselineCommand::Record(args) => return record::run(args),
        BaselineCommand::List(args) => {
            let entries = Store::read(&args.store.path)?.list()?;
            print(&match args.json {
                true => console::json(&entries)?,
                false => list::table(&entries),
            })?;
        }
        BaselineCommand::Show(args) => {
            let s = summary::summary(&Store::open(&args.store.path)?, &args.name)?;
            print(&match args.json {
                true => console::json(&s)?,
                false => show::page(&s),
            })?;
        }
        BaselineCommand::Compare(args) => return compare::run(args),
        BaselineCommand::Open(args) => open::run(args)?,
        BaselineCommand::Changes(args) => print(&changed(args)?)?,
        BaselineCommand::Check(args) => check(args)?,
        BaselineCommand::Rm(args) => Store::open(&args.store.path)?.remove(&args.names)?,
        BaselineCommand::Export(args) => {
            let store = Store::open(&args.store.path)?;
            if args.anonymise {
                let file = &args.file;
                let (windows, lost) = export_names::export(&store, &args.name, file, args.force)?;
                say(&format!(
                    "wrote {windows} windows of `{}` to {} with pseudonyms; {lost} series left out",
                    args.name,
                    file.display(),
                ));
                return Ok(0);
            }
            let entry = store.export(&args.name, &args.file, args.force)?;
            say(&format!(
                "wrote {} windows of `{}` to {}",
                entry.windows,
                args.name,
                args.file.display()
            ));
        }
        BaselineCommand::Import(args) => {
            let mut store = Store::create(&args.store.path)?;
            let Some(file) = &args.file else {
                say(&import::run(args, &mut store)?);
                return Ok(0);
            };
            for name in store.import(file, args.name.as_deref())? {
                say(&format!(
                    "imported `{name}`; `nfscope baseline show {name}` shows it"
                ));
            }
        }
    }
    Ok(0)
}

fn check(args: &CheckStoreArgs) -> anyhow::Result<()> {
    let checked = Store::open(&args.store.path)?.check(&args.names)?;
    let mut damaged = 0;
    for c in &checked {
        let windows = units::many(c.entry.windows as f64, "window");
        let result = match &c.fault {
            Some(fault) => {
                damaged += 1;
                fault.to_string()
            }
            None if c.entry.has_checksums() => format!("{windows}, as recorded"),
            None => format!("{windows}, readable; recorded before there were checksums"),
        };
        print(&(one_line(&format!("{}: {result}", c.entry.metadata.name)) + "\n"))?;
    }
    anyhow::ensure!(
        damaged == 0,
        "{} damaged",
        units::many(f64::from(damaged), "baseline")
    );
    Ok(())
}

fn changed(args: &ShowArgs) -> anyhow::Result<String> {
    let store = Store::open(&args.store.path)?;
    let entry = store.entry(&args.name)?;
    let count = usize::try_from(entry.windows).unwrap_or(usize::MAX);
    let grid = Grid::Windows(count.div_ceil(changes::MAX_WINDOWS).max(1));
    let c = series::read_part(&store, &entry, changes::FAMILIES, None, Some(grid))?;
    let found = changes::changes(&c);
    Ok(match args.json {
        true => console::json(&found)?,
        false => changes::render(&found),
    })
}

/// Text that `nfscope capacity` prints.
///
/// # Errors
/// When there is no such baseline, it cannot be read, or it has no requests.
pub fn capacity(args: &CapacityArgs) -> anyhow::Result<String> {
    let store = Store::open(&args.store.path)?;
    match &args.names[..] {
        [name] => capacity_of_one(&store, name, args.json),
        names => capacity_of_several(&store, names, args.json),
    }
}

fn without_requests(name: &str) -> String {
    format!("`{name}` contains no requests; fix: record while clients are active")
}

fn capacity_of_several(store: &Store, names: &[String], json: bool) -> anyhow::Result<String> {
    let mut all = Vec::new();
    for (i, name) in names.iter().enumerate() {
        anyhow::ensure!(
            !names[..i].contains(name),
            "`{name}` is named twice; fix: name each recording once"
        );
        let c = series::read(store, &store.entry(name)?, capacity::FAMILIES)?;
        capacity::capacity(&c).with_context(|| without_requests(name))?;
        all.push(c);
    }
    let result = capacity::several(&all).context("there is nothing to compute a capacity from")?;
    Ok(match json {
        true => console::json(&result)?,
        false => capacity::render_several(&result),
    })
}

fn capacity_of_one(store: &Store, name: &str, json: bool) -> anyhow::Result<String> {
    let entry = store.entry(name)?;
    let c = series::read(store, &entry, capacity::FAMILIES)?;
    let result = capacity::capacity(&c).with_context(|| without_requests(name))?;
    let window = window::read(
        store,
        &entry,
        nfscope_whatif::FAMILIES,
        &family::THREADS_LIMIT.info,
    );
    // The utilisation law per resource needs fewer metrics than the model of the whole server, which may be missing.
    let model = window.map(|w| fullest(&w));
    Ok(match (json, model) {
        (true, model) => {
            let both = Modelled {
                capacity: &result,
                model: model.as_ref().ok().and_then(|m| m.as_ref().ok()),
            };
            console::json(&both)?
        }
        (false, Ok(model)) => capacity::render(&result, &c.metadata) + &render_fullest(&model),
        (false, Err(_)) => capacity::render(&result, &c.metadata),
    })
}

/// Capacity by each resource, and by the model of the whole server.
#[derive(Serialize)]
struct Modelled<'a> {
    #[serde(flatten)]
    capacity: &'a capacity::Capacity,
    model: Option<&'a Prediction>,
}
