//! What makes requests slow: an account of where their time went, charged to causes, with the evidence.
//!
//! [`account`] draws up a window's account, [`charge`] says who is charged with which part of it, `rules` judge one kind
//! each, [`judge`] puts them together; all are pure functions. [`active`] follows findings from window to window.

pub mod account;
pub mod active;
pub mod charge;
mod judge;
mod rules;
mod text;
mod whose;

pub use judge::{BEGINS, ENDS, judge};
pub use text::render;

use crate::cli::DiagnoseArgs;
use crate::console;
use crate::feed::{Feed, News};
use crate::fetch;
use crate::model::finding::{Diagnosis, Verdict};
use crate::model::{Snapshot, Window};
use crate::status::Status;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Exit code of a judgement.
pub fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Healthy => 0,
        Verdict::Unknown => 1,
        Verdict::Findings => 2,
    }
}

/// Watches for as long as asked and judges that as one window.
///
/// # Errors
/// When there is no agent and probes of its own cannot be attached, when NFS operations are not timed, or when the agent
/// goes away.
pub fn run(args: &DiagnoseArgs) -> anyhow::Result<Verdict> {
    let host = fetch::host(args.url.as_deref());
    let mut feed = Feed::open(args.url.as_deref(), args.length)?;
    let window = watch(&mut feed, args.length)?;
    let mut d = judge(&window, &[]);
    for f in &mut d.findings {
        if let Some(want) = whose::wanted(f.kind) {
            f.evidence
                .extend(whose::evidence(&feed.look(&want, whose::LOOK)));
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
fn watch(feed: &mut Feed, length: Duration) -> anyhow::Result<Window> {
    let begun = Instant::now();
    let quiet = !std::io::stderr().is_terminal();
    loop {
        let news = feed.next_with(|| {
            if !quiet {
                let left = length.saturating_sub(begun.elapsed());
                eprint!("\rwatching for {} s more \x1b[K", left.as_secs_f64().ceil());
            }
        });
        if !quiet {
            eprint!("\r\x1b[K");
        }
        match news {
            News::Window(w) => {
                timed(&w.delta)?;
                return Ok(*w);
            }
            News::Gone { why, .. } => anyhow::bail!(why),
            News::Begun | News::Attaching => {}
        }
    }
}

fn timed(s: &Snapshot) -> anyhow::Result<()> {
    Status::Running(s.probes.clone().into())
        .health()
        .map_err(anyhow::Error::msg)
}
