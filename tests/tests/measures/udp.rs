//! Requests over UDP have no queue time, which is no loss; `nfscope check` reports it.

use anyhow::{Result, ensure};
use lab::{Agent, Kernel, Server, reconcile};
use nfscope_model::family;

/// RPC call of NFSv3's NULL: transaction 1, a call, RPC 2, program 100003, version 3, procedure 0, no credentials.
const NULL: &str = "\\0\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\0\\x02\\0\\x01\\x86\\xa3\\0\\0\\0\\x03\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0";
const CALLS: f64 = 100.0;

pub fn requests_have_no_clock(server: &Server, agent: &Agent) -> Result<()> {
    server.sh("echo 'udp 2049' >/proc/fs/nfsd/portlist")?;
    let before = reconcile::settled(server, &[agent])?;
    server.sh(&format!(
        "for n in $(seq {CALLS}); do printf '{NULL}' >/dev/udp/127.0.0.1/2049; done; sleep 1"
    ))?;
    let after = reconcile::settled(server, &[agent])?;
    let (counted, seen) = reconcile::window(&before, &after, 0);
    reconcile::assert_same_operations("over UDP", &counted, &seen);
    let calls = seen.hist(&family::OP_DURATION, ["3", "null"]);
    let calls = calls.map_or(0, |h| h.count()) as f64;
    ensure!(calls == CALLS, "{calls} calls were seen");
    let without = seen.value(&family::RPC_NO_CLOCK, []);
    ensure!(without == Some(CALLS), "{without:?} had no clock");
    let lost = seen.value(&family::EVENTS_LOST, ["nfsd", "arrival_unknown"]);
    ensure!(lost == Some(0.0), "{lost:?} arrivals were lost");
    // `check` reads the server's ports, alike on every kernel, and attaches everything once more: one kernel is enough.
    if server.kernel() != Kernel::V6_12 {
        return Ok(());
    }
    let program = lab::nfscope_program()?;
    let page = server.sh(&format!("{} check || [ $? = 3 ]", program.display()))?;
    ensure!(
        page.stdout.contains("queue time over UDP") && !page.stdout.contains("LOCALIO"),
        "{}",
        page.stdout
    );
    Ok(())
}
