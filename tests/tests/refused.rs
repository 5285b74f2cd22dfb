//! What the server answers from a slot, or refuses before it executes anything: the agent counts what the kernel counts, whatever
//! the status is, and no more than that.

use anyhow::{Result, ensure};
use lab::reconcile::{assert_same_operations, lost, settled, window};
use lab::refused::CASES;
use lab::{Agent, Server};
use nfscope_model::family;

/// Each case by itself. Nobody may have the server mounted: kernel clients call when they like.
pub fn calls_are_no_operations(server: &Server, agent: &Agent) -> Result<()> {
    let kernel = server.kernel();
    let mut before = settled(server, &[agent])?;
    for (case, _) in CASES {
        let what = format!("{kernel} {case}");
        let answers = server.refused(case)?;
        let after = settled(server, &[agent])?;
        let (counted, seen) = window(&before, &after, 0);
        println!("{what}: {answers:?}; lost {:?}", lost(&seen));
        assert_eq!(counted.compounds, answers.compounds, "{what}: compounds");
        assert_same_operations(&what, &counted, &seen);
        let replays: f64 = seen.numbers(&family::SESSION_REPLAYS).map(|(_, n)| n).sum();
        assert_eq!(replays as u64, answers.replays, "{what}: replays");
        let covered = after.1[0].value(&family::COVERAGE, ["4"]);
        ensure!(covered <= Some(1.0), "{what}: coverage {covered:?}");
        before = after;
    }
    Ok(())
}
