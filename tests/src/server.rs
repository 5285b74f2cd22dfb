//! The NFS server in a machine, and the sentence that builds it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::agent::Agent;
use crate::client::Client;
use crate::control::{Output, Running};
use crate::counts::KernelCounts;
use crate::kernel::Kernel;
use crate::load::{Load, LoadReport};
use crate::machine::{Machine, Spec};
use crate::place;

/// What every script in the machine can call.
const FUNCTIONS: &str = include_str!("../guest/server.sh");
/// The bound of [`Server::sh`]: under emulation even a mount takes a second.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the server is to be; [`Builder::start`] makes it so.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until start() is called"]
pub struct Builder {
    spec: Spec,
    fs: String,
    delay: Duration,
    threads: u32,
    clients: usize,
    nfsd: bool,
}

impl Builder {
    /// Virtual processors (2).
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.spec.cpus = cpus;
        self
    }

    /// Memory, in QEMU's words (`2G`).
    pub fn memory(mut self, memory: &str) -> Self {
        memory.clone_into(&mut self.spec.memory);
        self
    }

    /// The file system to export: `ext4` (the default), `xfs`, `btrfs` or `tmpfs`.
    pub fn export(mut self, fs: &str) -> Self {
        fs.clone_into(&mut self.fs);
        self
    }

    /// Writes and flushes of the exported disk take this much longer (dm-delay).
    pub fn slow(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// nfsd threads (8).
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Clients (none), each with a network and a host name of its own.
    pub fn clients(mut self, clients: usize) -> Self {
        self.clients = clients;
        self
    }

    /// Leaves the nfsd and sunrpc modules unloaded until [`Server::nfsd_start`].
    pub fn without_nfsd(mut self) -> Self {
        self.nfsd = false;
        self
    }

    /// Counts instructions instead of seconds: one processor, and one instruction is one nanosecond of its time.
    /// A machine that waits for a timer skips to it, so give it loads that never wait.
    pub fn icount(mut self) -> Self {
        self.spec.icount = true;
        self.spec.cpus = 1;
        self
    }

    /// The host port to try first for the first agent.
    pub fn agent_port(mut self, port: u16) -> Self {
        self.spec.agent_port = Some(port);
        self
    }

    /// Boots the machine and brings the server up.
    pub fn start(mut self) -> Result<Server> {
        let words = |line: &str| Some(line.split(' ').map(str::to_owned).collect());
        self.spec.mkfs = match self.fs.as_str() {
            "ext4" => words("mkfs.ext4 -q -F -E lazy_itable_init=1,nodiscard"),
            "xfs" => words("mkfs.xfs -q -f -K"),
            "btrfs" => words("mkfs.btrfs -q -f -K"),
            "tmpfs" => None,
            other => bail!("export(\"{other}\"): the lab knows ext4, xfs, btrfs and tmpfs"),
        };
        ensure!(
            self.delay.is_zero() || self.spec.mkfs.is_some(),
            "slow() needs a disk, and tmpfs has none"
        );
        let started = Instant::now();
        let machine = Machine::boot(&self.spec)?;
        let booted = started.elapsed();
        let server = Server {
            machine,
            kernel: self.spec.kernel,
            threads: self.threads,
            booted,
            clients: self.clients,
            agents: std::sync::atomic::AtomicUsize::new(0),
        };
        let mut script = format!("export_up {} {}\n", self.fs, self.delay.as_millis());
        for n in 0..self.clients {
            script += &format!("client_up {n}\n");
        }
        if self.nfsd {
            script += &format!("nfsd_up {}\n", self.threads);
        }
        if let Err(e) = server.sh(&format!("set -e\n{script}")) {
            server.keep_logs();
            return Err(e.context(format!(
                "bringing the server up on {}; logs: {}",
                self.spec.kernel,
                server.logs().display()
            )));
        }
        Ok(server)
    }
}

/// A machine that serves NFS from `/run/exp`. Dropping it switches it off.
#[derive(Debug)]
pub struct Server {
    machine: Machine,
    kernel: Kernel,
    threads: u32,
    booted: Duration,
    clients: usize,
    agents: std::sync::atomic::AtomicUsize,
}

impl Server {
    /// The beginning of the sentence: a server on this kernel, to be described and started.
    pub fn boot(kernel: Kernel) -> Builder {
        Builder {
            spec: Spec {
                kernel,
                cpus: 2,
                memory: "2G".to_owned(),
                mkfs: None,
                icount: false,
                agent_port: None,
            },
            fs: "ext4".to_owned(),
            delay: Duration::ZERO,
            threads: 8,
            clients: 0,
            nfsd: true,
        }
    }

    /// The kernel that runs.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// From asking for the machine (with the wait for a slot) until it answered.
    pub fn boot_time(&self) -> Duration {
        self.booted
    }

    /// A directory that is readable and writable here and in the machine, under the same path.
    pub fn dir(&self) -> &Path {
        self.machine.shared()
    }

    /// Where the console's log is, and [`Server::dir`] with what the tests put there.
    pub fn logs(&self) -> &Path {
        self.machine.dir()
    }

    /// Leaves the logs behind when the machine ends, as a failing test does by itself.
    pub fn keep_logs(&self) {
        self.machine.keep_logs();
    }

    /// Runs a shell script as root in the machine; fails unless it exits with 0. For a failure that is meant, end the
    /// script with it in an `if`, or use [`Server::spawn`].
    pub fn sh(&self, script: &str) -> Result<Output> {
        self.run(None, script, PATIENCE)
    }

    /// As [`Server::sh`], for something slow.
    pub fn sh_within(&self, patience: Duration, script: &str) -> Result<Output> {
        self.run(None, script, patience)
    }

    /// Starts a shell script and lets it run.
    pub fn spawn(&self, script: &str) -> Result<Running> {
        self.machine.run(None, &format!("{FUNCTIONS}\n{script}"))
    }

    /// Joins this process's terminal to a shell in the machine, and returns the shell's exit code.
    pub fn shell(&self) -> Result<i32> {
        self.machine.terminal("bash -i")
    }

    pub(crate) fn spawn_as(&self, client: usize, script: &str) -> Result<Running> {
        self.machine
            .run(Some(client), &format!("{FUNCTIONS}\n{script}"))
    }

    pub(crate) fn run(
        &self,
        client: Option<usize>,
        script: &str,
        patience: Duration,
    ) -> Result<Output> {
        self.machine
            .run(client, &format!("{FUNCTIONS}\n{script}"))?
            .wait(patience)
            .and_then(|output| output.ok(script))
            .inspect_err(|_| self.keep_logs())
            .with_context(|| format!("the machine's logs are kept in {}", self.logs().display()))
    }

    /// Runs a subcommand of the `lab` program in the machine.
    pub fn lab(&self, arguments: &str) -> Result<Output> {
        self.sh_within(Duration::from_secs(600), &self.lab_command(arguments))
    }

    /// Runs the raw RPC client's scenario in the machine, against the server there.
    pub fn raw(&self, scenario: &str) -> Result<crate::raw::Sent> {
        let output = self.lab(&format!("raw {scenario}"))?;
        serde_json::from_str(&output.stdout)
            .with_context(|| format!("lab raw {scenario} printed {:?}", output.stdout))
    }

    /// Starts nfscope's agent in the machine with these arguments, and waits until it times NFS operations.
    pub fn agent(&self, arguments: &[&str]) -> Result<Agent> {
        let agent = self.agent_start(arguments)?;
        agent
            .wait_until_healthy(Duration::from_secs(60))
            .inspect_err(|_| self.keep_logs())?;
        Ok(agent)
    }

    /// Starts the agent and only waits until it answers at all: for servers where nothing can be timed (yet).
    pub fn agent_start(&self, arguments: &[&str]) -> Result<Agent> {
        let n = self
            .agents
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Agent::start(&self.machine, &place::nfscope_program()?, n, arguments)
            .inspect_err(|_| self.keep_logs())
    }

    /// Where the host reaches the machine's n-th agent port, with or without an agent there.
    pub fn agent_address(&self, n: usize) -> Option<std::net::SocketAddr> {
        self.machine.agent(n)
    }

    /// What the kernel itself has counted.
    pub fn kernel_counts(&self) -> Result<KernelCounts> {
        KernelCounts::parse(&self.sh("cat /proc/net/rpc/nfsd")?.stdout)
    }

    /// The n-th client, counted from 0.
    pub fn client(&self, n: usize) -> Client<'_> {
        assert!(
            n < self.clients,
            "client({n}): the server was built with .clients({})",
            self.clients
        );
        Client::new(self, n)
    }

    /// Every client.
    pub fn clients(&self) -> impl Iterator<Item = Client<'_>> {
        (0..self.clients).map(|n| Client::new(self, n))
    }

    /// Sets the number of nfsd threads.
    pub fn set_threads(&self, threads: u32) -> Result<()> {
        self.sh(&format!("echo {threads} > /proc/fs/nfsd/threads"))?;
        Ok(())
    }

    /// Stops nfsd; its modules stay loaded.
    pub fn nfsd_stop(&self) -> Result<()> {
        self.sh("rpc.nfsd 0")?;
        Ok(())
    }

    /// Starts nfsd, loading its modules if they are not.
    pub fn nfsd_start(&self) -> Result<()> {
        self.sh(&format!("set -e\nnfsd_up {}", self.threads))?;
        Ok(())
    }

    /// Runs a load to its end, over v3 and v4.2 mounts of every client.
    pub fn load(&self, load: Load) -> Result<LoadReport> {
        let mut running = self.start_load(load.clone())?;
        let output = running
            .wait(load.patience())
            .and_then(|o| o.ok("lab load"))
            .inspect_err(|_| self.keep_logs())
            .with_context(|| format!("the machine's logs are kept in {}", self.logs().display()))?;
        serde_json::from_str(&output.stdout)
            .with_context(|| format!("lab load printed {:?}", output.stdout))
    }

    /// Starts a load and lets it run.
    pub fn start_load(&self, load: Load) -> Result<Running> {
        ensure!(
            self.clients > 0,
            "a load needs clients: build the server with .clients(3)"
        );
        let mut mounts = Vec::new();
        for client in self.clients() {
            mounts.push(client.mount_v3()?);
            mounts.push(client.mount_v4_2()?);
        }
        self.spawn(&self.lab_command(&load.command(&mounts)))
    }

    fn lab_command(&self, arguments: &str) -> String {
        format!("exec {} {arguments}", self.machine.lab().display())
    }
}
