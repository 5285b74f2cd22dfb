//! `nfscope diagnose`: one window, evaluated.

use crate::api::endpoint;
use crate::cli::DiagnoseArgs;
use crate::client::windows::{WindowEvent, WindowStream};
use nfscope_diagnose::{causes_first, client_sample, course, evaluate, render, stack_evidence};
use nfscope_model::finding::{Diagnosis, Evidence, Kind, Verdict};
use nfscope_model::status::Status;
use nfscope_model::{Snapshot, Window};
use nfscope_text::console;
use nfscope_text::progress_line::ProgressLine;
use nfscope_whatif::{Plausible, Refusal, plausible, render_worth};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Exit code of a judgement.
pub fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Healthy => 0,
        Verdict::Unknown => 1,
        Verdict::Findings => 2,
    }
}

/// The window is cut into so many slices, to tell the course of a finding,
const SLICES: u32 = 60;
/// of this length at least: a reading of a large server takes some milliseconds of CPU time.
const MIN_SLICE: Duration = Duration::from_secs(1);

/// Watches for as long as asked and evaluates that as one window.
///
/// # Errors
/// When there is no agent and probes of its own cannot be attached, when NFS operations are not timed, or when the agent
/// goes away.
pub fn run(args: &DiagnoseArgs) -> anyhow::Result<Verdict> {
    let host = endpoint::host(args.url.as_deref());
    let slice = (args.length / SLICES).max(MIN_SLICE).min(args.length);
    let mut windows = WindowStream::open(args.url.as_deref(), slice)?;
    let (window, slices) = watch_in_slices(&mut windows, args.length)?;
    let mut d = evaluate(&window, &[]);
    for f in &mut d.findings {
        f.evidence.extend(course(f.kind, &slices));
        if f.kind == Kind::StuckRequests {
            f.evidence.extend(stack(&window));
        }
        if let Some(want) = client_sample::filter(f.kind) {
            f.evidence.extend(client_sample::evidence(
                &windows.sample_slow_ops(&want, client_sample::SAMPLE_DURATION),
            ));
        }
    }
    // Where nothing is found, nothing needs a change.
    let worth = (d.verdict == Verdict::Findings).then(|| plausible(&window));
    print(&d, worth.as_ref(), &host, args.json)?;
    Ok(d.verdict)
}

/// Where the oldest request sleeps that does not wait behind another one's lock, which the agent has not the right to see and root has.
fn stack(window: &Window) -> Option<Evidence> {
    let held = &window.delta.held;
    // The threads of another host have the numbers of others here.
    let here = window.delta.host == Some(nfscope_source::hostname::own_name());
    if !here || held.iter().any(|r| !r.stack.is_empty()) {
        return None;
    }
    let oldest = held.iter().min_by(|a, b| causes_first(a, b))?;
    let stack = nfscope_source::kernel_stack(oldest.thread);
    (!stack.is_empty()).then(|| stack_evidence(oldest.thread, oldest.seconds, &stack))
}

/// With what changes of the server would be worth, the most valuable one first.
#[derive(Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    #[serde(skip_serializing_if = "Option::is_none")]
    worth: Option<&'a [Plausible]>,
    /// Why nothing can be said of changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth_unknown: Option<String>,
}

fn print(
    d: &Diagnosis,
    worth: Option<&Result<Vec<Plausible>, Refusal>>,
    host: &str,
    json: bool,
) -> anyhow::Result<()> {
    let text = if json {
        let judged = Judged {
            diagnosis: d,
            worth: worth.and_then(|w| w.as_deref().ok()),
            worth_unknown: worth.and_then(|w| w.as_ref().err().map(ToString::to_string)),
        };
        serde_json::to_string(&judged)? + "\n"
    } else {
        let worth = worth.map(render_worth).unwrap_or_default();
        render(d, host, console::colors()) + &worth
    };
    Ok(console::print(&text)?)
}

/// One window of this length, and the slices that it consists of.
fn watch_in_slices(
    windows: &mut WindowStream,
    length: Duration,
) -> anyhow::Result<(Window, Vec<Window>)> {
    let mut first = windows.latest().cloned();
    let mut slices: Vec<Window> = Vec::new();
    let begun = Instant::now();
    let mut progress = ProgressLine::new(Duration::MAX);
    loop {
        let event = windows.next_with(|| {
            let left = length.saturating_sub(begun.elapsed());
            progress.show(&format!("watching: {} s left", left.as_secs_f64().ceil()));
        });
        progress.clear();
        match event {
            WindowEvent::Window(w) => {
                timed(&w.delta)?;
                slices.push(*w);
                let seen: Duration = slices.iter().map(|w| w.length).sum();
                // Readings are not taken to the microsecond.
                if seen.as_secs_f64() < length.as_secs_f64() * 0.99 {
                    continue;
                }
                if let (Some(first), Some(last)) = (&first, windows.latest()) {
                    return Ok((last.since(first), slices));
                }
            }
            WindowEvent::Gone { why, .. } => anyhow::bail!(why),
            WindowEvent::Begun | WindowEvent::Attaching => {
                first = windows.latest().cloned();
                slices.clear();
            }
        }
    }
}

/// One window of this length.
pub(super) fn watch(windows: &mut WindowStream, length: Duration) -> anyhow::Result<Window> {
    let begun = Instant::now();
    // A script that waits a minute for findings wants no other lines.
    let mut progress = ProgressLine::new(Duration::MAX);
    loop {
        let event = windows.next_with(|| {
            let left = length.saturating_sub(begun.elapsed());
            progress.show(&format!("watching: {} s left", left.as_secs_f64().ceil()));
        });
        progress.clear();
        match event {
            WindowEvent::Window(w) => {
                timed(&w.delta)?;
                return Ok(*w);
            }
            WindowEvent::Gone { why, .. } => anyhow::bail!(why),
            WindowEvent::Begun | WindowEvent::Attaching => {}
        }
    }
}

fn timed(s: &Snapshot) -> anyhow::Result<()> {
    Status::Running(s.probes.clone().into())
        .health()
        .map_err(anyhow::Error::msg)
}
