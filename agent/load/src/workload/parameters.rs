//! Variables of a run: those of its size, those that a user sets, and those that follow from both.

use crate::workload::catalog::{Size, Workload};
use anyhow::{Context, bail, ensure};
use nfscope_text::suggest::nearest;

/// Default limit of an open loop's requests under way: a server with more than that does not keep up.
const DEPTH: &str = "64";
/// Largest number of requests under way that fio reports exactly, so that reaching it can be seen.
const MOST_DEPTH: u32 = 64;

/// Parameters that a user sets.
#[derive(Debug, Clone, Default)]
pub struct Set {
    /// Name and value.
    pub values: Vec<(String, String)>,
    /// `--threads`
    pub threads: Option<u32>,
    /// `--depth`
    pub depth: Option<u32>,
    /// `--rate`, requests per second of all processes.
    pub rate: Option<f64>,
}

/// Variables of the workload with these parameters, and the bytes that its files need.
///
/// # Errors
/// When the workload has no such parameter, or a value cannot be; the error says which there are.
pub fn variables(
    w: Workload,
    size: &Size,
    set: &Set,
) -> anyhow::Result<(Vec<(&'static str, String)>, u64)> {
    let known = w.parameters();
    let find = |name: &str| {
        known.iter().copied().find(|k| *k == name).with_context(|| {
            format!(
                "{} has no parameter {name}{}; fix: `nfscope workload show {}` explains {}",
                w.name,
                nearest(name, known.iter().copied(), str::to_owned),
                w.name,
                known.join(", ")
            )
        })
    };
    let mut all: Vec<(&'static str, String)> = w
        .settings()
        .chain(size.variables.iter().copied())
        .map(|(k, v)| (k, v.to_owned()))
        .collect();
    let usual = all.clone();
    let mut put = |name: &str, value: String| -> anyhow::Result<()> {
        let name = find(name)?;
        let good = |c: char| c.is_ascii_alphanumeric() || "._-:/,".contains(c);
        ensure!(
            !value.is_empty() && value.chars().all(good),
            "{name}: `{value}` is no value of a job file; fix: give a number such as 500, 64k or 1g"
        );
        all.retain(|(k, _)| *k != name);
        all.push((name, value));
        Ok(())
    };
    // Requests of this load are made by nfscope itself, and not by fio.
    let own = set.rate.is_some() && w.said("Open").next().is_some();
    if let Some(n) = set.threads {
        put("THREADS", n.to_string())?;
    }
    if let Some(n) = set.depth.filter(|_| !own) {
        put("DEPTH", n.to_string())?;
    }
    if let (Some(rate), false) = (set.rate, own) {
        ensure!(w.open_loop().is_some(), "{}", no_open_loop(w));
        if set.depth.is_none() {
            put("DEPTH", DEPTH.to_owned())?;
        }
        ensure!(
            set.depth
                .is_none_or(|d| d.is_power_of_two() && d <= MOST_DEPTH),
            "--depth: with --rate it is a power of two up to {MOST_DEPTH}, because fio tells of no other whether it was reached"
        );
        put("OPEN", "1".to_owned())?;
        for (name, value) in rates(w, set, &usual, rate)? {
            put(name, value)?;
        }
    }
    if !own && (set.rate.is_some() || set.depth.is_some_and(|d| d > 1)) {
        put("ENGINE", "libaio".to_owned())?;
    }
    for (name, value) in &set.values {
        put(name, value.clone())?;
    }
    let needs = needs(size, &usual, &all);
    let derived = all.iter().map(|(k, v)| Ok((*k, product(v, &all)?)));
    Ok((derived.collect::<anyhow::Result<Vec<_>>>()?, needs))
}

fn no_open_loop(w: Workload) -> String {
    format!(
        "--rate: {} has no open loop: {}; fix: use another workload (`nfscope workload list`)",
        w.name,
        w.closed().unwrap_or_default()
    )
}

/// The rate of each process, in whole requests per second.
fn rates(
    w: Workload,
    set: &Set,
    usual: &[(&'static str, String)],
    rate: f64,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let open = w.open_loop().with_context(|| no_open_loop(w))?;
    let given = set
        .values
        .iter()
        .find(|(k, _)| k == open.by)
        .map(|(_, v)| v);
    let usual = usual.iter().find(|(k, _)| *k == open.by).map(|(_, v)| v);
    let processes = match set.threads {
        Some(n) => f64::from(n),
        None => given.or(usual).and_then(|v| number(v)).unwrap_or(1.0),
    };
    open.shares
        .iter()
        .map(|(name, share)| {
            let each = (rate * share / processes).round();
            ensure!(
                each >= 1.0,
                "--rate {rate}: that is less than one request a second of each kind for {processes} processes; fix: use fewer --threads, or a higher rate"
            );
            Ok((*name, each.to_string()))
        })
        .collect()
}

/// The parameter that has the numbers of processes of a ramp.
const STEPS: &str = "STEPS";
/// Most processes of a step, and most steps.
const MOST: u32 = 1024;

/// Job file with these variables. The job file of a ramp has a job for each step.
///
/// # Errors
/// When the steps are no numbers of processes.
pub fn job_file(w: Workload, variables: &[(&'static str, String)]) -> anyhow::Result<String> {
    let Some((_, text)) = variables.iter().find(|(name, _)| *name == STEPS) else {
        return Ok(w.job_file.to_owned());
    };
    let (global, _) = w
        .job_file
        .split_once("\n[processes-")
        .unwrap_or((w.job_file, ""));
    let mut all = global.to_owned();
    for (i, n) in steps(text)?.into_iter().enumerate() {
        let after = if i == 0 { "" } else { "stonewall\n" };
        all += &format!("\n[processes-{n}]\n{after}numjobs={n}\n");
    }
    Ok(all)
}

/// Parses `1,2,5` or `1-50`, from few to many.
fn steps(text: &str) -> anyhow::Result<Vec<u32>> {
    let wrong = || {
        format!(
            "{STEPS}: `{text}` are no numbers of processes up to {MOST}; fix: give them as in 1,2,4,8 or 1-50"
        )
    };
    let number = |n: &str| n.parse::<u32>().ok().filter(|n| (1..=MOST).contains(n));
    let mut all = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = number(from).zip(number(to)).with_context(wrong)?;
        all.extend(from..=to);
    }
    ensure!(
        !all.is_empty() && all.is_sorted_by(|a, b| a < b),
        "{}",
        wrong()
    );
    Ok(all)
}

/// Bytes that the files need: those of the size, times the growth of the parameters over their usual values.
fn needs(size: &Size, usual: &[(&'static str, String)], all: &[(&'static str, String)]) -> u64 {
    let grows = |name: &str| {
        size.variables.iter().any(|(k, _)| *k == name) || matches!(name, "THREADS" | "HIGH" | STEPS)
    };
    let factor: f64 = all
        .iter()
        .filter(|(k, _)| grows(k))
        .filter_map(|(k, v)| {
            let (_, before) = usual.iter().find(|(u, _)| u == k)?;
            let of = |v: &str| match *k {
                STEPS => Some(f64::from(*steps(v).ok()?.last()?)),
                _ => number(v),
            };
            Some((of(v)? / of(before)?).max(1.0))
        })
        .product();
    (size.needs as f64 * factor) as u64
}

/// Multiplies `2*THREADS` by the value of THREADS; returns other values unchanged.
fn product(value: &str, all: &[(&'static str, String)]) -> anyhow::Result<String> {
    let Some((factor, name)) = value.split_once('*') else {
        return Ok(value.to_owned());
    };
    let of = all
        .iter()
        .find(|(k, _)| *k == name)
        .map(|(_, v)| v.as_str());
    let parts = of.and_then(number).zip(factor.parse::<f64>().ok());
    match parts {
        Some((of, factor)) => Ok(format!("{:.0}", of * factor)),
        None => bail!("{name}: it is no number; fix: give one such as 8, 64k or 1g"),
    }
}

/// `64k` as bytes.
pub(super) fn number(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * f64::from(2u32).powi(shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::catalog::{SizeName, named};

    fn of(name: &str, set: &Set) -> anyhow::Result<(Vec<(&'static str, String)>, u64)> {
        let w = named(name).unwrap();
        variables(w, &w.size(SizeName::Small).unwrap(), set)
    }

    fn value(all: &[(&'static str, String)], name: &str) -> String {
        let found: Vec<_> = all.iter().filter(|(k, _)| *k == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].1.clone()
    }

    #[test]
    fn what_is_set_counts_and_the_rest_follows() {
        let (all, needs) = of("mail", &Set::default()).unwrap();
        assert_eq!(
            (value(&all, "FILES"), value(&all, "READERS")),
            ("10".into(), "8".into())
        );
        assert_eq!(needs, 16 << 20);
        let set = Set {
            values: vec![("FILES".into(), "30".into())],
            threads: Some(8),
            ..Set::default()
        };
        let (all, needs) = of("mail", &set).unwrap();
        assert_eq!(
            (value(&all, "FILES"), value(&all, "READERS")),
            ("30".into(), "16".into())
        );
        assert_eq!(needs, 6 * (16 << 20));
        let records = Set {
            values: vec![("RECORD".into(), "8k".into())],
            ..Set::default()
        };
        let (all, _) = of("iozone", &records).unwrap();
        assert_eq!(
            (value(&all, "BACK"), value(&all, "STRIDE")),
            ("-16384".into(), "131072".into())
        );
    }

    #[test]
    fn an_open_loop_has_its_rate_in_parts() {
        let set = Set {
            threads: Some(2),
            rate: Some(1000.0),
            ..Set::default()
        };
        let (all, _) = of("database", &set).unwrap();
        let told = ["RATE_READS", "RATE_WRITES", "DEPTH", "ENGINE", "OPEN"].map(|n| value(&all, n));
        assert_eq!(told, ["350", "150", "64", "libaio", "1"]);
        let (all, _) = of("database", &Set::default()).unwrap();
        assert_eq!(
            (value(&all, "RATE_READS"), value(&all, "ENGINE")),
            ("0".into(), "psync".into())
        );
    }

    #[test]
    fn a_ramp_has_the_steps_that_are_set() {
        let set = |value: &str| Set {
            values: vec![(STEPS.into(), value.into())],
            ..Set::default()
        };
        let w = named("ramp").unwrap();
        let (usual, needs) = of("ramp", &Set::default()).unwrap();
        assert_eq!(job_file(w, &usual).unwrap(), w.job_file);
        let (all, more) = of("ramp", &set("1-3,100")).unwrap();
        let text = job_file(w, &all).unwrap();
        let jobs: Vec<_> = text.lines().filter(|l| l.starts_with('[')).collect();
        let names = [
            "[global]",
            "[processes-1]",
            "[processes-2]",
            "[processes-3]",
            "[processes-100]",
        ];
        assert_eq!(jobs, names);
        assert_eq!((text.matches("\nstonewall").count(), more), (3, 2 * needs));
        for wrong in ["0", "2,1", "1,1", "x", "1-", "5-2", "9999"] {
            let (all, _) = of("ramp", &set(wrong)).unwrap();
            let why = format!("{:#}", job_file(w, &all).unwrap_err());
            assert!(why.contains("1,2,4,8"), "{wrong}: {why}");
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        let why = |name, set: &Set| format!("{:#}", of(name, set).unwrap_err());
        let set = |name: &str, value: &str| Set {
            values: vec![(name.into(), value.into())],
            ..Set::default()
        };
        let text = why("mail", &set("FILE", "3"));
        assert!(
            text.contains("did you mean FILES?") && text.contains("READERS"),
            "{text}"
        );
        assert!(why("mail", &set("FILES", "3\n[x]")).contains("no value of a job file"));
        let rate = Set {
            rate: Some(100.0),
            ..Set::default()
        };
        let text = why("iozone", &rate);
        assert!(text.contains("iozone has no open loop: "), "{text}");
        let (mail, _) = of("mail", &rate).unwrap();
        assert_eq!(value(&mail, "FILES"), "10");
        let slow = Set {
            rate: Some(3.0),
            ..Set::default()
        };
        assert!(why("database", &slow).contains("fewer --threads"));
        let deep = Set {
            rate: Some(100.0),
            depth: Some(100),
            ..Set::default()
        };
        assert!(why("database", &deep).contains("power of two"));
    }
}
