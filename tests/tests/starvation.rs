//! Too few threads: the wait of each request for a thread is measured, and the diagnosis names it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::{Agent, Delay, Disk, Server};
use nfscope_model::family;
use nfscope_model::finding::Kind;

/// Delay of each read of the disk.
const DELAY: Duration = Duration::from_millis(100);
/// Least share of requests with a known arrival. The arrival of a first call is unknown if a second thread reads it before the first
/// thread has accepted the connection.
const KNOWN: f64 = 0.9;

/// Two threads for sixteen clients, whose READs of [`causes::make_files`](crate::phases::causes::make_files) wait for the disk.
pub fn is_measured_and_named(server: &Server, agent: &Agent) -> Result<()> {
    server.set_threads(2)?;
    server.delay(Disk::Data, Delay::reads(DELAY))?;
    server.drop_caches()?;
    let before = agent.snapshot()?;
    server.run_clients("read --clients 16 --times 4")?;
    let window = agent.snapshot()?.since(&before);
    server.set_threads(8)?;
    server.delay(Disk::Data, Delay::NONE)?;

    let of = |info| lab::reconcile::merged(&window.delta, info, |_| true);
    let requests = of(&family::RPC_DURATION.info).context("no requests")?;
    let queue = of(&family::RPC_QUEUE.info).context("no queue times")?;
    let (requests, known) = (requests.count(), queue.count());
    let lost = lab::reconcile::lost(&window.delta);
    println!("{known} of {requests} requests have a queue time; lost {lost:?}");
    ensure!(
        known as f64 >= KNOWN * requests as f64,
        "{known} of {requests} requests have a queue time; lost {lost:?}"
    );
    let diagnosis = nfscope_diagnose::evaluate(&window, &[]);
    let first = diagnosis.findings.first();
    ensure!(
        first.is_some_and(|f| f.kind == Kind::ThreadStarvation),
        "{diagnosis:#?}"
    );
    Ok(())
}
