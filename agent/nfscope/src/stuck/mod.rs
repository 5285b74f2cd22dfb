//! `nfscope stuck`: requests that nfsd threads have received and do not finish.

use crate::cli::StuckArgs;
use nfscope_agent_client::server_state::ServerState;
use nfscope_agent_client::{http, known_names};
use nfscope_api::address;
use nfscope_diagnose::unacknowledged;
use nfscope_model::finding::{Finding, Kind};
use nfscope_model::{HeldRequest, HeldRequests, Unacknowledged};
use nfscope_source::hostname;
use nfscope_text::console;
use nfscope_text::table::columns;
use nfscope_text::units::seconds;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// Reason why the files of nfsd do not answer: a change of its threads holds the lock that reading them needs.
const CHANGES: &str = "the server is starting, stopping or changing its threads; a thread with a request in hand ends after it, and until \
                       then its files do not answer";

/// Parts of the server's state that are not known meanwhile.
const NOT_TOLD: &str =
    "the grace period of the server, and locks that clients wait for: the server changes";

/// Most characters of a name on a line.
const LONGEST: usize = 40;

/// Exit codes: no such request, unknown, at least one.
const NONE: u8 = 0;
const UNKNOWN: u8 = 1;
const SOME: u8 = 2;

/// Returns the output and the exit code.
///
/// # Errors
/// When no agent answers.
pub fn run(args: &StuckArgs) -> anyhow::Result<(String, u8)> {
    let own = address::default_url();
    let ask = || http::held(args.url.as_deref().unwrap_or(&own), args.over);
    let mut answer = ask()?;
    // Thread ids of another host mean other threads here.
    if answer.host == hostname::own_name() && add_stacks(&mut answer) {
        std::thread::sleep(http::FRESH);
        forget_ended(&mut answer, &ask()?);
    }
    let mut not_known = Vec::new();
    let mut outside = match state(answer.host == hostname::own_name(), args.over) {
        Ok(state) => state.outstanding(),
        // The program that starts or stops the server holds the lock that reading the files needs.
        Err(why) if why.kind() == io::ErrorKind::TimedOut => {
            not_known.push(NOT_TOLD.to_owned());
            vec![CHANGES.to_owned()]
        }
        Err(why) => {
            not_known.push(format!(
                "the grace period of the server, and locks that clients wait for: {why}"
            ));
            Vec::new()
        }
    };
    match http::json(args.url.as_deref().unwrap_or(&own), "/findings") {
        Ok(found) => outside.extend(put_off(&found)),
        Err(why) => not_known.push(format!("clients that are told to come again: {why:#}")),
    }
    let code = match (exit_code(&answer), outside.is_empty()) {
        (NONE, false) => SOME,
        (code, _) => code,
    };
    let text = match args.json {
        true => console::json(&Ledger {
            answer: &answer,
            outside: &outside,
            not_known: &not_known,
        })?,
        false => {
            let not_known = not_known.iter().map(|s| format!("not known: {s}\n"));
            let lines: String = outside
                .iter()
                .map(|s| format!("{s}\n"))
                .chain(not_known)
                .collect();
            page_of(&answer, args.wide) + &console::plain(&lines)
        }
    };
    Ok((text, code))
}

/// Answer with waits of clients beside the requests.
#[derive(Serialize)]
struct Ledger<'a> {
    #[serde(flatten)]
    answer: &'a HeldRequests,
    /// Sentences about the server's state, about locks, and about clients that were told to retry.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    outside: &'a [String],
    /// Sentences about what could not be read.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    not_known: &'a [String],
}

/// State of this host's server. Locks count if clients wait for them at two readings `over` apart: any lock may be waited for briefly.
fn state(here: bool, over: Duration) -> io::Result<ServerState> {
    if !here {
        return Ok(ServerState::default());
    }
    let first = ServerState::read()?;
    if first.waits.iter().flatten().next().is_none() {
        return Ok(first);
    }
    std::thread::sleep(over);
    Ok(ServerState::read()?.still(&first))
}

/// Part of `/findings` that is used.
#[derive(Deserialize)]
struct Findings {
    active: Vec<Active>,
}

#[derive(Deserialize)]
struct Active {
    finding: Finding,
}

/// Sentences about clients that retry after NFS4ERR_DELAY or NFS3ERR_JUKEBOX.
fn put_off(found: &Findings) -> Vec<String> {
    let findings = found.active.iter().map(|a| &a.finding);
    let waits = findings.filter(|f| f.kind == Kind::RetryLater);
    waits
        .flat_map(|f| {
            let evidence = f.evidence.iter().map(|e| format!("    {}", e.text));
            std::iter::once(f.summary.clone()).chain(evidence)
        })
        .collect()
}

/// Adds the kernel stacks of the threads, which root can read and the agent cannot. Returns true if there was any.
fn add_stacks(answer: &mut HeldRequests) -> bool {
    for r in answer.requests.iter_mut().filter(|r| r.stack.is_empty()) {
        r.stack = nfscope_source::kernel_stack(r.thread);
    }
    answer.requests.iter().any(|r| !r.stack.is_empty())
}

/// Removes the stacks of threads that have begun another request since. The same request is older at the later reading.
fn forget_ended(answer: &mut HeldRequests, later: &HeldRequests) {
    let still = |r: &HeldRequest| {
        let same = |l: &&HeldRequest| l.thread == r.thread && l.seconds > r.seconds;
        later.requests.iter().any(|l| same(&l))
    };
    for r in &mut answer.requests {
        if !still(r) {
            r.stack.clear();
        }
    }
}

/// Exit code of an answer: [`NONE`], [`UNKNOWN`] or [`SOME`].
pub fn exit_code(answer: &HeldRequests) -> u8 {
    match (&answer.unknown, answer.requests.is_empty()) {
        (Some(_), _) => UNKNOWN,
        (None, true) if late(answer).next().is_none() => NONE,
        (None, _) => SOME,
    }
}

/// Clients that do not acknowledge their replies.
fn late(answer: &HeldRequests) -> impl Iterator<Item = &Unacknowledged> {
    answer
        .unacknowledged
        .iter()
        .flatten()
        .filter(|c| unacknowledged::is_late(c))
}

/// Lines about requests that the server has answered, and whose replies the clients have not acknowledged.
fn unacknowledged_lines(answer: &HeldRequests) -> String {
    match answer.unacknowledged {
        Some(_) => late(answer)
            .map(|c| format!("{}\n", unacknowledged::described(c)))
            .collect(),
        None => "replies on their way to clients are not seen on this host\n".to_owned(),
    }
}

/// Lists each request in a line, and the kernel stack of its thread below it. `wide` shows whole names.
pub fn page_of(answer: &HeldRequests, wide: bool) -> String {
    if let Some(why) = &answer.unknown {
        return console::plain(&format!("unknown: {why}\n"));
    }
    if answer.requests.is_empty() {
        let host = &answer.host;
        let long = match answer.over_seconds > 0.0 {
            true => format!(" for {} or longer", seconds(answer.over_seconds)),
            false => String::new(),
        };
        return console::plain(&format!(
            "{host}: no request is in hand{long}\n{}{}",
            unacknowledged_lines(answer),
            laundromat_line(answer)
        ));
    }
    let head = [
        "IN HAND",
        "CLIENT",
        "VER",
        "REQUEST",
        "WAITS FOR",
        "INODE",
        "XID",
        "EXPORT",
        "THREAD",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(answer.requests.iter().map(|r| cells(r, wide)));
    let table = columns(&rows);
    let mut lines = table.lines();
    let mut out = String::new();
    out += lines.next().unwrap_or_default();
    out.push('\n');
    for (line, r) in lines.zip(&answer.requests) {
        out += line;
        out.push('\n');
        if !r.stack.is_empty() {
            out += &format!("    {}\n", r.stack.join(" < "));
        }
    }
    if answer.left_out > 0 {
        out += &format!(
            "and {} more, all of them in hand for a shorter time\n",
            answer.left_out
        );
    }
    if answer.requests.iter().all(|r| r.stack.is_empty()) {
        out += "no kernel stacks: root sees them on the server itself, where threads sleep\n";
    }
    out += &unacknowledged_lines(answer);
    out += &laundromat_line(answer);
    console::plain(&out)
}

/// Line about the laundromat, the kernel's worker that revokes delegations and expires clients.
fn laundromat_line(answer: &HeldRequests) -> String {
    let Some(laundromat) = answer.laundromat else {
        return String::new();
    };
    let ran = match laundromat.idle_seconds {
        Some(s) => format!("ended its last run {} ago", seconds(s)),
        None => "has not ended a run since the agent attached".to_owned(),
    };
    match laundromat.running_seconds {
        Some(s) => format!(
            "the laundromat of NFSv4 state {ran}, and has been running for {}\n",
            seconds(s)
        ),
        None => format!("the laundromat of NFSv4 state {ran}\n"),
    }
}

fn cells(r: &HeldRequest, wide: bool) -> [String; 9] {
    let known = |text: &str| match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    };
    let or = |text: Option<&str>| known(text.unwrap_or_default());
    let cells = [
        seconds(r.seconds),
        or((r.client.as_deref())
            .map(|c| match known_names::of(c) {
                Some(name) => format!("{c} {name}"),
                None => c.to_owned(),
            })
            .as_deref()),
        known(&r.version),
        known(&r.op),
        known(&r.wait),
        r.inode.map_or_else(|| "-".to_owned(), |i| i.to_string()),
        r.xid
            .map_or_else(|| "-".to_owned(), nfscope_model::xid::text),
        or(r.export.as_deref()),
        r.thread.to_string(),
    ];
    match wide {
        true => cells,
        false => cells.map(|c| nfscope_text::table::cut(&c, LONGEST)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(thread: u32, seconds: f64) -> HeldRequest {
        HeldRequest {
            thread,
            seconds,
            stack: vec!["io_schedule".into()],
            ..HeldRequest::default()
        }
    }

    #[test]
    fn no_age_is_said_where_none_was_asked_for() {
        let none = |over_seconds| {
            let host = "nfs1".to_owned();
            page_of(
                &HeldRequests {
                    host,
                    over_seconds,
                    unacknowledged: Some(Vec::new()),
                    ..HeldRequests::default()
                },
                false,
            )
        };
        assert_eq!(none(0.0), "nfs1: no request is in hand\n");
        let second = none(1.0);
        assert_eq!(second, "nfs1: no request is in hand for 1.00 s or longer\n");
    }

    #[test]
    fn clients_that_are_put_off_are_told_with_the_evidence() {
        let json = r#"{"active": [
            {"began": 1.0, "finding": {"kind": "slow_disk", "severity": "warning", "share": 0.3, "summary": "disks",
             "evidence": [], "advice": []}},
            {"began": 1.0, "finding": {"kind": "retry_later", "severity": "warning", "share": 1.0,
             "summary": "10.0.0.7 asks again and again for a lock that is held",
             "evidence": [{"text": "10.0.0.7 was denied a lock 3 times", "metric": "m", "value": 3.0, "limit": null}], "advice": []}}
            ], "history": [], "last_window": null}"#;
        let found: Findings = serde_json::from_str(json).unwrap();
        assert_eq!(
            put_off(&found),
            [
                "10.0.0.7 asks again and again for a lock that is held",
                "    10.0.0.7 was denied a lock 3 times"
            ]
        );
    }

    #[test]
    fn a_stack_is_of_a_request_that_is_still_in_hand() {
        let answer = |requests: &[HeldRequest]| HeldRequests {
            requests: requests.to_vec(),
            ..HeldRequests::default()
        };
        let mut first = answer(&[request(1, 9.0), request(2, 8.0), request(3, 7.0)]);
        // Thread 2 has another request, and thread 3 has none.
        forget_ended(&mut first, &answer(&[request(1, 9.3), request(2, 1.1)]));
        let stacks = first.requests.iter().map(|r| r.stack.len());
        assert_eq!(stacks.collect::<Vec<_>>(), [1, 0, 0]);
    }
}
