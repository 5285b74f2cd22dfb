//! `lab soak`: a busy server for hours. nfsd restarts, its module is loaded anew, clients come and go, Prometheus and pages ask,
//! settings are read again, and `nfscope-http` is killed. Nothing may grow, and every count must be exact.

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
/// Number of rows: small enough that a run of hours gives back all of them several times.
const PAIRS: &str = "2048";

/// File in the directory of the figures that halts the machine after a round, until the file is gone.
const PAUSE: &str = "pause";

/// Runs the soak, and calls back with each round.
///
/// # Errors
/// When the machine or the agent fails, when a count is not exact, when a quantity grows, and when the run was too short to decide.
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
    // The agent starts before nfsd: the kernel's counters and the agent's then begin with the same operation.
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
            // The report is written after each round: a run that is killed leaves its verdict so far.
            report.judge(&onlookers.so_far(), &rounds.log(), &clock)?;
            Ok(round)
        });
        match kept {
            Ok(round) => each(&round),
            Err(e) => {
                // A failed run still gets a report of the rounds before.
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
