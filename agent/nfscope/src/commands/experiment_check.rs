//! `nfscope experiment check`: every level is set once and the load runs for seconds, so that hours are not spent on what would fail.

use super::experiment_data::operations;
use super::experiment_file::{self, Level, PlanFile};
use super::experiment_plans::{file as plan_path, hold};
use super::experiment_run::{numbers, of_one_plan};
use super::experiment_shell::{Load, Shell};
use crate::cli::experiment::CheckArgs;
use crate::workload::fio::{Stop, Stopped};
use anyhow::{Context, bail, ensure};
use nfscope_baseline::store::Store;
use nfscope_stats::experiment::Run;
use nfscope_text::console::say;
use nfscope_text::parse::exact;
use nfscope_text::units;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// The shortest window of a recording.
const SHORTEST: Duration = Duration::from_millis(100);
/// Windows of a recording that is not kept.
const WINDOWS: u32 = 10;
/// Most operations that are told by name.
const MOST: usize = 4;

/// Tries a plan file; returns the exit code.
///
/// # Errors
/// When the file is no plan, or something would fail.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    match try_all(args) {
        Ok(()) => Ok(0),
        Err(e) => match e.downcast_ref::<Stopped>() {
            Some(Stopped(signal)) => Ok(128 + signal),
            None => Err(e),
        },
    }
}

fn try_all(args: &CheckArgs) -> anyhow::Result<()> {
    let mut file = experiment_file::read(&args.file)?;
    let (store, name) = (&args.store.path, file.plan.name.clone());
    if plan_path(store, &name).exists() {
        file.plan = of_one_plan(store, &file, &args.file)?;
    }
    let _held = hold(store, &name)?;
    let stop = Stop::watch().context("cannot handle signals")?;
    let runs = file.plan.runs()?;
    let chosen = chosen(&runs, file.plan.factors.len());
    let mut wrong: Vec<String> = Vec::new();
    let mut setting = Duration::ZERO;
    for number in &chosen {
        let one = Try {
            args,
            file: &file,
            stop: &stop,
            number: *number,
            run: runs[number - 1],
        };
        say(&format!(
            "run {number} of {}, for {}: {}",
            runs.len(),
            exact(args.duration),
            file.plan.levels(one.run)
        ));
        let begun = Instant::now();
        let shell = one.shell();
        let set = one.set(&shell)?;
        let is_set = set.is_empty();
        wrong.extend(set);
        setting += begun.elapsed();
        if is_set && let Err(e) = one.load(&shell) {
            stop.check()?;
            wrong.push(format!("with {}: {e:#}", file.plan.levels(one.run)));
        }
        stop.check()?;
    }
    ensure!(
        wrong.is_empty(),
        "{} would fail:\n- {}\nfix: repair it and call this again; no run was made",
        units::many(wrong.len() as f64, "thing"),
        wrong.join("\n- ")
    );
    let each = file.run.warmup + file.run.record + setting / chosen.len().max(1) as u32;
    say(&format!(
        "every level can be set; {} take about {}: nfscope experiment run {}",
        units::many(runs.len() as f64, "run"),
        units::length(each.saturating_mul(runs.len() as u32)),
        args.file.display()
    ));
    Ok(())
}

/// As few runs as have every level of every factor, by their numbers: each has the most levels that those before have not.
fn chosen(runs: &[Run], factors: usize) -> Vec<usize> {
    let mut seen = [0u8; 2];
    let mut chosen = Vec::new();
    let new = |seen: &[u8; 2], run: &Run| {
        let mask = ((1u16 << factors) - 1) as u8;
        let levels = [!run.levels & mask, run.levels & mask];
        let count = |side: usize| (levels[side] & !seen[side]).count_ones();
        count(0) + count(1)
    };
    loop {
        // The first of those with as many: the last of them backwards.
        let best = runs.iter().enumerate().rev();
        match best.max_by_key(|(_, r)| new(&seen, r)) {
            Some((i, run)) if new(&seen, run) > 0 => {
                seen[0] |= !run.levels;
                seen[1] |= run.levels;
                chosen.push(i + 1);
            }
            _ => return chosen,
        }
    }
}

/// A run that is tried, and not kept.
struct Try<'a> {
    args: &'a CheckArgs,
    file: &'a PlanFile,
    stop: &'a Stop,
    number: usize,
    run: Run,
}

impl Try<'_> {
    fn shell(&self) -> Shell<'_> {
        Shell {
            variables: [
                ("NFSCOPE_RUN", self.number.to_string()),
                ("NFSCOPE_LEVELS", self.file.plan.levels(self.run)),
            ],
            stop: self.stop,
        }
    }

    /// Sets and verifies each level, and goes on where one fails; returns what was wrong.
    fn set(&self, shell: &Shell) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for (what, level, _) in self.levels() {
            if let Some(command) = &level.set
                && let Err(e) = shell.run(command)
            {
                self.stop.check()?;
                wrong.push(format!("{what} cannot be set: {e:#}"));
            }
        }
        for (what, level, other) in self.levels() {
            let Some(command) = &level.verify else {
                continue;
            };
            if let Err(e) = shell.run(command) {
                self.stop.check()?;
                wrong.push(format!("{what} is not set, says its verify: {e:#}"));
            } else if let Some(command) = &other.verify
                && shell.run(command).is_ok()
            {
                wrong.push(format!(
                    "{what} is set, and the verify of its other level succeeds, too: `{command}` verifies nothing"
                ));
            }
            self.stop.check()?;
        }
        Ok(wrong)
    }

    /// Each level, with its name and the other level of its factor.
    fn levels(&self) -> impl Iterator<Item = (String, &Level, &Level)> {
        let factors = self.file.plan.factors.iter().zip(&self.file.levels);
        factors.enumerate().map(|(i, (factor, levels))| {
            let high = usize::from(self.run.levels >> i & 1);
            let name = format!("{}={}", factor.name, factor.levels[high]);
            (name, &levels[high], &levels[1 - high])
        })
    }

    /// Runs the load, and records what reaches the server.
    fn load(&self, shell: &Shell) -> anyhow::Result<()> {
        let run = &self.file.run;
        let mut load = match &run.load {
            Some(command) => Some(shell.start(command, !run.numbers.is_empty())?),
            None => None,
        };
        let place = tempfile::tempdir().context("cannot make a directory for a recording")?;
        let store = place.path().join("baselines.db");
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut words: Vec<OsString> = vec![program.into()];
        words.extend(["baseline", "record", "check"].map(OsString::from));
        words.extend(["--duration".into(), exact(self.args.duration).into()]);
        let window = (self.args.duration / WINDOWS).max(SHORTEST);
        words.extend(["--interval".into(), exact(window).into()]);
        if let Some(url) = &self.args.url {
            words.extend(["--url".into(), url.into()]);
        }
        words.extend(self.args.access.words());
        words.extend(["--store".into(), store.clone().into()]);
        let mut alive = || load.as_mut().map_or(Ok(()), Load::still_runs);
        let status = shell.record(&words, &mut alive)?;
        if !status.success() {
            bail!("the recorder failed ({status})");
        }
        alive()?;
        let kept = Store::open(&store)?;
        let entry = kept.entry("check")?;
        self.enough(&operations(&kept, &entry)?, entry.length)?;
        let said = load.and_then(Load::end);
        for (name, value) in numbers(run, said.as_ref(), 0)? {
            say(&format!("  {name}: {value}"));
        }
        Ok(())
    }

    /// Tells what reached the server, and checks that a whole run has enough of it.
    fn enough(&self, all: &[(String, f64)], length: Duration) -> anyhow::Result<()> {
        let run = &self.file.run;
        let sum: f64 = all.iter().map(|(_, n)| n).sum();
        let seconds = length.as_secs_f64().max(f64::MIN_POSITIVE);
        let whole = sum / seconds * run.record.as_secs_f64();
        let named = all.iter().take(MOST);
        let named: Vec<_> = named.map(|(op, n)| format!("{op} {n:.0}")).collect();
        say(&format!(
            "  {} in {}: {}",
            units::many(sum, "operation"),
            units::length(length),
            if named.is_empty() {
                "none".to_owned()
            } else {
                named.join(", ")
            }
        ));
        ensure!(
            whole >= run.operations as f64,
            "{} would reach the server in a run of {}, which needs {}; see that the load reaches this server, or set operations in [run]",
            units::many(whole.round(), "operation"),
            exact(run.record),
            run.operations
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_stats::experiment::Design;

    #[test]
    fn few_runs_have_every_level() {
        for design in [
            Design::full(1).unwrap(),
            Design::full(4).unwrap(),
            Design::fraction(3, 4).unwrap(),
            Design::fraction(7, 8).unwrap(),
        ] {
            let runs = design.runs(2, 5);
            let chosen = chosen(&runs, design.factors);
            let has = |f: usize, high: u8| {
                let level = |n: &usize| runs[n - 1].levels >> f & 1;
                chosen.iter().any(|n| level(n) == high)
            };
            assert!((0..design.factors).all(|f| has(f, 0) && has(f, 1)));
            // Seven factors in eight runs: all high, and three others for all low levels.
            assert!(chosen.len() <= 4, "{chosen:?}");
        }
    }
}
