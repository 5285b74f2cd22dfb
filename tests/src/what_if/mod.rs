//! `lab what-if`: predictions of `nfscope what-if` for changes, beside the effects of these changes.
//!
//! Each pair is a server before and after one change. The model gets the window of the server before. Both servers are played in one
//! icount machine, on null_blk disks with a timer.

mod points;
mod verdict;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nfscope_model::{Snapshot, Window};
use serde::{Deserialize, Serialize};

pub use points::{Load, Pair, Point, pairs};
pub use verdict::{Verdict, table};

use crate::CountedCpus;
use crate::kernel::Kernel;
use crate::scenarios::Runner;

/// Pairs to play, and the directory of their windows.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The machine's kernel: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// Only pairs with a server whose name contains this; may be given more than once
    #[arg(long)]
    pub only: Vec<String>,
    /// Directory that keeps the windows; only servers whose window is missing are played
    #[arg(long, value_name = "DIR", default_value = "target/what-if")]
    pub keep: PathBuf,
    /// Play nothing: compare only pairs whose windows are kept
    #[arg(long)]
    pub kept: bool,
    /// Write the table into docs/what-if.md
    #[arg(long)]
    pub write: bool,
}

impl Options {
    fn file(&self, point: &Point) -> PathBuf {
        let dir = self.keep.join(self.kernel.name());
        dir.join(format!("{}.json", point.name()))
    }
}

/// Window in a file.
#[derive(Serialize, Deserialize)]
struct Kept {
    length: Duration,
    delta: Snapshot,
}

/// Plays servers whose windows are missing, and compares each pair with its prediction.
///
/// # Errors
/// When the machine, the agent or a load fails.
pub fn run(options: &Options) -> Result<Vec<Verdict>> {
    let wanted = |pair: &Pair| {
        let names = [pair.before.name(), pair.after.name()];
        let named = |only: &String| names.iter().any(|n| n.contains(only));
        options.only.is_empty() || options.only.iter().any(named)
    };
    let mut pairs: Vec<_> = pairs().into_iter().filter(wanted).collect();
    if options.kept {
        pairs.retain(|p| {
            [&p.before, &p.after]
                .iter()
                .all(|p| options.file(p).exists())
        });
    }
    ensure!(!pairs.is_empty(), "no pair is called {:?}", options.only);
    let windows = windows(&pairs, options)?;
    let verdicts = pairs.iter().filter_map(|pair| {
        let before = windows.get(&pair.before.name())?;
        let after = windows.get(&pair.after.name())?;
        Some(Verdict::of(pair, before, after))
    });
    let verdicts: Vec<_> = verdicts.collect();
    let table = table(&verdicts);
    print!("{table}");
    if options.write {
        document(&table)?;
    }
    Ok(verdicts)
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/what-if.md");
const BEGIN: &str = "<!-- table: make what-if -->\n";
const END: &str = "<!-- end of table -->";

/// Replaces the table between its marks in the page.
fn document(table: &str) -> Result<()> {
    let text = fs::read_to_string(PAGE).with_context(|| format!("reading {PAGE}"))?;
    let (head, rest) = text
        .split_once(BEGIN)
        .context("no mark where the table begins")?;
    let (_, tail) = rest
        .split_once(END)
        .context("no mark where the table ends")?;
    fs::write(PAGE, format!("{head}{BEGIN}{table}{END}{tail}"))
        .with_context(|| format!("writing {PAGE}"))
}

fn windows(pairs: &[Pair], options: &Options) -> Result<BTreeMap<String, Window>> {
    let dir = options.keep.join(options.kernel.name());
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let mut runner: Option<(CountedCpus, Runner)> = None;
    let mut all = BTreeMap::new();
    let mut points: Vec<_> = pairs.iter().flat_map(|p| [&p.before, &p.after]).collect();
    // Points sorted by CPUs boot one machine after the other, and each machine once.
    points.sort_by_key(|p| p.cpus);
    for point in points {
        let name = point.name();
        if all.contains_key(&name) {
            continue;
        }
        let file = options.file(point);
        if !file.exists() {
            if let Some((_, other)) = runner.take_if(|(cpus, _)| *cpus != point.cpus) {
                other.close()?;
            }
            let (_, machine) = match &mut runner {
                Some(runner) => runner,
                none => none.insert((point.cpus, Runner::boot_with(options.kernel, point.cpus)?)),
            };
            match machine.play(&point.scenario(), false) {
                Ok(seen) => write(&file, seen.window)?,
                // The next server is set up anew, and the table does without this one.
                Err(e) => {
                    eprintln!("{name}: {e:#}");
                    continue;
                }
            }
            println!("played {name}");
        }
        all.insert(name, read(&file)?);
    }
    if let Some((_, runner)) = runner {
        runner.close()?;
    }
    Ok(all)
}

fn write(file: &Path, window: Window) -> Result<()> {
    let kept = Kept {
        length: window.length,
        delta: window.delta,
    };
    fs::write(file, serde_json::to_vec(&kept)?)
        .with_context(|| format!("writing {}", file.display()))
}

fn read(file: &Path) -> Result<Window> {
    let reading = || format!("reading {}", file.display());
    let text = fs::read(file).with_context(reading)?;
    let kept: Kept = serde_json::from_slice(&text).with_context(reading)?;
    Ok(Window {
        length: kept.length,
        delta: kept.delta,
    })
}
