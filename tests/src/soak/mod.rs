//! `lab soak`: a busy server for hours. nfsd restarts, its module is loaded anew, clients come and go, Prometheus and people look,
//! settings are read again, and what serves HTTP is killed. Nothing may grow, and every count must be exact.

mod clock;
mod event;
mod exposition;
mod figures;
mod flat;
mod onlookers;
mod options;
mod report;
mod rounds;

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::paths;
use crate::server::Server;
use clock::Clock;
use onlookers::Onlookers;
pub use options::Options;
use report::Report;
use rounds::{Round, Rounds};

/// Clients that have a series of their own: those of the rounds, the mounts, and some of those that come once.
const NAMED: &str = "400";
/// So few rows that a run of hours gives them all back several times.
const PAIRS: &str = "2048";

/// A file of this name in the directory of the figures halts the machine behind a round, until the file is gone.
const PAUSE: &str = "pause";

/// Runs it, and calls back with each round.
///
/// # Errors
/// When the machine or the agent fails, when a count is not exact, when something grows, and when the run was too short to tell.
pub fn run(options: &Options, mut each: impl FnMut(&Round)) -> Result<String> {
    let hours = Duration::try_from_secs_f64(options.hours * 3600.0).context("--hours")?;
    let out = match &options.out {
        Some(out) => out.clone(),
        None => paths::target_dir()?.join("soak"),
    };
    let mut report = Report::create(&out, options)?;
    let server = Server::boot(options.kernel)
        .export("ext4")
        .memory("3G")
        .cpus(options.cpus)
        .clients(rounds::MOUNTS)
        .without_nfsd()
        .beside()
        .can_halt()
        .start()?;
    server.sh("mkdir -p /run/soak && echo '[limits]\nexports = 100' >/run/soak/nfscope.toml")?;
    // Before nfsd: then the kernel's counters and the agent's begin with the same operation.
    let mut agent = server.agent_start(&[
        "--config",
        "/run/soak/nfscope.toml",
        "--max-clients",
        NAMED,
        "--max-pairs",
        PAIRS,
        "--history-directory",
        "/run/soak",
    ])?;
    server.nfsd_start()?;
    agent.wait_until_healthy(Duration::from_secs(300))?;
    let mut clock = Clock::start(&out.join(PAUSE));
    let onlookers = Onlookers::start(agent.address());
    let mut rounds = Rounds::new(&server, &mut agent, &onlookers, hours);
    let mut played = Ok(());
    while clock.elapsed() < hours {
        let paused = clock.pause_if_asked(&server, &onlookers);
        let round = paused.and_then(|()| rounds.play(&clock));
        let kept = round.and_then(|round| {
            report.add(&round)?;
            // As if it had ended here: a run that is killed leaves what it came to.
            report.judge(&onlookers.so_far(), &rounds.log(), &clock)?;
            Ok(round)
        });
        match kept {
            Ok(round) => each(&round),
            Err(e) => {
                // What was measured until then is worth its report.
                played = Err(e.context(format!("after {:.0?}", clock.elapsed())));
                break;
            }
        }
    }
    let seen = onlookers.stop();
    let log = agent.log();
    let judged = report.judge(&seen, &log, &clock)?;
    played?;
    ensure!(
        judged.wrong.is_empty(),
        "{}\n\n{}\nfigures: {}",
        judged.text,
        judged.wrong.join("\n"),
        out.display()
    );
    agent.stop()?;
    Ok(judged.text)
}
