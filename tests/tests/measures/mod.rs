//! Measurements are true: durations against a device with a known delay, queue time against the clocks of the client and the kernel,
//! block requests against the kernel's trace.

mod block;
mod durations;
mod queue;
mod udp;

use std::time::Duration;

use anyhow::Result;
use lab::{Agent, Checks, Kernel, Server};

/// Time of every request to the exported device. null_blk completes each by a timer, so that the delay is in the device's own time
/// (dm-delay would hold requests before they become the device's).
const DELAY: Duration = Duration::from_millis(20);
/// The exported device, with a write cache and FUA.
const SLOW: &str = "nullb0";
/// A disk that nothing is mounted from, as fast as the machine.
const FAST: &str = "vda";

/// All checks, in a machine whose own disk no later check needs: its export is replaced.
pub fn are_true(server: &Server, agent: &Agent, checks: &mut Checks) -> Result<()> {
    export_a_slow_device(server)?;
    checks.run("check beside an agent", || {
        everything_is_offered(server, agent)
    });
    checks.run("durations", || durations::hold_the_delay(server, agent));
    checks.run("queue time", || {
        queue::is_what_the_client_waited(server, agent)
    });
    checks.run("queue time of first calls", || {
        queue::of_first_calls_is_known(server, agent)
    });
    checks.run("block requests", || {
        let watched = block::Watched::begin(server, agent)?;
        block::traffic(server)?;
        watched.agrees_with(server, agent)
    });
    checks.run("requests over UDP", || {
        udp::requests_have_no_clock(server, agent)
    });
    Ok(())
}

/// Replaces the export by a slow device, with two threads. noinit_itable: ext4's own thread would write beside the tests.
fn export_a_slow_device(server: &Server) -> Result<()> {
    // A mount must not outlive its export: it would be stale.
    server.client(0).unmount_all()?;
    server.sh(&format!(
        "set -e
         export_down
         umount /run/exp
         modprobe null_blk completion_nsec={} irqmode=2 memory_backed=1 cache_size=64 discard=1 gb=1 submit_queues=1
         mkfs.ext4 -q -F -E lazy_itable_init=1,nodiscard /dev/{SLOW}
         mount -t ext4 -o noinit_itable /dev/{SLOW} /run/exp",
        DELAY.as_nanos()
    ))?;
    server.nfsd_start()?;
    server.set_threads(2)?;
    server.sh("grace_over").map(drop)
}

/// `nfscope check` finds everything on kernels that have everything. On one of them it attaches beside a running agent; on the others
/// it asks that agent.
fn everything_is_offered(server: &Server, agent: &Agent) -> Result<()> {
    let program = lab::nfscope_program()?;
    let of = match server.kernel() {
        Kernel::V6_12 => String::new(),
        _ => format!("--url http://127.0.0.1:{}", agent.port()),
    };
    let json = server.sh(&format!("{} check --json {of}", program.display()))?;
    let report: serde_json::Value = serde_json::from_str(&json.stdout)?;
    assert_eq!(report["verdict"], "full", "{}", json.stdout);
    Ok(())
}
