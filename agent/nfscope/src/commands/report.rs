//! `nfscope report`: what an agent knows of the last hour, in some lines and in one file, for a ticket or a chat.

use crate::api::address;
use crate::cli::ReportArgs;
use crate::client::http;
use crate::commands::report_data::{ended, seconds, windows};
use crate::commands::report_names;
use crate::commands::report_text;
use crate::http::page_file::{self, Contents};
use anyhow::{Context, ensure};
use nfscope_text::console::{self, print, say};
use nfscope_text::units;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Windows of the past in one answer, at most.
const COLUMNS: u32 = 400;
/// Times that the page shows, in seconds; it has a choice of them.
const RANGES: [u32; 6] = [60, 300, 900, 3600, 21_600, 86_400];

/// Prints the report, and writes the file.
///
/// # Errors
/// When no agent answers, it has no window of that time, or the file cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let url = args.url.clone().unwrap_or_else(address::default_url);
    let mut data = ask(&url, args.last)?;
    if args.anonymise {
        data = report_names::anonymous(&data);
    }
    let text = report_text::write(&data, args.anonymise);
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

/// All that the page and the text are made of.
fn ask(url: &str, last: Duration) -> anyhow::Result<Value> {
    let mut answer: Value = http::json(url, "/windows")?;
    let mut latest: Vec<Value> = windows(&json!({ "windows": &answer })).cloned().collect();
    while answer["more"] == true {
        let since = answer["since"].as_str().unwrap_or_default();
        let since: String = form_urlencoded::byte_serialize(since.as_bytes()).collect();
        answer = http::json(url, &format!("/windows?since={since}"))?;
        latest.extend(windows(&json!({ "windows": &answer })).cloned());
    }
    // An agent that has just begun may have a history of another one.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    let end = latest.last().map_or(now, ended);
    let from = end - last.as_secs_f64();
    let first = latest.first().map_or(end, |w| ended(w) - seconds(w));
    let mut note = Value::Null;
    if from < first {
        // Windows of the disk are those of ten seconds, and the latest may wait to be written.
        let path = format!("/windows?from={from:.3}&to={first:.3}&columns={COLUMNS}");
        match http::json::<Value>(url, &path) {
            Ok(past) => {
                let mut all: Vec<Value> = windows(&json!({ "windows": &past }))
                    .filter(|w| ended(w) <= first + 0.01)
                    .cloned()
                    .collect();
                if all.is_empty() {
                    note = "The agent's history has nothing of the time before.".into();
                }
                all.append(&mut latest);
                latest = all;
            }
            Err(e) => {
                note = format!(
                    "Only the latest {} are here, which the agent has in memory: {e}.",
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
