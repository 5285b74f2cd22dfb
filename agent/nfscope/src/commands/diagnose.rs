//! `nfscope diagnose`: one window, evaluated.

use crate::api::endpoint;
use crate::cli::DiagnoseArgs;
use crate::client::windows::{WindowEvent, WindowStream};
use nfscope_diagnose::{client_sample, evaluate, render};
use nfscope_model::finding::{Diagnosis, Verdict};
use nfscope_model::status::Status;
use nfscope_model::{Snapshot, Window};
use nfscope_text::console;
use nfscope_text::progress_line::ProgressLine;
use std::time::{Duration, Instant};

/// Exit code of a judgement.
pub fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Healthy => 0,
        Verdict::Unknown => 1,
        Verdict::Findings => 2,
    }
}

/// Watches for as long as asked and evaluates that as one window.
///
/// # Errors
/// When there is no agent and probes of its own cannot be attached, when NFS operations are not timed, or when the agent
/// goes away.
pub fn run(args: &DiagnoseArgs) -> anyhow::Result<Verdict> {
    let host = endpoint::host(args.url.as_deref());
    let mut windows = WindowStream::open(args.url.as_deref(), args.length)?;
    let window = watch(&mut windows, args.length)?;
    let mut d = evaluate(&window, &[]);
    for f in &mut d.findings {
        if let Some(want) = client_sample::filter(f.kind) {
            f.evidence.extend(client_sample::evidence(
                &windows.sample_slow_ops(&want, client_sample::SAMPLE_DURATION),
            ));
        }
    }
    print(&d, &host, args.json)?;
    Ok(d.verdict)
}

fn print(d: &Diagnosis, host: &str, json: bool) -> anyhow::Result<()> {
    let text = match json {
        true => serde_json::to_string(d)? + "\n",
        false => render(d, host, console::colors()),
    };
    Ok(console::print(&text)?)
}

/// One window of this length.
fn watch(windows: &mut WindowStream, length: Duration) -> anyhow::Result<Window> {
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
