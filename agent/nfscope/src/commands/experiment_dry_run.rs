//! `nfscope experiment check --dry-run`: what a plan file would do, told without setting or running anything.

use super::experiment_client::kind_of;
use super::experiment_file::{Measure, PlanFile};
use crate::versions::Kind;
use anyhow::ensure;
use nfscope_stats::experiment::Run;
use nfscope_text::console::{plain, print};
use nfscope_text::units::many;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Words behind which a command begins.
const BEFORE: [&str; 11] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec",
];
/// Words of the shell that no program has.
const WORDS: [&str; 4] = ["fi", "done", "esac", "}"];
/// Words that begin what is no command up to the next separator.
const NO_COMMAND: [&str; 3] = ["for", "case", "function"];

/// Prints the commands of these runs, by their numbers.
///
/// # Errors
/// When the shell cannot read a command, or a program is missing.
pub(super) fn run(file: &PlanFile, runs: &[Run], chosen: &[usize]) -> anyhow::Result<()> {
    let mut wrong = BTreeSet::new();
    for number in chosen {
        let run = &runs[number - 1];
        let levels = file.plan.levels(*run);
        let mut text = format!("run {number} of {}: {levels}\n", runs.len());
        for (what, command) in commands(file, run)? {
            text += &format!("  {what}: {command}\n");
            if let Err(why) = parsed(&command) {
                wrong.insert(format!("{what}: the shell cannot read `{command}`: {why}"));
                continue;
            }
            for program in programs(&command) {
                if !is_there(&program) {
                    wrong.insert(format!("{program} is missing"));
                }
            }
        }
        print(&plain(&text))?;
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

/// The commands of a run with their purpose, in the order in which it has them.
fn commands(file: &PlanFile, run: &Run) -> anyhow::Result<Vec<(String, String)>> {
    let at = file.mount.as_ref().map(|_| Path::new("/mnt/nfscope"));
    let filled = |text: &String| file.filled(text, run, at);
    let mut all = Vec::new();
    for (what, level) in file.levels_of(run) {
        let set = level.set.as_ref().map(|c| file.filled(c, run, None));
        all.extend(set.map(|c| (format!("set {what}"), c)));
    }
    if let Some(mount) = &file.mount {
        let (options, source) = (filled(&mount.options), filled(&mount.source));
        let command = format!("mount.nfs {source} /mnt/nfscope -o {options}");
        all.push(("mount".to_owned(), command));
    }
    for (what, level) in file.levels_of(run) {
        let verify = level.verify.as_ref().map(filled);
        all.extend(verify.map(|c| (format!("verify {what}"), c)));
    }
    all.extend(
        file.run
            .load
            .as_ref()
            .map(|c| ("load".to_owned(), filled(c))),
    );
    match &file.run.measure {
        Measure::Command(command) => all.push(("command".to_owned(), filled(command))),
        Measure::Workload(block) => {
            let (kind, threads) = kind_of(file, block, run)?;
            let program = match kind {
                Kind::Workload(_) => "fio",
                _ => "true",
            };
            let name = kind.name();
            all.push((
                "workload".to_owned(),
                format!("{program} # {name}, {threads} threads"),
            ));
        }
        Measure::Record(_) => {}
    }
    Ok(all)
}

/// Looks whether sh can read a command; says what it says otherwise.
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

/// Whether sh finds a program, or has it.
fn is_there(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v -- \"$0\"", program])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    found.is_ok_and(|s| s.success())
}

/// The programs that a command starts by name, as far as they stand at the beginning of a simple command.
fn programs(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    // The word at hand, and whether a command may begin with it.
    let (mut word, mut begins, mut is_plain) = (String::new(), true, true);
    let mut quote = None;
    let mut chars = text.chars().chain(['\n']).peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) if q == c => quote = None,
            (Some(_), _) => is_plain = false,
            (None, '\'' | '"') => {
                quote = Some(c);
                is_plain = false;
            }
            (None, '$') if chars.peek() == Some(&'(') => {
                chars.next();
                (word, begins, is_plain) = (String::new(), true, true);
            }
            (None, '#') if word.is_empty() && is_plain => {
                while chars.next_if(|c| *c != '\n').is_some() {}
            }
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '`' | '<' | '>') => {
                let ends = matches!(c, '\n' | ';' | '&' | '|' | '(' | '`');
                let taken = std::mem::take(&mut word);
                let own = std::mem::replace(&mut is_plain, true);
                let is_word = own && !taken.is_empty();
                if begins && is_word && NO_COMMAND.contains(&taken.as_str()) {
                    begins = false;
                } else if begins
                    && is_word
                    && !BEFORE.contains(&taken.as_str())
                    && !taken.contains('=')
                {
                    if !WORDS.contains(&taken.as_str()) && !taken.contains(['$', '*', '?']) {
                        all.push(taken);
                    }
                    begins = false;
                } else if begins && !own {
                    // A quoted word: no name that can be looked up.
                    begins = false;
                }
                begins |= ends;
            }
            (None, _) => word.push(c),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_stand_where_commands_begin() {
        for (text, expected) in [
            ("echo 8 >/proc/fs/nfsd/threads", &["echo"][..]),
            (
                "modprobe a; nsenter -t 1 -n sh -c 'exportfs -f'",
                &["modprobe", "nsenter"],
            ),
            (
                "if test a = b; then zpool status | grep -q x || zpool add y; elif ! true; then zfs z; fi",
                &["test", "zpool", "grep", "zpool", "true", "zfs"],
            ),
            (
                "test a = $(if zpool x; then echo y; else printf z; fi)",
                &["test", "zpool", "echo", "printf"],
            ),
            ("LANG=C fio --name=w # and more", &["fio"]),
            ("for d in a b; do rm $d; done", &["rm"]),
            ("\"$HOME/bin/load\" run && $X y", &[]),
            ("! { grep a & }", &["grep"]),
        ] {
            assert_eq!(programs(text), expected, "{text}");
        }
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
