//! Builder of a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::disk::{Delay, Disk};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::server::Server;
use crate::spec::Spec;
use crate::variant::Variant;

/// Description of a server; [`Builder::start`] boots it.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until start() is called"]
pub struct Builder {
    spec: Spec,
    cpus: Option<u32>,
    fs: String,
    delay: Delay,
    delayed: bool,
    spare_log: bool,
    threads: u32,
    clients: usize,
    others: Vec<String>,
    nfsd: bool,
}

/// Kernel parameters that skip work that no test is about: self-tests of its cryptography, the search for pages that are writable and
/// executable, and a line on the emulated serial port for each device. Warnings are still printed.
const QUICK_BOOT: &str = "cryptomgr.notests rodata=off loglevel=5";

/// CPUs of a machine without a number of its own.
const CPUS: u32 = 2;

impl Server {
    /// Begins the description of a server on this kernel.
    pub fn boot(kernel: Kernel) -> Builder {
        Builder::new(kernel)
    }
}

/// CPUs of an icount machine. The emulator runs one of them at a time, and its clock counts the instructions of all: two busy CPUs
/// are half as fast each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountedCpus {
    /// CPU with a nanosecond for each instruction.
    One,
    /// CPU with two nanoseconds for each instruction: as fast as each of two busy ones.
    OneSlow,
    /// Two CPUs, which need two nanoseconds for each instruction while both are busy.
    TwoSlow,
}

impl CountedCpus {
    /// Number of the CPUs.
    pub fn count(self) -> u32 {
        match self {
            CountedCpus::One | CountedCpus::OneSlow => 1,
            CountedCpus::TwoSlow => 2,
        }
    }
}

impl Builder {
    fn new(kernel: Kernel) -> Builder {
        Builder {
            spec: Spec {
                kernel,
                arm64: false,
                cpus: CPUS,
                kernel_args: None,
                possible_cpus: None,
                memory: "2G".to_owned(),
                mkfs: None,
                log_disk: false,
                icount: false,
                driven: false,
                beside: false,
                can_halt: false,
                icount_shift: 0,
                faithful: false,
                agent_port: None,
            },
            cpus: None,
            fs: "ext4".to_owned(),
            delay: Delay::NONE,
            delayed: false,
            spare_log: false,
            threads: 8,
            clients: 0,
            others: Vec::new(),
            nfsd: true,
        }
    }

    /// Virtual CPUs (2, or `LAB_CPUS`).
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// CPUs that could be added while the machine runs, and for which the kernel keeps room; at least as many as there are.
    pub fn possible_cpus(mut self, cpus: u32) -> Self {
        self.spec.possible_cpus = Some(cpus);
        self
    }

    /// Memory, in QEMU's words (`2G`).
    pub fn memory(mut self, memory: &str) -> Self {
        memory.clone_into(&mut self.spec.memory);
        self
    }

    /// The file system to export: `ext4` (the default), `xfs`, `btrfs`, `tmpfs`, or `zfs` (6.1 and 6.12): the
    /// dataset `tank/export` of the pool `tank`.
    pub fn export(mut self, fs: &str) -> Self {
        fs.clone_into(&mut self.fs);
        self
    }

    /// Delays writes and flushes of the exported disk by this time, until [`Server::delay`] changes it.
    pub fn slow(mut self, delay: Duration) -> Self {
        self.delay = Delay::writes(delay);
        self.delayed |= !delay.is_zero();
        self
    }

    /// Makes the speed of the exported disk changeable while the machine runs: [`Server::delay`].
    pub fn delayed(mut self) -> Self {
        self.delayed = true;
        self
    }

    /// Keeps the log of the exported file system (ext4, xfs or zfs) on a disk of its own, whose speed can be changed while the
    /// machine runs: [`Server::delay`].
    pub fn external_log(mut self) -> Self {
        self.spec.log_disk = true;
        self.spare_log = false;
        self
    }

    /// Adds the disk of [`Builder::external_log`] as `/dev/mapper/log`, but does not use it yet: `zpool add -f tank log
    /// /dev/mapper/log`.
    pub fn spare_log(mut self) -> Self {
        self.spec.log_disk = true;
        self.spare_log = true;
        self
    }

    /// Adds an export of a file system of its own, in memory: `/run/exp/<name>` over v3 and `/<name>` over v4.
    pub fn also_export(mut self, name: &str) -> Self {
        self.others.push(name.to_owned());
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

    /// Counts instructions instead of seconds: one CPU, and one instruction is one nanosecond of its time. An idle machine skips to
    /// its next timer, so give it loads that never wait.
    pub fn icount(self) -> Self {
        self.icount_on(CountedCpus::One)
    }

    /// Counts instructions, as [`Builder::icount`], with other CPUs.
    pub fn icount_on(mut self, cpus: CountedCpus) -> Self {
        self.spec.icount = true;
        self.spec.icount_shift = u32::from(cpus == CountedCpus::OneSlow);
        self.cpus = Some(cpus.count());
        self
    }

    /// Stops the machine's clock except while this process waits for the machine, or [lets time pass](crate::clock). `LAB_CLOCK=host`
    /// leaves it on the host's clock, and so does KVM.
    pub fn driven(mut self) -> Self {
        self.spec.driven = true;
        self
    }

    /// Takes none of the two slots that machines have: for a machine that runs for hours, beside all others.
    pub fn beside(mut self) -> Self {
        self.spec.beside = true;
        self
    }

    /// Allows [`Server::halt`]: the machine can be stopped, and go on later.
    pub fn can_halt(mut self) -> Self {
        self.spec.can_halt = true;
        self
    }

    /// Boots the kernel with its mitigations on, on a CPU with everything that QEMU emulates: instructions are counted as an admin's
    /// server would execute them.
    pub fn faithful(mut self) -> Self {
        self.spec.faithful = true;
        self
    }

    /// Host port to try first for the first agent.
    pub fn agent_port(mut self, port: u16) -> Self {
        self.spec.agent_port = Some(port);
        self
    }

    /// Boots the machine and brings the server up.
    pub fn start(mut self) -> Result<Server> {
        let run = Variant::of_this_run()?;
        self.spec.cpus = self.cpus.or(run.cpus).unwrap_or(CPUS);
        self.spec.arm64 = run.arm64();
        let quick = (!self.spec.faithful && !self.spec.arm64).then(|| QUICK_BOOT.to_owned());
        let words: Vec<String> = quick.into_iter().chain(run.kernel_args).collect();
        self.spec.kernel_args = (!words.is_empty()).then(|| words.join(" "));
        self.spec.driven &= !run.host_clock;
        let words = |line: &str| Some(line.split(' ').map(str::to_owned).collect());
        self.spec.mkfs = match self.fs.as_str() {
            "ext4" => words("mkfs.ext4 -q -F -E lazy_itable_init=1,nodiscard"),
            "xfs" => words("mkfs.xfs -q -f -K"),
            "btrfs" => words("mkfs.btrfs -q -f -K"),
            // A pool of ZFS is made in the machine.
            "zfs" => Some(Vec::new()),
            "tmpfs" => None,
            other => bail!("export(\"{other}\"): the lab knows ext4, xfs, btrfs, zfs and tmpfs"),
        };
        ensure!(
            self.spec.mkfs.is_some() || !(self.delayed || self.spec.log_disk),
            "slow(), delayed(), external_log() and spare_log() need a disk, and tmpfs has none"
        );
        let mut script = String::new();
        if self.fs == "zfs" {
            script += &format!("zfs_load {}\n", self.spec.kernel.zfs()?.display());
            // zpool takes a mapped disk as it is; it partitions others and waits for udev.
            self.delayed = true;
        }
        let started = Instant::now();
        let machine = Machine::boot(&self.spec)?;
        let booted = started.elapsed();
        let server = Server::new(
            machine,
            self.spec.kernel,
            self.threads,
            booted,
            self.clients,
            self.others.clone(),
        );
        if server.counts_instructions() {
            let list = server.logs().join("in-memory");
            let own = [server.lab_path().to_owned(), server.nfscope_path()?];
            in_memory(&list, &own)?;
            script += &format!("in_memory {}\n", list.display());
        }
        let mut export = vec![self.fs.clone()];
        if self.spec.mkfs.is_some() {
            let plain = Disk::Data.device().to_owned();
            export.push(if self.delayed {
                Disk::Data.mapped()
            } else {
                plain
            });
        }
        let logs = self.spec.log_disk.then_some(Disk::Log);
        for disk in self.delayed.then_some(Disk::Data).into_iter().chain(logs) {
            script += &format!("disk_up {} {}\n", disk.name(), disk.device());
        }
        if let Some(log) = logs.filter(|_| !self.spare_log) {
            export.push(log.mapped());
        }
        script += &format!("export_up {}\n", export.join(" "));
        for name in &self.others {
            script += &format!("also_export_up {name}\n");
        }
        for n in 0..self.clients {
            script += &format!("client_up {n}\n");
        }
        if self.nfsd {
            script += &server.nfsd_up();
        }
        if self.delay != Delay::NONE {
            script += &server.delay_script(Disk::Data, self.delay);
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

const IN_MEMORY: &str = include_str!("../guest/in_memory.sh");

/// Writes the list of files that an icount machine keeps in memory.
fn in_memory(list: &Path, programs: &[PathBuf]) -> Result<()> {
    let output = Command::new("bash")
        .args(["-euc", IN_MEMORY, "in_memory.sh"])
        .args(programs)
        .output()
        .context("starting bash")?;
    ensure!(
        output.status.success(),
        "listing the machine's programs failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::write(list, output.stdout).with_context(|| format!("writing {}", list.display()))
}
