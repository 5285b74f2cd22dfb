//! `nfscope experiment run`: makes the runs of a plan file by itself, and goes on where an earlier call ended.

use super::experiment_data::{self, LOAD};
use super::experiment_file::{self, PlanFile};
use super::experiment_plans::{
    begin_run, end_run, file as plan_path, hold, keep, read, recorded, unfinished,
};
use super::experiment_shell::{Load, Shell};
use crate::cli::experiment::RunArgs;
use crate::workload::fio::{Stop, Stopped};
use anyhow::{Context, bail, ensure};
use nfscope_baseline::experiment::{Plan, label_of};
use nfscope_baseline::store::{Error, State, Store};
use nfscope_stats::experiment::Run;
use nfscope_text::console::say;
use nfscope_text::parse::exact;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

/// Makes every run that has no baseline yet; returns the exit code.
///
/// # Errors
/// When the file is no plan, another plan has its name, or a run failed.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    match make_all(args) {
        Ok(()) => Ok(0),
        Err(e) => match e.downcast_ref::<Stopped>() {
            Some(Stopped(signal)) => {
                say("stopped; the same command goes on with this run");
                Ok(128 + signal)
            }
            None => Err(e),
        },
    }
}

fn make_all(args: &RunArgs) -> anyhow::Result<()> {
    let mut wanted = experiment_file::read(&args.file)?;
    let store = &args.store.path;
    let name = &wanted.plan.name.clone();
    // Two calls would set each other's levels.
    let _held = hold(store, name)?;
    if plan_path(store, name).exists() {
        wanted.plan = of_one_plan(store, &wanted, &args.file)?;
    } else {
        keep(store, &wanted.plan)?;
    }
    let stop = Stop::watch().context("cannot handle signals")?;
    if let Some(number) = unfinished(store, name)? {
        undo(args, &wanted, number)?;
    }
    let runs = wanted.plan.runs()?;
    let done = recorded(store, &wanted.plan)?;
    let open: Vec<usize> = (0..runs.len()).filter(|i| done[*i].is_none()).collect();
    say(&format!(
        "`{name}`: {} of {} runs are recorded",
        runs.len() - open.len(),
        runs.len()
    ));
    let mut failed = Vec::new();
    for i in open {
        let one = OneRun {
            args,
            file: &wanted,
            stop: &stop,
            number: i + 1,
            run: runs[i],
        };
        say(&format!(
            "run {} of {}: {}",
            i + 1,
            runs.len(),
            wanted.plan.levels(runs[i])
        ));
        if let Err(e) = one.make() {
            stop.check()?;
            say(&format!("run {} failed: {e:#}", i + 1));
            if unfinished(store, name)? == Some(i + 1) {
                undo(args, &wanted, i + 1)?;
            }
            failed.push((i + 1).to_string());
        }
    }
    ensure!(
        failed.is_empty(),
        "failed: run {}; fix: repair it and call this again, which makes only the runs without a baseline",
        failed.join(", ")
    );
    say(&format!(
        "all {} runs are recorded: nfscope experiment analyse {name}",
        runs.len()
    ));
    Ok(())
}

/// The plan that an earlier call keeps, with what was added to it since.
pub(super) fn of_one_plan(store: &Path, file: &PlanFile, path: &Path) -> anyhow::Result<Plan> {
    let name = &file.plan.name;
    let kept = read(store, name)?;
    ensure!(
        kept.first() == file.plan,
        "the experiment `{name}` has another plan than {}; fix: choose another name, or remove it with `nfscope experiment rm {name}`. \
         `nfscope experiment plan {name} --add-replicates N` and --add-foldover add runs to it, and the file stays as it is",
        path.display()
    );
    Ok(kept)
}

/// The numbers that a load has printed from this byte on, by name.
pub(super) fn numbers(
    run: &experiment_file::Run,
    said: Option<&File>,
    from: u64,
) -> anyhow::Result<BTreeMap<String, f64>> {
    let each = run.numbers.iter().map(|(name, pattern)| {
        let mut said = said.context("there is no load")?.try_clone()?;
        let value = pattern.mean(&mut said, from);
        Ok((
            name.clone(),
            value.with_context(|| format!("numbers: {name}"))?,
        ))
    });
    each.collect()
}

/// Removes what a run that was begun has recorded, and only then its mark.
fn undo(args: &RunArgs, file: &PlanFile, number: usize) -> anyhow::Result<()> {
    forget(args, file, number, true).with_context(|| {
        format!("what run {number} has recorded cannot be removed, and no other run is made before")
    })?;
    end_run(&args.store.path, &file.plan.name)
}

/// Removes what is left of a run; a complete baseline, too, if it is `unverified`.
fn forget(args: &RunArgs, file: &PlanFile, number: usize, unverified: bool) -> anyhow::Result<()> {
    let path = &args.store.path;
    if !path.exists() {
        return Ok(());
    }
    let name = file.plan.run_name(number);
    let mut store = Store::open(path)?;
    let entry = match store.entry(&name) {
        Ok(entry) => entry,
        Err(Error::Unknown { .. }) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    ensure!(
        entry.metadata.labels == label_of(&file.plan, number),
        "there is another baseline `{name}`; fix: remove it with `nfscope baseline rm {name}`"
    );
    let why = match entry.state {
        State::Recording => bail!("`{name}` is being recorded; fix: wait until it ends"),
        State::Complete if !unverified => bail!("`{name}` is complete already"),
        State::Complete => "was not verified",
        _ => "is not complete",
    };
    say(&format!("`{name}` {why}: it is removed"));
    Ok(store.remove(&[name])?)
}

/// One run of the plan.
struct OneRun<'a> {
    args: &'a RunArgs,
    file: &'a PlanFile,
    stop: &'a Stop,
    number: usize,
    run: Run,
}

impl OneRun<'_> {
    fn make(&self) -> anyhow::Result<()> {
        forget(self.args, self.file, self.number, false)?;
        let shell = Shell {
            variables: [
                ("NFSCOPE_RUN", self.number.to_string()),
                ("NFSCOPE_LEVELS", self.file.plan.levels(self.run)),
            ],
            stop: self.stop,
        };
        for (what, level) in self.levels() {
            if let Some(command) = &level.set {
                shell
                    .run(command)
                    .with_context(|| format!("cannot set {what}"))?;
            }
        }
        self.verify(&shell)?;
        let run = &self.file.run;
        let keeps = !run.numbers.is_empty();
        let load = run.load.as_deref();
        let mut load = load.map(|c| shell.start(c, keeps)).transpose()?;
        let mut alive = || load.as_mut().map_or(Ok(()), Load::still_runs);
        shell.wait(run.warmup, &mut alive)?;
        // The load may have changed what was set.
        self.verify(&shell)?;
        let (store, name) = (&self.args.store.path, &self.file.plan.name);
        // Until it is verified once more, it is no run of the experiment: the caller removes what has this mark.
        begin_run(store, name, self.number)?;
        let from = load.as_ref().map_or(0, Load::printed);
        let mut alive = || load.as_mut().map_or(Ok(()), Load::still_runs);
        self.record(&shell, &mut alive)?;
        let kept = alive().and_then(|()| self.verify(&shell));
        let said = load.and_then(Load::end);
        kept.context("after the recording")?;
        let numbers = numbers(run, said.as_ref(), from)?;
        self.keep(&numbers)?;
        end_run(store, name)
    }

    /// Checks that the recording has enough operations, and keeps the numbers of the load with it.
    fn keep(&self, numbers: &BTreeMap<String, f64>) -> anyhow::Result<()> {
        let mut store = Store::open(&self.args.store.path)?;
        let entry = store.entry(&self.file.plan.run_name(self.number))?;
        experiment_data::enough(&store, &entry, self.file.run.operations)?;
        if numbers.is_empty() {
            return Ok(());
        }
        let each = numbers.iter();
        let labels = each.map(|(name, v)| (format!("{LOAD}{name}"), v.to_string()));
        Ok(store.add_labels(&entry, labels.collect())?)
    }

    /// The level of each factor, with its name.
    fn levels(&self) -> impl Iterator<Item = (String, &experiment_file::Level)> {
        let factors = self.file.plan.factors.iter().zip(&self.file.levels);
        factors.enumerate().map(|(i, (factor, levels))| {
            let high = usize::from(self.run.levels >> i & 1);
            (
                format!("{}={}", factor.name, factor.levels[high]),
                &levels[high],
            )
        })
    }

    fn verify(&self, shell: &Shell) -> anyhow::Result<()> {
        for (what, level) in self.levels() {
            if let Some(command) = &level.verify {
                shell
                    .run(command)
                    .with_context(|| format!("{what} is not set, says its verify"))?;
            }
        }
        Ok(())
    }

    /// Records in a process of its own, as somebody at a terminal would.
    fn record(
        &self,
        shell: &Shell,
        alive: &mut impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (run, name) = (&self.file.run, self.file.plan.run_name(self.number));
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut words: Vec<OsString> = vec![program.into()];
        words.extend(["baseline", "record", &name].map(OsString::from));
        words.extend(["--duration".into(), exact(run.record).into()]);
        words.extend(["--interval".into(), exact(run.interval).into()]);
        for (k, v) in label_of(&self.file.plan, self.number) {
            words.extend(["--label".into(), format!("{k}={v}").into()]);
        }
        if let Some(url) = &self.args.url {
            words.extend(["--url".into(), url.into()]);
        }
        words.extend(self.args.access.words());
        words.extend(["--store".into(), self.args.store.path.clone().into()]);
        let status = shell.record(&words, alive)?;
        if !status.success() {
            bail!("the recorder failed ({status})");
        }
        let entry = Store::open(&self.args.store.path)?.entry(&name)?;
        ensure!(
            entry.state == State::Complete,
            "the recording is {}",
            entry.state.as_str()
        );
        Ok(())
    }
}
