//! A CPU goes offline while clients call, and comes back: its work goes on elsewhere, and nothing is lost.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::reconcile::{
    assert_same_operations, by_last_label, losses_are_explained, lost, merged, settled, window,
};
use lab::{Agent, Server};
use nfscope_model::{Snapshot, family};

/// Load of each version.
const LOAD: &str = "write --from 127.5.0.1 --clients 8 --seconds 3";
/// Times that the CPU must have gone while the loads ran.
const LEAST: usize = 2;
/// Largest difference between the phases of all operations and their time, as a fraction.
const CLOSE: f64 = 0.01;

/// Script that takes the CPUs offline and online again until the load has ended, and prints a line each time.
const COMES_AND_GOES: &str = "
set -e
while [ ! -e /run/load-ended ]; do
  cpus_online 0
  sleep 0.3
  cpus_online 1
  echo once
  sleep 0.3
done
";

pub fn loses_nothing(server: &Server, agent: &Agent) -> Result<()> {
    server.sh("rm -f /run/load-ended")?;
    let before = settled(server, &[agent])?;
    let mut cpus = server.spawn(COMES_AND_GOES)?;
    let loads = ["3", "4.2"].map(|nfs| server.run_clients(&format!("{LOAD} --nfs {nfs}")));
    server.sh("touch /run/load-ended")?;
    let gone = cpus.wait(Duration::from_secs(60))?.ok(COMES_AND_GOES)?;
    for load in loads {
        load?;
    }
    let after = settled(server, &[agent])?;

    let times = gone.stdout.lines().count();
    let (counted, seen) = window(&before, &after, 0);
    let lost = lost(&seen);
    println!(
        "the CPUs but one went {times} times during {} operations; lost {lost:?}",
        counted.operations()
    );
    ensure!(times >= LEAST, "the CPUs went {times} times only");
    assert_same_operations("while CPUs come and go", &counted, &seen);
    for write in [counted.proc3("write"), counted.op4("write")] {
        ensure!(write > 0, "{counted:?}");
    }
    losses_are_explained(&after.1[0], &seen, counted.operations())?;
    let durations = merged(&seen, &family::OP_DURATION.info, |_| true);
    let durations = durations.context("no operation has a time")?.sum;
    let phases = by_last_label(&seen, &family::OP_PHASE.info, |_| true);
    println!("operations took {durations:.3} s: {phases:.3?}");
    let all: f64 = phases.values().sum();
    ensure!(
        (all - durations).abs() <= CLOSE * durations && phases.values().all(|s| *s >= 0.0),
        "operations took {durations} s, their phases {phases:?}"
    );
    // The counter is a total of all CPUs, including those that are offline.
    let idle = |n: &Snapshot| n.value(&family::CPU_IDLE, []);
    let (before, after) = (&before.1[0], &after.1[0]);
    ensure!(
        idle(after) >= idle(before),
        "the CPUs were idle for {:?} s, and then for {:?} s",
        idle(before),
        idle(after)
    );
    let cpus = after.value(&family::CPUS, []);
    ensure!(cpus == before.value(&family::CPUS, []), "{cpus:?}");
    Ok(())
}
