//! `nfscope baseline open`: serves the agent's page with recordings, without measuring.

use crate::agent;
use crate::agent::config::Settings;
use crate::cli::OpenArgs;
use anyhow::Context;
use nfscope_baseline::store::Store;
use nfscope_model::{ProbeState, ProbeStatus, SlowBatch, SlowFilter, Snapshot};
use nfscope_serve::endpoints;
use nfscope_serve::http::{self, WebConfig};
use nfscope_serve::service::answers::Answers;
use nfscope_serve::service::http_process::HttpProcess;
use nfscope_serve::service::recordings::Recordings;
use nfscope_serve::service::source_thread::{SOURCE_ENDED, SourceHandle};
use nfscope_source::{Source, privileges};
use nfscope_text::console::{self, Level, print};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Serves the page with these recordings on 127.0.0.1, until SIGTERM or SIGINT.
///
/// # Errors
/// When there is no such recording, or the port is in use.
pub fn run(args: &OpenArgs) -> anyhow::Result<()> {
    // Checks the recordings before the page is served.
    let store = Store::read(&args.store.path)?;
    for name in &args.names {
        let entry = store.entry(name)?;
        let ended = store.ended_ms(&entry)?;
        ended.with_context(|| format!("`{name}` has no windows; fix: record for longer"))?;
    }
    drop(store);
    let settings = Settings {
        log_level: Level::Warn,
        ..Settings::default()
    };
    console::configure(settings.log_level, settings.log_json);
    let listener = http::listen(&format!("127.0.0.1:{}", args.port))?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut term, mut int) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        )
    };
    let http = HttpProcess::prepare(vec![listener])?;
    let (source, started) = SourceHandle::spawn(|| Ok(Box::new(Shelf::new()) as Box<dyn Source>))?;
    privileges::drop_all().context("cannot drop the capabilities of the main thread")?;
    let path = std::path::absolute(&args.store.path)?;
    source.show_recordings(Recordings::of(path));
    http.set(agent::configuration(
        &settings,
        &WebConfig::default(),
        agent::own_hosts(),
        &http,
    )?);
    print(&format!(
        "http://{address}/#{}\nCtrl-C ends it.\n",
        fragment(&args.names)
    ))?;
    runtime.block_on(async {
        let answers = Answers::new(Arc::new(source), &endpoints::ALL);
        tokio::select! {
            _ = term.recv() => Ok(()),
            _ = int.recv() => Ok(()),
            end = http.serve(&answers) => match end? {},
            end = async {
                started.await.context(SOURCE_ENDED)??;
                std::future::pending::<anyhow::Result<()>>().await
            } => end,
        }
    })
}

/// URL fragment that selects the recordings.
fn fragment(names: &[String]) -> String {
    let keys = ["show", "beside"];
    let part = |(key, name): (&str, &String)| {
        let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        format!("{key}={name}")
    };
    let parts: Vec<_> = keys.into_iter().zip(names).map(part).collect();
    parts.join("&")
}

/// Source without measurements. Its only probe has the state `Unused`, with the reason.
struct Shelf(Instant);

impl Shelf {
    fn new() -> Self {
        Shelf(Instant::now())
    }
}

impl Source for Shelf {
    fn snapshot(&mut self) -> Snapshot {
        // Time zero would mean that the agent is still attaching its probes.
        let mut s = Snapshot::new(Duration::from_secs(1) + self.0.elapsed());
        s.probes = self.probes();
        s
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        vec![ProbeStatus {
            probe: "recordings".to_owned(),
            program: "recordings".to_owned(),
            hook: String::new(),
            gives: "recordings alone; nothing is measured".to_owned(),
            required: true,
            state: ProbeState::Unused,
            reason: "only recordings are shown here".to_owned(),
            fix: "`nfscope agent` measures".to_owned(),
        }]
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()> {
        anyhow::ensure!(want.is_none(), "a recording has no single operations");
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        SlowBatch::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_names_the_recordings() {
        let names = ["before".to_owned(), "after&x".to_owned()];
        assert_eq!(fragment(&names[..1]), "show=before");
        assert_eq!(fragment(&names), "show=before&beside=after%26x");
    }
}
