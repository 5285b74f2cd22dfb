//! Plan files of campaigns: dry runs of those in tests/campaigns without a machine, and the output of a campaign at its end.

use crate::fixture::recorder::Place;
use crate::fixture::{root, said};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs of the campaigns that a host without the set-up of the lab may lack. `vm_6_12_campaigns_…` has the real ones.
const OF_THE_LAB: [&str; 10] = [
    "exportfs",
    "fio",
    "lab",
    "modprobe",
    "mount",
    "mount.nfs",
    "nfscope",
    "nsenter",
    "tc",
    "zpool",
];

fn ask(place: &Place, words: &[&str]) -> (i32, String, String) {
    let mut c = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    c.arg("experiment").args(words);
    let path = std::env::var("PATH").unwrap_or_default();
    c.env("PATH", format!("{}:{path}", place.0.join("bin").display()));
    said(&c.arg("--store").arg(place.store()).output().unwrap())
}

/// Directory of a test, with programs that do nothing.
fn place(name: &str, programs: &[&str]) -> Place {
    let place = Place::new(name);
    let bin = place.0.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for program in programs {
        let path = bin.join(program);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    place
}

fn campaigns() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("tests/campaigns")).unwrap();
    let mut all: Vec<PathBuf> = folder.map(|e| e.unwrap().path()).collect();
    all.sort();
    assert!(all.len() >= 8, "{all:?}");
    all
}

fn dry_run(place: &Place, file: &Path) -> (i32, String, String) {
    ask(place, &["check", file.to_str().unwrap(), "--dry-run"])
}

/// Every campaign of the lab is a plan whose commands the shell can parse and whose programs exist.
#[test]
fn the_campaigns_of_the_lab_pass_a_dry_run() {
    let place = place("dry", &OF_THE_LAB);
    for file in campaigns() {
        let text = fs::read_to_string(&file).unwrap();
        let copy = place.0.join(file.file_name().unwrap());
        fs::write(&copy, text.replace("{lab}", "lab")).unwrap();
        let (code, out, err) = dry_run(&place, &copy);
        assert_eq!(code, 0, "{}: {err}", file.display());
        assert!(out.contains("nothing was set and no run was made"), "{out}");
        every_level_is_in_a_command(&out);
    }
    // Dry runs create no store.
    assert!(!place.store().exists() && !place.0.join("experiments").exists());
}

/// Asserts that every level of a run stands in one of its commands, in its mount or in its load.
fn every_level_is_in_a_command(out: &str) {
    let (mut levels, mut commands): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let check = |levels: &[&str], commands: &[&str]| {
        for level in levels {
            let told = commands.iter().any(|c| has_word(c, level));
            assert!(told, "{level} is in none of {commands:?}");
        }
    };
    let mut runs = 0;
    for line in out.lines() {
        if let Some(command) = line.strip_prefix("  ") {
            // Command of a level: its own name stands before it.
            let own = command.split_once(": ").map(|(_, own)| own);
            commands.push(own.unwrap_or(command));
            continue;
        }
        check(&levels, &commands);
        (levels, commands) = (Vec::new(), Vec::new());
        if let Some((head, own)) = line.split_once(": ")
            && head.starts_with("run ")
        {
            runs += 1;
            levels = own
                .split(' ')
                .map(|l| l.split_once('=').unwrap().1)
                .collect();
        }
    }
    assert!(runs >= 2, "{out}");
}

/// True if a text has this word, and not as a part of a longer word or number.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + word.len()..].chars().next();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
        !before.is_some_and(is_part) && !behind.is_some_and(|c| c.is_ascii_digit() || c == '.')
    })
}

/// A dry run prints the mount of a run: the source for its version, and all options.
#[test]
fn a_dry_run_prints_the_mount_of_a_run() {
    let place = place("mount", &OF_THE_LAB);
    let file = root().join("tests/campaigns/small.toml");
    let (code, out, err) = dry_run(&place, &file);
    assert_eq!(code, 0, "{err}");
    for line in [
        "  mount: mount -t nfs -o vers=3,nosharecache,retry=0,nolock,nconnect=2 -- 10.9.0.1:/run/exp /mnt/nfscope\n",
        "  mount: mount -t nfs -o vers=4.1,nosharecache,retry=0,nconnect=2 -- 10.9.0.1:/ /mnt/nfscope\n",
        "  workload: open-4, 1 thread\n",
        "  workload: reads, 2 threads\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let file = root().join("tests/campaigns/four-one.toml");
    let (code, out, err) = dry_run(&place, &file);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("  workload: iozone, 10 threads, RECORD="),
        "{out}"
    );
    // Parameter that fio's job does not have.
    let text = fs::read_to_string(&file).unwrap();
    let wrong = place.0.join("wrong.toml");
    fs::write(&wrong, text.replace("set.RECORD", "set.RECORDS")).unwrap();
    let (code, _, err) = dry_run(&place, &wrong);
    assert_eq!(code, 1);
    assert!(
        err.contains("iozone has no parameter RECORDS") && err.contains("RECORD"),
        "{err}"
    );
}

/// A missing program that is not the first word of a command is a note: it may not be needed.
#[test]
fn a_program_that_may_not_be_needed_is_a_note() {
    let place = place("note", &[]);
    let file = place.0.join("note.toml");
    let text = "name = 'note'\n[run]\ncommand = 'echo mbs={size} 2>&1 && no-such-program >&2'\n\
                numbers.mbs = 'mbs={}'\n[[factor]]\nname = 'size'\nlevels = ['4', '8']\n";
    fs::write(&file, text).unwrap();
    let (code, out, err) = dry_run(&place, &file);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("note: no-such-program is missing here"),
        "{out}"
    );
}

/// A dry run lists unreadable commands and missing programs at once, and sets nothing.
#[test]
fn a_dry_run_lists_all_that_would_fail() {
    let place = place("missing", &[]);
    let file = place.0.join("wrong.toml");
    let made = place.0.join("made");
    let text = format!(
        "name = 'wrong'\n[run]\ncommand = 'no-such-load {{size}}'\nnumbers.mbs = 'bw={{}}'\n[[factor]]\nname = 'size'\n\
         levels = ['4k', '1m']\nset = 'touch {}'\nverify = 'if true; then echo {{level}}'\n",
        made.display()
    );
    fs::write(&file, &text).unwrap();
    let (code, out, err) = dry_run(&place, &file);
    assert_eq!(code, 1, "{out}{err}");
    for part in [
        "3 things would fail here",
        "no-such-load is missing",
        "verify size=4k: the shell cannot read `if true; then echo 4k`",
        "verify size=1m: the shell cannot read",
        "nothing was set",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert!(out.contains("command: no-such-load 1m"), "{out}");
    assert!(!made.exists());
}

/// A plan file prints its effects when all runs are made.
#[test]
fn a_plan_file_prints_its_effects() {
    let place = place("effects", &[]);
    let dir = place.0.display();
    let factor = |name: &str| {
        format!(
            "[[factor]]\nname = '{name}'\nlevels = ['1', '2']\nset = 'echo {{level}} >{dir}/{name}'\n"
        )
    };
    let text = format!(
        "name = 'two'\nreplicates = 3\n[run]\n\
         command = 'echo mbs=$((100 * $(cat {dir}/a) * $(cat {dir}/a) + $NFSCOPE_RUN % 3))'\nnumbers.mbs = 'mbs={{}}'\n{}{}\
         [effects]\nresponses = ['load:mbs']\n",
        factor("a"),
        factor("b")
    );
    let file = place.0.join("two.toml");
    fs::write(&file, &text).unwrap();
    let (code, out, err) = ask(&place, &["run", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("EFFECT OF") && out.contains("a * "), "{out}");
    let (_, same, _) = ask(&place, &["analyse", "two", "--response", "load:mbs"]);
    assert_eq!(out, same);
    fs::write(&file, text.replace("'load:mbs'", "")).unwrap();
    let (code, _, err) = ask(&place, &["run", file.to_str().unwrap()]);
    assert!(
        code == 1 && err.contains("effects: responses: name at least one"),
        "{err}"
    );
}

/// The warning of the largest number of rounds comes before an error of the effects. The fix of that error is a key of plan files.
#[test]
fn the_warning_of_the_largest_number_of_rounds_comes_before_effects() {
    let place = place("most", &[]);
    let text = "name = 'most'\nreplicates = 13\n[run]\ncommand = 'echo mbs=$(($NFSCOPE_RUN % 3))'\nnumbers.mbs = 'mbs={}'\n\
                [[factor]]\nname = 'a'\nlevels = ['1', '2']\n[table]\nresponses = ['load:mbs']\n\
                [until]\nci = '5%'\nreplicates = 13\n[effects]\nresponses = ['load:mbs']\n";
    let file = place.0.join("most.toml");
    fs::write(&file, text).unwrap();
    let (code, out, err) = ask(&place, &["run", file.to_str().unwrap()]);
    assert_eq!(code, 1, "{out}{err}");
    let most = err
        .find("after the most rounds an interval is wider")
        .unwrap();
    let effects = err.find("fix: linear = true in [effects]").unwrap();
    assert!(most < effects && !err.contains("--linear"), "{err}");
    fs::write(&file, format!("{text}linear = true\n")).unwrap();
    let (code, out, err) = ask(&place, &["run", file.to_str().unwrap()]);
    assert_eq!(code, 3, "{err}");
    assert!(out.contains("EFFECT OF"), "{out}");
}
