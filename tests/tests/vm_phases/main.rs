//! Where time goes is told truly: phases add up, a delay that is put somewhere is found there and nowhere else, and
//! clients, exports and slow operations are told as they were. One machine for each kernel, because machines cost more
//! than checks.

mod added;
mod causes;
mod conservation;
mod slow;
mod who;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::{Agent, Kernel, KernelCounts, Server};
use nfscope_model::{ProbeState, Snapshot};

/// What a slow disk takes longer. Not less than 50 ms: see [`lab::Delay`].
const DELAY: Duration = Duration::from_millis(100);

#[test]
fn vm_6_1_tells_where_time_goes() -> Result<()> {
    tells_where_time_goes(Kernel::V6_1)
}

#[test]
fn vm_6_12_tells_where_time_goes() -> Result<()> {
    tells_where_time_goes(Kernel::V6_12)
}

#[test]
fn vm_7_2_tells_where_time_goes() -> Result<()> {
    tells_where_time_goes(Kernel::V7_2)
}

fn tells_where_time_goes(kernel: Kernel) -> Result<()> {
    let started = Instant::now();
    let done = |what: &str| println!("{kernel}: {what} after {:.0?}", started.elapsed());
    let server = Server::boot(kernel)
        .export("ext4")
        .delayed()
        .external_log()
        .also_export("home")
        .also_export("scratch")
        .clients(3)
        .start()?;
    // As many series as there will be clients: nobody is `other`.
    let agent = server.agent(&["--max-clients", "1000"])?;
    done("serving and attached");
    for p in agent.snapshot()?.probes {
        ensure!(p.state != ProbeState::Unsupported, "{p:?}");
    }
    let mut watch = Watch::begin(&server, &agent)?;
    conservation::phases_add_up(&mut watch, kernel).context("conservation")?;
    done("conservation checked");
    causes::are_found(&mut watch, done).context("causes")?;
    slow::operations_are_reported(&mut watch).context("slow operations")?;
    done("slow operations checked");
    who::asks_is_told(&mut watch, done).context("clients and exports")?;
    // The same everywhere, and half a minute long.
    if kernel == Kernel::V6_12 {
        who::asks_without_end(&mut watch).context("more clients than rows")?;
        done("more clients than rows checked");
    }
    causes::are_found_on_xfs(&mut watch).context("causes on xfs")?;
    done("xfs checked");
    causes::are_found_on_btrfs(&mut watch).context("causes on btrfs")?;
    done("btrfs checked");
    agent.stop()?;
    Ok(())
}

/// Windows of what the agent sees, each from where the last one ended: nothing moves in between.
struct Watch<'a> {
    server: &'a Server,
    agent: &'a Agent,
    last: (KernelCounts, Vec<Snapshot>),
}

impl<'a> Watch<'a> {
    fn begin(server: &'a Server, agent: &'a Agent) -> Result<Self> {
        Ok(Watch {
            server,
            agent,
            last: lab::account::settled(server, &[agent])?,
        })
    }

    /// What the kernel counted and the agent saw while `load` ran.
    fn during(&mut self, load: impl FnOnce() -> Result<()>) -> Result<(KernelCounts, Snapshot)> {
        load()?;
        let now = lab::account::settled(self.server, &[self.agent])?;
        let window = lab::account::window(&self.last, &now, 0);
        self.last = now;
        Ok(window)
    }

    /// What the agent saw while clients called as `lab crowd --help` describes it.
    fn crowd(&mut self, arguments: &str) -> Result<Snapshot> {
        let server = self.server;
        Ok(self.during(|| server.crowd(arguments).map(drop))?.1)
    }
}
