//! What is measured is true: durations against a device whose delay is known, queue time against the client's clock and
//! the kernel's, block requests against the kernel's trace. One machine for each kernel, because machines cost more than
//! checks.

mod block;
mod durations;
mod queue;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::{Kernel, Server};

/// What every request to the exported device takes: null_blk completes each by a timer, so that the delay is in the
/// device's own time (dm-delay would hold requests before they become the device's).
const DELAY: Duration = Duration::from_millis(20);
/// The exported device, with a write cache and FUA.
const SLOW: &str = "nullb0";
/// A disk that nothing is mounted from, as fast as the machine.
const FAST: &str = "vda";

#[test]
fn vm_6_1_measures_the_truth() -> Result<()> {
    measures_the_truth(Kernel::V6_1)
}

#[test]
fn vm_6_12_measures_the_truth() -> Result<()> {
    measures_the_truth(Kernel::V6_12)
}

#[test]
fn vm_7_2_measures_the_truth() -> Result<()> {
    measures_the_truth(Kernel::V7_2)
}

fn measures_the_truth(kernel: Kernel) -> Result<()> {
    let started = Instant::now();
    let done = |what: &str| println!("{kernel}: {what} after {:.0?}", started.elapsed());
    let server = Server::boot(kernel)
        .export("ext4")
        .threads(2)
        .clients(1)
        .without_nfsd()
        .start()?;
    done("booted");
    // noinit_itable: no thread of ext4's own writes behind the tests' back.
    server.sh(&format!(
        "set -e
         umount /run/exp
         modprobe null_blk completion_nsec={} irqmode=2 memory_backed=1 cache_size=64 discard=1 gb=1 submit_queues=1
         mkfs.ext4 -q -F -E lazy_itable_init=1,nodiscard /dev/{SLOW}
         mount -t ext4 -o noinit_itable /dev/{SLOW} /run/exp",
        DELAY.as_nanos()
    ))?;
    server.nfsd_start()?;
    let agent = server.agent(&[])?;
    done("serving and attached");
    everything_is_offered(&server)?;
    durations::hold_the_delay(&server, &agent).context("durations")?;
    done("durations checked");
    queue::is_what_the_client_waited(&server, &agent).context("queue time")?;
    done("queue time checked");
    let watched = block::Watched::begin(&server, &agent)?;
    done("the kernel's trace begun");
    block::traffic(&server)?;
    watched.agrees_with(&server, &agent).context("block")?;
    done("block requests checked");
    agent.stop()?;
    Ok(())
}

/// `nfscope check` finds everything on the kernels that have everything, and beside a running agent.
fn everything_is_offered(server: &Server) -> Result<()> {
    let program = lab::nfscope_program()?;
    let json = server.sh(&format!("{} check --json", program.display()))?;
    let report: serde_json::Value = serde_json::from_str(&json.stdout)?;
    assert_eq!(report["verdict"], "full", "{}", json.stdout);
    Ok(())
}
