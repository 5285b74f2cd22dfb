//! A designed experiment on a real server, whose effects are known.

use anyhow::{Context, Result, ensure};
use lab::Kernel;
use lab::experiment::{Options, run};

/// With `sync=always` a WRITE waits for a disk of 8 ms, or for a log device of 0.1 ms; else for neither. Each combination is run once.
#[test]
fn vm_6_12_an_experiment_finds_what_a_log_device_needs() -> Result<()> {
    let done = run(&Options {
        kernel: Kernel::V6_12,
        seconds: 10,
        replicates: 1,
        keep: None,
    })?;
    println!("{}", done.text);
    let effects = done.json["effects"].as_array().context("no effects")?;
    let effect = |word: &str| {
        let found = effects.iter().find(|e| e["word"] == word);
        let e = found.with_context(|| format!("no {word}"))?;
        let value = e["effect"].as_f64().context("no value")?;
        anyhow::Ok((value, e["found"] == true))
    };
    // A is log, B is threads, C is sync.
    for (word, range) in [("A", 0.1..0.3), ("C", 20.0..100.0), ("AC", 0.1..0.3)] {
        let (value, found) = effect(word)?;
        ensure!(found && range.contains(&value), "{word}: {value}");
    }
    let (threads, _) = effect("B")?;
    ensure!((0.8..1.25).contains(&threads), "threads: {threads}");
    ensure!(done.html.contains("Interactions") && done.html.contains("Half-normal"));
    Ok(())
}
