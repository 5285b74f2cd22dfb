//! Baselines: recordings of what a server did, kept and compared.

pub mod capacity;
pub mod codec;
pub mod columns;
pub mod compare;
pub mod estimate;
mod list;
pub mod metric;
pub mod name;
pub mod progress;
mod record;
mod scratch;
mod session;
mod show;
pub mod spreads;
mod stage;
pub mod stats;
pub mod store;
pub mod summary;
pub mod take;
mod wall;

use crate::cli::{BaselineCommand, CapacityArgs, CompareArgs};
use crate::console::{self, print, say};
use crate::model::family::Info;
use anyhow::Context;
use columns::{Columns, Places};
use compare::FAMILIES;
use store::{Entry, Store};

/// Does what `nfscope baseline` is asked for; says the exit code.
///
/// # Errors
/// When it cannot be done, with what to do about it.
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
                    "`{name}` is there; `nfscope baseline show {name}` shows it"
                ));
            }
        }
    }
    Ok(0)
}

fn compared(args: &CompareArgs) -> anyhow::Result<u8> {
    anyhow::ensure!(
        args.before != args.after,
        "`{}` is compared with itself; fix: name another one, `nfscope baseline list` shows which there are",
        args.before
    );
    let path = &args.store.path;
    // Both at once: a day takes a second to read.
    let read = |name| {
        let store = Store::open(path)?;
        columns(&store, &store.entry(name)?, FAMILIES)
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
    let c = columns(&store, &store.entry(&args.name)?, capacity::FAMILIES)?;
    let found = capacity::capacity(&c).with_context(|| {
        format!(
            "`{}` has no requests in it; fix: record while clients work",
            args.name
        )
    })?;
    Ok(match args.json {
        true => serde_json::to_string(&found)? + "\n",
        false => capacity::render(&found, &c.about),
    })
}

/// A recording from the store, by series of some families.
fn columns(store: &Store, entry: &Entry, families: &[&Info]) -> anyhow::Result<Columns> {
    let mut lines = store.lines(entry)?;
    lines.retain(|l| families.iter().any(|f| f.name == l.family));
    let places = Places::of(&lines);
    let windows = store.windows(entry, |id| places.get(id).is_some());
    let count = usize::try_from(entry.windows).unwrap_or(usize::MAX);
    let windows = windows.map(|w| Ok(w?));
    Columns::gather(entry.about.clone(), lines, count, windows)
}
