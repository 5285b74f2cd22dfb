//! `nfscope experiment check --dry-run`: prints what a plan file would do, without setting or running anything.

use crate::experiment::client::{kind_of, parameters, wanted};
use crate::experiment::file::{Measure, PlanFile};
use crate::experiment::shell_programs::programs;
use anyhow::ensure;
use nfscope_load::versions::{Kind, mount};
use nfscope_stats::experiment::Run;
use nfscope_text::console::{plain, print};
use nfscope_text::units::many;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Mount point that stands for the one of a real run in printed commands.
const MOUNT: &str = "/mnt/nfscope";
/// Directories of programs that are in the search path of root only.
const OF_ROOT: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// Step of a run: a shell command, or an action of nfscope.
struct Step {
    what: String,
    text: String,
    kind: StepKind,
}

enum StepKind {
    /// Shell command.
    Shell,
    /// Action of nfscope, which starts these programs.
    Own(&'static [&'static str]),
}

/// Prints the commands of the chosen runs. `chosen` has their numbers, from 1.
///
/// # Errors
/// When the shell cannot parse a command, or its program is missing.
pub(super) fn run(file: &PlanFile, runs: &[Run], chosen: &[usize]) -> anyhow::Result<()> {
    let (mut wrong, mut notes) = (BTreeSet::new(), BTreeSet::new());
    for number in chosen {
        let run = &runs[number - 1];
        let levels = file.plan.levels(*run);
        let mut text = format!("run {number} of {}: {levels}\n", runs.len());
        for step in steps(file, run)? {
            text += &format!("  {}: {}\n", step.what, step.text);
            look(&step, &mut wrong, &mut notes);
        }
        print(&plain(&text))?;
    }
    for note in notes.difference(&wrong) {
        print(&plain(&format!(
            "note: {note} here, and a command behind the first of its text may need it\n"
        )))?;
    }
    let wrong: Vec<String> = wrong.into_iter().collect();
    ensure!(
        wrong.is_empty(),
        "{} would fail here:\n- {}\nfix: repair it, or install what is missing; nothing was set and no run was made",
        many(wrong.len() as f64, "thing"),
        wrong.join("\n- ")
    );
    print(&format!(
        "{}; nothing was set and no run was made\n",
        many(runs.len() as f64, "run")
    ))?;
    Ok(())
}

/// Checks that a step can be done on this host: adds failures to `wrong`, and possible ones to `notes`.
fn look(step: &Step, wrong: &mut BTreeSet<String>, notes: &mut BTreeSet<String>) {
    let missing = |program: &str| format!("{program} is missing");
    match step.kind {
        StepKind::Own(programs) => {
            let programs = programs.iter().filter(|p| !is_there(p));
            wrong.extend(programs.map(|p| missing(p)));
        }
        StepKind::Shell => {
            let (what, text) = (&step.what, &step.text);
            if let Err(why) = parsed(text) {
                wrong.insert(format!("{what}: the shell cannot read `{text}`: {why}"));
                return;
            }
            let found = programs(text);
            for (i, program) in found.all.iter().enumerate() {
                // Programs on the export exist only while it is mounted.
                if program.starts_with(MOUNT) || is_there(program) {
                    continue;
                }
                match i == 0 && found.first_counts {
                    true => wrong.insert(missing(program)),
                    false => notes.insert(missing(program)),
                };
            }
        }
    }
}

/// Steps of a run, in their order.
fn steps(file: &PlanFile, run: &Run) -> anyhow::Result<Vec<Step>> {
    let at = file.mount.as_ref().map(|_| Path::new(MOUNT));
    let shell = |what: String, text: &String, at: Option<&Path>| Step {
        what,
        text: file.filled(text, run, at),
        kind: StepKind::Shell,
    };
    let mut all = Vec::new();
    for (what, level) in file.levels_of(run) {
        let set = level.set.as_ref();
        all.extend(set.map(|c| shell(format!("set {what}"), c, None)));
    }
    if let Some(wanted) = wanted(file, run)? {
        let source = wanted.export.source();
        let words = mount::words(&source, &wanted.version, wanted.others.as_deref());
        all.push(Step {
            what: "mount".to_owned(),
            text: format!("mount {} {MOUNT}", words.join(" ")),
            kind: StepKind::Own(&["mount", "mount.nfs"]),
        });
    }
    for (what, level) in file.levels_of(run) {
        let verify = level.verify.as_ref();
        all.extend(verify.map(|c| shell(format!("verify {what}"), c, at)));
    }
    let load = file.run.load.as_ref();
    all.extend(load.map(|c| shell("load".to_owned(), c, at)));
    match &file.run.measure {
        Measure::Command(command) => all.push(shell("command".to_owned(), command, at)),
        Measure::Workload(block) => {
            let (kind, threads) = kind_of(file, block, run)?;
            let mut text = format!("{}, {}", kind.name(), many(f64::from(threads), "thread"));
            let programs: &[&str] = match kind {
                Kind::Workload(_) => {
                    for (name, value) in parameters(file, block, run) {
                        text += &format!(", {name}={value}");
                    }
                    &["fio"]
                }
                _ => &[],
            };
            all.push(Step {
                what: "workload".to_owned(),
                text,
                kind: StepKind::Own(programs),
            });
        }
        Measure::Record(_) => {}
    }
    Ok(all)
}

/// Checks the syntax of a command by `sh -n`; an error is the text that sh prints.
fn parsed(command: &str) -> Result<(), String> {
    let said = Command::new("sh")
        .args(["-n", "-c", command])
        .stdin(Stdio::null())
        .output();
    match said {
        Ok(said) if said.status.success() => Ok(()),
        Ok(said) => Err(String::from_utf8_lossy(&said.stderr).trim().to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// Returns true if sh finds a program, or has a builtin of this name. Directories of root count: a dry run needs no root, but the runs do.
fn is_there(program: &str) -> bool {
    let find = format!("PATH=\"$PATH:{OF_ROOT}\"; command -v -- \"$0\"");
    let found = Command::new("sh")
        .args(["-c", &find, program])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    found.is_ok_and(|s| s.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors and notes for a shell command.
    fn looked(text: &str) -> (Vec<String>, Vec<String>) {
        let step = Step {
            what: "command".to_owned(),
            text: text.to_owned(),
            kind: StepKind::Shell,
        };
        let (mut wrong, mut notes) = (BTreeSet::new(), BTreeSet::new());
        look(&step, &mut wrong, &mut notes);
        (wrong.into_iter().collect(), notes.into_iter().collect())
    }

    #[test]
    fn good_commands_are_not_wrong() {
        for text in [
            "ls /no-such 2>&1",
            "echo no >&2",
            "sleep $((60 * 4))",
            "case x in 4k) a;; esac",
            "time -p ls",
            "exec 3</dev/null",
            "cat <<END\nno-program of mine\nEND\n",
            "load() { sleep 1; }; load",
            "/mnt/nfscope/load --runs 3",
        ] {
            assert_eq!(looked(text), (vec![], vec![]), "{text}");
        }
    }

    #[test]
    fn only_the_first_program_fails_a_command() {
        let missing = || vec!["no-such-load is missing".to_owned()];
        assert_eq!(looked("no-such-load 2>&1 | cat"), (missing(), vec![]));
        assert_eq!(looked("ls; no-such-load"), (vec![], missing()));
        assert_eq!(looked("no-such-load || ls"), (vec![], missing()));
        assert_eq!(looked("if no-such-load; then ls; fi"), (vec![], missing()));
    }

    #[test]
    fn the_shell_reads_commands_and_runs_none() {
        let place = tempfile::tempdir().unwrap();
        let made = place.path().join("made");
        parsed(&format!("touch {}", made.display())).unwrap();
        assert!(!made.exists());
        assert!(parsed("if true; then echo").is_err());
        assert!(is_there("test") && !is_there("no-such-program"));
    }
}
