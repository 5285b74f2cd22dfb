//! `lab big-server`: thousands of threads, connections and clients, every operation counted and timed. It is not among the tests,
//! because an emulated machine takes minutes for it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nfscope_model::family;

use crate::agent::Agent;
use crate::kernel::Kernel;
use crate::raw::clients::ClientReport;
use crate::reconcile::{by_last_label, lost, merged, operations, settled, window};
use crate::server::Server;

/// Sizes of the server and its load.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The machine's kernel: 5.10, 6.1, 6.12, 6.18 or 7.2
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// nfsd threads
    #[arg(long, default_value_t = 8_192)]
    pub threads: u32,
    /// Clients, each with an address of its own
    #[arg(long, default_value_t = 10_000)]
    pub pairs: u32,
    /// Connections that end after one operation
    #[arg(long, default_value_t = 20_000)]
    pub short: u32,
    /// Connections that are open at the same time
    #[arg(long, default_value_t = 16_000)]
    pub open: u32,
}

/// Size of the server, and the counts at it.
#[derive(Debug)]
pub struct Counted {
    /// Description of the size.
    pub what: String,
    /// Operations that the kernel counted.
    pub kernel: u64,
    /// Operations that the agent timed.
    pub agent: u64,
    /// Requests with a known wait for a thread.
    pub queued: u64,
    /// Clients whose count equals the number of their requests.
    pub clients: usize,
    /// Events that the agent reports as lost, by probe and reason.
    pub lost: BTreeMap<String, f64>,
}

/// Runs all sizes, and calls back with each.
///
/// # Errors
/// When the machine, the agent or a load fails, and when the two counts of a size differ.
pub fn run(options: &Options, mut each: impl FnMut(&Counted)) -> Result<()> {
    let server = Server::boot(options.kernel)
        .export("tmpfs")
        .memory("6G")
        .clients(0)
        .start()?;
    let agent = server.agent(&["--max-clients", "10000", "--max-pairs", "16384"])?;
    // Each thread keeps the pages of the largest READ: with the usual megabyte all threads take more than the machine has.
    server.nfsd_stop()?;
    server.sh("echo 8192 >/proc/fs/nfsd/max_block_size")?;
    server.nfsd_start()?;
    server
        .sh("echo 131072 >/proc/sys/kernel/threads-max; echo 131072 >/proc/sys/kernel/pid_max")?;
    let many = Many {
        server: &server,
        agent: &agent,
    };
    let Options {
        threads,
        pairs,
        short,
        open,
        ..
    } = options;
    let sizes = [
        (
            format!("{pairs} clients"),
            format!("getattr --from 127.16.0.1 --clients {pairs} --at-once 64 --times 2"),
        ),
        (
            format!("{short} short connections"),
            format!("getattr --from 127.32.0.1 --clients {short} --at-once 64 --times 1"),
        ),
        (
            format!("{open} open connections"),
            format!("getattr --from 127.16.0.1 --clients {open} --threads 64 --times 2"),
        ),
    ];
    // Without a limit of its own the kernel keeps 20 connections open for each thread (svc_check_conn_limits(),
    // net/sunrpc/svc_xprt.c). Connections of the size before may not be closed yet.
    server.sh(&format!(
        "echo {} >/proc/fs/nfsd/max_connections",
        2 * open + short + pairs
    ))?;
    server.set_threads(open.div_ceil(16).max(8))?;
    for (what, load) in sizes {
        each(&many.counted(what, &load)?);
    }
    server.set_threads(*threads)?;
    let load = "getattr --from 127.16.0.1 --clients 512 --times 64";
    each(&many.counted(format!("{threads} threads"), load)?);
    server.set_threads(8)?;
    agent.stop().map(drop)
}

struct Many<'a> {
    server: &'a Server,
    agent: &'a Agent,
}

impl Many<'_> {
    fn counted(&self, what: String, load: &str) -> Result<Counted> {
        let before = settled(self.server, &[self.agent])?;
        // The load starts a thread for each client.
        let script = format!(
            "ulimit -n 100000; export RUST_MIN_STACK=131072; exec {} clients {load}",
            self.server.lab_path().display()
        );
        let output = self.server.sh_within(Duration::from_secs(1800), &script)?;
        let sent: Vec<ClientReport> =
            serde_json::from_str(&output.stdout).context("what `lab clients` printed")?;
        let after = settled(self.server, &[self.agent])?;
        let (kernel, seen) = window(&before, &after, 0);
        let by_client = by_last_label(&seen, &family::CLIENT_OPS.info, |_| true);
        let same = |c: &&ClientReport| {
            by_client.get(&c.address.to_string()) == Some(&(c.operations as f64))
        };
        let queued = merged(&seen, &family::RPC_QUEUE.info, |_| true);
        let counted = Counted {
            what,
            kernel: kernel.procs3().values().sum(),
            agent: operations(&seen).0.values().sum(),
            queued: queued.map_or(0, |h| h.count()),
            clients: sent.iter().filter(same).count(),
            lost: lost(&seen),
        };
        ensure!(counted.kernel == counted.agent, "{counted:?}");
        Ok(counted)
    }
}
