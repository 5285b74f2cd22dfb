//! `nfscope baseline` and `nfscope capacity`.

use super::record;
use crate::cli::{BaselineCommand, CapacityArgs, CompareArgs};
use anyhow::Context;
use nfscope_baseline::capacity;
use nfscope_baseline::compare::{self, FAMILIES};
use nfscope_baseline::store::Store;
use nfscope_baseline::{list, series, show, summary, window};
use nfscope_model::family;
use nfscope_text::console::{self, print, say};
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
            let entries = Store::open(&args.store.path)?.list()?;
            print(&match args.json {
                true => serde_json::to_string(&entries)? + "\n",
                false => list::table(&entries),
            })?;
        }
        BaselineCommand::Show(args) => {
            let s = summary::summary(&Store::open(&args.store.path)?, &args.name)?;
            print(&match args.json {
                true => serde_json::to_string(&s)? + "\n",
                false => show::page(&s),
            })?;
        }
        BaselineCommand::Compare(args) => return compared(args),
        BaselineCommand::Rm(args) => Store::open(&args.store.path)?.remove(&args.names)?,
        BaselineCommand::Export(args) => {
            let store = Store::open(&args.store.path)?;
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
            for name in store.import(&args.file, args.name.as_deref())? {
                say(&format!(
                    "imported `{name}`; `nfscope baseline show {name}` shows it"
                ));
            }
        }
    }
    Ok(0)
}

fn compared(args: &CompareArgs) -> anyhow::Result<u8> {
    anyhow::ensure!(
        args.before != args.after,
        "`{}` is compared with itself; fix: name another baseline (`nfscope baseline list` shows all)",
        args.before
    );
    let path = &args.store.path;
    // Both in parallel: a recording of a day takes a second to read.
    let read = |name| {
        let store = Store::open(path)?;
        series::read(&store, &store.entry(name)?, FAMILIES)
    };
    let (before, after) = std::thread::scope(|both| {
        let before = both.spawn(|| read(&args.before));
        let after = read(&args.after);
        let before = before
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        anyhow::Ok((before, after?))
    })?;
    let c = compare::compare(&before, &after, args.least);
    print(&match args.json {
        true => serde_json::to_string(&c)? + "\n",
        false => compare::text::render(&c, console::colors()),
    })?;
    if let Some(file) = &args.html {
        std::fs::write(file, compare::html::page(&c))
            .with_context(|| format!("cannot write {}", file.display()))?;
        say(&format!("wrote {}", file.display()));
    }
    Ok(0)
}

/// What `nfscope capacity` prints.
///
/// # Errors
/// When there is no such baseline, it cannot be read, or it has no requests.
pub fn capacity(args: &CapacityArgs) -> anyhow::Result<String> {
    let store = Store::open(&args.store.path)?;
    let entry = store.entry(&args.name)?;
    let c = series::read(&store, &entry, capacity::FAMILIES)?;
    let result = capacity::capacity(&c).with_context(|| {
        format!(
            "`{}` contains no requests; fix: record while clients are active",
            args.name
        )
    })?;
    let window = window::read(
        &store,
        &entry,
        nfscope_whatif::FAMILIES,
        &family::THREADS_LIMIT.info,
    );
    // A law for each resource needs less of a recording than the model of the whole server.
    let model = window.map(|w| fullest(&w));
    Ok(match (args.json, model) {
        (true, model) => {
            let both = Modelled {
                capacity: &result,
                model: model.as_ref().ok().and_then(|m| m.as_ref().ok()),
            };
            serde_json::to_string(&both)? + "\n"
        }
        (false, Ok(model)) => capacity::render(&result, &c.metadata) + &render_fullest(&model),
        (false, Err(_)) => capacity::render(&result, &c.metadata),
    })
}

/// What resources allow, and what the model says of them all.
#[derive(Serialize)]
struct Modelled<'a> {
    #[serde(flatten)]
    capacity: &'a capacity::Capacity,
    model: Option<&'a Prediction>,
}
