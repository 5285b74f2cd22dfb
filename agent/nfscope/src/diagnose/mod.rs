//! `nfscope diagnose`: watches the server for one window, and evaluates it.

pub(crate) mod past;
pub(crate) mod who;

use crate::cli::DiagnoseArgs;
use crate::diagnose::who::{name_who, needs_who};
use nfscope_agent_client::known_names;
use nfscope_agent_client::owners::Owners;
use nfscope_agent_client::page_cache;
use nfscope_agent_client::server_state::ServerState;
use nfscope_agent_client::windows::{WindowEvent, WindowStream};
use nfscope_api::named_text::in_diagnosis;
use nfscope_api::{address, worth};
use nfscope_diagnose::breakdown::Breakdown;
use nfscope_diagnose::{
    Observed, Slice, causes_first, course, evaluate, evaluate_observed, render, render_not_known,
    stack_evidence,
};
use nfscope_model::finding::{Diagnosis, Evidence, Finding, Kind, Verdict};
use nfscope_model::status::Status;
use nfscope_model::{Snapshot, Window};
use nfscope_text::progress_line::ProgressLine;
use nfscope_text::{console, timestamp};
use nfscope_whatif::{Plausible, Refusal, plausible, render_worth};
use serde::Serialize;
use std::time::{Duration, Instant, SystemTime};

/// Exit code of a verdict.
pub fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Healthy => 0,
        Verdict::Unknown => 1,
        Verdict::Findings => 2,
    }
}

/// Most slices of the window, which show the trend of a finding.
const SLICES: u32 = 60;
/// Shortest slice. A snapshot of a large server takes milliseconds of CPU time.
const MIN_SLICE: Duration = Duration::from_secs(1);

/// Time without an answer after which an agent is regarded as gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts that exist only while a client watches.
const NOT_IN_THE_PAST: &str = "users, files and single operations: the history has clients, exports and operations, each by itself";

/// Watches for the given time and evaluates it as one window.
///
/// # Errors
/// When there is no agent and own probes cannot be attached, when NFS operations are not timed, or when the agent goes away.
pub fn run(args: &DiagnoseArgs) -> anyhow::Result<Verdict> {
    if let Some(at) = args.past.at {
        return look_back(args, at);
    }
    let host = address::host(args.url.as_deref());
    let slice = (args.length / SLICES).max(MIN_SLICE).min(args.length);
    let mut windows = WindowStream::open(args.url.as_deref(), slice)?;
    windows.count();
    windows.look_at_sleepers(args.length);
    let owners = Owners::watch();
    let state_before = ServerState::read().unwrap_or_default();
    let cache_before = page_cache::Reading::of_this_host();
    let (window, slices) = watch_in_slices(&mut windows, args.length)?;
    let b = Breakdown::of(&window);
    let told = windows.counted(window.length);
    let mut observed = Observed {
        clients: (told.as_ref()).and_then(|t| Some(t.who.as_ref().ok()?.clients())),
        shared_owners: match is_here(&window) {
            true => owners.end(),
            false => Vec::new(),
        },
        normal: windows.normal(),
        page_cache: cache_before
            .filter(|_| is_here(&window))
            .and_then(|before| {
                let after = page_cache::Reading::of_this_host()?;
                Some(after.since(before))
            }),
        ..Observed::default()
    };
    let mut d = evaluate_observed(&window, &b, &observed);
    observed.sleeps = windows.slept();
    if d.finding(Kind::UnknownWaits).is_some() {
        observed.files = (told.as_ref()).and_then(|t| Some(t.files.as_ref().ok()?.files()));
        d = evaluate_observed(&window, &b, &observed);
    }
    let told = told.filter(|_| needs_who(&d, &b));
    let slices: Vec<_> = (slices.iter())
        .map(|w| Slice::of(&Breakdown::of(w)))
        .collect();
    for f in &mut d.findings {
        f.evidence.extend(course(f.kind, slices.iter()));
        if f.kind == Kind::StuckRequests {
            f.evidence.extend(stack(&window));
        }
    }
    if is_here(&window) {
        let state = ServerState::read().unwrap_or_default();
        add_state(&mut d, &state.still(&state_before));
    }
    let not_known = name_who(&mut d.findings, (&window, &b), told.as_ref(), &mut windows);
    in_diagnosis(&mut d, known_names::of);
    // Without findings, no change is needed.
    let worth = (d.verdict == Verdict::Findings).then(|| plausible(&window));
    if let Some(Ok(changes)) = &worth {
        for f in &mut d.findings {
            put_worth_first(f, changes);
        }
    }
    let told = Told {
        not_known: &not_known,
        worth: worth.as_ref(),
        past: None,
    };
    print(&d, told, &host, args.json)?;
    Ok(d.verdict)
}

/// Evaluates a window of the history, and lists the clients and exports that used the server then.
fn look_back(args: &DiagnoseArgs, at: SystemTime) -> anyhow::Result<Verdict> {
    let past = past::read(&args.past, at, args.length)?;
    past::learn_names(&past);
    let window = &past.window;
    let mut d = evaluate(window, &[]);
    let slices: Vec<_> = (past.parts.iter())
        .map(|w| Slice::of(&Breakdown::of(w)))
        .collect();
    for f in &mut d.findings {
        f.evidence.extend(course(f.kind, slices.iter()));
    }
    in_diagnosis(&mut d, known_names::of);
    let not_known = [NOT_IN_THE_PAST.to_owned()];
    let worth = (d.verdict == Verdict::Findings).then(|| plausible(window));
    if let Some(Ok(changes)) = &worth {
        for f in &mut d.findings {
            put_worth_first(f, changes);
        }
    }
    let users = past::users(window, known_names::of);
    let who = Who {
        from: timestamp::date(past.began),
        to: timestamp::date(past.ended),
        who: &users,
    };
    let host = format!("{}, {}", past.host, past.when());
    let told = Told {
        not_known: &not_known,
        worth: worth.as_ref(),
        past: Some((who, past.who(&users))),
    };
    print(&d, told, &host, args.json)?;
    Ok(d.verdict)
}

/// Adds the waits of clients that the server's own files report. A server with such waits is not called healthy.
fn add_state(d: &mut Diagnosis, state: &ServerState) {
    // The agent reports the grace period, too.
    let mut outstanding = state.outstanding();
    outstanding.retain(|s| !d.reason.contains(s.as_str()) && !d.outside.contains(s));
    if d.verdict == Verdict::Healthy && !outstanding.is_empty() {
        d.verdict = Verdict::Unknown;
        d.reason = outstanding.join("; ");
    } else {
        d.outside.extend(outstanding);
    }
}

/// Returns true if the window is of this host.
fn is_here(window: &Window) -> bool {
    window.delta.host == Some(nfscope_source::hostname::own_name())
}

/// Puts actions with a computed benefit before the other advice, the largest benefit first.
fn put_worth_first(f: &mut Finding, changes: &[Plausible]) {
    f.advice.splice(0..0, worth::actions(f.kind, changes));
}

/// Kernel stack of the oldest request, preferably one that does not wait for another request's lock. Root can read it, and the agent
/// cannot.
fn stack(window: &Window) -> Option<Evidence> {
    let held = &window.delta.held;
    // Thread ids of another host mean other threads here.
    if !is_here(window) || held.iter().any(|r| !r.stack.is_empty()) {
        return None;
    }
    let oldest = held.iter().min_by(|a, b| causes_first(a, b))?;
    let stack = nfscope_source::kernel_stack(oldest.thread);
    (!stack.is_empty()).then(|| stack_evidence(oldest.thread, oldest.seconds, &stack))
}

/// Diagnosis with the benefits of possible changes, the largest first, and with what is not known.
#[derive(Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    /// Parts of findings that are not known, and why.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    not_known: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    worth: Option<&'a [Plausible]>,
    /// Reason why no benefit is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth_unknown: Option<String>,
    #[serde(flatten)]
    past: Option<Who<'a>>,
}

/// Time of the window, and the clients and exports that used the server then.
#[derive(Serialize)]
struct Who<'a> {
    from: String,
    to: String,
    who: &'a [past::User],
}

/// Additions to a diagnosis.
struct Told<'a> {
    not_known: &'a [String],
    worth: Option<&'a Result<Vec<Plausible>, Refusal>>,
    /// Time and users of the window, as data and as text.
    past: Option<(Who<'a>, String)>,
}

fn print(d: &Diagnosis, told: Told<'_>, host: &str, json: bool) -> anyhow::Result<()> {
    let Told {
        not_known,
        worth,
        past,
    } = told;
    let (past, who) = past.unzip();
    let text = if json {
        let judged = Judged {
            diagnosis: d,
            not_known,
            worth: worth.and_then(|w| w.as_deref().ok()),
            worth_unknown: worth.and_then(|w| w.as_ref().err().map(ToString::to_string)),
            past,
        };
        console::json(&judged)?
    } else {
        let worth = worth.map(render_worth).unwrap_or_default();
        let not_known = render_not_known(not_known);
        let who = who.unwrap_or_default();
        render(d, host, console::colors()) + &who + &not_known + &worth
    };
    Ok(console::print(&text)?)
}

/// Watches one window of this length; returns it with its slices.
fn watch_in_slices(
    windows: &mut WindowStream,
    length: Duration,
) -> anyhow::Result<(Window, Vec<Window>)> {
    let mut first = windows.latest().cloned();
    let mut slices: Vec<Window> = Vec::new();
    let mut begun = Instant::now();
    // Scripts that wait for findings get no progress lines.
    let mut progress = ProgressLine::new(Duration::MAX);
    loop {
        let event = windows.next_event_with(|| {
            let left = length.saturating_sub(begun.elapsed());
            progress.show(&format!("watching: {} s left", left.as_secs_f64().ceil()));
        });
        progress.clear();
        match event {
            WindowEvent::Window(w) => {
                timed(&w.delta)?;
                slices.push(*w);
                let seen: Duration = slices.iter().map(|w| w.length).sum();
                // Snapshots are not taken to the microsecond.
                if seen.as_secs_f64() < length.as_secs_f64() * 0.99 {
                    continue;
                }
                if let (Some(first), Some(last)) = (&first, windows.latest()) {
                    return Ok((last.since(first), slices));
                }
            }
            // A snapshot is missing, or the agent is restarting: the window is measured anew when it is back.
            WindowEvent::Gone { since, .. } if since < PATIENCE => {}
            WindowEvent::Gone { why, .. } => anyhow::bail!(why),
            WindowEvent::Begun | WindowEvent::Attaching => {
                first = windows.latest().cloned();
                slices.clear();
                windows.count_anew();
                begun = Instant::now();
            }
        }
    }
}

/// Watches one window of this length.
pub(super) fn watch(windows: &mut WindowStream, length: Duration) -> anyhow::Result<Window> {
    watch_in_slices(windows, length).map(|(window, _)| window)
}

fn timed(s: &Snapshot) -> anyhow::Result<()> {
    Status::Running(s.probes.clone().into())
        .health()
        .map_err(anyhow::Error::msg)
}
