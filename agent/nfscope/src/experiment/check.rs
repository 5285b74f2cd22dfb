//! `nfscope experiment check`: sets every level once and runs the load for seconds. Mistakes show before the hours of a whole experiment.

use crate::experiment::cli::CheckArgs;
use crate::experiment::client::{check_workload, measured, mount};
use crate::experiment::data::operations;
use crate::experiment::dry_run;
use crate::experiment::file::{self, Measure, PlanFile, Recorded};
use crate::experiment::numbers::numbers;
use crate::experiment::plans::{file as plan_path, hold};
use crate::experiment::run::of_one_plan;
use crate::experiment::shell::{Load, Shell};
use anyhow::{Context, bail, ensure};
use nfscope_baseline::store::Store;
use nfscope_load::versions::client::Client;
use nfscope_load::workload::fio::{Stop, Stopped};
use nfscope_stats::experiment::Run;
use nfscope_text::console::say;
use nfscope_text::parse::exact;
use nfscope_text::units;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// Shortest window of the trial recording.
const SHORTEST: Duration = Duration::from_millis(100);
/// Windows of the trial recording, which is not kept.
const WINDOWS: u32 = 10;
/// Operations that the summary of a trial names, the most frequent first.
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
    let mut file = file::read(&args.file)?;
    if args.dry_run {
        let runs = file.plan.runs()?;
        check_workloads(&file, &runs)?;
        return dry_run::run(&file, &runs, &chosen(&runs, file.plan.factors.len()));
    }
    let (store, name) = (&args.store.path, file.plan.name.clone());
    if plan_path(store, &name).exists() {
        file.plan = of_one_plan(store, &file, &args.file)?;
    }
    let _held = hold(store, &name)?;
    let stop = Stop::watch().context("cannot handle signals")?;
    let runs = file.plan.runs()?;
    let chosen = chosen(&runs, file.plan.factors.len());
    check_workloads(&file, &runs)?;
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
        let mut is_set = set.is_empty();
        wrong.extend(set);
        let mut client = None;
        if is_set {
            match mount(&file, &one.run, args.url.as_deref(), &stop) {
                Ok(made) => client = made,
                Err(e) => {
                    stop.check()?;
                    is_set = false;
                    wrong.push(format!("with {}: {e:#}", file.plan.levels(one.run)));
                }
            }
        }
        let verified = one.verify(&shell, client.as_ref().and_then(Client::path))?;
        is_set &= verified.is_empty();
        wrong.extend(verified);
        setting += begun.elapsed();
        if is_set && let Err(e) = one.load(&shell, client.as_mut()) {
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
    let measured = match &file.run.measure {
        Measure::Record(run) => run.length,
        Measure::Workload(block) => block.runtime,
        Measure::Command(_) => Duration::ZERO,
    };
    let each = file.run.warmup + measured + setting / chosen.len().max(1) as u32;
    say(&format!(
        "every level can be set; {} take about {}{}: nfscope experiment run {}",
        units::many(runs.len() as f64, "run"),
        units::length(each.saturating_mul(runs.len() as u32)),
        match file.run.measure {
            Measure::Command(_) => " without the command",
            _ => "",
        },
        args.file.display()
    ));
    Ok(())
}

/// Numbers of few runs that together have every level of every factor. Greedy: each run adds the most levels that are not seen yet.
fn chosen(runs: &[Run], factors: usize) -> Vec<usize> {
    let mut seen: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut chosen = Vec::new();
    let levels = |run: &Run| {
        (0..factors)
            .map(|f| (f, run.levels.at(f)))
            .collect::<Vec<_>>()
    };
    loop {
        let new = |run: &Run| levels(run).iter().filter(|l| !seen.contains(l)).count();
        // `max_by_key` returns the last maximum. On the reversed list this is the first run with the most new levels.
        let best = runs.iter().enumerate().rev();
        match best.max_by_key(|(_, r)| new(r)) {
            Some((i, run)) if new(run) > 0 => {
                let own = levels(run);
                seen.extend(own);
                chosen.push(i + 1);
            }
            _ => return chosen,
        }
    }
}

/// Checks that every workload of a plan exists, and has the parameters that are set.
fn check_workloads(file: &PlanFile, runs: &[Run]) -> anyhow::Result<()> {
    if let Measure::Workload(block) = &file.run.measure {
        for run in runs {
            check_workload(file, block, run)?;
        }
    }
    Ok(())
}

/// Trial of one run; its measurements are not kept.
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

    /// Sets each level, and continues after a failure; returns the failures.
    fn set(&self, shell: &Shell) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for (what, level) in self.file.levels_of(&self.run) {
            if let Some(command) = &level.set
                && let Err(e) = shell.run(&self.file.filled(command, &self.run, None))
            {
                self.stop.check()?;
                wrong.push(format!("{what} cannot be set: {e:#}"));
            }
        }
        Ok(wrong)
    }

    /// Verifies each level, and that the verify command of every other level fails; returns the problems.
    fn verify(&self, shell: &Shell, mount: Option<&Path>) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let filled = |command: &String| self.file.filled(command, &self.run, mount);
        for (i, (what, level)) in self.file.levels_of(&self.run).enumerate() {
            let Some(command) = level.verify.as_ref().map(filled) else {
                continue;
            };
            if let Err(e) = shell.run(&command) {
                self.stop.check()?;
                wrong.push(format!("{what} is not set, says its verify: {e:#}"));
                continue;
            }
            let others = self.file.levels[i].iter().enumerate();
            let others = others.filter(|(at, _)| *at != self.run.levels.at(i));
            for command in others.filter_map(|(_, l)| l.verify.as_ref().map(filled)) {
                if shell.run(&command).is_ok() {
                    wrong.push(format!(
                        "{what} is set, and the verify of its other level succeeds, too: `{command}` verifies nothing"
                    ));
                }
                self.stop.check()?;
            }
        }
        Ok(wrong)
    }

    /// Runs the load, and measures for `--duration` what the run would measure.
    fn load(&self, shell: &Shell, client: Option<&mut Client>) -> anyhow::Result<()> {
        let run = &self.file.run;
        let mount = client.as_ref().and_then(|c| c.path());
        let filled = |command: &String| self.file.filled(command, &self.run, mount);
        let mut load = match run.load.as_ref().map(filled) {
            Some(command) => Some(shell.start(&command, !run.numbers.is_empty())?),
            None => None,
        };
        let Measure::Record(recorded) = &run.measure else {
            let most = Some(self.args.duration);
            let numbers = measured(self.file, &self.run, shell, client, most)?;
            for (name, value) in numbers {
                say(&format!("  {name}: {value}"));
            }
            return load.as_mut().map_or(Ok(()), Load::still_runs);
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
        self.enough(recorded, &operations(&kept, &entry)?, entry.length)?;
        let said = load.and_then(Load::end);
        for (name, value) in numbers(&run.numbers, said.as_ref(), 0)? {
            say(&format!("  {name}: {value}"));
        }
        Ok(())
    }

    /// Prints the operations that reached the server, and checks that a whole run at this rate has enough of them.
    fn enough(
        &self,
        run: &Recorded,
        all: &[(String, f64)],
        length: Duration,
    ) -> anyhow::Result<()> {
        let sum: f64 = all.iter().map(|(_, n)| n).sum();
        let seconds = length.as_secs_f64().max(f64::MIN_POSITIVE);
        let whole = sum / seconds * run.length.as_secs_f64();
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
            exact(run.length),
            run.operations
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_stats::experiment::{Design, blocks_of, factorial};

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
            let has = |f: usize, level: usize| {
                let of = |n: &usize| runs[n - 1].levels.at(f);
                chosen.iter().any(|n| of(n) == level)
            };
            assert!((0..design.factors).all(|f| has(f, 0) && has(f, 1)));
            // Seven factors in eight runs: one run has all factors high, and three others cover all low levels.
            assert!(chosen.len() <= 4, "{chosen:?}");
        }
        let runs = blocks_of(&factorial(&[5, 2, 3]).unwrap(), 1, 5, 0);
        assert_eq!(chosen(&runs, 3).len(), 5);
    }
}
