//! `nfscope report`: summary of the last hour as a short text, and as one HTML file, for a ticket or a chat.

pub(crate) mod data;
pub(crate) mod names;
pub(crate) mod text;

use crate::cli::ReportArgs;
use crate::report::data::{ended, seconds, windows};
use anyhow::{Context, ensure};
use nfscope_agent_client::http;
use nfscope_api::address;
use nfscope_serve::http::page_file::{self, Contents};
use nfscope_text::console::{self, print, say};
use nfscope_text::units;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Length of a history window on the disk, in seconds. The window across the beginning of the memory has its middle before that much later.
const DISK_WINDOW: f64 = 10.0;
/// Most windows of the history in one answer.
const COLUMNS: u32 = 400;
/// Time ranges that the page offers, in seconds.
const RANGES: [u32; 6] = [60, 300, 900, 3600, 21_600, 86_400];

/// Prints the report, and writes the file if one is given.
///
/// # Errors
/// When no agent answers, it has no window of that time, or the file cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let url = args.url.clone().unwrap_or_else(address::default_url);
    let mut data = ask(&url, args.last)?;
    if args.anonymise {
        data = names::anonymous(&data);
    }
    let text = text::write(&data, args.anonymise);
    if let Some(path) = &args.output {
        let end = windows(&data).last().map_or(0.0, ended);
        let host = data["windows"]["host"].as_str().unwrap_or_default();
        let seconds = args.last.as_secs() as u32;
        let page = page_file::write(&Contents {
            title: &format!("{host}: nfscope report"),
            text: &text,
            data: &data,
            at: end,
            range: RANGES.into_iter().find(|r| *r >= seconds).unwrap_or(86_400),
        });
        fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!(
            "{} has the page, and needs no network",
            path.display()
        ));
    }
    Ok(print(&console::plain(&text))?)
}

/// Answers of the agent that the page and the text are made of.
fn ask(url: &str, last: Duration) -> anyhow::Result<Value> {
    let mut answer: Value = http::json(url, "/windows")?;
    let mut latest: Vec<Value> = windows(&json!({ "windows": &answer })).cloned().collect();
    while answer["more"] == true {
        let since = answer["since"].as_str().unwrap_or_default();
        let since: String = form_urlencoded::byte_serialize(since.as_bytes()).collect();
        answer = http::json(url, &format!("/windows?since={since}"))?;
        latest.extend(windows(&json!({ "windows": &answer })).cloned());
    }
    // An agent that has just started may have the history of an earlier one.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    let end = latest.last().map_or(now, ended);
    let from = end - last.as_secs_f64();
    let first = latest.first().map_or(end, |w| ended(w) - seconds(w));
    let mut note = Value::Null;
    if from < first {
        let to = first + DISK_WINDOW;
        let path = format!("/windows?from={from:.3}&to={to:.3}&columns={COLUMNS}");
        match http::json_or_reason::<Value>(url, &path) {
            Ok(past) => {
                let past: Vec<Value> = windows(&json!({ "windows": &past })).cloned().collect();
                if past.iter().all(|w| ended(w) - seconds(w) >= first) {
                    note = "The agent's history has nothing of the time before.".into();
                }
                latest = joined(past, latest);
            }
            Err(why) => {
                note = format!(
                    "Only the latest {} are here, which the agent has in memory: {why}.",
                    units::length(Duration::from_secs_f64(end - first))
                )
                .into();
            }
        }
    }
    latest.retain(|w| ended(w) > from);
    ensure!(
        !latest.is_empty(),
        "the agent at {url} has no window of that time; fix: ask again in some seconds, or with a longer --last"
    );
    answer["windows"] = latest.into();
    Ok(json!({
        "windows": answer,
        "findings": http::json::<Value>(url, "/findings")?,
        "probes": http::json::<Value>(url, "/probes")?,
        "note": note,
    }))
}

/// Joins windows of the disk with the later ones in memory. No time counts twice, and none is left out.
fn joined(mut past: Vec<Value>, memory: Vec<Value>) -> Vec<Value> {
    let begin = memory.first().map_or(f64::MAX, |w| ended(w) - seconds(w));
    // Windows of the disk are coarser, so that those that begin in the time of the memory are dropped.
    past.retain(|w| ended(w) - seconds(w) < begin);
    let until = past.last().map_or(f64::MIN, ended);
    past.extend(
        memory
            .into_iter()
            .filter(|w| ended(w) - seconds(w) / 2.0 >= until),
    );
    past
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ends: impl IntoIterator<Item = (f64, f64)>) -> Vec<Value> {
        let window = |(at, seconds)| json!({"at": at, "seconds": seconds});
        ends.into_iter().map(window).collect()
    }

    #[test]
    fn a_window_of_the_disk_that_ends_in_the_memory_is_kept_and_counts_once() {
        let memory = || all((101..=120).map(|at| (f64::from(at), 1.0)));
        // The memory begins at 100, and the disk has windows of ten seconds that end at 95, 105 and 115.
        let past = all([(95.0, 10.0), (105.0, 10.0), (115.0, 10.0)]);
        let both = joined(past, memory());
        let total: f64 = both.iter().map(seconds).sum();
        let (first, last) = (&both[0], &both[both.len() - 1]);
        assert_eq!(total, ended(last) - (ended(first) - seconds(first)));
        assert_eq!((ended(&both[1]), ended(&both[2])), (105.0, 106.0));
        // A gap between the disk and the memory remains a gap.
        let total = |past| joined(past, memory()).iter().map(seconds).sum::<f64>();
        assert_eq!(total(all([(85.0, 10.0)])), 30.0);
        assert_eq!(total(all([(115.0, 10.0)])), 20.0);
        assert_eq!(total(Vec::new()), 20.0);
    }
}
