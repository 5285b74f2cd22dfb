//! A designed experiment on a real server, with known effects.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::experiment::{Done, in_every_run, run};
use lab::recordings::{EXPERIMENT, LOG_DEVICE};
use lab::{Kernel, campaign};

#[test]
fn vm_6_12_a_stale_experiment_finds_what_a_log_device_needs() -> Result<()> {
    if EXPERIMENT.is_fresh()? {
        return Ok(());
    }
    needs_are_found(&run(&in_every_run(false))?)
}

/// With `sync=always` a WRITE waits for a disk of 8 ms, or for a log device of 0.1 ms; otherwise for neither. Each combination is run
/// once.
pub fn needs_are_found(done: &Done) -> Result<()> {
    println!("{}", done.text);
    let effects = done.json["effects"].as_array().context("no effects")?;
    let effect = |word: &str| {
        let found = effects.iter().find(|e| e["word"] == word);
        let e = found.with_context(|| format!("no {word}"))?;
        let value = e["effect"].as_f64().context("no value")?;
        anyhow::Ok((value, e["found"] == true))
    };
    // The factors are A: log, B: threads, C: sync.
    for (word, range) in [("A", 0.1..0.3), ("C", 20.0..100.0), ("AC", 0.1..0.3)] {
        let (value, found) = effect(word)?;
        ensure!(found && range.contains(&value), "{word}: {value}");
    }
    let (threads, _) = effect("B")?;
    ensure!((0.8..1.25).contains(&threads), "threads: {threads}");
    ensure!(done.html.contains("Interactions") && done.html.contains("Half-normal"));
    Ok(())
}

/// A small campaign of the folder: RPCs and component operations of each call equal those of Linux clients. The other plan files are
/// only read, in the same machine, which has their programs. `lab campaign FILE --short` makes a round of each, which takes minutes.
#[test]
fn vm_6_12_campaigns_measure_what_clients_ask_for() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("campaigns");
    let of = |files: Vec<PathBuf>, dry_run: bool| campaign::Options {
        kernel: Kernel::V6_12,
        files,
        check: false,
        dry_run,
        short: false,
        zfs: false,
        keep: None,
        write: false,
    };
    let mut all = std::fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    // The plan of a log device needs programs of a machine with a pool.
    all.retain(|path| !path.ends_with("log-device.toml"));
    let count = all.len();
    let said = campaign::run(&of(all, true))?;
    let read = said.matches("nothing was set and no run was made").count();
    ensure!(read == count && count >= 7, "{read} of {count}: {said}");
    let said = campaign::run(&of(vec![folder.join("small.toml")], false))?;
    println!("{said}");
    // Calls of NFSv3 and of 4.1, as in docs/versions.md: a delegation of a new file saves the GETATTR of its CLOSE.
    for (row, rpcs, operations) in [
        ("version=3 load=reads processes=1", "1.000", "1.000"),
        ("version=4.1 load=reads processes=2", "1.000", "3.000"),
        ("version=3 load=open-4 processes=1", "9.000", "9.000"),
        ("version=4.1 load=open-4 processes=1", "9.000", "40.00"),
    ] {
        let line = said.lines().find(|l| l.starts_with(row));
        let line = line.with_context(|| format!("no row {row}: {said}"))?;
        let mut cells = line[row.len()..]
            .split("  ")
            .map(str::trim)
            .filter(|c| !c.is_empty());
        for wanted in [rpcs, operations] {
            let cell = cells.next().context("too few cells")?;
            ensure!(cell.starts_with(wanted), "{row}: {cell} for {wanted}");
        }
    }
    Ok(())
}

#[test]
fn vm_6_12_a_stale_campaign_finds_what_a_log_device_is_worth() -> Result<()> {
    if LOG_DEVICE.is_fresh()? {
        return Ok(());
    }
    worth_is_found(&campaign::log_device(false)?)
}

/// A round of the campaign of a log device: WRITEs of one client and of four wait for the device of 0.1 ms where there is one, and for the
/// disk of 8 ms elsewhere.
pub fn worth_is_found(said: &str) -> Result<()> {
    println!("{said}");
    // Milliseconds of the cells of a row in the table of means.
    let cells = |row: &str| {
        let table = said.split("write mean by clients").nth(1);
        let line = table.and_then(|t| t.lines().find(|l| l.starts_with(row)));
        let words: Vec<&str> = line.context("no row")?.split_whitespace().collect();
        let time = |pair: &[&str]| match pair[1] {
            "ms" => pair[0].parse::<f64>().ok(),
            "\u{b5}s" | "\u{3bc}s" => pair[0].parse::<f64>().ok().map(|us| us / 1e3),
            _ => None,
        };
        let all: Vec<f64> = words.windows(2).filter_map(time).collect();
        anyhow::Ok([all[0], all[1]])
    };
    let (disk, slog) = (cells("log=disk")?, cells("log=slog")?);
    for (disk, slog) in disk.into_iter().zip(slog) {
        ensure!(disk > 7.0 && slog < disk / 2.0, "{disk} {slog}: {said}");
    }
    Ok(())
}
