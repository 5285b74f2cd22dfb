//! Plans of experiments, which are files beside the store, and the baselines of their runs.

use anyhow::{Context, bail, ensure};
use nfscope_baseline::experiment::{Plan, label_of};
use nfscope_baseline::name;
use nfscope_baseline::store::{Entry, State, Store};
use nfscope_text::console::steers;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Directory of the plans, beside the store.
fn directory(store: &Path) -> PathBuf {
    store.parent().unwrap_or(Path::new(".")).join("experiments")
}

fn make_directory(store: &Path) -> anyhow::Result<PathBuf> {
    let dir = directory(store);
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    Ok(dir)
}

/// File of a plan.
pub(super) fn file(store: &Path, name: &str) -> PathBuf {
    directory(store).join(format!("{name}.json"))
}

/// Files of all plans.
pub(super) fn plans(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory(store)).into_iter().flatten();
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut all: Vec<_> = paths
        .filter(|p| p.extension().is_some_and(|e| e == "json"))
        .collect();
    all.sort();
    all
}

/// Reads the plan of this name.
///
/// # Errors
/// When there is no such plan, or its file is damaged.
pub(super) fn read(store: &Path, name: &str) -> anyhow::Result<Plan> {
    let path = file(store, name);
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "no experiment `{name}` at {}; fix: nfscope experiment plan {name} ...",
            path.display()
        )
    })?;
    serde_json::from_str(&text).with_context(|| format!("{} is no plan", path.display()))
}

/// File that exists while `nfscope experiment run` makes a run. It has the number of the run, whose recording is not verified yet.
fn mark(store: &Path, name: &str) -> PathBuf {
    directory(store).join(format!("{name}.run"))
}

/// Lock of an experiment until it is dropped. No other call can make runs of the experiment, or remove it.
#[derive(Debug)]
#[must_use]
pub(super) struct Held(fs::File);

impl Drop for Held {
    fn drop(&mut self) {
        // All copies of a descriptor hold its flock, and a child has a copy between fork and exec. Closing this descriptor may not unlock,
        // so unlock explicitly. If that fails, the close that follows is all that is left.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Locks an experiment.
///
/// # Errors
/// When another call holds the lock, or the file cannot be locked.
pub(super) fn hold(store: &Path, name: &str) -> anyhow::Result<Held> {
    let path = make_directory(store)?.join(format!("{name}.lock"));
    let mut options = fs::OpenOptions::new();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Held(file)),
        Err(Errno::WOULDBLOCK) => bail!(
            "the experiment `{name}` is being run already; fix: wait until that `nfscope experiment run` or `record` has ended"
        ),
        Err(e) => Err(e).with_context(|| format!("cannot lock {}", path.display())),
    }
}

/// Marks a run as begun. All runs of an experiment share one mark, and the mark of an unfinished run is never overwritten.
///
/// # Errors
/// When another run is unfinished, or the mark cannot be written.
pub(super) fn begin_run(store: &Path, name: &str, number: usize) -> anyhow::Result<()> {
    let path = mark(store, name);
    if let Some(other) = unfinished(store, name)? {
        bail!(
            "run {other} of `{name}` has not ended, says {}; fix: call `nfscope experiment run` again, which makes it anew",
            path.display()
        );
    }
    write_whole(&path, &number.to_string())
}

/// Writes a file atomically, by a rename: after a crash it has the old or the new content.
fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut half = path.as_os_str().to_owned();
    half.push(".new");
    fs::write(&half, text)
        .and_then(|()| fs::File::open(&half)?.sync_all())
        .and_then(|()| fs::rename(&half, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Removes the mark of a begun run, which is complete and verified.
///
/// # Errors
/// When the mark cannot be removed.
pub(super) fn end_run(store: &Path, name: &str) -> anyhow::Result<()> {
    let path = mark(store, name);
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Number of the run that an earlier call has begun and not ended.
///
/// # Errors
/// When the mark cannot be read, or has no number.
pub(super) fn unfinished(store: &Path, name: &str) -> anyhow::Result<Option<usize>> {
    let path = mark(store, name);
    match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map(Some).with_context(|| {
            format!(
                "{} names no run; fix: remove the latest baseline of `{name}`, and then this file",
                path.display()
            )
        }),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Checks that every run of a plan can be recorded and identified: names of runs are valid, factors have distinct names, and neither names
/// nor levels have control characters.
///
/// # Errors
/// When there is no such design, or a check fails; the error says what to do.
pub(super) fn check(plan: &Plan) -> anyhow::Result<()> {
    let last = plan.run_name(plan.runs()?.len());
    name::check(&last).map_err(|e| {
        anyhow::anyhow!(
            "name: the last run would be called `{last}`, but {e}; fix: choose a shorter name"
        )
    })?;
    for (i, f) in plan.factors.iter().enumerate() {
        ensure!(
            !plan.factors[..i].iter().any(|other| other.name == f.name),
            "factor {}: two factors have this name; fix: give each a name of its own",
            f.name
        );
        let mut words = f.levels.iter().chain([&f.name]);
        if let Some(word) = words.find(|w| w.contains(steers)) {
            bail!("factor {word:?}: control characters are in it; fix: remove them");
        }
    }
    Ok(())
}

/// Writes a new plan beside the store.
///
/// # Errors
/// When a plan of this name exists, or baselines of one do, or the file cannot be written.
pub(super) fn keep(store: &Path, plan: &Plan) -> anyhow::Result<()> {
    let name = &plan.name;
    let path = file(store, name);
    make_directory(store)?;
    ensure!(
        !path.exists(),
        "there is an experiment `{name}` already: choose another name, or remove its plan with `nfscope experiment rm {name}`"
    );
    let old = of_experiment(store, name)?;
    ensure!(
        old.is_empty(),
        "baselines of an earlier experiment `{name}` are in the store: choose another name, or remove them with `nfscope baseline rm {}`",
        old.join(" ")
    );
    change(store, plan)
}

/// Writes the file of a plan, which replaces an earlier one.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn change(store: &Path, plan: &Plan) -> anyhow::Result<()> {
    write_whole(
        &file(store, &plan.name),
        &(serde_json::to_string_pretty(plan)? + "\n"),
    )
}

/// Names of the baselines whose label `experiment` has this name.
fn of_experiment(store: &Path, name: &str) -> anyhow::Result<Vec<String>> {
    if !store.exists() {
        return Ok(Vec::new());
    }
    let of = |e: &Entry| e.metadata.labels.get("experiment").map(String::as_str) == Some(name);
    let all = Store::open(store)?.list()?.into_iter().filter(of);
    Ok(all.map(|e| e.metadata.name).collect())
}

/// Complete baseline of each run; `None` for a run that is not recorded, or not verified yet.
///
/// # Errors
/// When the store cannot be read, or a run has several complete baselines.
pub(super) fn recorded(store: &Path, plan: &Plan) -> anyhow::Result<Vec<Option<Entry>>> {
    let runs = plan.runs()?.len();
    if !store.exists() {
        return Ok(vec![None; runs]);
    }
    let entries = Store::open(store)?.list()?;
    let unfinished = unfinished(store, &plan.name)?;
    let of = |run: usize| {
        if unfinished == Some(run) {
            return Ok(None);
        }
        let wanted = label_of(plan, run);
        let is = |e: &&Entry| {
            let has = |(k, v): (&String, &String)| e.metadata.labels.get(k) == Some(v);
            e.state == State::Complete && wanted.iter().all(has)
        };
        let all: Vec<_> = entries.iter().filter(is).collect();
        ensure!(
            all.len() < 2,
            "run {run} of `{}` has {} baselines; fix: remove all but one",
            plan.name,
            all.len()
        );
        Ok(all.first().map(|e| (*e).clone()))
    };
    (1..=runs).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("baselines.db");
        make_directory(&store).unwrap();
        (dir, store)
    }

    #[test]
    fn a_run_that_has_not_ended_is_not_overwritten() {
        let (_dir, store) = place();
        begin_run(&store, "slog", 2).unwrap();
        let refused = begin_run(&store, "slog", 3).unwrap_err().to_string();
        assert!(
            refused.contains("run 2 of `slog` has not ended"),
            "{refused}"
        );
        assert_eq!(unfinished(&store, "slog").unwrap(), Some(2));
        end_run(&store, "slog").unwrap();
        begin_run(&store, "slog", 3).unwrap();
        assert_eq!(unfinished(&store, "slog").unwrap(), Some(3));
        fs::write(mark(&store, "slog"), "three").unwrap();
        let garbled = unfinished(&store, "slog").unwrap_err().to_string();
        assert!(garbled.contains("names no run; fix:"), "{garbled}");
        assert!(begin_run(&store, "slog", 4).is_err());
    }

    #[test]
    fn an_experiment_is_held_by_one_call() {
        let (_dir, store) = place();
        let held = hold(&store, "slog").unwrap();
        let refused = hold(&store, "slog").unwrap_err().to_string();
        assert!(refused.contains("is being run already"), "{refused}");
        drop(hold(&store, "other").unwrap());
        let _as_a_child_that_is_being_started_has_it = held.0.try_clone().unwrap();
        drop(held);
        drop(hold(&store, "slog").unwrap());
    }
}
