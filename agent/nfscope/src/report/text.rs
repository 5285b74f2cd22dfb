//! Text of `nfscope report`, some lines for a chat.

use crate::report::data::{ended, seconds, windows};
use crate::report::names::LEFT_OUT;
use nfscope_model::finding::Kind;
use nfscope_text::timestamp::local;
use nfscope_text::units::{self, bytes, length, percent, rate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

/// Most rows of operations, clients, exports or findings.
const MOST: usize = 3;

/// Sums over windows for an operation, a client or an export.
#[derive(Default)]
struct Sum {
    count: f64,
    seconds: Option<f64>,
    moved: Option<f64>,
    /// True if the bytes of some operations are not known.
    lacks_bytes: bool,
    /// Number of operations by histogram bucket.
    buckets: BTreeMap<u64, u64>,
}

/// Text of the report.
pub(crate) fn write(data: &Value, anonymous: bool) -> String {
    let all = &data["windows"];
    let total: f64 = windows(data).map(seconds).sum();
    let end = windows(data).last().map_or(0.0, ended);
    let begin = windows(data).next().map_or(0.0, |w| ended(w) - seconds(w));
    // A recording may lack the host's name, or its kernel.
    let text = |v: &Value| match v.as_str() {
        None | Some("") => "?".to_owned(),
        Some(text) => text.to_owned(),
    };
    let moment = |at: f64| local(UNIX_EPOCH + Duration::from_secs_f64(at.max(0.0)));
    let mut out = format!(
        "nfscope report of {}, Linux {}: {} to {} ({}).\n",
        text(&all["host"]),
        text(&all["kernel"]),
        moment(begin),
        moment(end),
        length(Duration::from_secs_f64(total)),
    );
    match data["note"].as_str() {
        Some(LEFT_OUT) => out += "Only a part of the time that was asked for is here.\n",
        Some(note) => {
            let _ = writeln!(out, "{note}");
        }
        None => {}
    }
    let gap = (end - begin - total).max(0.0);
    if gap > 2.0 {
        let _ = writeln!(
            out,
            "Nothing was measured for {} of that time.",
            length(Duration::from_secs_f64(gap))
        );
    }
    let ops = added(data, "ops", |o| {
        format!(
            "{} over NFSv{}",
            text(&o["op"]).to_uppercase(),
            text(&o["version"])
        )
    });
    let clients = added(data, "clients", |c| match c["called"].as_str() {
        Some(name) => format!("{} ({name})", text(&c["name"])),
        None => text(&c["name"]),
    });
    let exports = added(data, "exports", |e| text(&e["name"]));
    let count: f64 = ops.values().map(|o| o.count).sum();
    let time: f64 = ops.values().filter_map(|o| o.seconds).sum();
    let timed: f64 = windows(data).filter(|w| is_timed(w)).map(seconds).sum();
    let per = |n: f64| n / timed.max(1e-3);
    let moved_by = |sum: &Sum| match sum.moved {
        Some(n) if sum.lacks_bytes => format!("at least {}", bytes(per(n))),
        Some(n) => bytes(per(n)),
        None => "bytes unknown".to_owned(),
    };
    let mut everybody = Sum::default();
    for client in clients.values() {
        everybody.lacks_bytes |= client.lacks_bytes;
        if let Some(n) = client.moved {
            *everybody.moved.get_or_insert(0.0) += n;
        }
    }
    if total - timed > 2.0 {
        let _ = writeln!(
            out,
            "Operations were not timed for {} of it; rates are those of the rest.",
            length(Duration::from_secs_f64(total - timed))
        );
    }
    let load = match timed > 0.0 {
        true => format!("{} operations a second", rate(per(count))),
        false => "operations unknown".to_owned(),
    };
    let _ = writeln!(
        out,
        "Load: {load}, {}; a component operation of NFSv4 counts as one. {}",
        match everybody.moved {
            Some(_) => moved_by(&everybody) + " read and written",
            None => moved_by(&everybody),
        },
        threads(data)
    );
    findings(&mut out, data, total, timed);
    let edges: Vec<f64> = all["edges"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    for (name, sum) in most(&ops) {
        let mean = sum
            .seconds
            .map_or("?".to_owned(), |s| units::seconds(s / sum.count));
        let _ = writeln!(
            out,
            "{name}: {} a second, mean {mean}, 99 % within {}, {} of the time of operations.",
            rate(per(sum.count)),
            quantile(sum, &edges),
            sum.seconds
                .filter(|_| time > 0.0)
                .map_or("?".to_owned(), |s| percent(s / time)),
        );
    }
    for (kind, sums) in [("Clients", &clients), ("Exports", &exports)] {
        let time: f64 = sums.values().filter_map(|s| s.seconds).sum();
        let rows = most(sums).into_iter().map(|(name, s)| {
            let part = s
                .seconds
                .filter(|_| time > 0.0)
                .map_or("?".to_owned(), |s| percent(s / time));
            let name = match (kind, name.as_str()) {
                ("Exports", "none") => "no export",
                (_, name) => name,
            };
            format!("{name} {part} of the time and {}", moved_by(s))
        });
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            let more = sums.len() - rows.len();
            let more = if more > 0 {
                format!("; {more} more")
            } else {
                String::new()
            };
            let _ = writeln!(out, "{kind}: {}{more}.", rows.join("; "));
        }
    }
    measured(&mut out, data);
    if anonymous {
        out += "Hosts, clients, exports and volumes have pseudonyms, and sentences are left out: they can have names. Kept are times, \
                numbers, versions, names of findings and probes, and names that the kernel gives to devices.\n";
    }
    let _ = writeln!(
        out,
        "By nfscope {} ({}); the agent is {}.",
        nfscope_api::build_info::VERSION,
        nfscope_api::build_info::REVISION,
        text(&all["version"])
    );
    out
}

/// Sums over all windows by name. `kind` is the member of a window that has the rows.
fn added(data: &Value, kind: &str, name: impl Fn(&Value) -> String) -> BTreeMap<String, Sum> {
    let mut all: BTreeMap<String, Sum> = BTreeMap::new();
    for row in windows(data).flat_map(|w| w[kind].as_array().into_iter().flatten()) {
        let sum = all.entry(name(row)).or_default();
        let times = &row["times"];
        sum.count += row["ops"]
            .as_f64()
            .or(times["count"].as_f64())
            .unwrap_or_default();
        if let Some(s) = row["seconds"].as_f64().or(times["sum"].as_f64()) {
            *sum.seconds.get_or_insert(0.0) += s;
        }
        if let (Some(read), Some(written)) = (
            row["moved"]["read"].as_f64(),
            row["moved"]["written"].as_f64(),
        ) {
            *sum.moved.get_or_insert(0.0) += read + written;
        } else {
            sum.lacks_bytes = true;
        }
        for bucket in times["buckets"].as_array().into_iter().flatten() {
            if let (Some(at), Some(n)) = (bucket[0].as_u64(), bucket[1].as_u64()) {
                *sum.buckets.entry(at).or_default() += n;
            }
        }
    }
    all.retain(|_, sum| sum.count > 0.0);
    all
}

/// Rows with the most time, then with the most operations.
fn most(sums: &BTreeMap<String, Sum>) -> Vec<(&String, &Sum)> {
    let mut all: Vec<_> = sums.iter().collect();
    let of = |s: &Sum| (s.seconds.unwrap_or_default(), s.count);
    all.sort_by(|a, b| {
        of(b.1)
            .partial_cmp(&of(a.1))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    all.truncate(MOST);
    all
}

/// Returns true if operations were timed in this window, even if there were none.
fn is_timed(window: &Value) -> bool {
    let has = |v: &Value| match v {
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
        _ => false,
    };
    let mut pools = window["pools"].as_array().into_iter().flatten();
    has(&window["ops"]) || has(&window["coverage"]) || pools.any(|p| p["busy"].is_number())
}

/// Upper edge of the bucket that contains the 99th percentile.
fn quantile(sum: &Sum, edges: &[f64]) -> String {
    let count: u64 = sum.buckets.values().sum();
    let mut left = (count as f64 * 0.99).ceil() as u64;
    for (at, n) in &sum.buckets {
        if *n >= left {
            let edge = usize::try_from(*at).ok().and_then(|i| edges.get(i));
            return edge.map_or("a time longer than the last bucket".to_owned(), |e| {
                units::seconds(*e)
            });
        }
        left -= n;
    }
    "?".to_owned()
}

/// Utilisation of nfsd threads: the part of their time in which they have a request, over the pools where that is known.
fn threads(data: &Value) -> String {
    let (mut busy, mut had, mut threads) = (None, 0.0, 0.0_f64);
    for w in windows(data) {
        let pools = w["pools"].as_array().into_iter().flatten();
        let mut now = 0.0;
        for pool in pools {
            if let Some(s) = pool["busy"].as_f64() {
                let n = pool["threads"].as_f64().unwrap_or_default();
                now += n;
                had += n * seconds(w);
                *busy.get_or_insert(0.0) += s;
            }
        }
        threads = threads.max(now);
    }
    match busy {
        Some(busy) if had > 0.0 => format!(
            "{} of the time of {threads} threads was in use.",
            percent(busy / had)
        ),
        _ => "How busy threads were is unknown.".to_owned(),
    }
}

/// Kinds of findings whose share is a part of the requests' time in the server. Other kinds have shares of other things, which their text
/// names.
const OF_REQUEST_TIME: [Kind; 11] = [
    Kind::ThreadStarvation,
    Kind::SlowIntentLog,
    Kind::SlowDisk,
    Kind::WriteThrottle,
    Kind::SlowUpcall,
    Kind::DelegationRecalls,
    Kind::MemoryReclaim,
    Kind::CpuSaturation,
    Kind::LockContention,
    Kind::UnknownWaits,
    Kind::SlowReply,
];

/// Reason why findings cannot be known; `None` if they were looked for.
fn undiagnosed(data: &Value, timed: f64) -> Option<String> {
    let with = |own: &str, reason: &Value| match reason.as_str() {
        None | Some("" | LEFT_OUT) => own.to_owned(),
        Some(reason) => format!("{own}: {}", reason.trim_end_matches('.')),
    };
    let (probes, last) = (&data["probes"], &data["findings"]["last_window"]);
    if probes["times_operations"] == false {
        return Some(with("operations are not timed", &probes["reason"]));
    }
    if timed <= 0.0 {
        return Some("operations were not timed".to_owned());
    }
    if last.is_null() {
        return Some("no ten seconds have been evaluated yet".to_owned());
    }
    (last["verdict"] == "unknown").then(|| with("not every cause can be seen", &last["reason"]))
}

fn findings(out: &mut String, data: &Value, total: f64, timed: f64) {
    let mut all: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for w in windows(data) {
        for (kind, share) in w["findings"].as_object().into_iter().flatten() {
            let (time, worst) = all.entry(kind).or_default();
            *time += seconds(w);
            *worst = worst.max(share.as_f64().unwrap_or_default());
        }
    }
    if all.is_empty() {
        let _ = match undiagnosed(data, timed) {
            Some(why) => writeln!(out, "Findings: unknown: {why}."),
            None => writeln!(out, "Findings: none in this time."),
        };
        return;
    }
    let report = &data["findings"];
    let episodes =
        [&report["active"], &report["history"]].map(|list| list.as_array().into_iter().flatten());
    let episodes: Vec<&Value> = episodes.into_iter().flatten().collect();
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for (kind, (time, worst)) in all.iter().take(MOST) {
        let episode = episodes.iter().find(|e| e["finding"]["kind"] == **kind);
        let summary = episode
            .and_then(|e| e["finding"]["summary"].as_str())
            .unwrap_or_default();
        let advice = episode
            .and_then(|e| e["finding"]["advice"][0].as_str())
            .unwrap_or_default();
        let sentence = |t: &str, lead: &str| match t.trim_end_matches('.') {
            "" | LEFT_OUT => String::new(),
            t => format!(" {lead}{t}."),
        };
        let text = sentence(summary, "") + &sentence(advice, "Advice: ");
        let share = match OF_REQUEST_TIME.iter().any(|k| k.as_str() == *kind) {
            true => format!(", up to {} of request time", percent(*worst)),
            false => String::new(),
        };
        // Windows of the disk are long, and a finding may have applied to a part of one.
        let _ = writeln!(
            out,
            "Finding {kind}: in windows that cover at most {} of the time{share}.{text}",
            percent(time / total.max(1e-3)),
        );
    }
    if all.len() > MOST {
        let rest: Vec<_> = all.iter().skip(MOST).map(|f| f.0).collect();
        let _ = writeln!(out, "Further findings: {}.", rest.join(", "));
    }
}

/// Adds the coverage, which counts all operations since the agent started, and the current state of the probes.
fn measured(out: &mut String, data: &Value) {
    let last = windows(data).last();
    let coverage = last
        .and_then(|w| w["coverage"].as_object())
        .into_iter()
        .flatten();
    let parts: Vec<_> = coverage
        .map(|(v, c)| format!("NFSv{v} {}", c.as_f64().map_or("?".to_owned(), percent)))
        .collect();
    let mut why: Vec<String> = Vec::new();
    for p in data["probes"]["probes"].as_array().into_iter().flatten() {
        let state = p["state"].as_str().unwrap_or_default();
        let reason = p["reason"].as_str().unwrap_or_default();
        if ["unsupported", "waiting", "detached"].contains(&state) {
            let probe = p["probe"].as_str().unwrap_or_default();
            let line = match reason {
                "" | LEFT_OUT => format!("{probe} ({state})"),
                reason => format!("{probe} ({reason})"),
            };
            if !why.contains(&line) {
                why.push(line);
            }
        }
    }
    let covered = if parts.is_empty() {
        "unknown".to_owned()
    } else {
        parts.join(", ")
    };
    let missing = match why.is_empty() {
        true => "no probe is missing".to_owned(),
        false => format!("parts of these probes are missing: {}", why.join("; ")),
    };
    let _ = writeln!(
        out,
        "Operations measured since the agent began: {covered}; now {missing}."
    );
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
