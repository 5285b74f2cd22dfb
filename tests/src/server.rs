//! The NFS server in a machine, and the commands that change it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::agent::Agent;
use crate::control::{Output, Running};
use crate::disk::{Delay, Disk};
use crate::kernel::Kernel;
use crate::kernel_counters::KernelCounters;
use crate::machine::Machine;
use crate::paths;
use crate::raw::clients::ClientReport;
use crate::threads::ThreadTimes;

/// Shell functions for every script in the machine.
const FUNCTIONS: &str = concat!(
    include_str!("../guest/server.sh"),
    include_str!("../guest/timed.sh")
);
/// Time limit of [`Server::sh`]: under emulation even a mount takes a second.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time limit for attaching the probes: a few seconds, but minutes on a busy host.
const ATTACHING: Duration = Duration::from_secs(300);

/// A machine that serves NFS from `/run/exp`. Dropping it switches it off.
#[derive(Debug)]
pub struct Server {
    machine: Machine,
    kernel: Kernel,
    threads: u32,
    booted: Duration,
    clients: usize,
    others: Vec<String>,
    agents: std::sync::atomic::AtomicUsize,
    ports: crate::agent::Ports,
}

impl Server {
    pub(crate) fn new(
        machine: Machine,
        kernel: Kernel,
        threads: u32,
        booted: Duration,
        clients: usize,
        others: Vec<String>,
    ) -> Server {
        Server {
            machine,
            kernel,
            threads,
            booted,
            clients,
            others,
            agents: std::sync::atomic::AtomicUsize::new(0),
            ports: crate::agent::Ports::default(),
        }
    }

    /// The kernel that runs.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// True for an icount machine: its clock counts instructions.
    pub(crate) fn counts_instructions(&self) -> bool {
        self.machine.icount()
    }

    /// Seconds from the request for the machine (with the wait for a slot) until it answered.
    pub fn boot_time(&self) -> Duration {
        self.booted
    }

    /// A directory that is readable and writable here and in the machine, under the same path.
    pub fn dir(&self) -> &Path {
        self.machine.shared()
    }

    /// Directory of the console's log. [`Server::dir`] with the tests' files is in it.
    pub fn logs(&self) -> &Path {
        self.machine.dir()
    }

    /// Stops the machine, with its clock, until [`Server::go_on`]. The builder must have been given
    /// [`can_halt`](crate::Builder::can_halt).
    pub fn halt(&self) -> Result<()> {
        self.machine.qemu("stop")
    }

    /// Lets a machine that was halted go on, as if no time had passed.
    pub fn go_on(&self) -> Result<()> {
        self.machine.qemu("cont")
    }

    /// True if the machine has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.machine.has_ended()
    }

    /// Leaves the logs behind when the machine ends, as a failing test does by itself.
    pub fn keep_logs(&self) {
        self.machine.keep_logs();
    }

    /// Runs a shell script as root in the machine; fails unless it exits with 0. For an expected failure, end the script with it in
    /// an `if`, or use [`Server::spawn`].
    pub fn sh(&self, script: &str) -> Result<Output> {
        self.run(None, script, PATIENCE)
    }

    /// Runs a slow shell script, as [`Server::sh`] does, with a time limit of its own.
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
        self.lab_says(&format!("raw {scenario}"))
    }

    /// Has the server answer from a slot, or refuse a call (`lab refused`).
    pub fn refused(&self, case: &str) -> Result<crate::refused::Answers> {
        self.lab_says(&format!("refused {case}"))
    }

    /// Asks for layouts (`lab layouts`).
    pub fn layouts(&self, arguments: &str) -> Result<crate::raw::layouts::Asked> {
        self.lab_says(&format!("layouts {arguments}"))
    }

    /// Starts nfscope's agent in the machine with these arguments, and waits until it times NFS operations.
    pub fn agent(&self, arguments: &[&str]) -> Result<Agent> {
        let agent = self.agent_start(arguments)?;
        agent
            .wait_until_healthy(ATTACHING)
            .inspect_err(|_| self.keep_logs())?;
        Ok(agent)
    }

    /// Starts the agent, and only waits until it answers at all: for servers without anything to time (yet).
    pub fn agent_start(&self, arguments: &[&str]) -> Result<Agent> {
        let n = self
            .agents
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let program = paths::nfscope_program()?;
        Agent::start(&self.machine, &program, n, &self.ports, arguments)
            .inspect_err(|_| self.keep_logs())
    }

    /// The nfscope program, for scripts in the machine.
    pub fn nfscope_path(&self) -> Result<std::path::PathBuf> {
        self.machine.install(&paths::nfscope_program()?, "nfscope")
    }

    /// Counters of the kernel's own, `/proc/net/rpc/nfsd`.
    pub fn kernel_counters(&self) -> Result<KernelCounters> {
        KernelCounters::parse(&self.sh("cat /proc/net/rpc/nfsd")?.stdout)
    }

    pub(crate) fn client_count(&self) -> usize {
        self.clients
    }

    /// Sets the number of nfsd threads.
    pub fn set_threads(&self, threads: u32) -> Result<()> {
        self.sh(&format!(
            "set -e\necho {threads} > /proc/fs/nfsd/threads\nthreads_anywhere"
        ))?;
        Ok(())
    }

    /// Takes every CPU but the first one offline, until [`Server::all_cpus`].
    pub fn one_cpu(&self) -> Result<()> {
        self.sh("set -e\ncpus_online 0").map(drop)
    }

    /// Brings every CPU online.
    pub fn all_cpus(&self) -> Result<()> {
        self.sh("set -e\ncpus_online 1").map(drop)
    }

    /// Stops nfsd; its modules stay loaded.
    pub fn nfsd_stop(&self) -> Result<()> {
        self.sh("rpc.nfsd 0")?;
        Ok(())
    }

    /// Starts nfsd, loading its modules if they are not.
    pub fn nfsd_start(&self) -> Result<()> {
        self.sh(&format!("set -e\n{}", self.nfsd_up()))?;
        Ok(())
    }

    /// Exports another file system (ext4 or xfs), new and empty, on the disks of a server with an external log. The old one may be
    /// any but zfs, and no client may have it mounted.
    pub fn export_anew(&self, fs: &str) -> Result<()> {
        self.export_other("export_anew", fs)
    }

    /// Exports another file system with its log inside it: `ext4`, `ext4-fast` (with fast commits), `xfs` or `btrfs`.
    pub fn export_inside(&self, fs: &str) -> Result<()> {
        self.export_other("export_inside", fs)
    }

    fn export_other(&self, function: &str, fs: &str) -> Result<()> {
        let others = self.others.join(" ");
        let nfsd_up = self.nfsd_up();
        self.sh(&format!(
            "set -e\n{function} {fs} {others}\n{nfsd_up}grace_over"
        ))?;
        Ok(())
    }

    pub(crate) fn nfsd_up(&self) -> String {
        format!("nfsd_up {} {}\n", self.threads, self.others.join(" "))
    }

    /// Makes a disk slower or faster from now on, after the end of its requests under way.
    pub fn delay(&self, disk: Disk, delay: Delay) -> Result<()> {
        self.sh(&format!("set -e\n{}", self.delay_script(disk, delay)))
            .with_context(|| format!("making the {} disk wait {delay:?}", disk.name()))?;
        Ok(())
    }

    pub(crate) fn delay_script(&self, disk: Disk, delay: Delay) -> String {
        format!(
            "disk_delay {} {} {} {}\n",
            disk.name(),
            disk.device(),
            delay.reads.as_millis(),
            delay.writes.as_millis()
        )
    }

    /// Lets many clients of the lab's own call the server, as `lab clients --help` describes them.
    pub fn run_clients(&self, arguments: &str) -> Result<Vec<ClientReport>> {
        self.lab_says(&format!("clients {arguments}"))
    }

    /// Runs a command of the lab in the machine, and reads the JSON that it prints.
    fn lab_says<T: serde::de::DeserializeOwned>(&self, arguments: &str) -> Result<T> {
        let output = self.lab(arguments)?;
        serde_json::from_str(&output.stdout)
            .with_context(|| format!("lab {arguments} printed {:?}", output.stdout))
    }

    /// Keeps every CPU busy for `busy`, leaves it for `idle`, and so on until the returned command is killed.
    pub fn cpu_hog(&self, busy: Duration, idle: Duration) -> Result<Running> {
        self.spawn(&format!(
            "exec chrt -f 50 {} cpu-hog --busy {} --idle {}",
            self.machine.lab().display(),
            busy.as_millis(),
            idle.as_millis()
        ))
    }

    /// Times of the nfsd threads, from the kernel.
    pub fn thread_times(&self) -> Result<ThreadTimes> {
        ThreadTimes::parse(&self.sh(ThreadTimes::SCRIPT)?.stdout)
    }

    /// Drops the caches of the machine's file systems, for server and clients. `lab --help` then reads the names on the way to the
    /// clients' program again: the host has them, and the clock of an icount machine leaps over seconds while it asks a busy host.
    pub fn drop_caches(&self) -> Result<()> {
        let lab = self.lab_path().display();
        self.sh(&format!(
            "sync; echo 3 > /proc/sys/vm/drop_caches; {lab} --help >/dev/null"
        ))?;
        Ok(())
    }

    /// The `lab` program as the machine sees it.
    pub fn lab_path(&self) -> &Path {
        self.machine.lab()
    }

    pub(crate) fn lab_command(&self, arguments: &str) -> String {
        format!("exec {} {arguments}", self.machine.lab().display())
    }
}
