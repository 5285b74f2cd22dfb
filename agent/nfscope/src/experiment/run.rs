//! `nfscope experiment run`: makes the runs of a plan file unattended, and continues where an earlier call ended.

use crate::cli::UNREACHED;
use crate::experiment::analyse;
use crate::experiment::cli::RunArgs;
use crate::experiment::client::{measured, mount};
use crate::experiment::data::{self, LOAD};
use crate::experiment::file::{self, Measure, PlanFile, Recorded};
use crate::experiment::numbers::numbers;
use crate::experiment::plans::{
    begin_run, change, end_run, file as plan_path, hold, keep, read, recorded, unfinished,
};
use crate::experiment::rounds::{self, Rounds};
use crate::experiment::shell::{Load, Shell};
use crate::experiment::table::{self, responses};
use anyhow::{Context, bail, ensure};
use nfscope_api::build_info::{REVISION, VERSION};
use nfscope_baseline::experiment::{Measured, More, Plan, label_of, widest};
use nfscope_baseline::recording::{Metadata, Recording};
use nfscope_baseline::store::{Error, State, Store};
use nfscope_load::versions::client::Client;
use nfscope_load::workload::fio::{Stop, Stopped};
use nfscope_source::hostname;
use nfscope_stats::experiment::Run;
use nfscope_text::console::say;
use nfscope_text::parse::exact;
use nfscope_text::units::percent;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Makes every run that has no baseline yet; returns the exit code.
///
/// # Errors
/// When the file is not a plan, another plan has its name, or a run fails.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    match make_all(args) {
        Ok(code) => Ok(code),
        Err(e) => match e.downcast_ref::<Stopped>() {
            Some(Stopped(signal)) => {
                say("stopped; the same command goes on with this run");
                Ok(128 + signal)
            }
            None => Err(e),
        },
    }
}

fn make_all(args: &RunArgs) -> anyhow::Result<u8> {
    let mut wanted = file::read(&args.file)?;
    let store = &args.store.path;
    let name = &wanted.plan.name.clone();
    // Two concurrent calls would overwrite each other's levels.
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
    let mut campaign = Campaign {
        args,
        file: wanted,
        stop: &stop,
        measured: Vec::new(),
    };
    let until = campaign.file.until.clone();
    let reached = rounds::make(&mut campaign, 0, until.as_ref(), Instant::now())?;
    table::of_file(store, &campaign.file)?;
    let code = match reached {
        Some(false) => {
            say(
                "after the most rounds an interval is wider than asked for, or too few rounds are independent; fix: raise replicates in \
                 [until]",
            );
            UNREACHED
        }
        _ => 0,
    };
    analyse::of_file(store, &campaign.file)?;
    Ok(code)
}

/// Campaign that a plan file describes.
struct Campaign<'a> {
    args: &'a RunArgs,
    file: PlanFile,
    stop: &'a Stop,
    /// Values of the table's responses in all runs; empty without `[until]`.
    measured: Vec<Measured>,
}

impl Rounds for Campaign<'_> {
    fn make(&mut self, rounds: usize) -> anyhow::Result<usize> {
        let store = &self.args.store.path;
        if rounds > self.file.plan.rounds()? {
            let more = self.file.plan.with(More::Replicates(1));
            self.file.plan = more.map_err(anyhow::Error::msg)?;
            change(store, &self.file.plan)?;
        }
        make_open(self.args, &self.file, self.stop)?;
        if self.file.until.is_some() {
            self.measured = responses(store, &self.file)?;
        }
        Ok(self.file.plan.rounds()?)
    }

    fn widest(&self, rounds: usize) -> Option<(f64, f64)> {
        widest(&self.file.plan, &self.measured, rounds)
    }

    fn tell(&mut self, rounds: usize, width: f64) {
        say(&format!(
            "{rounds} rounds: the widest interval is ± {}",
            percent(width)
        ));
    }
}

/// Makes the runs that have no baseline yet.
fn make_open(args: &RunArgs, wanted: &PlanFile, stop: &Stop) -> anyhow::Result<()> {
    let (store, name) = (&args.store.path, &wanted.plan.name);
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
            file: wanted,
            stop,
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
                undo(args, wanted, i + 1)?;
            }
            failed.push((i + 1).to_string());
        }
    }
    ensure!(
        failed.is_empty(),
        "failed: run {}; fix: repair it and call this again, which makes only the runs without a baseline",
        failed.join(", ")
    );
    let is_told = wanted.table.is_some() || wanted.effects.is_some();
    let then = match &wanted.run.measure {
        _ if is_told => String::new(),
        Measure::Record(_) => format!(": nfscope experiment analyse {name}"),
        _ => format!(": nfscope experiment table {name}"),
    };
    say(&format!("all {} runs are recorded{then}", runs.len()));
    Ok(())
}

/// Plan in the store, which may have more runs than the plan file: `nfscope experiment plan` adds them. Fails if the two differ otherwise.
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

/// Removes the baseline of an unfinished run, and then its mark. A crash in between leaves the mark, and the next call tries again.
fn undo(args: &RunArgs, file: &PlanFile, number: usize) -> anyhow::Result<()> {
    forget(args, file, number, true).with_context(|| {
        format!("what run {number} has recorded cannot be removed, and no other run is made before")
    })?;
    end_run(&args.store.path, &file.plan.name)
}

/// Removes the incomplete baseline of a run. With `unverified`, a complete one is removed, too.
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
    // Numbers of the load are added before the run is known to be complete.
    let mut labels = entry.metadata.labels.clone();
    labels.retain(|name, _| !name.starts_with(LOAD));
    ensure!(
        labels == label_of(&file.plan, number),
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

/// Labels that hold the numbers of a load.
fn of_load(numbers: &BTreeMap<String, f64>) -> impl Iterator<Item = (String, String)> {
    let each = numbers.iter();
    each.map(|(name, v)| (format!("{LOAD}{name}"), v.to_string()))
}

/// Run of the plan, while it is made.
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
        for (what, level) in self.file.levels_of(&self.run) {
            if let Some(command) = &level.set {
                shell
                    .run(&self.file.filled(command, &self.run, None))
                    .with_context(|| format!("cannot set {what}"))?;
            }
        }
        let agent = self.args.url.as_deref();
        let mut client = mount(self.file, &self.run, agent, self.stop)?;
        let at = client.as_ref().and_then(Client::path).map(Path::to_owned);
        let at = at.as_deref();
        self.verify(&shell, at)?;
        let run = &self.file.run;
        let is_recorded = matches!(run.measure, Measure::Record(_));
        let keeps = is_recorded && !run.numbers.is_empty();
        let load = run.load.as_deref();
        let load = load.map(|c| shell.start(&self.file.filled(c, &self.run, at), keeps));
        let mut load = load.transpose()?;
        let mut alive = || load.as_mut().map_or(Ok(()), Load::still_runs);
        shell.wait(run.warmup, &mut alive)?;
        // The load may have changed a level.
        self.verify(&shell, at)?;
        let (store, name) = (&self.args.store.path, &self.file.plan.name);
        let Measure::Record(recorded) = &run.measure else {
            let numbers = measured(self.file, &self.run, &shell, client.as_mut(), None)?;
            alive().and_then(|()| self.verify(&shell, at))?;
            return self.keep_alone(&numbers);
        };
        // The recording is not verified yet. If nfscope ends before `end_run`, the next call finds the mark and removes the recording.
        begin_run(store, name, self.number)?;
        let from = load.as_ref().map_or(0, Load::printed);
        let mut alive = || load.as_mut().map_or(Ok(()), Load::still_runs);
        self.record(recorded, &shell, &mut alive)?;
        let kept = alive().and_then(|()| self.verify(&shell, at));
        let said = load.and_then(Load::end);
        kept.context("after the recording")?;
        let numbers = numbers(&run.numbers, said.as_ref(), from)?;
        self.keep(recorded, &numbers)?;
        end_run(store, name)
    }

    /// Stores numbers as a baseline without windows, because the server was not recorded.
    fn keep_alone(&self, numbers: &BTreeMap<String, f64>) -> anyhow::Result<()> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut labels = label_of(&self.file.plan, self.number);
        labels.extend(of_load(numbers));
        let mut store = Store::create(&self.args.store.path)?;
        Ok(store.put(&Recording {
            metadata: Metadata {
                name: self.file.plan.run_name(self.number),
                began_ms: since.map_or(0, |d| d.as_millis() as i64),
                host: hostname::own_name(),
                kernel: None,
                agent: format!("{VERSION} ({REVISION})"),
                interval: Duration::from_secs(1),
                labels,
            },
            series: Vec::new(),
            windows: Vec::new(),
        })?)
    }

    /// Checks that the recording has enough operations, and adds the numbers of the load to its labels.
    fn keep(&self, recorded: &Recorded, numbers: &BTreeMap<String, f64>) -> anyhow::Result<()> {
        let mut store = Store::open(&self.args.store.path)?;
        let entry = store.entry(&self.file.plan.run_name(self.number))?;
        data::enough(&store, &entry, recorded.operations)?;
        if numbers.is_empty() {
            return Ok(());
        }
        Ok(store.add_labels(&entry, of_load(numbers).collect())?)
    }

    fn verify(&self, shell: &Shell, mount: Option<&Path>) -> anyhow::Result<()> {
        for (what, level) in self.file.levels_of(&self.run) {
            if let Some(command) = &level.verify {
                shell
                    .run(&self.file.filled(command, &self.run, mount))
                    .with_context(|| format!("{what} is not set, says its verify"))?;
            }
        }
        Ok(())
    }

    /// Records the server in a child process, `nfscope baseline record`.
    fn record(
        &self,
        run: &Recorded,
        shell: &Shell,
        alive: &mut impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let name = self.file.plan.run_name(self.number);
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut words: Vec<OsString> = vec![program.into()];
        words.extend(["baseline", "record", &name].map(OsString::from));
        match run.until_ci {
            None => words.extend(["--duration".into(), exact(run.length).into()]),
            Some(ci) => words.extend([
                "--until-ci".into(),
                format!("{}%", ci * 100.0).into(),
                "--max-duration".into(),
                exact(run.length).into(),
            ]),
        }
        if let Some(metric) = &run.metric {
            words.extend(["--metric".into(), metric.into()]);
        }
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
        match status.code() {
            Some(0) => {}
            Some(code) if code == i32::from(UNREACHED) && run.until_ci.is_some() => say(&format!(
                "the interval of run {} is wider than it should be after {}; the run counts",
                self.number,
                exact(run.length)
            )),
            _ => bail!("the recorder failed ({status})"),
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
