//! `nfscope baseline import --prometheus`: imports a history as a recording.

pub(crate) mod history;
pub(crate) mod windows;

use crate::baseline::import::history::{History, usual_distance};
use crate::baseline::import::windows::Reader;
use crate::cli::ImportArgs;
use anyhow::Context;
use nfscope_baseline::store::{Error, Store};
use nfscope_text::units;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Samples of each series in one request.
const CHUNK: usize = 200;
/// Most windows by default. A comparison would merge more of them anyway.
const WINDOWS: f64 = 720.0;
const MIN_STEP: f64 = 10.0;

/// Imports a history into the store; returns a summary.
///
/// # Errors
/// When Prometheus does not answer, the server is ambiguous or unknown, the name is taken, or the history is too short.
pub(super) fn run(args: &ImportArgs, store: &mut Store) -> anyhow::Result<String> {
    let url = args.prometheus.as_deref().context("no URL")?;
    let name = args.name.as_deref().context("no name")?;
    let at = |t: Option<SystemTime>| {
        t.and_then(|t| Some(t.duration_since(UNIX_EPOCH).ok()?.as_secs_f64()))
    };
    let (from, to) = at(args.from).zip(at(args.to)).context("no time")?;
    anyhow::ensure!(from < to, "--to is not after --from");
    match store.entry(name) {
        Ok(_) => return Err(Error::Taken(name.to_owned()).into()),
        Err(Error::Unknown { .. }) => {}
        Err(e) => return Err(e.into()),
    }
    let step = match args.step {
        Some(step) => step.as_secs_f64(),
        None => ((to - from) / WINDOWS / MIN_STEP).ceil().max(1.0) * MIN_STEP,
    };
    let source = History::find(url, args.instance.as_deref(), (from, to), step)?;
    let chunks = || {
        let of = |begin: f64| (begin, to.min(begin + step * (CHUNK - 1) as f64));
        let next = move |(_, end): &(f64, f64)| Some(of(end + step)).filter(|(b, _)| *b <= to);
        std::iter::successors(Some(of(from)), next)
    };
    let mut taken = Vec::new();
    for (begin, end) in chunks() {
        taken.push(source.taken(begin, end)?);
    }
    let step = usual_distance(taken.iter().flat_map(BTreeMap::values)).max(step);
    let mut reader = Reader::new(step);
    for ((begin, end), taken) in chunks().zip(taken) {
        reader.add(source.read(begin, end, taken)?);
    }
    let recording = reader.recording(name, &source)?;
    let windows = recording.windows.len();
    let length: Duration = recording.windows.iter().map(|w| w.length).sum();
    store.put(&recording)?;
    let lost = &reader.lost;
    let mut text = format!(
        "imported `{name}`: {} of {}, {}; {}",
        units::many(windows as f64, "window"),
        units::length(Duration::from_secs_f64(step)),
        units::length(length),
        units::many(lost.gaps as f64, "gap")
    );
    if lost.restarts > 0 {
        text += &format!(
            ", {} left out because the agent restarted",
            units::many(lost.restarts as f64, "window")
        );
    }
    text += match reader.classic {
        true => "; histograms are classic: quantiles lie between few edges",
        false => "; histograms are native",
    };
    if !lost.bucketless.is_empty() {
        let names: Vec<_> = lost.bucketless.iter().copied().collect();
        text += &format!("; without buckets, so left out: {}", names.join(", "));
    }
    Ok(text)
}
