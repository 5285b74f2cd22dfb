//! Reports of `nfscope baseline` on changes that the lab has made, and on none.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use lab::baselines::{Compared, Experiments, in_every_run, run};
use lab::recordings::BASELINES;
use serde_json::Value;

#[test]
fn vm_6_12_stale_comparisons_tell_what_changed() -> Result<()> {
    if BASELINES.is_fresh()? {
        return Ok(());
    }
    judge(&run(&in_every_run(false))?)
}

/// Checks the comparisons of a store, recorded now or earlier.
pub fn judge(done: &Experiments) -> Result<()> {
    for (name, compared) in done.all() {
        println!("{name}\n{}", compared.text);
    }
    println!("{}", done.capacity);
    of_the_same(&done.same).context("the same server twice")?;
    of_a_log_device(&done.log_device).context("a log device")?;
    of_threads(&done.threads).context("sixteen threads")?;
    let of = &done.group_commit;
    println!(
        "a journal: predicted {}, measured {}, {} with one thread",
        of.predicted, of.measured, of.single
    );
    // The prediction comes from one client that uses a quarter of the time of successive commits.
    ensure!((0.9..1.1).contains(&(of.predicted / of.measured)), "{of:?}");
    ensure!(of.single < 0.5 * of.measured, "{of:?}");
    ensure!(
        done.capacity.contains("First to saturate: threads (1)"),
        "{}",
        done.capacity
    );
    Ok(())
}

fn is_nothing(row: &Value) -> bool {
    ["no_evidence", "small"]
        .iter()
        .any(|v| row["verdict"] == *v)
}

/// Checks a comparison without a change: no verdict but by chance, and no warning. By chance one such pair in twenty may have a
/// verdict (one in fifty, of two thousand simulated ones): about one subject then, whose quantities move together, and never with a
/// probability below a thousandth.
fn of_the_same(c: &Compared) -> Result<()> {
    let mut reported = BTreeSet::new();
    for row in rows(c)? {
        if !is_nothing(row) {
            ensure!(row["p"].as_f64().is_some_and(|p| p > 0.001), "{row}");
            reported.insert(row["of"].to_string());
        }
    }
    ensure!(reported.len() <= 1, "{}", c.text);
    ensure!(warned(c) == Vec::<&str>::new(), "{:?}", c.json["caveats"]);
    ensure!(
        !reported.is_empty() || c.html.contains("No evidence of a change"),
        "the page"
    );
    Ok(())
}

/// Checks the comparison of a log's own disk that is eighty times as fast.
fn of_a_log_device(c: &Compared) -> Result<()> {
    for (of, what) in [
        ("op", "mean"),
        ("op", "p99"),
        ("log", "mean"),
        ("log", "p99"),
    ] {
        let row = row(c, of, what)?;
        ensure!(row["verdict"] == "better", "{row}");
        let ratio = |end: &str| row["ratio"][end].as_f64().context("no ratio");
        // The p99 of 2,400 WRITEs is made of two dozen, which meet a commit under way: up to a millisecond beside their own 0.1 ms,
        // of 8.5.
        let (most, high) = if what == "p99" {
            (7.0, 4.0)
        } else {
            (8.0, 8.0)
        };
        ensure!(ratio("value")? < 1.0 / most, "{row}");
        ensure!(ratio("high")? < 1.0 / high, "{row}");
    }
    // Rates are as before, because the clients ask at a fixed rate.
    for (of, what) in [("op", "rate"), ("log", "rate"), ("sync_writes", "rate")] {
        let row = row(c, of, what)?;
        ensure!(is_nothing(row), "{row}");
    }
    // The wait for a thread is one for the only CPU here: microseconds, which may grow if replies come at other moments.
    let next_to_none =
        |r: &Value| r["of"] == "queue" && r["after"]["value"].as_f64() < Some(200e-6);
    let worse = |r: &&Value| r["verdict"] == "worse" && !next_to_none(r);
    let worse = rows(c)?.iter().find(worse);
    ensure!(worse.is_none(), "{worse:?}");
    let headline = c.json["headline"].as_str().unwrap_or_default();
    ensure!(
        headline.contains("WRITE 3 p99 fell from")
            && headline.contains("of the change of the mean is log wait"),
        "{headline}"
    );
    ensure!(warned(c) == Vec::<&str>::new(), "{:?}", c.json["caveats"]);
    Ok(())
}

/// Checks the comparison of threads: requests do not wait for a thread any more, and the time of the disk is as before.
fn of_threads(c: &Compared) -> Result<()> {
    for (of, what) in [
        ("queue", "mean"),
        ("queue", "p99"),
        ("requests", "mean"),
        ("requests", "p99"),
    ] {
        let row = row(c, of, what)?;
        ensure!(row["verdict"] == "better", "{row}");
    }
    let disk = row(c, "op", "disk")?;
    ensure!(is_nothing(disk), "{disk}");
    let headline = c.json["headline"].as_str().unwrap_or_default();
    ensure!(
        headline.contains("The wait for a thread: p99 fell from"),
        "{headline}"
    );
    ensure!(warned(c) == ["threads"], "{:?}", c.json["caveats"]);
    Ok(())
}

fn rows(c: &Compared) -> Result<&Vec<Value>> {
    c.json["rows"].as_array().context("no rows")
}

/// First row of this kind: the operation with the most time.
fn row<'a>(c: &'a Compared, of: &str, what: &str) -> Result<&'a Value> {
    let percent = what.strip_prefix('p').and_then(|p| p.parse::<u8>().ok());
    let is = |r: &&Value| {
        let quantity = match percent {
            Some(percent) => r["percent"] == percent,
            None => r["what"] == what || r["phase"] == what,
        };
        r["of"] == of && quantity
    };
    rows(c)?
        .iter()
        .find(is)
        .with_context(|| format!("no {what} of {of}: {}", c.text))
}

fn warned(c: &Compared) -> Vec<&str> {
    let all = c.json["caveats"].as_array();
    let kinds = all.into_iter().flatten().map(|w| w["kind"].as_str());
    kinds.flatten().collect()
}
